#pragma once

#include <functional>

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
};

}  // namespace fusion
