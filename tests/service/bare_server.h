#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

namespace fusion {

/// What gRPC itself takes: a server whose PlanFusion gives everybody the same bytes, or refuses
/// everybody where there are none.
class BareServer {
 public:
  /// Check running().
  BareServer(const std::string& address, const std::optional<std::string>& answer);
  ~BareServer();

  bool running() const { return server_ != nullptr; }
  int port() const { return port_; }
  /// Until it is shut down, which nobody does.
  void Wait() { server_->Wait(); }

 private:
  const std::unique_ptr<grpc::Service> service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace fusion
