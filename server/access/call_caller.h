#pragma once

#include <grpcpp/grpcpp.h>

#include "server/access/authenticator.h"

namespace fusion {

/// The property GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME of calls over connections that
/// GrpcServer found to be of this server's owner: what gRPC's local credentials write there.
inline constexpr std::string_view kOwnerTransport = "local";

/// Who makes a call: what its connection and its metadata say, as `authenticator` judges them, with
/// priority and trace id. Whatever the outcome, `out` has what could be learnt.
absl::Status IdentifyCaller(const Authenticator& authenticator,
                            const grpc::CallbackServerContext& context, Caller* out);

}  // namespace fusion
