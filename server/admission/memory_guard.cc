#include "server/admission/memory_guard.h"

#include <algorithm>

#include "core/base/threads/named_thread.h"
#include "server/admission/process_facts.h"

namespace fusion {
namespace {

// Attackers on a fast network send a megabyte in each millisecond.
constexpr Nanoseconds kLook = std::chrono::milliseconds(10);
// A connection that has sent less in a second does not fill the memory. It may be sending a large
// request, which may take more memory than its bytes to plan.
constexpr int64_t kHeavyBytes = int64_t{16} << 20;
// The same in a flood of calls, where each call takes sixty times its bytes.
constexpr int64_t kHeavyFloodBytes = int64_t{512} << 10;

}  // namespace

MemoryGuard::MemoryGuard(int64_t limit_bytes, Reasons reasons, ConnectionListener& listener,
                         Logger& logger)
    : limit_bytes_(limit_bytes),
      reasons_(std::move(reasons)),
      listener_(listener),
      logger_(logger),
      cached_(reasons_.cached()),
      jobs_(reasons_.jobs()),
      level_(ResidentBytes() - cached_ - jobs_),
      thread_(NamedThread("memory-guard", [this] { Watch(); })) {}

void MemoryGuard::Stop() {
  over_.Set();
  if (thread_.joinable()) thread_.join();
}

void MemoryGuard::Watch() {
  for (int64_t look = 0; !over_.WaitFor(kLook); ++look) {
    const int64_t jobs = reasons_.jobs();
    jobs_ = std::max(jobs_, jobs);
    if (jobs > limit_bytes_ / 4 && look - room_made_at_ >= kLooksASecond) {
      room_made_at_ = look;
      reasons_.make_room();
    }
    const int64_t used = ResidentBytes() - cached_;
    const int64_t now = used - jobs_;
    const bool flooded = reasons_.flooded();
    const bool is_short = flooded || now - level_ > limit_bytes_;
    listener_.SetShortOfMemory(is_short);
    if (is_short) CloseHeaviest(now - level_, flooded ? kHeavyFloodBytes : kHeavyBytes);
    if (look % kLooksASecond != 0) continue;
    listener_.NoteReceived();
    reasons_.requests(/*begins=*/true);
    // Memory that stays in use becomes part of the level after a while.
    level_ = std::min(used - jobs, level_ + (used - jobs - level_) / 20);
    // The allocator returns memory that caches have freed only after a while.
    cached_ = std::max(reasons_.cached(), cached_ - cached_ / 20);
    jobs_ -= jobs_ / 20;
  }
}

void MemoryGuard::CloseHeaviest(int64_t above_bytes, int64_t heavy_bytes) {
  const ConnectionListener::BytesByPeer requests = reasons_.requests(/*begins=*/false);
  int64_t least = heavy_bytes;
  while (auto closed = listener_.CloseHeaviest(least, requests)) {
    least = std::max(heavy_bytes, closed->bytes / 2);  // others that sent as much are closed too
    closed_.fetch_add(1, std::memory_order_relaxed);
    logger_.Warning("connection_closed", {{"peer", closed->peer},
                                          {"sent_for_nothing_bytes", closed->bytes},
                                          {"memory_above_usual_bytes", above_bytes},
                                          {"limit_bytes", limit_bytes_}});
  }
}

}  // namespace fusion
