#include "core/runtime/task_pool.h"

#include <algorithm>

namespace fusion {
namespace {

// About 20 microseconds of spinning: longer than the gap between two kernels, shorter than anybody minds.
constexpr int kSpins = 4000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

TaskPool::TaskPool(int threads) {
  for (int w = 1; w < threads; ++w) {
    workers_.emplace_back([this, w] { Work(w); });
  }
}

TaskPool::~TaskPool() {
  stop_.store(true, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void TaskPool::Run(int64_t n, const TaskBody& body) {
  if (n <= 0) return;
  if (workers_.empty() || n == 1) {
    body(0, n, 0);
    return;
  }
  std::lock_guard<std::mutex> lock(run_mutex_);
  body_ = &body;
  tasks_ = n;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  TakeTasks(0);
  // Workers leave the job one by one; a worker that never got a task still has to see that there is none.
  while (busy_.load(std::memory_order_acquire) != 0) Pause();
}

void TaskPool::TakeTasks(int worker) {
  for (;;) {
    int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) return;
    (*body_)(task, task + 1, worker);
  }
}

void TaskPool::Work(int worker) {
  uint32_t seen = 0;
  for (;;) {
    int spins = 0;
    uint32_t now = epoch_.load(std::memory_order_acquire);
    while (now == seen) {
      if (++spins < kSpins) {
        Pause();
      } else {
        epoch_.wait(seen, std::memory_order_acquire);
      }
      now = epoch_.load(std::memory_order_acquire);
    }
    seen = now;
    if (stop_.load(std::memory_order_acquire)) return;
    TakeTasks(worker);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace fusion
