#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <onnx/onnx_pb.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "tests/support/test_model.h"

namespace fusion {

/// One kernel as GetKernels streamed it.
struct StreamedKernel {
  std::string key;
  v1::KernelState state = v1::KERNEL_STATE_UNSPECIFIED;
  std::string content_sha256;
  std::string binary;
  std::string error;
  int messages = 0;
};

/// Calls a server over a connection of its own, with the bare stubs: what is sent and what comes
/// back is not looked at by any code of ours. Thread-safe.
class FusionCaller {
 public:
  explicit FusionCaller(const std::string& address);

  grpc::Status Plan(const v1::PlanFusionRequest& request, v1::PlanFusionResponse* response,
                    std::chrono::milliseconds deadline = std::chrono::minutes(3)) const;
  /// For requests that must succeed: the test fails otherwise.
  v1::PlanFusionResponse Plan(const v1::PlanFusionRequest& request) const;

  grpc::Status GetKernels(const std::vector<std::string>& keys,
                          std::vector<StreamedKernel>* kernels,
                          std::chrono::milliseconds deadline = std::chrono::minutes(3)) const;

  /// Any unary method with any bytes; the answer's bytes.
  grpc::Status CallBytes(const std::string& method, const std::string& request,
                         std::string* response) const;

  /// True if grpc.health.v1 says SERVING for `service`.
  bool Healthy(const std::string& service = "") const;

  /// What reflection says about the services it knows: serialised, names in clear.
  std::string Reflection() const;

  v1::FusionService::Stub& stub() const { return *stub_; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::FusionService::Stub> stub_;
  std::unique_ptr<grpc::GenericStub> generic_;
};

/// A request for this machine's ISA and one thread.
v1::PlanFusionRequest RequestFor(const onnx::ModelProto& model,
                                 v1::PlanMode mode = v1::PLAN_MODE_COMPILE);

/// A generated model as the client sends it, without weights. `layers`: 0 means as many as it has;
/// `seed`: of the values of its weights.
onnx::ModelProto SentModel(const std::string& name, int64_t layers = 0, uint64_t seed = 1);

}  // namespace fusion
