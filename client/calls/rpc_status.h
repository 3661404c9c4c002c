#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "core/base/status.h"

namespace fusion {

/// Converts the gRPC status of a call to `address` to absl::Status; see Client for the codes.
absl::Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context,
                      const std::string& address);

}  // namespace fusion
