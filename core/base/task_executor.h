#pragma once

#include <functional>

#include "core/base/fair_queue.h"
#include "core/base/status.h"

namespace fusion {

/// Runs functions on threads of its own. Thread-safe.
class TaskExecutor {
 public:
  virtual ~TaskExecutor() = default;

  /// OK: `task` runs once, later, on another thread. ResourceExhausted: too many tasks wait
  /// already. Unavailable: stopped. In both cases `task` is dropped without being run. `task` must
  /// not throw.
  virtual absl::Status Submit(std::function<void()> task) = 0;

  /// The same for somebody: who shares executors fairly does so between owners.
  virtual absl::Status SubmitFor(const WorkOwner& owner, std::function<void()> task) {
    (void)owner;
    return Submit(std::move(task));
  }
};

}  // namespace fusion
