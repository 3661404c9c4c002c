#include "server/memory_guard.h"

#include <algorithm>

#include "server/process_facts.h"

namespace fusion {
namespace {

// Attackers on a fast network send a megabyte in each millisecond.
constexpr Nanoseconds kLook = std::chrono::milliseconds(10);
constexpr int kLooksASecond = 100;
// Who has sent less in a second is not what fills the memory.
constexpr int64_t kHeavyBytes = int64_t{512} << 10;

}  // namespace

MemoryGuard::MemoryGuard(int64_t limit_bytes, ConnectionListener& listener, Logger& logger)
    : limit_bytes_(limit_bytes),
      listener_(listener),
      logger_(logger),
      thread_([this] { Watch(); }) {}

MemoryGuard::~MemoryGuard() {
  over_.Set();
  thread_.join();
}

void MemoryGuard::Watch() {
  int64_t level = ResidentBytes();
  for (int look = 0; !over_.WaitFor(kLook); ++look) {
    const int64_t now = ResidentBytes();
    listener_.SetShortOfMemory(now - level > limit_bytes_);
    if (now - level > limit_bytes_) {
      CloseOne(now - level);
    } else if (look % kLooksASecond == 0) {
      listener_.NoteReceived();
      level = std::min(now, level + (now - level) / 100);
    }
  }
}

void MemoryGuard::CloseOne(int64_t above_bytes) {
  std::optional<ConnectionListener::Closed> closed = listener_.CloseHeaviest(kHeavyBytes);
  if (!closed.has_value()) return;
  closed_.fetch_add(1, std::memory_order_relaxed);
  logger_.Warning("connection_closed", {{"peer", closed->peer},
                                        {"sent_bytes", closed->bytes},
                                        {"memory_above_usual_bytes", above_bytes},
                                        {"limit_bytes", limit_bytes_}});
}

}  // namespace fusion
