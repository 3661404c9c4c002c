#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// What the finished calls of a tenant add up to.
struct TenantUse {
  int64_t calls = 0;
  int64_t refused = 0;  // of these: ended RESOURCE_EXHAUSTED
  Nanoseconds took{0};
};

/// Counts calls by tenant. Only the first `limit` names have counts of their own, so that invented
/// names cannot fill the memory or the metrics page; all others share kOthers. Counts never
/// decrease. Thread-safe; Add takes about 50 ns.
class TenantCounts {
 public:
  static constexpr std::string_view kOthers = "other";
  explicit TenantCounts(size_t limit) : limit_(limit) {}

  void Add(std::string_view tenant, Nanoseconds took, bool refused) {
    MutexLock lock(&mutex_);
    auto found = counts_.find(tenant);
    if (found == counts_.end()) {
      const bool room = counts_.size() < limit_;
      found = counts_.try_emplace(std::string(room ? tenant : kOthers)).first;
    }
    TenantUse& use = found->second;
    ++use.calls;
    use.refused += refused ? 1 : 0;
    use.took += took;
  }

  std::map<std::string, TenantUse, std::less<>> counts() const {
    MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  const size_t limit_;
  mutable Mutex mutex_;
  std::map<std::string, TenantUse, std::less<>> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
