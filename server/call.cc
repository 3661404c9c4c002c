#include "server/call.h"

#include <cmath>

#include "core/wire/error_details.h"
#include "core/wire/scalars.h"

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

// Who did what to the store: one line per call, be it refused.
void LogAdmin(Logger& logger, const Caller& caller, const RpcRecord& record) {
  logger.Info("admin", {{"who", caller.identity},
                        {"tenant", caller.tenant},
                        {"what", RpcMethodName(record.method)},
                        {"keys", record.keys},
                        {"reason", TextToWire(record.reason)},
                        {"outcome", absl::StatusCodeToString(record.status.code())},
                        {"message", Message(record.status)}});
}

std::string LogText(const std::vector<StageTime>& stages) {
  return StrJoin(stages, " ", [](const StageTime& stage) {
    return StrCat(stage.stage, "=", std::round(ToMicroseconds(stage.took)) / 1e3);
  });
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
      start_(parts.clock.Now()),
      cancel_(parts.clock, DeadlineOf(context, parts.clock)) {
  record_.method = method;
  parts_.observer.OnStarted(method);
}

absl::Status Call::Admit(const grpc::ByteBuffer& request, std::function<void()> work) {
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
  if (IsAdmin(record_.method)) LogAdmin(parts_.logger, caller_, record_);
  parts_.logger.Info("rpc", {{"method", RpcMethodName(record_.method)},
                             {"request_id", TextToWire(record_.request_id)},
                             {"plan", record_.plan_key},
                             {"cache", record_.cache ? CacheOutcomeName(*record_.cache) : ""},
                             {"code", absl::StatusCodeToString(status.code())},
                             {"message", Message(status)},
                             {"ms", ToMilliseconds(record_.took)},
                             {"queue_ms", ToMilliseconds(record_.queued)},
                             {"stages_ms", LogText(record_.stages)},
                             {"bytes_in", record_.bytes_in},
                             {"bytes_out", record_.bytes_out}});
  return ToGrpc(status);
}

}  // namespace fusion
