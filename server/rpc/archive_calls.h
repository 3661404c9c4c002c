#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/service_parts.h"

namespace fusion {

// Each function answers one call and returns its reactor, which deletes itself. The arguments must
// outlive the reactor. A slow peer occupies no thread.

/// Answers one ExportStore.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartExportCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

/// Answers one ImportStore.
grpc::ServerReadReactor<grpc::ByteBuffer>* StartImportCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    grpc::ByteBuffer* response);

}  // namespace fusion
