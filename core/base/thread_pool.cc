#include "core/base/thread_pool.h"

#include <optional>
#include <utility>

namespace fusion {
namespace {

// Only bounds the wait; work and Stop() notify.
constexpr Nanoseconds kIdleSlice = std::chrono::seconds(1);

}  // namespace

ThreadPool::ThreadPool(int threads, size_t queue_limit) : queue_limit_(queue_limit) {
  MutexLock lock(&mutex_);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() { Stop(); }

absl::Status ThreadPool::Add(const WorkOwner& owner, Task task) {
  MutexLock lock(&mutex_);
  if (stopping_) return Unavailable("thread pool is stopped");
  if (queue_.size() >= queue_limit_) {
    return ResourceExhausted("thread pool queue is full: ", queue_.size(), " tasks wait");
  }
  queue_.Push(owner, std::move(task));
  changed_.NotifyOne();
  return absl::OkStatus();
}

bool ThreadPool::Displace(const WorkOwner& arriving) {
  std::optional<FairQueue<Task>::Taken> victim;
  {
    MutexLock lock(&mutex_);
    victim = queue_.Displace(arriving, [](const Task& task) { return task.displaced != nullptr; });
  }
  if (!victim.has_value()) return false;
  victim->item.displaced();
  return true;
}

void ThreadPool::Stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
}

size_t ThreadPool::queued() const {
  MutexLock lock(&mutex_);
  return queue_.size();
}

void ThreadPool::Work() {
  for (;;) {
    std::optional<FairQueue<Task>::Taken> next;
    {
      MutexLock lock(&mutex_);
      while (queue_.size() == 0 && !stopping_) changed_.WaitFor(&mutex_, kIdleSlice);
      next = queue_.Pop();
      if (!next.has_value()) return;
    }
    next->item.run();
    next->item = {};  // what it holds dies unlocked
    MutexLock lock(&mutex_);
    queue_.Done(next->owner);
  }
}

}  // namespace fusion
