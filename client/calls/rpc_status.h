#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "core/base/status.h"

namespace fusion {

/// Our status for the end of a call to `address`; see Client for the codes.
absl::Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context,
                      const std::string& address);

}  // namespace fusion
