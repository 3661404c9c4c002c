#include "core/base/thread_pool.h"

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

absl::Status ThreadPool::Submit(std::function<void()> task) {
  MutexLock lock(&mutex_);
  if (stopping_) return Unavailable("thread pool is stopped");
  if (queue_.size() >= queue_limit_) {
    return ResourceExhausted("thread pool queue is full: ", queue_.size(), " tasks wait");
  }
  queue_.push_back(std::move(task));
  changed_.NotifyOne();
  return absl::OkStatus();
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
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (queue_.empty() && !stopping_) changed_.WaitFor(&mutex_, kIdleSlice);
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace fusion
