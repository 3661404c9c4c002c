#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "core/base/status.h"

namespace fusion {

/// Converts the gRPC status of a call to `address` to absl::Status; see Client for the codes.
absl::Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context,
                      const std::string& address);

/// What gRPC itself says when the server does not know the service or the call.
inline bool IsUnknownCall(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty();
}

}  // namespace fusion
