#include "server/access/authenticator.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "core/base/files/trusted_path.h"
#include "core/base/text/text.h"
#include "core/base/utc_time.h"
#include "server/access/denial.h"

namespace fusion {
namespace {

constexpr std::string_view kBearer = "bearer ";
// Tokens that this project makes are shorter; gRPC limits metadata to 8 KB anyway.
constexpr size_t kMaxTokenBytes = 4096;

constexpr std::string_view kHowToBeAdmin =
    "; expected a token or client certificate with the role admin (--tokens), or, on a server "
    "without --tokens, a unix socket of it and its own user or root";

bool StartsWithBearer(std::string_view text) {
  if (text.size() < kBearer.size()) return false;
  return std::equal(kBearer.begin(), kBearer.end(), text.begin(), [](char want, char got) {
    return want == (got >= 'A' && got <= 'Z' ? got - 'A' + 'a' : got);
  });
}

// "shop/tenant-a" for "spiffe://shop/tenant-a". Paths are unique only within their trust domain.
std::string TenantOf(std::string_view spiffe_id) {
  constexpr std::string_view kScheme = "spiffe://";
  if (!spiffe_id.starts_with(kScheme)) return "";
  return std::string(spiffe_id.substr(kScheme.size()));
}

const AccessIdentity* FindIdentity(const KnownCallers& access, std::string_view spiffe_id) {
  auto exact = access.ids.find(spiffe_id);
  if (exact != access.ids.end()) return &exact->second;
  for (const auto& [prefix, identity] : access.prefixes) {
    if (spiffe_id.starts_with(prefix)) return &identity;
  }
  return nullptr;
}

Caller OfCertificate(const KnownCallers& access, std::string_view spiffe_id) {
  const AccessIdentity* known = FindIdentity(access, spiffe_id);
  Caller out;
  out.identity = spiffe_id;
  out.roles = known == nullptr ? kUsualRoles : known->roles;
  out.tenant = known == nullptr || known->tenant.empty() ? TenantOf(spiffe_id) : known->tenant;
  if (out.tenant.empty()) out.tenant = kDefaultTenant;
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Open(
    const AuthenticatorOptions& options, Logger& logger) {
  std::unique_ptr<Authenticator> out(new Authenticator(options, logger));
  auto access = std::make_shared<KnownCallers>();
  if (!options.tokens_file.empty()) {
    ASSIGN_OR_RETURN(*access, ReadKnownCallers(options.tokens_file));
  }
  MutexLock lock(&out->mutex_);
  out->access_ = std::move(access);
  return out;
}

std::shared_ptr<const KnownCallers> Authenticator::access() const {
  MutexLock lock(&mutex_);
  return access_;
}

int64_t Authenticator::identities() const {
  std::shared_ptr<const KnownCallers> now = access();
  return static_cast<int64_t>(now->ids.size() + now->prefixes.size());
}

std::string Authenticator::Kinds() const {
  std::string out = asks_tokens() ? "token" : "";
  if (options_.certificates) out += out.empty() ? "mtls" : " mtls";
  return out.empty() ? "none" : out;
}

absl::StatusOr<Caller> Authenticator::Identify(const Credentials& credentials,
                                               std::chrono::system_clock::time_point now) const {
  const bool tokens = asks_tokens();
  if (!tokens && credentials.owner) {
    Caller owner;
    owner.identity = kOwnerIdentity;
    owner.roles = RoleSet::All();
    return owner;
  }
  if (!tokens && !options_.certificates) {
    Caller anyone;  // who is not told from others cannot be trusted less
    anyone.roles = kUsualRoles.With(Role::kTrustedReport);
    return anyone;
  }
  std::shared_ptr<const KnownCallers> access = this->access();
  const bool certified = options_.certificates && !credentials.spiffe_id.empty();
  if (tokens && credentials.authorization.has_value()) {
    ASSIGN_OR_RETURN(Caller caller, OfToken(*access, *credentials.authorization, now));
    if (!certified) return caller;
    Caller other = OfCertificate(*access, credentials.spiffe_id);
    if (other.tenant == caller.tenant) return caller;
    return PermissionDenied("the token is of tenant ", QuoteShort(caller.tenant),
                            ", the certificate of tenant ", QuoteShort(other.tenant));
  }
  if (certified) return OfCertificate(*access, credentials.spiffe_id);
  if (!tokens) {
    return Unauthenticated(
        "no client certificate with a SPIFFE id (a URI spiffe://DOMAIN/PATH among its subject "
        "alternative names)");
  }
  return Unauthenticated("no token; expected the metadata 'authorization: Bearer TOKEN'",
                         options_.certificates ? ", or a client certificate with a SPIFFE id" : "");
}

absl::StatusOr<Caller> Authenticator::OfToken(const KnownCallers& access,
                                              std::string_view authorization,
                                              std::chrono::system_clock::time_point now) const {
  if (!StartsWithBearer(authorization)) {
    return Unauthenticated("authorization: expected 'Bearer TOKEN'");
  }
  std::string_view token = StripSpace(authorization.substr(kBearer.size()));
  if (token.empty() || token.size() > kMaxTokenBytes) {
    return Unauthenticated("authorization: a token of ", token.size(), " bytes; expected 1..",
                           kMaxTokenBytes);
  }
  // Looking up a digest: the time of the comparison reveals nothing about the token.
  const Digest digest = Sha256(token);
  auto found = access.tokens.find(digest);
  const bool same =
      found != access.tokens.end() &&
      CRYPTO_memcmp(found->first.bytes.data(), digest.bytes.data(), digest.bytes.size()) == 0;
  if (!same) return Unauthenticated("the token is not known to this server");
  const AccessToken& known = found->second;
  if (known.expires.has_value() && now >= *known.expires) {
    return Unauthenticated("the token ", QuoteShort(known.name), " has expired, on ",
                           UtcTimeText(*known.expires));
  }
  Caller out;
  out.tenant = known.tenant;
  out.identity = known.name;
  out.roles = known.roles;
  return out;
}

void Authenticator::Reload(bool always) {
  if (!asks_tokens()) return;
  if (!files_.Changed() && !always) return;
  absl::Status trusted =
      options_.trusted_only ? CheckTrustedPath(options_.tokens_file) : absl::OkStatus();
  absl::StatusOr<KnownCallers> read =
      trusted.ok() ? ReadKnownCallers(options_.tokens_file) : trusted;
  if (!read.ok()) {
    logger_.Error("tokens_not_reloaded",
                  {{"reason", Message(read.status())}, {"in_force", tokens()}});
    return;
  }
  const auto access = std::make_shared<const KnownCallers>(*std::move(read));
  {
    MutexLock lock(&mutex_);
    access_ = access;
  }
  logger_.Info("tokens_reloaded", {{"file", options_.tokens_file},
                                   {"tokens", access->tokens.size()},
                                   {"identities", access->ids.size() + access->prefixes.size()}});
}

absl::Status CheckRole(const Caller& caller, Role role) {
  if (caller.roles.Has(role)) return absl::OkStatus();
  std::string roles;
  for (Role other : kCallerRoles) {
    if (caller.roles.Has(other)) roles += StrCat(roles.empty() ? "" : ", ", RoleName(other));
  }
  return PermissionDenied("this call needs the role ", RoleName(role), "; ",
                          caller.identity.empty() ? "the caller" : QuoteShort(caller.identity),
                          " of tenant ", QuoteShort(caller.tenant), " has ",
                          roles.empty() ? "none" : roles,
                          role == Role::kAdmin ? kHowToBeAdmin : "");
}

absl::StatusOr<Priority> ParsePriority(std::string_view text) {
  if (text == "interactive") return Priority::kInteractive;
  if (text == "background") return Priority::kBackground;
  return InvalidArgument("x-fusion-priority: ", QuoteShort(text),
                         "; expected interactive or background");
}

}  // namespace fusion
