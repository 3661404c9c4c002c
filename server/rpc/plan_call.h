#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/service_parts.h"

namespace fusion {

/// Answers one PlanFusion. What it is given outlives the call, which deletes itself.
grpc::ServerUnaryReactor* StartPlanCall(const ServiceParts& parts,
                                        grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer* response);

/// Answers one ExplainPlan in the same way; plans only what the store does not have.
grpc::ServerUnaryReactor* StartExplainCall(const ServiceParts& parts,
                                           grpc::CallbackServerContext& context,
                                           const grpc::ByteBuffer& request,
                                           grpc::ByteBuffer* response);

/// Answers one PlanFusionStream: the same, with its progress before it. Neither a slow caller nor
/// one that is gone holds a thread; what such a one misses is left out.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartPlanStream(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

}  // namespace fusion
