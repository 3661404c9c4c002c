#include "server/rpc/unary_call.h"

#include "server/rpc/call.h"

namespace fusion {
namespace {

class UnaryCall final : public UnaryReactor<Call> {
 public:
  UnaryCall(const ServiceParts& parts, const grpc::CallbackServerContext& context, RpcMethod method,
            const grpc::ByteBuffer& request, grpc::ByteBuffer* response, UnaryHandler handler)
      : UnaryReactor(parts, context, method, request, response), handler_(std::move(handler)) {}

 private:
  absl::Status Answer() override {
    record_.queued = parts_.clock.Now() - start_;
    RETURN_IF_ERROR(cancel_.Check());
    FlatBytes bytes;
    RETURN_IF_ERROR(bytes.Read(request_));
    const std::function<absl::Status(int64_t)> hold = [this](int64_t charged) {
      return HoldToRead(charged);
    };
    ASSIGN_OR_RETURN(std::string answer, handler_(bytes.view(), {cancel_, record_, caller_, hold}));
    RETURN_IF_ERROR(HoldNoMore());
    grpc::Slice slice(answer);
    return Send(grpc::ByteBuffer(&slice, 1));
  }

  const UnaryHandler handler_;
};

}  // namespace

grpc::ServerUnaryReactor* StartUnaryCall(const ServiceParts& parts,
                                         grpc::CallbackServerContext& context, RpcMethod method,
                                         const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer* response, UnaryHandler handler) {
  return UnaryCall::Start(
      std::make_unique<UnaryCall>(parts, context, method, request, response, std::move(handler)),
      context);
}

}  // namespace fusion
