#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/status.h"
#include "core/base/threads/fair_queue.h"

namespace fusion {

/// Runs functions on its own threads. Thread-safe.
class TaskExecutor {
 public:
  /// Whether a waiting task may be displaced, that is dropped from a full queue.
  enum class Standing : uint8_t {
    kUnwanted,  // nobody wants its result any more: displaced first
    kMayGo,     // may be displaced by a task that has precedence (FairQueue::Displace)
    kStays      // never displaced
  };
  /// None of these functions may throw.
  struct Task {
    std::function<void()> run;
    /// Called instead of `run`, on any thread, if the task is displaced. Empty: the task is never
    /// displaced.
    std::function<void()> displaced = nullptr;
    /// Called under a lock of the executor: it must be quick and must not call the executor. Empty:
    /// kMayGo.
    std::function<Standing()> standing = nullptr;
  };

  virtual ~TaskExecutor() = default;

  /// Queues a task of `owner`. OK: it runs once, later, on another thread, or is displaced.
  /// ResourceExhausted, with kRetryAfter: too many tasks wait. Unavailable: the executor is
  /// stopped. On an error the task is dropped: neither `run` nor `displaced` is called. Executors
  /// may be fair between owners; ThreadPool is.
  virtual absl::Status SubmitFor(const WorkOwner& owner, Task task) = 0;

  absl::Status Submit(std::function<void()> run) { return SubmitFor({}, {std::move(run)}); }
};

}  // namespace fusion
