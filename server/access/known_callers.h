#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "server/access/caller.h"

namespace fusion {

/// "plan", "report", "admin", "trusted-report".
std::string_view RoleName(Role role);

/// A token that the operator has issued.
struct AccessToken {
  std::string name;
  Digest digest;  // SHA-256 of the token
  std::string tenant;
  RoleSet roles = kUsualRoles;
  std::optional<std::chrono::system_clock::time_point> expires;
};

/// The rights of callers with a SPIFFE id, or with a prefix of one.
struct AccessIdentity {
  std::string tenant;  // empty: the id without "spiffe://"
  RoleSet roles = kUsualRoles;
};

struct DigestHash {
  /// The first bytes of the digest.
  size_t operator()(const Digest& digest) const;
};

/// The contents of the file of --tokens.
struct KnownCallers {
  std::unordered_map<Digest, AccessToken, DigestHash> tokens;
  std::map<std::string, AccessIdentity, std::less<>> ids;        // by exact SPIFFE id
  std::vector<std::pair<std::string, AccessIdentity>> prefixes;  // longest first
};

/// Parses a v1::Access in protobuf's text format. Messages call the file `name`. InvalidArgument:
/// "FILE:LINE: tokens[2] "ci": sha256: ...". Pure.
absl::StatusOr<KnownCallers> ParseKnownCallers(std::string_view text, const std::string& name);

/// Reads and parses the file. InvalidArgument, naming the file, also if it cannot be read.
absl::StatusOr<KnownCallers> ReadKnownCallers(const std::string& path);
/// All errors in the file; ReadKnownCallers returns the first one.
std::vector<absl::Status> ProblemsOfKnownCallers(const std::string& path);

}  // namespace fusion
