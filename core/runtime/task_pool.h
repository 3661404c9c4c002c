#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace fusion {

/// body(begin, end, worker): does tasks [begin, end) as worker `worker` (0 <= worker < threads).
using TaskBody = std::function<void(int64_t, int64_t, int)>;

/// Runs n independent tasks and returns when all are done: the seam through which a runtime lends
/// its own threads.
using ParallelTasks = std::function<void(int64_t n, const TaskBody& body)>;

/// Threads that wait for phases of kernels: they spin for a short while after each phase, because
/// the next one follows within microseconds, then sleep. The caller of Run works too, as worker 0.
/// One Run at a time; calls from several threads queue up. Stops its threads when destroyed.
class TaskPool {
 public:
  /// Has fewer threads if the system gives no more.
  explicit TaskPool(int threads);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// `body` must not throw and must not call Run.
  void Run(int64_t n, const TaskBody& body);

 private:
  void Work(int worker);
  bool Join();
  void TakeTasks(int worker);

  std::mutex run_mutex_;  // one Run at a time
  // The job; written while no worker is at one, read by those that Join().
  const TaskBody* body_ = nullptr;
  int64_t tasks_ = 0;
  std::atomic<int64_t> next_{0};
  std::atomic<uint64_t> state_{0};
  std::atomic<uint32_t> epoch_{0};  // raised with every job: what idle workers watch
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace fusion
