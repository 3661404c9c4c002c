#pragma once

#include <map>
#include <string>

#include "core/base/clock.h"
#include "core/base/threads/mutex.h"

namespace fusion {

/// Detects peers that cancel calls at an implausible rate (HTTP/2 rapid reset, CVE-2023-44487):
/// each costs the server more than the caller, and limits of concurrent calls do not notice them.
/// Thread-safe.
class RapidResetDetector {
 public:
  /// Cancelled calls of one peer within a second that make Note return true.
  static constexpr int64_t kMostTakenBack = 1000;

  explicit RapidResetDetector(const Clock& clock = Clock::Real()) : clock_(clock) {}

  /// Counts a call that `peer` has cancelled. True when the count of this second reaches
  /// kMostTakenBack: once per peer and second.
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
