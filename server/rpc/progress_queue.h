#pragma once

#include <deque>
#include <optional>

#include "core/bundle/report.h"

namespace fusion {

/// Progress messages for a caller that may read slowly. Of consecutive messages about one stage
/// only the latest is kept; of all at most kMost, and the oldest is dropped first. Not thread-safe.
class ProgressQueue {
 public:
  static constexpr size_t kMost = 64;

  void Push(PlanProgress progress) {
    if (!waiting_.empty() && waiting_.back().stage == progress.stage) waiting_.pop_back();
    if (waiting_.size() == kMost) waiting_.pop_front();
    waiting_.push_back(std::move(progress));
  }

  /// Removes and returns the oldest message; nullopt: empty.
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
