#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/service_parts.h"

namespace fusion {

// Answer one ExportStore, one ImportStore. What they are given outlives the call, which deletes
// itself. A slow peer holds no thread.

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartExportCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request);

grpc::ServerReadReactor<grpc::ByteBuffer>* StartImportCall(
    const ServiceParts& parts, const grpc::CallbackServerContext& context,
    grpc::ByteBuffer* response);

}  // namespace fusion
