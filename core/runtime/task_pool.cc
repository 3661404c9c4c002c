#include "core/runtime/task_pool.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "core/base/text/text.h"
#include "core/base/threads/named_thread.h"

namespace fusion {
namespace {

// Longer than the gap between two kernels, and short enough to be negligible: chosen, not measured.
// executor_bench measures the cost of dispatch with it.
constexpr std::chrono::microseconds kSpinTime(50);
// Reads of a flag between two clock reads; `pause` takes 10 to 140 cycles.
constexpr int kLooks = 64;

// Chunks for each thread in a phase with many tasks: the others wait for the last chunk for at most
// 1.5 % of the phase, 1 / 64. From that bound, not measured.
constexpr int64_t kChunksPerThread = 64;

// state_: number of workers at the job, whether more may join, and whether its caller sleeps until
// they have left.
constexpr uint32_t kActive = 0xffff;
constexpr uint32_t kOpen = 0x10000;
constexpr uint32_t kAwaited = 0x20000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// True as soon as `done` is, false if it is not within kSpinTime.
template <typename Done>
bool Spin(const Done& done) {
  auto look = [&done] {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return true;
      Pause();
    }
    return false;
  };
  if (look()) return true;  // most waits are over before a clock is worth reading
  auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    if (look()) return true;
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

TaskPool::TaskPool(int threads, int cores) : cores_(std::max(cores, 1)), spins_(threads <= cores) {
  try {
    for (int w = 1; w < threads; ++w) {
      workers_.push_back(NamedThread(StrCat("fusion-run-", w), [this, w] { Work(w); }));
    }
  } catch (const std::system_error&) {
    // The library has no other way to say that there are no more threads: fewer do.
  }
}

TaskPool::~TaskPool() {
  stop_.store(true, std::memory_order_release);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void TaskPool::Run(int64_t n, const TaskBody& body) {
  if (n <= 0) return;
  if (n == 1 || workers_.empty()) {
    body(0, n, 0);
    return;
  }
  callers_.fetch_add(1, std::memory_order_relaxed);
  int64_t task = 0;
  while (task < n - 1 && !TakeWorkers()) {
    body(task, task + 1, 0);
    ++task;
  }
  if (task < n - 1) {
    RunWithWorkers(task, n, body);
    taken_.store(false, std::memory_order_release);
  } else {
    body(task, n, 0);
  }
  callers_.fetch_sub(1, std::memory_order_relaxed);
}

bool TaskPool::TakeWorkers() {
  if (callers_.load(std::memory_order_relaxed) >= cores_) return false;  // no core is left for them
  return !taken_.load(std::memory_order_relaxed) &&
         !taken_.exchange(true, std::memory_order_acquire);
}

void TaskPool::RunWithWorkers(int64_t first, int64_t n, const TaskBody& body) {
  body_ = &body;
  tasks_ = n;
  chunk_ = std::max<int64_t>(1, (n - first) / (threads() * kChunksPerThread));
  next_.store(first, std::memory_order_relaxed);
  state_.store(kOpen, std::memory_order_release);
  epoch_.fetch_add(1);
  if (n - first > static_cast<int64_t>(workers_.size())) {
    epoch_.notify_all();
  } else {
    for (int64_t w = 1; w < n - first; ++w) epoch_.notify_one();
  }
  TakeTasks(0);
  AwaitWorkers();
}

// Every task is taken. A worker that has not come yet (on a busy machine it may be milliseconds
// late) finds the job closed; those at a task are waited for.
void TaskPool::AwaitWorkers() {
  uint32_t state = state_.fetch_and(~kOpen, std::memory_order_acq_rel) & ~kOpen;
  auto alone = [&] { return (state = state_.load(std::memory_order_acquire)) == 0; };
  if (state == 0 || (spins_ && Spin(alone))) return;
  state = state_.fetch_or(kAwaited, std::memory_order_acq_rel) | kAwaited;
  while ((state & kActive) != 0) {
    state_.wait(state, std::memory_order_acquire);
    state = state_.load(std::memory_order_acquire);
  }
}

void TaskPool::TakeTasks(int worker) {
  for (;;) {
    int64_t task = next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (task >= tasks_) return;
    (*body_)(task, std::min(task + chunk_, tasks_), worker);
  }
}

bool TaskPool::Join() {
  uint32_t state = state_.load(std::memory_order_acquire);
  while ((state & kOpen) != 0) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void TaskPool::Work(int worker) {
  uint32_t seen = 0;
  for (;;) {
    auto news = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
    if (!spins_ || !Spin(news)) epoch_.wait(seen, std::memory_order_acquire);
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    if (!Join()) continue;
    TakeTasks(worker);
    // The last one to leave wakes a caller that sleeps.
    if (state_.fetch_sub(1, std::memory_order_acq_rel) == (kAwaited | 1)) state_.notify_one();
  }
}

}  // namespace fusion
