#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <string_view>

#include "server/access/caller.h"
#include "server/rpc/service_parts.h"

namespace fusion {

/// The context of a UnaryHandler. Valid during its call.
struct UnaryContext {
  const CancelToken& cancel;  // cancelled when the caller is gone or its deadline has passed
  RpcRecord& record;          // the handler sets plan_key, keys and reason
  const Caller& caller;
  /// Call it before making an answer from a stored plan or kernel with ChargedBytes `charged`:
  /// reserves the memory for that. ResourceExhausted: too much is held by running calls.
  const std::function<absl::Status(int64_t charged)>& hold;
};

/// Returns the serialised answer to a serialised request, or the status of the call. Runs on a
/// thread of Admission.
using UnaryHandler =
    std::function<absl::StatusOr<std::string>(std::string_view request, UnaryContext context)>;

/// Answers one call with `handler`, which must not wait for other calls, planning or compiling.
/// Returns the reactor, which deletes itself. The arguments must outlive it.
grpc::ServerUnaryReactor* StartUnaryCall(const ServiceParts& parts,
                                         grpc::CallbackServerContext& context, RpcMethod method,
                                         const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer* response, UnaryHandler handler);

}  // namespace fusion
