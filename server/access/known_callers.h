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

/// "plan", "report", "admin".
std::string_view RoleName(Role role);

/// A token that the operator gave out.
struct AccessToken {
  std::string name;
  Digest digest;  // SHA-256 of the token
  std::string tenant;
  RoleSet roles = kUsualRoles;
  std::optional<std::chrono::system_clock::time_point> expires;
};

/// What a SPIFFE id stands for.
struct AccessIdentity {
  std::string tenant;  // empty: the path of the id says
  RoleSet roles = kUsualRoles;
};

struct DigestHash {
  /// The first bytes of a digest are as good as any hash of it.
  size_t operator()(const Digest& digest) const;
};

/// Who may call: the file of --tokens as values.
struct KnownCallers {
  std::unordered_map<Digest, AccessToken, DigestHash> tokens;
  std::map<std::string, AccessIdentity, std::less<>> ids;
  std::vector<std::pair<std::string, AccessIdentity>> prefixes;  // longest first
};

/// Reads a v1::Access in protobuf's text format; `name` stands for the file in messages.
/// InvalidArgument: "FILE:LINE: tokens[2] "ci": sha256: ...". Pure.
absl::StatusOr<KnownCallers> ParseKnownCallers(std::string_view text, const std::string& name);

/// The same of a file. Errors of reading it name it too.
absl::StatusOr<KnownCallers> ReadKnownCallers(const std::string& path);
/// Everything that is wrong with the file; ReadKnownCallers says the first of it.
std::vector<absl::Status> ProblemsOfKnownCallers(const std::string& path);

}  // namespace fusion
