#pragma once

#include "core/base/logging.h"
#include "core/pipeline/plan_fusion.h"
#include "fusion/v1/fusion_service.grpc.pb.h"
#include "server/admission.h"
#include "server/rpc_record.h"

namespace fusion {

/// What a call needs. Outlives the service.
struct ServiceParts {
  FusionPipeline& pipeline;
  Admission& admission;
  RpcObserver& observer;
  Logger& logger;
  const Clock& clock;
  int64_t max_request_bytes = 0;
};

/// FusionService over the pipeline: bytes in, bytes out, statuses passed on. The methods are raw
/// ones, so that decoding happens on our threads, under our limits and with our messages, and a
/// plan's stored bytes go out without a copy. No thread of gRPC ever waits. Thread-safe.
class FusionServiceImpl final
    : public v1::FusionService::WithRawCallbackMethod_PlanFusion<
          v1::FusionService::WithRawCallbackMethod_GetKernels<v1::FusionService::Service>> {
 public:
  explicit FusionServiceImpl(const ServiceParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* PlanFusion(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetKernels(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request) override;

 private:
  const ServiceParts parts_;
};

}  // namespace fusion
