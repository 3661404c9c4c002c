#pragma once

#include <map>
#include <string>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// Finds who takes calls back faster than anybody who means them: each costs the server more than
/// the caller, and no limit of calls under way sees them (CVE-2023-44487). Thread-safe.
class RapidResetDetector {
 public:
  /// In a second, of one peer.
  static constexpr int64_t kMostTakenBack = 1000;

  explicit RapidResetDetector(const Clock& clock = Clock::Real()) : clock_(clock) {}

  /// A call of `peer` was taken back. True if that is one too many; once a second.
  bool Note(const std::string& peer) {
    MutexLock lock(&mutex_);
    const int64_t second = clock_.Now() / std::chrono::seconds(1);
    if (second != second_ || taken_back_.size() > kMostPeers) taken_back_.clear();
    second_ = second;
    return ++taken_back_[peer] == kMostTakenBack;
  }

 private:
  static constexpr size_t kMostPeers = 16384;
  const Clock& clock_;
  Mutex mutex_;
  int64_t second_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> taken_back_ ABSL_GUARDED_BY(mutex_);  // in that second
};

}  // namespace fusion
