#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fusion {

/// What a caller may do: make and read plans, report latencies, keep the store.
enum class Role : uint8_t { kPlan, kReport, kAdmin };
inline constexpr std::array kCallerRoles = {Role::kPlan, Role::kReport, Role::kAdmin};

/// A set of roles.
class RoleSet {
 public:
  static constexpr RoleSet All() { return RoleSet(0b111); }
  static constexpr RoleSet None() { return RoleSet(0); }
  constexpr RoleSet With(Role role) const { return RoleSet(bits_ | Bit(role)); }
  constexpr bool Has(Role role) const { return (bits_ & Bit(role)) != 0; }
  bool operator==(const RoleSet&) const = default;

 private:
  explicit constexpr RoleSet(unsigned bits) : bits_(bits) {}
  static constexpr unsigned Bit(Role role) { return 1U << static_cast<unsigned>(role); }
  unsigned bits_;
};

/// Background calls are let in and run where interactive ones leave room.
enum class Priority : uint8_t { kInteractive, kBackground };

/// What callers may do of whom the operator says no more.
inline constexpr RoleSet kUsualRoles = RoleSet::None().With(Role::kPlan).With(Role::kReport);

/// The tenant of calls that say nothing of themselves, on a server that asks nobody who he is.
inline constexpr std::string_view kDefaultTenant = "default";

/// Who calls, and how, as far as the connection and the call's metadata say.
struct Caller {
  std::string tenant{kDefaultTenant};
  std::string
      identity;  // for the audit log: SPIFFE id or name of the token; empty: nobody in particular
  RoleSet roles = kUsualRoles;
  Priority priority = Priority::kInteractive;
  std::string trace_id;  // 32 hex digits: of `traceparent`, or our own
};

}  // namespace fusion
