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

/// What a connection and a call say of who calls. Refers to its text.
struct Credentials {
  std::optional<std::string_view> authorization;  // the metadata of this name
  std::string_view spiffe_id;                     // of the client's certificate; empty: none
  bool owner = false;  // root or this server's own user, on a unix socket
};

struct AuthenticatorOptions {
  std::string tokens_file;    // empty: there are no tokens
  bool certificates = false;  // clients show certificates, and TLS has checked them
  bool trusted_only = true;   // a changed file that others can write is not read
};

/// Says who calls. Without tokens and without certificates everybody may plan and report, as tenant
/// "default"; without tokens the server's owner (Credentials::owner) may do everything, as the
/// identity kOwnerIdentity. Thread-safe; a call costs about a microsecond.
///
///   ASSIGN_OR_RETURN(auto authenticator, Authenticator::Open({.tokens_file = path}, logger));
///   ASSIGN_OR_RETURN(Caller caller, authenticator->Identify(credentials, now));
///   RETURN_IF_ERROR(CheckRole(caller, Role::kPlan));
class Authenticator {
 public:
  /// InvalidArgument, "FILE:LINE: ...", for a bad file.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Open(const AuthenticatorOptions& options,
                                                             Logger& logger);

  /// Tenant, identity and roles. A token decides where both are shown. Unauthenticated: neither is
  /// shown, or the token is not known or has expired; PermissionDenied: token and certificate are
  /// of two tenants.
  absl::StatusOr<Caller> Identify(const Credentials& credentials,
                                  std::chrono::system_clock::time_point now) const;

  /// Reads the file again if it has changed, or in any case if `always`. What is bad is logged, and
  /// the old one stays. To be called about once a second, by one thread at a time.
  void Reload(bool always);

  bool asks_certificates() const { return options_.certificates; }
  bool asks_tokens() const { return !options_.tokens_file.empty(); }
  /// "none", "token", "mtls", "token mtls".
  std::string Kinds() const;
  /// Entries of the file that is in force.
  int64_t tokens() const { return static_cast<int64_t>(access()->tokens.size()); }
  int64_t identities() const;

 private:
  Authenticator(AuthenticatorOptions options, Logger& logger)
      : options_(std::move(options)), logger_(logger), files_({options_.tokens_file}) {}
  std::shared_ptr<const KnownCallers> access() const;
  absl::StatusOr<Caller> OfToken(const KnownCallers& access, std::string_view authorization,
                                 std::chrono::system_clock::time_point now) const;

  const AuthenticatorOptions options_;
  Logger& logger_;
  WatchedFiles files_;  // of Reload alone
  mutable Mutex mutex_;
  std::shared_ptr<const KnownCallers> access_ ABSL_GUARDED_BY(mutex_);
};

/// Identity of root and of the server's own user on a unix socket.
inline constexpr std::string_view kOwnerIdentity = "owner";

/// PermissionDenied, naming the role and how a caller can have it, unless `caller` has it.
absl::Status CheckRole(const Caller& caller, Role role);

/// "interactive" or "background". InvalidArgument for anything else.
absl::StatusOr<Priority> ParsePriority(std::string_view text);

}  // namespace fusion
