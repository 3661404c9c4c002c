#pragma once

#include <thread>
#include <vector>

#include "core/base/fair_queue.h"
#include "core/base/mutex.h"
#include "core/base/task_executor.h"

namespace fusion {

/// A fixed number of threads behind one bounded queue, which is fair between owners (FairQueue);
/// of one owner first in, first out.
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

  absl::Status Submit(std::function<void()> task) override {
    return SubmitFor({}, std::move(task));
  }
  absl::Status SubmitFor(const WorkOwner& owner, std::function<void()> task) override {
    return Add(owner, {std::move(task), nullptr});
  }
  /// The same, for a task that may have to give its place in the queue to another owner's: then
  /// `displaced` is called instead, on the thread that took it.
  absl::Status SubmitFor(const WorkOwner& owner, std::function<void()> task,
                         std::function<void()> displaced) {
    return Add(owner, {std::move(task), std::move(displaced)});
  }

  /// Takes a task out of the queue if `arriving` has the better claim to its place, and tells it.
  /// False: nobody has to go.
  bool Displace(const WorkOwner& arriving);

  /// Refuses new tasks, runs those that wait, joins the threads. A second call returns at once.
  void Stop();

  /// Tasks waiting for a thread.
  size_t queued() const;

 private:
  struct Task {
    std::function<void()> run;
    std::function<void()> displaced;  // empty: it stays
  };

  absl::Status Add(const WorkOwner& owner, Task task);
  void Work();

  const size_t queue_limit_;
  mutable Mutex mutex_;
  CondVar changed_;
  FairQueue<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
