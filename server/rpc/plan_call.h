#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/service_parts.h"

namespace fusion {

// Each function answers one call and returns its reactor, which deletes itself. The arguments must
// outlive the reactor.

/// Answers one PlanFusion.
grpc::ServerUnaryReactor* StartPlanCall(const ServiceParts& parts,
                                        grpc::CallbackServerContext& context,
                                        const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer* response);

/// Answers one ExplainPlan: for a stored plan, or for a request, whose plan is made if the store
/// lacks it. Compiles nothing.
grpc::ServerUnaryReactor* StartExplainCall(const ServiceParts& parts,
                                           grpc::CallbackServerContext& context,
                                           const grpc::ByteBuffer& request,
                                           grpc::ByteBuffer* response);

/// Answers one PlanFusionStream: progress messages, then the answer of PlanFusion. A slow or
/// vanished caller occupies no thread. Progress that a slow caller has not read in time is dropped
/// (ProgressQueue).
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartPlanStream(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

}  // namespace fusion
