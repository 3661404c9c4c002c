#pragma once

#include "fusion/v1/fusion_service.grpc.pb.h"
#include "server/rpc/service_parts.h"
#include "server/rpc/unary_call.h"

namespace fusion {

/// FusionService on the pipeline, the store and the latency book. Its methods are raw (bytes in,
/// bytes out). So requests are decoded on threads of Admission under this server's limits, with its
/// error messages, and stored bytes of a plan are sent without a copy. gRPC's threads never block.
/// Thread-safe.
class FusionServiceImpl final
    : public v1::FusionService::WithRawCallbackMethod_PlanFusion<
          v1::FusionService::WithRawCallbackMethod_GetKernels<
              v1::FusionService::WithRawCallbackMethod_PlanFusionStream<
                  v1::FusionService::WithRawCallbackMethod_ReportLatency<
                      v1::FusionService::WithRawCallbackMethod_ReportLatencies<
                          v1::FusionService::WithRawCallbackMethod_GetReport<
                              v1::FusionService::WithRawCallbackMethod_GetAccuracy<
                                  v1::FusionService::WithRawCallbackMethod_ListEpochs<
                                      v1::FusionService::WithRawCallbackMethod_ListPlans<
                                          v1::FusionService::WithRawCallbackMethod_ExplainPlan<
                                              v1::FusionService::WithRawCallbackMethod_GetStored<
                                                  v1::FusionService::
                                                      WithRawCallbackMethod_GetCapabilities<
                                                          v1::FusionService::Service>>>>>>>>>>>> {
 public:
  explicit FusionServiceImpl(const ServiceParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* PlanFusion(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* PlanFusionStream(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetKernels(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* ReportLatency(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* ReportLatencies(grpc::CallbackServerContext* context,
                                                             grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetReport(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetAccuracy(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ExplainPlan(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListEpochs(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListPlans(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetStored(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;

 private:
  absl::StatusOr<std::string> AnswerReportLatency(std::string_view request, UnaryContext context);
  absl::StatusOr<std::string> AnswerGetReport(std::string_view request, UnaryContext context);
  absl::StatusOr<std::string> AnswerGetAccuracy(std::string_view request, UnaryContext context);
  absl::StatusOr<std::string> AnswerListEpochs(std::string_view request, UnaryContext context);
  absl::StatusOr<std::string> AnswerListPlans(std::string_view request, UnaryContext context);
  absl::StatusOr<std::string> AnswerGetStored(std::string_view request, UnaryContext context);
  absl::StatusOr<std::string> AnswerGetCapabilities(std::string_view request, UnaryContext context);
  absl::StatusOr<PlanPage> PageOf(const ListQuery& query, UnaryContext context) const;
  // Whether the caller's tenant may see the plan or kernel with this full key.
  bool Shows(std::string_view full_key, const Caller& caller) const {
    return parts_.Shows(full_key, caller.tenant);
  }
  // The stored plan; null if there is none or the caller's tenant may not see it.
  std::shared_ptr<const StoredPlan> FindPlan(const Digest& key, const Caller& caller) const;

  const ServiceParts parts_;
};

}  // namespace fusion
