#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fusion {

/// What a caller may do: make and read plans, report latencies, administer the store (FusionAdmin).
/// Latencies of a caller with kTrustedReport count for plans that tenants share, not only for those
/// of its own tenant.
enum class Role : uint8_t { kPlan, kReport, kAdmin, kTrustedReport };
inline constexpr std::array kCallerRoles = {Role::kPlan, Role::kReport, Role::kTrustedReport,
                                            Role::kAdmin};

/// A set of roles.
class RoleSet {
 public:
  static constexpr RoleSet All() { return RoleSet(0b1111); }
  static constexpr RoleSet None() { return RoleSet(0); }
  constexpr RoleSet With(Role role) const { return RoleSet(bits_ | Bit(role)); }
  constexpr bool Has(Role role) const { return (bits_ & Bit(role)) != 0; }
  bool operator==(const RoleSet&) const = default;

 private:
  explicit constexpr RoleSet(unsigned bits) : bits_(bits) {}
  static constexpr unsigned Bit(Role role) { return 1U << static_cast<unsigned>(role); }
  unsigned bits_;
};

/// Background calls wait for interactive ones and give way to them.
enum class Priority : uint8_t { kInteractive, kBackground };

/// The roles of callers to whom the tokens file gives no others.
inline constexpr RoleSet kUsualRoles = RoleSet::None().With(Role::kPlan).With(Role::kReport);

/// The tenant of callers that are not identified, on a server without authentication, and of
/// entries of the tokens file that name none.
inline constexpr std::string_view kDefaultTenant = "default";

/// The caller of one call, as identified by IdentifyCaller.
struct Caller {
  std::string tenant{kDefaultTenant};
  // For the log: SPIFFE id, name of the token, or kOwnerIdentity; empty: not identified.
  std::string identity;
  RoleSet roles = kUsualRoles;
  Priority priority = Priority::kInteractive;
  std::string trace_id;  // 32 hex digits: from `traceparent`, or made by this server
};

}  // namespace fusion
