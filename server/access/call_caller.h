#pragma once

#include <grpcpp/grpcpp.h>

#include "server/access/authenticator.h"

namespace fusion {

/// Value of the property GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME of calls over connections that
/// GrpcServer attributed to this server's owner. gRPC's local credentials set it.
inline constexpr std::string_view kOwnerTransport = "local";

/// Identifies the caller from the connection and the metadata of a call. Also reads its priority
/// (x-fusion-priority) and trace id (traceparent; a new one if there is none). Fails as
/// Authenticator::Identify does, then with only the trace id in `out` and no roles; InvalidArgument
/// for an unknown priority.
absl::Status IdentifyCaller(const Authenticator& authenticator,
                            const grpc::CallbackServerContext& context, Caller* out);

}  // namespace fusion
