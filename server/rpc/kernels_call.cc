#include "server/rpc/kernels_call.h"

#include "core/wire/basics/scalars.h"
#include "core/wire/signature.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/request_codec.h"

namespace fusion {
namespace {

// Bytes of a kernel per message: well below gRPC's default limit of 4 MB.
constexpr size_t kChunkBytes = 1 << 20;

// A kernel that failed has other codes than NotFound.
bool IsUnknown(const KernelReply& reply) {
  return reply.state == KernelState::kFailed && absl::IsNotFound(reply.why);
}

/// One GetKernels: fetches a kernel on a thread of Admission, writes it from gRPC's threads,
/// fetches the next one. A caller that reads slowly occupies no thread. Deletes itself in OnDone.
class KernelsCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, Call {
 public:
  KernelsCall(const ServiceParts& parts, const grpc::CallbackServerContext& context,
              const grpc::ByteBuffer& request)
      : Call(parts, context, RpcMethod::kGetKernels), request_(request) {}

  void Start() {
    Begin(
        request_, [this] { Work(); }, [this](const absl::Status& why) { Finish(Account(why)); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(Account(Cancelled("the caller went away")));
    Next();
  }
  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Work() {
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

  // At most one write or one task runs at a time, so this needs no lock.
  void Next() {
    if (kernel_ != nullptr) return WriteChunk();
    if (next_ == keys_.size()) return Finish(Account(absl::OkStatus()));
    absl::Status submitted = parts_.admission.Resume(*pass_, [this] { Fetch(); });
    if (!submitted.ok()) Finish(Account(submitted));
  }

  void Fetch() {
    std::optional<std::string_view> tenant;
    if (parts_.tenant_namespaces) tenant = caller_.tenant;
    const bool is_made = parts_.store.HasKernel(keys_[next_]);
    const Nanoseconds begin = parts_.clock.Now();
    KernelReply reply = parts_.pipeline.GetKernel(keys_[next_], cancel_, tenant);
    if (!is_made) Admission::OthersWorked(parts_.clock.Now() - begin);
    if (reply.state == KernelState::kPending) return Finish(Account(reply.why));
    // Not earlier: a call that waits for a kernel to be compiled occupies a thread.
    absl::Status begun = parts_.admission.BeginStream(&*pass_);
    if (!begun.ok()) return Finish(Account(begun));
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
    grpc::Slice slice(message_.SerializeAsString());
    const auto bytes = static_cast<int64_t>(slice.size());
    Write(grpc::ByteBuffer(&slice, 1), {.own = bytes});
  }

  // The kernel's own bytes are not copied: they stand last, behind the other fields.
  void WriteChunk() {
    std::string_view part = std::string_view(kernel_->binary).substr(sent_, kChunkBytes);
    sent_ += part.size();
    message_.set_last(sent_ == kernel_->binary.size());
    if (message_.last()) Sign();
    std::string head = message_.SerializeAsString();
    head += EncodeFieldHead(v1::GetKernelsResponse::kDataFieldNumber, part.size());
    grpc::Slice slices[] = {grpc::Slice(head), SharedSlice(kernel_, part)};
    const AnswerMemory kept = {.own = static_cast<int64_t>(head.size()),
                               .shared = {{kernel_.get(), ChargedBytes(*kernel_)}}};
    if (message_.last()) kernel_ = nullptr;
    Write(grpc::ByteBuffer(slices, std::size(slices)), kept);
  }

  void Sign() {
    std::optional<Signature> signature = parts_.signer.SignKernel(kernel_->key, kernel_->content);
    if (signature.has_value()) EncodeSignature(*signature, message_.mutable_signature());
  }

  void Write(grpc::ByteBuffer buffer, const AnswerMemory& kept) {
    absl::Status room = NoteAnswer(kept);
    if (!room.ok()) return Finish(Account(room));
    ++record_.messages_sent;
    buffer_ = std::move(buffer);
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

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartKernelsCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) {
  auto* call = new KernelsCall(parts, context, request);
  call->Start();
  return call;
}

}  // namespace fusion
