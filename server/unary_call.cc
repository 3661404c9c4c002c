#include "server/unary_call.h"

#include "server/call.h"

namespace fusion {
namespace {

class UnaryCall final : public grpc::ServerUnaryReactor, Call {
 public:
  UnaryCall(const ServiceParts& parts, const grpc::CallbackServerContext& context, RpcMethod method,
            const grpc::ByteBuffer& request, grpc::ByteBuffer* response, UnaryHandler handler)
      : Call(parts, context, method),
        request_(request),
        response_(response),
        handler_(std::move(handler)) {}

  void Start() {
    absl::Status admitted = Admit(request_, [this] { Finish(Account(Answer())); });
    if (!admitted.ok()) Finish(Account(admitted));
  }

  void OnCancel() override { cancel_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Answer() {
    record_.queued = parts_.clock.Now() - start_;
    RETURN_IF_ERROR(cancel_.Check());
    FlatBytes bytes;
    RETURN_IF_ERROR(bytes.Read(request_));
    ASSIGN_OR_RETURN(std::string answer, handler_(bytes.view(), {cancel_, record_}));
    grpc::Slice slice(answer);
    *response_ = grpc::ByteBuffer(&slice, 1);
    record_.messages_sent = 1;
    record_.bytes_out = static_cast<int64_t>(answer.size());
    return absl::OkStatus();
  }

  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer* const response_;
  const UnaryHandler handler_;
};

}  // namespace

grpc::ServerUnaryReactor* StartUnaryCall(const ServiceParts& parts,
                                         const grpc::CallbackServerContext& context,
                                         RpcMethod method, const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer* response, UnaryHandler handler) {
  auto* call = new UnaryCall(parts, context, method, request, response, std::move(handler));
  call->Start();
  return call;
}

}  // namespace fusion
