#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/status.h"
#include "core/base/threads/fair_queue.h"

namespace fusion {

/// Runs functions on threads of its own. Thread-safe.
class TaskExecutor {
 public:
  /// What may become of a task that waits where places are short.
  enum class Standing : uint8_t {
    kUnwanted,  // nobody wants it any more: it goes first
    kMayGo,     // it gives its place to another owner's that has the better claim to it
    kStays
  };
  /// None of them may throw.
  struct Task {
    std::function<void()> run;
    /// Called instead, on any thread, where the task has to go. Empty: it stays.
    std::function<void()> displaced = nullptr;
    /// Quick; asks for nothing of the executor. Empty: it may go.
    std::function<Standing()> standing = nullptr;
  };

  virtual ~TaskExecutor() = default;

  /// OK: the task runs once, later, on another thread, or is displaced. ResourceExhausted, with
  /// kRetryAfter: too many tasks wait already. Unavailable: stopped. In both cases the task is
  /// dropped without being run. Who shares executors fairly does so between owners.
  virtual absl::Status SubmitFor(const WorkOwner& owner, Task task) = 0;

  absl::Status Submit(std::function<void()> run) { return SubmitFor({}, {std::move(run)}); }
};

}  // namespace fusion
