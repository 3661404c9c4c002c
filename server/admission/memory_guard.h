#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "core/base/logging.h"
#include "server/admission/event.h"
#include "server/transport/connection_listener.h"

namespace fusion {

/// Keeps callers from filling the memory with what is no call yet, or never will be one: heads
/// that do not end (gRPC 1.51 looks at the size of each part alone), calls that are taken back
/// faster than they can be forgotten. When the process's memory, but for what its caches keep and
/// its jobs hold or held lately, is `limit_bytes` above its level of the last minute, the
/// connection that has sent most in the last second, requests that came whole not counted, is
/// closed, with those that sent at least half as much, and others, until it is not; new ones are
/// refused. Level: the memory, or, where that is more than before, a twentieth of the way there
/// every second. Thread-safe.
class MemoryGuard {
 public:
  struct Reasons {
    /// Whether there are more calls than anybody means: that is short of memory too, and soon.
    std::function<bool()> flooded;
    /// What caches keep of memory; asked once a second.
    std::function<int64_t()> cached;
    /// What imports and plannings hold, which have a bound of their own (JobMemory).
    std::function<int64_t()> jobs = [] { return int64_t{0}; };
    /// Bytes of requests that came whole, by peer, since a second began; `begins`: this one does.
    std::function<ConnectionListener::BytesByPeer(bool begins)> requests;
  };
  /// `listener`, `logger` and what `reasons` refer to outlive it.
  MemoryGuard(int64_t limit_bytes, Reasons reasons, ConnectionListener& listener, Logger& logger);
  ~MemoryGuard() { Stop(); }

  /// Watches no more. A second call does nothing.
  void Stop();

  /// Connections closed so far.
  int64_t closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  void Watch();
  void CloseHeaviest(int64_t above_bytes, int64_t heavy_bytes);

  const int64_t limit_bytes_;
  const Reasons reasons_;
  ConnectionListener& listener_;
  Logger& logger_;
  std::atomic<int64_t> closed_{0};
  Event over_;
  int64_t cached_;  // when it was asked last; of the thread, as the next two
  int64_t jobs_;    // most of late
  int64_t level_;
  std::thread thread_;
};

}  // namespace fusion
