#include "server/call.h"

#include <cmath>

#include "core/wire/error_details.h"
#include "core/wire/scalars.h"
#include "server/audit.h"

namespace fusion {
namespace {

// Statuses travel in HTTP headers, of which a call may have 8 KB in all.
constexpr size_t kMaxMessageBytes = 2 << 10;
// Stands for "no deadline", far from overflow.
constexpr Nanoseconds kForever = std::chrono::hours(24 * 365);

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(Message(status));
  if (message.size() > kMaxMessageBytes) {
    message.resize(kMaxMessageBytes - 3);
    message += "...";
  }
  return {static_cast<grpc::StatusCode>(status.code()), TextToWire(message),
          EncodeErrorDetails(status)};
}

Nanoseconds DeadlineOf(const grpc::CallbackServerContext& context, const Clock& clock) {
  std::chrono::system_clock::time_point deadline = context.deadline();
  std::chrono::system_clock::time_point now = std::chrono::system_clock::now();
  if (deadline > now + kForever) return clock.Now() + kForever;
  return clock.Now() + (deadline - now);
}

std::string LogText(const std::vector<StageTime>& stages) {
  return StrJoin(stages, " ", [](const StageTime& stage) {
    return StrCat(stage.stage, "=", std::round(ToMicroseconds(stage.took)) / 1e3);
  });
}

// Answers from the caches are many and alike.
bool IsUsual(const RpcRecord& record) {
  return record.status.ok() &&
         (record.cache == CacheOutcome::kHitMemory || record.cache == CacheOutcome::kHitStore);
}

}  // namespace

absl::Status FlatBytes::Read(const grpc::ByteBuffer& buffer) {
  if (!buffer.Dump(&slices_).ok()) return Internal("the request's bytes cannot be read");
  if (slices_.size() == 1) return absl::OkStatus();
  joined_.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices_) joined_.append(ViewOf(slice));
  return absl::OkStatus();
}

Call::Call(const ServiceParts& parts, const grpc::CallbackServerContext& context, RpcMethod method)
    : parts_(parts),
      context_(context),
      start_(parts.clock.Now()),
      cancel_(parts.clock, DeadlineOf(context, parts.clock)),
      identified_(IdentifyCaller(parts.authenticator, context, &caller_)) {
  record_.method = method;
  record_.tenant = caller_.tenant;
  parts_.observer.OnStarted(method);
}

absl::Status Call::Admit(const grpc::ByteBuffer& request, std::function<void()> work) {
  RETURN_IF_ERROR(identified_);
  RETURN_IF_ERROR(CheckRole(caller_, RoleOf(record_.method)));
  auto bytes = static_cast<int64_t>(request.Length());
  record_.bytes_in = bytes;
  if (bytes > parts_.max_request_bytes) {
    return ResourceExhausted("a request of ", HumanBytes(bytes), "; this server takes at most ",
                             HumanBytes(parts_.max_request_bytes), " (--max-request-bytes)");
  }
  ASSIGN_OR_RETURN(Admission::Pass pass, parts_.admission.Enter(bytes));
  pass_.emplace(std::move(pass));
  return parts_.admission.Run(std::move(work));
}

grpc::Status Call::Account(const absl::Status& status) {
  record_.status = status;
  record_.took = parts_.clock.Now() - start_;
  parts_.observer.OnFinished(record_);
  if (RoleOf(record_.method) == Role::kAdmin) {
    LogAdminCall(parts_.logger, caller_, context_.peer(), RpcMethodName(record_.method), status);
  }
  if (!IsUsual(record_) || parts_.log_sample.Pick()) LogCall();
  return ToGrpc(status);
}

void Call::LogCall() const {
  const RpcRecord& r = record_;
  parts_.logger.Info("rpc", {{"method", RpcMethodName(r.method)},
                             {"request_id", TextToWire(r.request_id)},
                             {"plan", r.plan_key},
                             {"cache", r.cache ? CacheOutcomeName(*r.cache) : ""},
                             {"code", absl::StatusCodeToString(r.status.code())},
                             {"message", Message(r.status)},
                             {"ms", ToMilliseconds(r.took)},
                             {"queue_ms", ToMilliseconds(r.queued)},
                             {"stages_ms", LogText(r.stages)},
                             {"bytes_in", r.bytes_in},
                             {"bytes_out", r.bytes_out},
                             {"tenant", r.tenant},
                             {"identity", caller_.identity},
                             {"trace_id", caller_.trace_id},
                             {"one_in", IsUsual(r) ? parts_.log_sample.one_in() : 1}});
}

}  // namespace fusion
