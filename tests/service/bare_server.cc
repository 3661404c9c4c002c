#include "tests/service/bare_server.h"

#include "fusion/v1/fusion_service.grpc.pb.h"

namespace fusion {
namespace {

class BareService final
    : public v1::FusionService::WithRawCallbackMethod_PlanFusion<v1::FusionService::Service> {
 public:
  explicit BareService(const std::optional<std::string>& answer)
      : answer_(answer.value_or("")),
        status_(answer.has_value()
                    ? grpc::Status::OK
                    : grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "server is busy")) {}
  grpc::ServerUnaryReactor* PlanFusion(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* /*request*/,
                                       grpc::ByteBuffer* response) override {
    if (status_.ok()) *response = grpc::ByteBuffer(&answer_, 1);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(status_);
    return reactor;
  }

 private:
  grpc::Slice answer_;
  const grpc::Status status_;
};

}  // namespace

BareServer::BareServer(const std::string& address, const std::optional<std::string>& answer)
    : service_(std::make_unique<BareService>(answer)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
}

BareServer::~BareServer() = default;

}  // namespace fusion
