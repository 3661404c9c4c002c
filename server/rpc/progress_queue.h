#pragma once

#include <deque>
#include <optional>

#include "core/bundle/report.h"

namespace fusion {

/// Progress on its way to a caller who may read slowly: of news about one stage that follow each
/// other only the latest waits, and of all at most kMost, the oldest forgotten first. Not
/// thread-safe.
class ProgressQueue {
 public:
  static constexpr size_t kMost = 64;

  void Push(PlanProgress progress) {
    if (!waiting_.empty() && waiting_.back().stage == progress.stage) waiting_.pop_back();
    if (waiting_.size() == kMost) waiting_.pop_front();
    waiting_.push_back(std::move(progress));
  }

  /// The oldest that waits.
  std::optional<PlanProgress> Pop() {
    if (waiting_.empty()) return std::nullopt;
    PlanProgress out = std::move(waiting_.front());
    waiting_.pop_front();
    return out;
  }

 private:
  std::deque<PlanProgress> waiting_;
};

}  // namespace fusion
