#pragma once

#include "fusion/v1/fusion_service.grpc.pb.h"
#include "server/rpc/service_parts.h"
#include "server/rpc/unary_call.h"

namespace fusion {

/// FusionService over the pipeline, the store and the book of latencies: bytes in, bytes out,
/// statuses passed on. The methods are raw ones, so that decoding happens on our threads, under our
/// limits and with our messages, and a plan's stored bytes go out without a copy. No thread of gRPC
/// ever waits. Thread-safe.
class FusionServiceImpl final
    : public v1::FusionService::WithRawCallbackMethod_PlanFusion<
          v1::FusionService::WithRawCallbackMethod_GetKernels<
              v1::FusionService::WithRawCallbackMethod_PlanFusionStream<
                  v1::FusionService::WithRawCallbackMethod_ReportLatency<
                      v1::FusionService::WithRawCallbackMethod_GetReport<
                          v1::FusionService::WithRawCallbackMethod_ListPlans<
                              v1::FusionService::WithRawCallbackMethod_ExplainPlan<
                                  v1::FusionService::WithRawCallbackMethod_GetStored<
                                      v1::FusionService::WithRawCallbackMethod_GetCapabilities<
                                          v1::FusionService::Service>>>>>>>>> {
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
  grpc::ServerUnaryReactor* GetReport(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ExplainPlan(grpc::CallbackServerContext* context,
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
  absl::StatusOr<std::string> AnswerListPlans(std::string_view request, UnaryContext context);
  absl::StatusOr<std::string> AnswerGetStored(std::string_view request, UnaryContext context);
  absl::StatusOr<std::string> AnswerGetCapabilities(std::string_view request, UnaryContext context);
  absl::StatusOr<PlanPage> PageOf(const ListQuery& query, UnaryContext context) const;
  // False for what the caller must not know of, by its full key.
  bool Shows(std::string_view full_key, const Caller& caller) const {
    return parts_.Shows(full_key, caller.tenant);
  }
  // The plan, unless the caller must not know of it.
  std::shared_ptr<const StoredPlan> FindPlan(const Digest& key, const Caller& caller) const;

  const ServiceParts parts_;
};

}  // namespace fusion
