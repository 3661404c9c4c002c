#pragma once

#include "fusion/v1/fusion_admin.grpc.pb.h"
#include "server/rpc/service_parts.h"
#include "server/rpc/unary_call.h"

namespace fusion {

/// FusionAdmin on the store, the pipeline and the state of the server. Like FusionServiceImpl, it
/// has raw methods and works on the threads of Admission. Every call needs the role "admin". Every
/// call of an administrator writes a line "admin" to the log; refused calls of others are sampled
/// (LogAdminCall). Thread-safe.
class FusionAdminImpl final
    : public v1::FusionAdmin::WithRawCallbackMethod_GetStoreStats<
          v1::FusionAdmin::WithRawCallbackMethod_VerifyStore<
              v1::FusionAdmin::WithRawCallbackMethod_CompactStore<
                  v1::FusionAdmin::WithRawCallbackMethod_SetPinned<
                      v1::FusionAdmin::WithRawCallbackMethod_Invalidate<
                          v1::FusionAdmin::WithRawCallbackMethod_SteerEpochs<
                              v1::FusionAdmin::WithRawCallbackMethod_ExportStore<
                                  v1::FusionAdmin::WithRawCallbackMethod_ImportStore<
                                      v1::FusionAdmin::WithRawCallbackMethod_GetServerStatus<
                                          v1::FusionAdmin::Service>>>>>>>>> {
 public:
  explicit FusionAdminImpl(const ServiceParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* GetStoreStats(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* VerifyStore(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CompactStore(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SetPinned(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Invalidate(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SteerEpochs(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ExportStore(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* ImportStore(grpc::CallbackServerContext* context,
                                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetServerStatus(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;

 private:
  const ServiceParts parts_;
};

}  // namespace fusion
