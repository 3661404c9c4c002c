#pragma once

#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/threads/fair_queue.h"
#include "core/base/threads/mutex.h"
#include "core/base/threads/task_executor.h"

namespace fusion {

/// A fixed number of threads that serve one bounded queue, which is fair between owners
/// (FairQueue). If the queue is full, a new task displaces all unwanted tasks; if there are none,
/// the newest task of the tenant with the most, as FairQueue::Displace chooses it.
///
///   ThreadPool pool("plan", /*threads=*/4, /*queue_limit=*/256);
///   RETURN_IF_ERROR(pool.Submit([] { ... }));
///
/// Thread-safe. Tasks may submit tasks; a task must not stop or destroy its own pool.
class ThreadPool final : public TaskExecutor {
 public:
  /// `name`: prefix of the names of its threads (NamedThread): "plan-0". `queue_limit`: how many
  /// tasks may wait. `spare`: number of additional threads, reserved so that one tenant with long
  /// tasks cannot block the others: they serve only tenants with fewer than `spare` tasks in
  /// progress, and the usual ones only tenants with fewer than `threads`.
  ThreadPool(std::string_view name, int threads, size_t queue_limit, int spare = 0);
  /// Calls Stop().
  ~ThreadPool() override;

  absl::Status SubmitFor(const WorkOwner& owner, Task task) override;

  /// Displaces all waiting tasks that are kUnwanted. Returns how many.
  size_t DropUnwanted();

  /// Displaces one waiting task in favour of `arriving` (FairQueue::Displace), also if the queue is
  /// not full. False if no task may be displaced for it.
  bool Displace(const WorkOwner& arriving);

  /// How many waiting tasks would delay one that `arriving` submitted now: FairQueue::Ahead less
  /// the idle usual threads, which are about to take a task each.
  size_t Ahead(const WorkOwner& arriving) const;

  /// Refuses new tasks, runs all waiting tasks, and joins the threads. A second call returns at
  /// once.
  void Stop();

  /// Number of tasks that wait for a thread.
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
