#pragma once

#include <grpcpp/grpcpp.h>

#include "server/authenticator.h"

namespace fusion {

/// Who makes a call: what its connection and its metadata say, as `authenticator` judges them, with
/// priority and trace id. Whatever the outcome, `out` has what could be learnt.
absl::Status IdentifyCaller(const Authenticator& authenticator,
                            const grpc::CallbackServerContext& context, Caller* out);

}  // namespace fusion
