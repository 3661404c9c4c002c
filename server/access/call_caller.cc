#include "server/access/call_caller.h"

#include <grpc/grpc_security_constants.h>

#include "core/base/trace.h"

namespace fusion {
namespace {

std::optional<std::string_view> Metadata(const grpc::CallbackServerContext& context,
                                         const char* name) {
  const auto& all = context.client_metadata();
  auto found = all.find(name);
  if (found == all.end()) return std::nullopt;
  return std::string_view(found->second.data(), found->second.size());
}

// True only for connections of this server's owner (see GrpcServer).
bool IsOfOwner(const grpc::CallbackServerContext& context) {
  std::shared_ptr<const grpc::AuthContext> connection = context.auth_context();
  if (connection == nullptr) return false;
  const std::vector<grpc::string_ref> types =
      connection->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return types.size() == 1 && std::string_view(types[0].data(), types[0].size()) == kOwnerTransport;
}

}  // namespace

absl::Status IdentifyCaller(const Authenticator& authenticator,
                            const grpc::CallbackServerContext& context, Caller* out) {
  std::string trace_id = TraceIdOf(TraceparentOrNew(Metadata(context, "traceparent").value_or("")));
  *out = {.tenant = "", .identity = "", .roles = RoleSet::None(), .trace_id = trace_id};
  Credentials credentials;
  credentials.authorization = Metadata(context, "authorization");
  std::vector<grpc::string_ref> ids;
  if (authenticator.asks_certificates()) {
    std::shared_ptr<const grpc::AuthContext> connection = context.auth_context();
    // Only certificates that TLS has verified count.
    if (connection != nullptr && connection->IsPeerAuthenticated()) {
      ids = connection->FindPropertyValues(GRPC_PEER_SPIFFE_ID_PROPERTY_NAME);
    }
    if (ids.size() == 1) credentials.spiffe_id = {ids[0].data(), ids[0].size()};
  }
  credentials.owner = !authenticator.asks_tokens() && IsOfOwner(context);
  ASSIGN_OR_RETURN(*out, authenticator.Identify(credentials, std::chrono::system_clock::now()));
  out->trace_id = std::move(trace_id);
  std::optional<std::string_view> priority = Metadata(context, "x-fusion-priority");
  if (priority.has_value()) {
    ASSIGN_OR_RETURN(out->priority, ParsePriority(*priority));
  }
  return absl::OkStatus();
}

}  // namespace fusion
