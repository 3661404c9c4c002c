#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/service_parts.h"

namespace fusion {

/// Answers one GetKernels and returns its reactor, which deletes itself. The arguments must outlive
/// the reactor.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartKernelsCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

}  // namespace fusion
