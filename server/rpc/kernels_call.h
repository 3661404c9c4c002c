#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/service_parts.h"

namespace fusion {

/// Answers one GetKernels. What it is given outlives the call, which deletes itself.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartKernelsCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

}  // namespace fusion
