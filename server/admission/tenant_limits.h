#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// Quota of one tenant; 0: no limit.
struct TenantLimit {
  double calls_per_second = 0;  // on average
  double burst = 0;             // calls at once; 0: the calls of two seconds, at least one
  int64_t stored_bytes = 0;     // of plans and kernels in the store

  /// Effective size of a burst, in calls.
  double Burst() const;
  bool operator==(const TenantLimit&) const = default;
};

/// Quotas by tenant, and a default for tenants that are not listed.
struct TenantLimits {
  TenantLimit others;
  std::map<std::string, TenantLimit> by_name;

  const TenantLimit& Of(const std::string& tenant) const {
    auto it = by_name.find(tenant);
    return it == by_name.end() ? others : it->second;
  }
  /// Whether any tenant, or the default, has a limit of stored bytes.
  bool BoundsStores() const;
};

/// Adds one --tenant-limit to `limits`: "acme:rate=50,burst=100,stored=1GiB", or "*" for tenants
/// that are not listed. InvalidArgument, naming the invalid part and what was expected.
absl::Status ParseTenantLimit(std::string_view text, TenantLimits* limits);

}  // namespace fusion
