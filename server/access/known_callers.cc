#include "server/access/known_callers.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/files/access_limits.h"
#include "core/base/files/file.h"
#include "core/base/text/text.h"
#include "core/base/utc_time.h"
#include "core/wire/basics/text_format.h"
#include "fusion/v1/access.pb.h"

namespace fusion {
namespace {

using google::protobuf::TextFormat;

constexpr int64_t kMaxAccessBytes = int64_t{4} << 20;
constexpr int kMaxEntries = 10000;
constexpr std::string_view kSpiffe = "spiffe://";

absl::StatusOr<RoleSet> DecodeRoles(const google::protobuf::RepeatedPtrField<std::string>& names) {
  if (names.empty()) return kUsualRoles;
  RoleSet out = RoleSet::None();
  for (const std::string& name : names) {
    bool known = false;
    for (Role role : kCallerRoles) {
      if (RoleName(role) != name) continue;
      out = out.With(role);
      if (role == Role::kTrustedReport) out = out.With(Role::kReport);
      known = true;
    }
    if (!known) {
      return InvalidArgument("roles: ", QuoteShort(name),
                             "; expected plan, report, trusted-report or admin");
    }
  }
  return out;
}

absl::Status CheckTenant(const std::string& tenant) {
  if (tenant.size() > kMaxTenantBytes) {
    return InvalidArgument("tenant: ", tenant.size(), " bytes; expected at most ", kMaxTenantBytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<AccessToken> DecodeToken(const v1::AccessToken& wire) {
  AccessToken out{.name = wire.name(), .digest = {}, .tenant = wire.tenant()};
  if (out.name.empty()) return InvalidArgument("name: missing");
  if (out.name.size() > kMaxCallerNameBytes) {
    return InvalidArgument("name: ", out.name.size(), " bytes; expected at most ",
                           kMaxCallerNameBytes);
  }
  // Not shown: somebody may have put the token itself here.
  if (!Digest::FromHex(wire.sha256(), &out.digest)) {
    return InvalidArgument("sha256: ", wire.sha256().size(),
                           " bytes; expected 64 lower-case hex digits, the SHA-256 of the token");
  }
  RETURN_IF_ERROR(CheckTenant(out.tenant));
  if (out.tenant.empty()) out.tenant = kDefaultTenant;
  ASSIGN_OR_RETURN(out.roles, DecodeRoles(wire.roles()));
  if (wire.expires().empty()) return out;
  absl::StatusOr<std::chrono::system_clock::time_point> expires = ParseUtcTime(wire.expires());
  if (!expires.ok()) return Annotate(expires.status(), "expires");
  out.expires = *expires;
  return out;
}

absl::StatusOr<AccessIdentity> DecodeIdentity(const v1::AccessIdentity& wire) {
  if (wire.match_case() == v1::AccessIdentity::MATCH_NOT_SET) {
    return InvalidArgument("neither id nor prefix is given; expected one of them");
  }
  const std::string& match = wire.has_id() ? wire.id() : wire.prefix();
  if (!match.starts_with(kSpiffe)) {
    return InvalidArgument(wire.has_id() ? "id" : "prefix", ": ", QuoteShort(match),
                           "; expected spiffe://TRUST-DOMAIN/PATH");
  }
  if (wire.has_prefix() && !match.ends_with('/')) {
    // Otherwise the prefix of tenant-a would also match tenant-ab.
    return InvalidArgument("prefix: ", QuoteShort(match), "; expected a slash at its end");
  }
  RETURN_IF_ERROR(CheckTenant(wire.tenant()));
  AccessIdentity out{.tenant = wire.tenant()};
  ASSIGN_OR_RETURN(out.roles, DecodeRoles(wire.roles()));
  return out;
}

// Gives the line of an entry of a repeated field.
class Places {
 public:
  Places(const std::string& file, const TextFormat::ParseInfoTree& tree)
      : file_(file), tree_(tree) {}

  std::string Of(int field, int index) const {
    const auto* descriptor = v1::Access::descriptor()->FindFieldByNumber(field);
    return StrCat(file_, ":", tree_.GetLocation(descriptor, index).line + 1, ": ",
                  descriptor->name(), "[", index, "]");
  }

 private:
  const std::string& file_;
  const TextFormat::ParseInfoTree& tree_;
};

using Problems = std::vector<absl::Status>;

absl::Status AddToken(const v1::AccessToken& wire, std::set<std::string>* names,
                      KnownCallers* out) {
  ASSIGN_OR_RETURN(AccessToken token, DecodeToken(wire));
  if (!names->insert(token.name).second) {
    return InvalidArgument("name: an earlier token has the same");
  }
  const Digest digest = token.digest;
  auto [at, added] = out->tokens.emplace(digest, std::move(token));
  if (added) return absl::OkStatus();
  return InvalidArgument("sha256: that of ", QuoteShort(at->second.name), " too");
}

void AddTokens(const v1::Access& wire, const Places& places, KnownCallers* out,
               Problems* problems) {
  std::set<std::string> names;
  for (int i = 0; i < wire.tokens_size(); ++i) {
    absl::Status added = AddToken(wire.tokens(i), &names, out);
    if (added.ok()) continue;
    problems->push_back(Annotate(added, StrCat(places.Of(v1::Access::kTokensFieldNumber, i), " ",
                                               QuoteShort(wire.tokens(i).name()))));
  }
}

absl::Status AddIdentity(const v1::AccessIdentity& entry, std::set<std::string>* prefixes,
                         KnownCallers* out) {
  ASSIGN_OR_RETURN(AccessIdentity identity, DecodeIdentity(entry));
  const bool fresh =
      entry.has_id() ? !out->ids.contains(entry.id()) : prefixes->insert(entry.prefix()).second;
  if (!fresh) return InvalidArgument("an earlier entry is for the same callers");
  if (entry.has_id()) {
    out->ids.emplace(entry.id(), std::move(identity));
  } else {
    out->prefixes.emplace_back(entry.prefix(), std::move(identity));
  }
  return absl::OkStatus();
}

void AddIdentities(const v1::Access& wire, const Places& places, KnownCallers* out,
                   Problems* problems) {
  std::set<std::string> prefixes;
  for (int i = 0; i < wire.identities_size(); ++i) {
    absl::Status added = AddIdentity(wire.identities(i), &prefixes, out);
    if (added.ok()) continue;
    problems->push_back(Annotate(added, places.Of(v1::Access::kIdentitiesFieldNumber, i)));
  }
  std::stable_sort(out->prefixes.begin(), out->prefixes.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

KnownCallers Parse(std::string_view text, const std::string& name, Problems* problems) {
  TextFormat::ParseInfoTree tree;
  v1::Access wire;
  KnownCallers out;
  if (std::optional<TextError> error = ReadTextFormat(text, &wire, &tree)) {
    problems->push_back(
        InvalidArgument(name, ":", error->line, ": column ", error->column, ": ", error->message));
    return out;
  }
  if (wire.tokens_size() > kMaxEntries || wire.identities_size() > kMaxEntries) {
    problems->push_back(InvalidArgument(name, ": ", wire.tokens_size(), " tokens and ",
                                        wire.identities_size(), " identities; expected at most ",
                                        kMaxEntries, " of each"));
    return out;
  }
  const Places places(name, tree);
  AddTokens(wire, places, &out, problems);
  AddIdentities(wire, places, &out, problems);
  return out;
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kPlan:
      return "plan";
    case Role::kReport:
      return "report";
    case Role::kAdmin:
      return "admin";
    case Role::kTrustedReport:
      return "trusted-report";
  }
  return "unknown";
}

size_t DigestHash::operator()(const Digest& digest) const {
  size_t hash = 0;
  std::memcpy(&hash, digest.bytes.data(), sizeof(hash));
  return hash;
}

absl::StatusOr<KnownCallers> ParseKnownCallers(std::string_view text, const std::string& name) {
  Problems problems;
  KnownCallers out = Parse(text, name, &problems);
  if (!problems.empty()) return problems.front();
  return out;
}

absl::StatusOr<KnownCallers> ReadKnownCallers(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxAccessBytes);
  if (!text.ok()) return InvalidArgument(Message(text.status()));
  return ParseKnownCallers(*text, path);
}

std::vector<absl::Status> ProblemsOfKnownCallers(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxAccessBytes);
  if (!text.ok()) return {InvalidArgument(Message(text.status()))};
  Problems problems;
  Parse(*text, path, &problems);
  return problems;
}

}  // namespace fusion
