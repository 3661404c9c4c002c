#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "core/runtime/usable_cores.h"

namespace fusion {

/// body(begin, end, worker): does tasks [begin, end) as worker `worker` (0 <= worker < threads).
using TaskBody = std::function<void(int64_t, int64_t, int)>;

/// Runs n independent tasks and returns when all are done: the seam through which a runtime lends
/// its own threads.
using ParallelTasks = std::function<void(int64_t n, const TaskBody& body)>;

/// Threads that wait for phases of kernels: they spin for a short while after each phase, because
/// the next one follows within microseconds, then sleep; an idle pool uses no time. With more
/// threads than cores nobody spins. The caller of Run works too, as worker 0.
///
/// Run may be called from several threads at once. The pool's workers help one of them at a time;
/// a Run that finds them busy, or as many Runs under way as there are cores, does its tasks on its
/// own thread, and takes the workers for the rest of them as soon as they are free. So runs never
/// wait for each other, and with as many runs as cores each has a core to itself. Each Run numbers
/// its workers by itself: worker 0 of two Runs may be active at once.
///
/// Takes no lock, allocates nothing and reads no clock in Run unless it waits. Stops its threads
/// when destroyed.
class TaskPool {
 public:
  /// Has fewer threads if the system gives no more. `cores`: that they share with the callers.
  explicit TaskPool(int threads, int cores = UsableCores());
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Does tasks [0, n), in parts of any size. `body` must not throw and must not call Run.
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

  // Each on a cache line of its own: other threads write to one while some watch another.
  alignas(64) std::atomic<int> callers_{0};  // Runs under way
  alignas(64) std::atomic<bool> taken_{false};
  // The job; written by the Run that has the workers while none is at it, read by those that
  // Join().
  alignas(64) const TaskBody* body_ = nullptr;
  int64_t tasks_ = 0;
  int64_t chunk_ = 1;
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};  // raised with every job: what idle workers watch
};

}  // namespace fusion
