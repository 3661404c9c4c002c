#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "core/runtime/usable_cores.h"

namespace fusion {

/// body(begin, end, worker) performs tasks [begin, end) as worker number `worker`, 0 <= worker <
/// threads. In one ParallelTasks call, two threads never use the same number at the same time.
using TaskBody = std::function<void(int64_t, int64_t, int)>;

/// Runs n independent tasks and returns when all are done. A runtime passes such a function to lend
/// its own threads (ExecutorOptions::parallel_tasks).
using ParallelTasks = std::function<void(int64_t n, const TaskBody& body)>;

/// Threads for the phases of kernels. After a phase they spin for 50 us, because the next one
/// follows within microseconds, then sleep; an idle pool uses no CPU time. With more threads than
/// cores no thread spins. The caller of Run works too, as worker 0.
///
/// Run may be called from several threads at once. The pool's workers serve one Run at a time. A
/// Run does its tasks on its own thread while the workers are busy, or while as many Runs are
/// active as there are cores; it takes the workers for its remaining tasks once they are free. So
/// Runs never wait for each other, and with as many Runs as cores each has a core. Each Run numbers
/// its workers on its own: worker 0 of two Runs may be active at once.
///
/// Run takes no lock, allocates nothing, and reads no clock unless it waits. The destructor joins
/// the threads; no Run may be active then.
class TaskPool {
 public:
  /// `threads` includes the caller of Run. The pool has fewer if the system cannot start them.
  /// `cores`: number of cores that all threads and callers share.
  explicit TaskPool(int threads, int cores = UsableCores());
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Performs tasks [0, n), in parts of any size, and returns when all are done. `body` must not
  /// throw and must not call Run. n <= 0: nothing.
  void Run(int64_t n, const TaskBody& body);

 private:
  bool TakeWorkers();
  void RunWithWorkers(int64_t first, int64_t n, const TaskBody& body);
  void AwaitWorkers();
  void Work(int worker);
  bool Join();
  void TakeTasks(int worker);

  const int cores_;
  const bool spins_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;

  // Each on its own cache line: some threads write to one while others watch another one.
  alignas(64) std::atomic<int> callers_{0};  // Runs under way
  alignas(64) std::atomic<bool> taken_{false};
  // The current job. Written by the Run that owns the workers while none is active; read by workers
  // that Join().
  alignas(64) const TaskBody* body_ = nullptr;
  int64_t tasks_ = 0;
  int64_t chunk_ = 1;
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};  // idle workers wait on it
};

}  // namespace fusion
