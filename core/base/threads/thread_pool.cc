#include "core/base/threads/thread_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/threads/named_thread.h"
#include "core/base/threads/retry_after.h"
#include "core/base/trace.h"

namespace fusion {
namespace {

// Only bounds the wait; work and Stop() notify.
constexpr Nanoseconds kIdleSlice = std::chrono::seconds(1);

}  // namespace

ThreadPool::ThreadPool(std::string_view name, int threads, size_t queue_limit, int spare)
    : queue_limit_(queue_limit), usual_(threads), spare_(spare) {
  MutexLock lock(&mutex_);
  for (int i = 0; i < threads + spare; ++i) {
    threads_.push_back(
        NamedThread(StrCat(name, "-", i), [this, is_spare = i >= threads] { Work(is_spare); }));
  }
}

ThreadPool::~ThreadPool() { Stop(); }

absl::Status ThreadPool::SubmitFor(const WorkOwner& owner, Task task) {
  if (!ScopedTrace::Current().empty()) {
    task.run = [trace = ScopedTrace::Current(), run = std::move(task.run)] {
      const ScopedTrace traced(trace);
      run();
    };
  }
  std::vector<Taken> gone;
  absl::Status accepted;
  {
    MutexLock lock(&mutex_);
    if (stopping_) return Unavailable("thread pool is stopped");
    if (queue_.size() >= queue_limit_) gone = TakeUnwanted();
    if (queue_.size() >= queue_limit_) {
      std::optional<Taken> victim = TakeVictim(owner);
      if (victim.has_value()) gone.push_back(*std::move(victim));
    }
    if (queue_.size() < queue_limit_) {
      queue_.Push(owner, std::move(task));
      // An idle thread may already have been woken for an earlier task; spare threads take only
      // some.
      if (idle_[0] > 0) changed_[0].NotifyOne();
      if (queue_.size() > idle_[0] && idle_[1] > 0) changed_[1].NotifyOne();
    } else {
      accepted = ServerBusy(queue_.size(), " tasks wait for a thread");
    }
  }
  for (Taken& taken : gone) taken.item.displaced();
  return accepted;
}

TaskExecutor::Standing ThreadPool::StandingOf(const Task& task) {
  if (!task.displaced) return Standing::kStays;
  return task.standing ? task.standing() : Standing::kMayGo;
}

std::vector<ThreadPool::Taken> ThreadPool::TakeUnwanted() {
  return queue_.TakeIf([](const Task& task) { return StandingOf(task) == Standing::kUnwanted; });
}

std::optional<ThreadPool::Taken> ThreadPool::TakeVictim(const WorkOwner& arriving) {
  return queue_.Displace(arriving,
                         [](const Task& task) { return StandingOf(task) != Standing::kStays; });
}

size_t ThreadPool::DropUnwanted() {
  std::vector<Taken> gone;
  {
    MutexLock lock(&mutex_);
    gone = TakeUnwanted();
  }
  for (Taken& taken : gone) taken.item.displaced();
  return gone.size();
}

bool ThreadPool::Displace(const WorkOwner& arriving) {
  std::optional<Taken> victim;
  {
    MutexLock lock(&mutex_);
    victim = TakeVictim(arriving);
  }
  if (!victim.has_value()) return false;
  victim->item.displaced();
  return true;
}

size_t ThreadPool::Ahead(const WorkOwner& arriving) const {
  MutexLock lock(&mutex_);
  const size_t ahead = queue_.Ahead(arriving);
  return ahead - std::min(ahead, idle_[0]);
}

void ThreadPool::Stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
    for (CondVar& changed : changed_) changed.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

size_t ThreadPool::queued() const {
  MutexLock lock(&mutex_);
  return queue_.size();
}

// The next task; nullopt once the pool stops and the queue is empty.
std::optional<ThreadPool::Taken> ThreadPool::Await(bool is_spare) {
  MutexLock lock(&mutex_);
  for (;;) {
    // One count for both kinds of threads: a tenant with tasks on spare threads may use fewer usual
    // ones.
    const int64_t below = is_spare ? spare_ : usual_;
    // While stopping, tenants have no limits.
    std::optional<Taken> next = queue_.Pop(stopping_ ? std::numeric_limits<int64_t>::max() : below);
    if (next.has_value() || stopping_) return next;
    ++idle_[is_spare];
    changed_[is_spare].WaitFor(&mutex_, kIdleSlice);
    --idle_[is_spare];
  }
}

void ThreadPool::Work(bool is_spare) {
  while (std::optional<Taken> next = Await(is_spare)) {
    next->item.run();
    next->item = {};  // destroyed without the lock
    MutexLock lock(&mutex_);
    queue_.Done(next->owner);
    // The tenant may have been at its limit, so an idle thread may be able to take a task now.
    if (queue_.size() > 0 && idle_[0] > 0) changed_[0].NotifyOne();
  }
}

}  // namespace fusion
