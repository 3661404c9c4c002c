#include "server/fusion_service.h"

#include <grpcpp/grpcpp.h>

#include <cmath>
#include <optional>

#include "core/wire/scalars.h"
#include "server/request_codec.h"

namespace fusion {
namespace {

// Statuses travel in HTTP headers, of which a call may have 8 KB in all.
constexpr size_t kMaxMessageBytes = 2 << 10;
// Part of a kernel in one message; gRPC's default limit of 4 MB must never be met.
constexpr size_t kChunkBytes = 1 << 20;
// Stands for "no deadline", far from overflow.
constexpr Nanoseconds kForever = std::chrono::hours(24 * 365);

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(Message(status));
  if (message.size() > kMaxMessageBytes) {
    message.resize(kMaxMessageBytes - 3);
    message += "...";
  }
  return {static_cast<grpc::StatusCode>(status.code()), TextToWire(message)};
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

// A kernel that failed says so with other codes.
bool IsUnknown(const KernelReply& reply) {
  return reply.state == KernelState::kFailed && absl::IsNotFound(reply.why);
}

/// The bytes of a message in one piece. Refers to the buffer's where it can: requests of up to some
/// 16 KB come in one piece.
class FlatBytes {
 public:
  absl::Status Read(const grpc::ByteBuffer& buffer) {
    if (!buffer.Dump(&slices_).ok()) return Internal("the request's bytes cannot be read");
    if (slices_.size() == 1) return absl::OkStatus();
    joined_.reserve(buffer.Length());
    for (const grpc::Slice& slice : slices_) joined_.append(ViewOf(slice));
    return absl::OkStatus();
  }
  std::string_view view() const { return slices_.size() == 1 ? ViewOf(slices_[0]) : joined_; }

 private:
  static std::string_view ViewOf(const grpc::Slice& slice) {
    return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
  }
  std::vector<grpc::Slice> slices_;
  std::string joined_;
};

/// What both kinds of calls share: cancellation, admission, and the account at the end.
class Call {
 public:
  Call(const ServiceParts& parts, const grpc::CallbackServerContext& context, RpcMethod method)
      : parts_(parts),
        start_(parts.clock.Now()),
        cancel_(parts.clock, DeadlineOf(context, parts.clock)) {
    record_.method = method;
    parts_.observer.OnStarted(method);
  }
  virtual ~Call() = default;

 protected:
  absl::Status Enter(int64_t bytes) {
    record_.bytes_in = bytes;
    if (bytes > parts_.max_request_bytes) {
      return ResourceExhausted("a request of ", HumanBytes(bytes), "; this server takes at most ",
                               HumanBytes(parts_.max_request_bytes), " (--max-request-bytes)");
    }
    ASSIGN_OR_RETURN(Admission::Pass pass, parts_.admission.Enter(bytes));
    pass_.emplace(std::move(pass));
    return absl::OkStatus();
  }

  // The last thing before the answer is given away: afterwards the call may be gone any moment.
  grpc::Status Account(const absl::Status& status) {
    record_.status = status;
    record_.took = parts_.clock.Now() - start_;
    parts_.observer.OnFinished(record_);
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

  const ServiceParts& parts_;
  const Nanoseconds start_;
  CancelToken cancel_;
  RpcRecord record_;
  std::optional<Admission::Pass> pass_;  // until the answer is sent
};

/// One PlanFusion. Deletes itself when gRPC is done with it.
class PlanCall final : public grpc::ServerUnaryReactor, Call {
 public:
  PlanCall(const ServiceParts& parts, const grpc::CallbackServerContext& context,
           const grpc::ByteBuffer& request, grpc::ByteBuffer* response)
      : Call(parts, context, RpcMethod::kPlanFusion), request_(request), response_(response) {}

  void Start() {
    absl::Status admitted = Enter(static_cast<int64_t>(request_.Length()));
    if (admitted.ok()) admitted = parts_.admission.Run([this] { Answer(); });
    if (!admitted.ok()) Finish(Account(admitted));
  }

  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Answer() {
    record_.queued = parts_.clock.Now() - start_;
    absl::Status status = Plan();
    Finish(Account(status));
  }

  absl::Status Plan() {
    Nanoseconds begin = parts_.clock.Now();
    FlatBytes bytes;
    RETURN_IF_ERROR(bytes.Read(request_));
    ASSIGN_OR_RETURN(std::unique_ptr<DecodedRequest> decoded, DecodePlanRequest(bytes.view()));
    record_.request_id = decoded->request_id();
    StageTime decode{"decode", parts_.clock.Now() - begin};
    absl::StatusOr<PlanReply> reply = parts_.pipeline.PlanFusion(decoded->request(), cancel_);
    if (!reply.ok()) return reply.status();
    reply->stages.insert(reply->stages.begin(), std::move(decode));
    Describe(*reply);
    SetResponse(EncodePlanReply(*reply));
    return absl::OkStatus();
  }

  void Describe(const PlanReply& reply) {
    record_.plan_key = reply.stored->key.ToHex();
    record_.cache = reply.cache;
    record_.stages = reply.stages;
    record_.messages_sent = 1;
  }

  void SetResponse(EncodedReply encoded) {
    using PlanPointer = std::shared_ptr<const StoredPlan>;
    auto* owner = new PlanPointer(std::move(encoded.plan));  // the slice owns it
    const std::string& plan = (*owner)->plan_bytes;
    grpc::Slice slices[] = {
        grpc::Slice(encoded.head),
        grpc::Slice(
            const_cast<char*>(plan.data()), plan.size(),
            [](void* pointer) { delete static_cast<PlanPointer*>(pointer); }, owner),
        grpc::Slice(encoded.tail)};
    *response_ = grpc::ByteBuffer(slices, std::size(slices));
    record_.bytes_out = static_cast<int64_t>(response_->Length());
  }

  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer* const response_;
};

/// One GetKernels: fetches a kernel on a thread of ours, streams it from gRPC's, fetches the next.
/// A caller that reads slowly holds no thread. Deletes itself when gRPC is done with it.
class KernelsCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, Call {
 public:
  KernelsCall(const ServiceParts& parts, const grpc::CallbackServerContext& context,
              const grpc::ByteBuffer& request)
      : Call(parts, context, RpcMethod::kGetKernels), request_(request) {}

  void Start() {
    absl::Status admitted = Enter(static_cast<int64_t>(request_.Length()));
    if (admitted.ok()) admitted = parts_.admission.Run([this] { Begin(); });
    if (!admitted.ok()) Finish(Account(admitted));
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(Account(Cancelled("the caller went away")));
    Next();
  }
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Begin() {
    record_.queued = parts_.clock.Now() - start_;
    absl::Status read = ReadKeys();
    if (!read.ok() || keys_.empty()) return Finish(Account(read));
    Fetch();
  }

  absl::Status ReadKeys() {
    FlatBytes bytes;
    RETURN_IF_ERROR(bytes.Read(request_));
    ASSIGN_OR_RETURN(keys_, DecodeKernelsRequest(bytes.view()));
    return absl::OkStatus();
  }

  // At most one of a write and a task is under way, so nothing here runs twice at once.
  void Next() {
    if (kernel_ != nullptr) return WriteChunk();
    if (next_ == keys_.size()) return Finish(Account(absl::OkStatus()));
    absl::Status submitted = parts_.admission.Run([this] { Fetch(); });
    if (!submitted.ok()) Finish(Account(submitted));
  }

  void Fetch() {
    KernelReply reply = parts_.pipeline.GetKernel(keys_[next_], cancel_);
    if (reply.state == KernelState::kPending) return Finish(Account(reply.why));
    message_.Clear();
    message_.set_key(DigestToWire(keys_[next_++]));
    message_.set_state(IsUnknown(reply) ? v1::KERNEL_STATE_UNKNOWN : ToWire(reply.state));
    if (reply.state == KernelState::kReady) {
      kernel_ = std::move(reply.kernel);
      sent_ = 0;
      message_.set_content_sha256(DigestToWire(kernel_->content));
      return WriteChunk();
    }
    message_.set_error(TextToWire(Message(reply.why)));
    message_.set_last(true);
    Write();
  }

  void WriteChunk() {
    std::string_view part = std::string_view(kernel_->binary).substr(sent_, kChunkBytes);
    sent_ += part.size();
    message_.set_data(part.data(), part.size());
    message_.set_last(sent_ == kernel_->binary.size());
    if (message_.last()) kernel_ = nullptr;
    Write();
  }

  void Write() {
    ++record_.messages_sent;
    buffer_.Clear();
    bool owned = false;
    grpc::Status serialised =
        grpc::SerializationTraits<v1::GetKernelsResponse>::Serialize(message_, &buffer_, &owned);
    if (!serialised.ok()) return Finish(Account(Internal("a kernel cannot be serialised")));
    record_.bytes_out += static_cast<int64_t>(buffer_.Length());
    StartWrite(&buffer_);
  }

  const grpc::ByteBuffer& request_;
  std::vector<Digest> keys_;
  size_t next_ = 0;
  std::shared_ptr<const KernelArtifact> kernel_;  // the one that is being sent
  size_t sent_ = 0;
  v1::GetKernelsResponse message_;
  grpc::ByteBuffer buffer_;  // what is being written
};

}  // namespace

grpc::ServerUnaryReactor* FusionServiceImpl::PlanFusion(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* request,
                                                        grpc::ByteBuffer* response) {
  auto* call = new PlanCall(parts_, *context, *request, response);
  call->Start();
  return call;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* FusionServiceImpl::GetKernels(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  auto* call = new KernelsCall(parts_, *context, *request);
  call->Start();
  return call;
}

}  // namespace fusion
