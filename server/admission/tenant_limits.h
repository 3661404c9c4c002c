#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// What one tenant may use; 0 everywhere: no limit of its own.
struct TenantLimit {
  double calls_per_second = 0;  // on average
  double burst = 0;             // calls at once; 0: those of two seconds, at least one
  int64_t stored_bytes = 0;     // of plans and kernels in the store

  /// Calls at once.
  double Burst() const;
  bool operator==(const TenantLimit&) const = default;
};

/// Limits by tenant, and those of all others.
struct TenantLimits {
  TenantLimit others;
  std::map<std::string, TenantLimit> by_name;

  const TenantLimit& Of(const std::string& tenant) const {
    auto it = by_name.find(tenant);
    return it == by_name.end() ? others : it->second;
  }
  /// Whether anybody has a limit of stored bytes.
  bool BoundsStores() const;
};

/// Adds what one --tenant-limit says: "acme:rate=50,burst=100,stored=1GiB"; "*" for those without a
/// line of their own. InvalidArgument, naming the part and what was expected.
absl::Status ParseTenantLimit(std::string_view text, TenantLimits* limits);

}  // namespace fusion
