#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/task_executor.h"

namespace fusion {

/// A fixed number of threads behind one bounded queue, first in, first out.
///
///   ThreadPool pool(/*threads=*/4, /*queue_limit=*/256);
///   RETURN_IF_ERROR(pool.Submit([] { ... }));
///
/// Thread-safe. Tasks may submit tasks; a task must not stop or destroy its own pool.
class ThreadPool final : public TaskExecutor {
 public:
  /// `queue_limit`: tasks that may wait while all threads are busy.
  ThreadPool(int threads, size_t queue_limit);
  /// Stop().
  ~ThreadPool() override;

  absl::Status Submit(std::function<void()> task) override;

  /// Refuses new tasks, runs those that wait, joins the threads. A second call returns at once.
  void Stop();

  /// Tasks waiting for a thread.
  size_t queued() const;

 private:
  void Work();

  const size_t queue_limit_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
