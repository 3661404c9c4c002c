#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <string_view>

#include "server/access/caller.h"
#include "server/rpc/service_parts.h"

namespace fusion {

/// What a handler may look at and say beside its answer.
struct UnaryContext {
  const CancelToken& cancel;  // ends when nobody waits for the answer any more
  RpcRecord& record;          // for plan_key
  const Caller& caller;
  /// Before an answer from a stored plan or kernel is made, which is charged so many bytes, for
  /// what that takes of memory until it is. ResourceExhausted: too much is under way.
  const std::function<absl::Status(int64_t charged)>& hold;
};

/// The serialised answer to a serialised request. Runs on a thread of ours.
using UnaryHandler =
    std::function<absl::StatusOr<std::string>(std::string_view request, UnaryContext context)>;

/// Answers one short call: one that waits for nobody. What it is given outlives the call, which
/// deletes itself.
grpc::ServerUnaryReactor* StartUnaryCall(const ServiceParts& parts,
                                         grpc::CallbackServerContext& context, RpcMethod method,
                                         const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer* response, UnaryHandler handler);

}  // namespace fusion
