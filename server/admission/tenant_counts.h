#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/base/threads/mutex.h"

namespace fusion {

/// Calls by tenant. Of the first `limit` names, so that nobody who makes names up fills the memory
/// or the page; the others together. A count never falls. Thread-safe, some 50 ns a call.
class TenantCounts {
 public:
  static constexpr std::string_view kOthers = "other";
  explicit TenantCounts(size_t limit) : limit_(limit) {}

  void Add(std::string_view tenant) {
    MutexLock lock(&mutex_);
    auto found = counts_.find(tenant);
    if (found == counts_.end()) {
      const bool room = counts_.size() < limit_;
      found = counts_.try_emplace(std::string(room ? tenant : kOthers), 0).first;
    }
    ++found->second;
  }

  std::map<std::string, int64_t, std::less<>> counts() const {
    MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  const size_t limit_;
  mutable Mutex mutex_;
  std::map<std::string, int64_t, std::less<>> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
