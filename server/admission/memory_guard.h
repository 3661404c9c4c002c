#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "core/base/logging.h"
#include "server/admission/event.h"
#include "server/transport/connection_listener.h"

namespace fusion {

/// Protects the process's memory from data that never becomes a call: headers that do not end (gRPC
/// 1.51 bounds each part only, not their sum), calls that are cancelled faster than gRPC frees
/// them.
///
/// A thread of its own samples the resident memory every 10 ms and subtracts the bytes of caches
/// and of current or recent jobs. Memory is short while the difference exceeds its usual level by
/// more than `limit_bytes`, or while `flooded`. Then new connections are refused, and the
/// connection that has sent the most in the current second is closed. After each closed connection
/// the next one is closed too if it has sent at least half as much. Complete requests do not count.
/// A connection that has sent less than 16 MiB (512 KiB in a flood) stays open. The level is
/// updated once a second: it follows a decrease completely, and an increase by a twentieth of the
/// difference. Thread-safe.
class MemoryGuard {
 public:
  /// Callbacks, on the guard's thread; the constructor also calls `cached` and `jobs`.
  struct Reasons {
    /// Whether there are implausibly many calls; treated as a shortage of memory.
    std::function<bool()> flooded;
    /// Bytes that caches keep.
    std::function<int64_t()> cached;
    /// Bytes of running imports and plannings, which have their own limit (JobMemory).
    std::function<int64_t()> jobs = [] { return int64_t{0}; };
    /// Reduces caches. Called while jobs hold more than a quarter of `limit_bytes`, at most once a
    /// second.
    std::function<void()> make_room = [] {};
    /// Bytes of complete requests by peer since the last call with `begins`, which is made once a
    /// second.
    std::function<ConnectionListener::BytesByPeer(bool begins)> requests;
  };
  /// Starts the thread. `listener`, `logger` and what `reasons` refer to must outlive it.
  MemoryGuard(int64_t limit_bytes, Reasons reasons, ConnectionListener& listener, Logger& logger);
  ~MemoryGuard() { Stop(); }

  /// Ends the thread. Idempotent.
  void Stop();

  /// Connections closed so far.
  int64_t closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kLooksASecond = 100;

  void Watch();
  void CloseHeaviest(int64_t above_bytes, int64_t heavy_bytes);

  const int64_t limit_bytes_;
  const Reasons reasons_;
  ConnectionListener& listener_;
  Logger& logger_;
  std::atomic<int64_t> closed_{0};
  Event over_;
  // Used by the thread only.
  int64_t cached_;  // bytes of caches: follows increases at once, decreases slowly
  int64_t jobs_;    // bytes of jobs: the same
  int64_t room_made_at_ = -kLooksASecond;  // the look of the last make_room
  int64_t level_;                          // usual memory without caches and jobs
  std::thread thread_;
};

}  // namespace fusion
