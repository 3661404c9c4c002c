#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "server/access/known_callers.h"
#include "server/transport/watched_files.h"

namespace fusion {

/// The credentials of one call, from its connection and its metadata. The views do not own their
/// text.
struct Credentials {
  std::optional<std::string_view> authorization;  // the metadata entry `authorization`
  std::string_view spiffe_id;  // in the client's verified certificate; empty: none
  bool owner = false;          // root or this server's own user, on a unix socket
};

struct AuthenticatorOptions {
  std::string tokens_file;    // empty: there are no tokens
  bool certificates = false;  // clients present certificates, which TLS has verified
  bool trusted_only = true;   // Reload refuses a file that other users can write
};

/// Identifies callers. Without tokens and certificates, every caller has the roles plan and report,
/// as tenant "default". Without tokens, the server's owner (Credentials::owner) has all roles, as
/// identity kOwnerIdentity. Thread-safe; Identify takes about a microsecond.
///
///   ASSIGN_OR_RETURN(auto authenticator, Authenticator::Open({.tokens_file = path}, logger));
///   ASSIGN_OR_RETURN(Caller caller, authenticator->Identify(credentials, now));
///   RETURN_IF_ERROR(CheckRole(caller, Role::kPlan));
class Authenticator {
 public:
  /// InvalidArgument, "FILE:LINE: ...", for an invalid tokens file. `logger` must outlive the
  /// result.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Open(const AuthenticatorOptions& options,
                                                             Logger& logger);

  /// Tenant, identity and roles of the caller. If there are both a token and a certificate, the
  /// token decides. Unauthenticated: there is neither, or the token is malformed, unknown or
  /// expired. PermissionDenied: token and certificate belong to different tenants.
  absl::StatusOr<Caller> Identify(const Credentials& credentials,
                                  std::chrono::system_clock::time_point now) const;

  /// Reads the tokens file again if it has changed, or unconditionally if `always`. An invalid file
  /// is logged, and the previous contents stay in force. Call it about once a second, from one
  /// thread at a time.
  void Reload(bool always);

  bool asks_certificates() const { return options_.certificates; }
  bool asks_tokens() const { return !options_.tokens_file.empty(); }
  /// "none", "token", "mtls", "token mtls".
  std::string Kinds() const;
  /// Number of tokens in force.
  int64_t tokens() const { return static_cast<int64_t>(access()->tokens.size()); }
  /// Number of certificate identities in force.
  int64_t identities() const;

 private:
  Authenticator(AuthenticatorOptions options, Logger& logger)
      : options_(std::move(options)), logger_(logger), files_({options_.tokens_file}) {}
  std::shared_ptr<const KnownCallers> access() const;
  absl::StatusOr<Caller> OfToken(const KnownCallers& access, std::string_view authorization,
                                 std::chrono::system_clock::time_point now) const;

  const AuthenticatorOptions options_;
  Logger& logger_;
  WatchedFiles files_;  // used by Reload only
  mutable Mutex mutex_;
  std::shared_ptr<const KnownCallers> access_ ABSL_GUARDED_BY(mutex_);
};

/// Identity of root and of the server's own user on a unix socket.
inline constexpr std::string_view kOwnerIdentity = "owner";

/// PermissionDenied unless `caller` has `role`. The message names the role and, for kAdmin, how to
/// get it.
absl::Status CheckRole(const Caller& caller, Role role);

/// "interactive" or "background". InvalidArgument for anything else.
absl::StatusOr<Priority> ParsePriority(std::string_view text);

}  // namespace fusion
