#pragma once

#include <memory>

#include "core/runtime/task_pool.h"

namespace fusion {

/// Costs of handing work to the threads of TaskPool, which run kernels. Each function measures for
/// about `seconds` and returns the lower quartile of one event, in seconds. Not thread-safe.
class TaskCosts {
 public:
  explicit TaskCosts(int threads);

  /// Work for all threads after the caller was busy for 20 us: the workers still spin.
  double Launch(double seconds);
  /// The end of work that takes each thread 5 us, and what it needs to begin. Runs count in which
  /// no thread did the work of another one, if there are any.
  double Barrier(double seconds);
  /// Work for all threads behind other such work.
  double Relaunch(double seconds);
  /// One task without other threads.
  double Call(double seconds);
  /// One task more for each thread. 0 with one thread.
  double Task(double seconds);

 private:
  TaskPool alone_;
  TaskPool pool_;
};

}  // namespace fusion
