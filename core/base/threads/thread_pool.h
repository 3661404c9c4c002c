#pragma once

#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/threads/fair_queue.h"
#include "core/base/threads/mutex.h"
#include "core/base/threads/task_executor.h"

namespace fusion {

/// A fixed number of threads behind one bounded queue, which is fair between owners (FairQueue);
/// of one owner first in, first out. Where the queue is full, tasks that nobody wants go out of it,
/// and then the newest of the owner with the most, for one with fewer.
///
///   ThreadPool pool("plan", /*threads=*/4, /*queue_limit=*/256);
///   RETURN_IF_ERROR(pool.Submit([] { ... }));
///
/// Thread-safe. Tasks may submit tasks; a task must not stop or destroy its own pool.
class ThreadPool final : public TaskExecutor {
 public:
  /// `name`: of its threads (NamedThread), with a number behind it: "plan-0". `queue_limit`: tasks
  /// that may wait while all threads are busy. `spare`: so many threads more serve only tenants
  /// with fewer than `spare` tasks under way, and no tenant has more than `threads` under way: one
  /// whose tasks take long does not keep out the others.
  ThreadPool(std::string_view name, int threads, size_t queue_limit, int spare = 0);
  /// Stop().
  ~ThreadPool() override;

  absl::Status SubmitFor(const WorkOwner& owner, Task task) override;

  /// Takes the tasks out of the queue that nobody wants any more, and tells them. How many.
  size_t DropUnwanted();

  /// Takes a task out of the queue if `arriving` has the better claim to its place, and tells it.
  /// False: nobody has to go.
  bool Displace(const WorkOwner& arriving);

  /// Tasks that would run before one that `arriving` submitted now, and keep it waiting: idle
  /// threads are about to take as many as there are of them.
  size_t Ahead(const WorkOwner& arriving) const;

  /// Refuses new tasks, runs those that wait, joins the threads. A second call returns at once.
  void Stop();

  /// Tasks waiting for a thread.
  size_t queued() const;

 private:
  using Taken = FairQueue<Task>::Taken;

  static Standing StandingOf(const Task& task);
  std::vector<Taken> TakeUnwanted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Taken> TakeVictim(const WorkOwner& arriving) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Taken> Await(bool is_spare);
  void Work(bool is_spare);

  const size_t queue_limit_;
  const int usual_;
  const int spare_;
  mutable Mutex mutex_;
  CondVar changed_[2];                               // for usual threads, for spare ones
  size_t idle_[2] ABSL_GUARDED_BY(mutex_) = {0, 0};  // likewise
  FairQueue<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
