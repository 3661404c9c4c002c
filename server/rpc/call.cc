#include "server/rpc/call.h"

#include <algorithm>
#include <cmath>

#include "core/base/text/decimal_numbers.h"
#include "core/base/trace.h"
#include "core/wire/basics/scalars.h"
#include "core/wire/error_details.h"
#include "server/access/audit.h"
#include "server/transport/peer.h"

namespace fusion {
namespace {

// Statuses are sent in HTTP headers, which may have 8 KB per call.
constexpr size_t kMaxMessageBytes = 2 << 10;
constexpr Nanoseconds kAdminLimit = std::chrono::hours(24);
// Memory for messages and texts made of a plan, as a multiple of its ChargedBytes. Chosen: two
// forms at a time, each twice as long.
constexpr int64_t kReadTimes = 4;

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message = DecimalNumbers(Message(status));
  if (message.size() > kMaxMessageBytes) {
    message.resize(kMaxMessageBytes - 3);
    message += "...";
  }
  return {static_cast<grpc::StatusCode>(status.code()), TextToWire(message),
          EncodeErrorDetails(status)};
}

// The earlier of the call's own deadline and the server's limit.
Nanoseconds DeadlineOf(const grpc::CallbackServerContext& context, const Clock& clock,
                       Nanoseconds limit) {
  std::chrono::system_clock::time_point deadline = context.deadline();
  std::chrono::system_clock::time_point now = std::chrono::system_clock::now();
  if (deadline > now + limit) return clock.Now() + limit;
  return clock.Now() + (deadline - now);
}

// Administrators are trusted, and reading or writing a large store takes long.
Nanoseconds LimitOf(const ServiceParts& parts, RpcMethod method) {
  return RoleOf(method) == Role::kAdmin ? kAdminLimit : parts.call_limit;
}

std::string LogText(const std::vector<StageTime>& stages) {
  return StrJoin(stages, " ", [](const StageTime& stage) {
    return StrCat(stage.stage, "=", std::round(ToMicroseconds(stage.took)) / 1e3);
  });
}

// Answers from the caches are numerous and similar: they have a log sample of their own.
bool IsUsual(const RpcRecord& record) {
  return record.status.ok() &&
         (record.cache == CacheOutcome::kHitMemory || record.cache == CacheOutcome::kHitStore);
}

}  // namespace

absl::Status FlatBytes::Read(const grpc::ByteBuffer& buffer) {
  // Only the peer can cause this: it sent no message or a part of one.
  if (!buffer.Valid() || !buffer.Dump(&slices_).ok()) {
    return InvalidArgument("the call ended without a whole request");
  }
  return absl::OkStatus();
}

std::string_view FlatBytes::view() {
  if (slices_.size() == 1) return ViewOf(slices_[0]);
  if (joined_.empty()) {
    for (const grpc::Slice& slice : slices_) joined_.append(ViewOf(slice));
  }
  return joined_;
}

std::vector<std::string_view> FlatBytes::pieces() const {
  std::vector<std::string_view> pieces;
  for (const grpc::Slice& slice : slices_) pieces.push_back(ViewOf(slice));
  return pieces;
}

Call::Call(const ServiceParts& parts, const grpc::CallbackServerContext& context, RpcMethod method)
    : parts_(parts),
      context_(context),
      start_(parts.clock.Now()),
      cancel_(parts.clock, DeadlineOf(context, parts.clock, LimitOf(parts, method))),
      identified_(IdentifyCaller(parts.authenticator, context, &caller_)) {
  parts.begins(context);
  record_.method = method;
  record_.tenant = caller_.tenant;
  parts_.observer.OnStarted(method);
}

absl::Status Call::Enter(const grpc::ByteBuffer& request) {
  // Cancelled calls may be numerous (rapid reset): they must cost nothing.
  if (context_.IsCancelled()) return Cancelled("the caller took the call back");
  RETURN_IF_ERROR(identified_);
  RETURN_IF_ERROR(CheckRole(caller_, RoleOf(record_.method)));
  if (RoleOf(record_.method) == Role::kAdmin) parts_.lasts(context_);
  auto bytes = static_cast<int64_t>(request.Length());
  NoteRequest(bytes);
  if (bytes > parts_.max_request_bytes) {
    return ResourceExhausted("a request of ", HumanBytes(bytes), "; this server takes at most ",
                             HumanBytes(parts_.max_request_bytes), " (--max-request-bytes)");
  }
  ASSIGN_OR_RETURN(Admission::Pass pass, parts_.admission.Enter(owner(), bytes, record_.method));
  pass_.emplace(std::move(pass));
  return absl::OkStatus();
}

void Call::NoteRequest(int64_t bytes) {
  record_.bytes_in += bytes;
  parts_.requested(context_, bytes);
}

absl::Status Call::Run(std::function<void()> work,
                       std::function<void(const absl::Status&)> refused) {
  const ScopedTrace traced(caller_.trace_id);
  RETURN_IF_ERROR(parts_.admission.TakeTurn(&*pass_, *cancel_.Remaining()));
  return parts_.admission.Run(*pass_, std::move(work), std::move(refused),
                              [this] { return cancel_.Check(); });
}

absl::Status Call::HoldToRead(int64_t charged) {
  // The bound lets the largest plan be admitted beside other calls.
  const int64_t most = parts_.admission.byte_limit() / 4;
  return parts_.admission.Hold(&*pass_, record_.bytes_in + std::min(kReadTimes * charged, most));
}

void Call::Begin(const grpc::ByteBuffer& request, std::function<void()> work,
                 const std::function<void(const absl::Status&)>& refused) {
  absl::Status begun = Enter(request);
  if (begun.ok()) begun = Run(std::move(work), refused);
  if (!begun.ok()) refused(begun);
}

grpc::Status Call::Account(const absl::Status& status) {
  EndTurn();
  record_.status = status;
  record_.took = parts_.clock.Now() - start_;
  parts_.observer.OnFinished(record_);
  LogSample& sample = IsUsual(record_) ? parts_.usual_log : parts_.other_log;
  const std::optional<int64_t> left_out = sample.Pick();
  // Every call of an administrator; calls of others are sampled like "rpc" lines.
  const bool may = identified_.ok() && CheckRole(caller_, Role::kAdmin).ok();
  if (RoleOf(record_.method) == Role::kAdmin && (may || left_out.has_value())) {
    LogAdminCall(parts_.logger, caller_, PlainPeer(context_.peer()), record_);
  }
  if (left_out.has_value()) LogCall(*left_out);
  return ToGrpc(status);
}

void Call::LogCall(int64_t left_out) const {
  const RpcRecord& r = record_;
  parts_.logger.Info("rpc", {{"method", RpcMethodName(r.method)},
                             {"request_id", TextToWire(r.request_id)},
                             {"plan", r.plan_key},
                             {"cache", r.cache ? CacheOutcomeName(*r.cache) : ""},
                             {"tenant", r.tenant},
                             {"identity", caller_.identity},
                             {"peer", PlainPeer(context_.peer())},
                             {"trace_id", caller_.trace_id},
                             {"code", absl::StatusCodeToString(r.status.code())},
                             {"message", Message(r.status)},
                             {"ms", ToMilliseconds(r.took)},
                             {"queue_ms", ToMilliseconds(r.queued)},
                             {"stages_ms", LogText(r.stages)},
                             {"bytes_in", r.bytes_in},
                             {"bytes_out", r.bytes_out},
                             {"left_out", left_out}});
}

}  // namespace fusion
