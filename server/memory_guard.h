#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "core/base/logging.h"
#include "server/connection_listener.h"
#include "server/event.h"

namespace fusion {

/// Keeps callers from filling the memory with what is no call yet, or never will be one: heads
/// that do not end (gRPC 1.51 looks at the size of each part alone), calls that are taken back
/// faster than they can be forgotten. When the process's memory is `limit_bytes` above its level of
/// the last minutes, the connection that has sent most in the last second is closed, and another
/// one, until it is not; new ones are refused. Level: the memory, or, where that is more than
/// before, a hundredth of the way there every second. Thread-safe.
class MemoryGuard {
 public:
  /// `listener` and `logger` outlive it.
  MemoryGuard(int64_t limit_bytes, ConnectionListener& listener, Logger& logger);
  ~MemoryGuard();

  /// Connections closed so far.
  int64_t closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  void Watch();
  void CloseOne(int64_t above_bytes);

  const int64_t limit_bytes_;
  ConnectionListener& listener_;
  Logger& logger_;
  std::atomic<int64_t> closed_{0};
  Event over_;
  std::thread thread_;
};

}  // namespace fusion
