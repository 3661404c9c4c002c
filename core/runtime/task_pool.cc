#include "core/runtime/task_pool.h"

#include <chrono>
#include <system_error>

namespace fusion {
namespace {

// Longer than the gap between two kernels, shorter than anybody minds.
constexpr std::chrono::microseconds kSpinTime(50);
// Looks at a flag between two looks at the clock; `pause` takes 10 to 140 cycles.
constexpr int kLooks = 32;

// state_: workers at the job, whether more may join, and the number of the job.
constexpr uint64_t kActive = 0xffff;
constexpr uint64_t kOpen = 0x10000;
constexpr uint64_t kNextJob = 0x20000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// True as soon as `done` is, false if it is not within kSpinTime.
template <typename Done>
bool Spin(const Done& done) {
  auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

TaskPool::TaskPool(int threads) {
  try {
    for (int w = 1; w < threads; ++w) {
      workers_.emplace_back([this, w] { Work(w); });
    }
  } catch (const std::system_error&) {
    // The library has no other way to say that there are no more threads: fewer do.
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
  uint64_t job = (state_.load(std::memory_order_relaxed) & ~(kOpen | kActive)) + kNextJob;
  state_.store(job | kOpen, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  TakeTasks(0);
  // Every task is taken. A worker that has not come yet (on a busy machine it may be milliseconds
  // late) finds the job closed; those at a task are waited for.
  state_.fetch_and(~kOpen, std::memory_order_relaxed);
  auto alone = [this] { return (state_.load(std::memory_order_acquire) & kActive) == 0; };
  while (!Spin(alone)) std::this_thread::yield();  // the core may be what the worker waits for
}

void TaskPool::TakeTasks(int worker) {
  for (;;) {
    int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) return;
    (*body_)(task, task + 1, worker);
  }
}

bool TaskPool::Join() {
  uint64_t state = state_.load(std::memory_order_acquire);
  while ((state & kOpen) != 0) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void TaskPool::Work(int worker) {
  uint32_t seen = 0;
  for (;;) {
    auto news = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
    if (!Spin(news)) epoch_.wait(seen, std::memory_order_acquire);
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    if (!Join()) continue;
    TakeTasks(worker);
    state_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace fusion
