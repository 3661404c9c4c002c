#pragma once

#include <functional>
#include <utility>

#include "core/base/fair_queue.h"
#include "core/base/status.h"

namespace fusion {

/// Runs functions on threads of its own. Thread-safe.
class TaskExecutor {
 public:
  /// None of them may throw.
  struct Task {
    std::function<void()> run;
    /// Called instead, on any thread, where the task has to give its place to another owner's.
    /// Empty: it stays.
    std::function<void()> displaced = nullptr;
    /// False once nobody wants it any more: such tasks go first where places are short, if they may
    /// go. Quick; asks for nothing of the executor. Empty: it is wanted.
    std::function<bool()> wanted = nullptr;
  };

  virtual ~TaskExecutor() = default;

  /// OK: the task runs once, later, on another thread, or is displaced. ResourceExhausted, with
  /// kRetryAfter: too many tasks wait already. Unavailable: stopped. In both cases the task is
  /// dropped without being run. Who shares executors fairly does so between owners.
  virtual absl::Status SubmitFor(const WorkOwner& owner, Task task) = 0;

  absl::Status Submit(std::function<void()> run) { return SubmitFor({}, {std::move(run)}); }
};

}  // namespace fusion
