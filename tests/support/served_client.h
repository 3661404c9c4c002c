#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/client.h"
#include "tests/support/scratch_dir.h"

namespace fusion {

/// A test of the client library against a service in this process, on a socket of its own.
class ServedClientTest : public testing::Test {
 protected:
  void Serve(grpc::Service* service) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  std::unique_ptr<Client> Connect(const ClientOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(address_, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  // The service, which a test's class owns, goes after its server.
  void TearDown() override { server_.reset(); }

  static FusionRequest Request() {
    FusionRequest request;
    request.onnx_model = "model";
    request.target.isa = "avx2";
    return request;
  }

  ScratchDir dir_;
  std::string address_ = StrCat("unix:", dir_.path("socket"));
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace fusion
