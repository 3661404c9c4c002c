#include "core/cache/late_writer.h"

#include <algorithm>
#include <utility>

namespace fusion {
namespace {

// Only bounds the wait; plans and the end notify.
constexpr Nanoseconds kIdleSlice = std::chrono::seconds(1);

}  // namespace

LateWriter::~LateWriter() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    thread.swap(thread_);
    changed_.NotifyAll();
  }
  if (thread.joinable()) thread.join();
}

void LateWriter::Add(const Digest& plan, UnwrittenPlan facts) {
  MutexLock lock(&mutex_);
  if (stopping_ || (plans_.size() >= kMost && !plans_.contains(plan))) return;
  plans_.insert_or_assign(plan, std::move(facts));
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  changed_.NotifyAll();
}

void LateWriter::Remove(const Digest& plan) {
  MutexLock lock(&mutex_);
  plans_.erase(plan);
}

std::string LateWriter::ReasonOf(const Digest& plan) const {
  MutexLock lock(&mutex_);
  auto it = plans_.find(plan);
  return it == plans_.end() ? "" : it->second.reason;
}

int64_t LateWriter::size() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(plans_.size());
}

// False: it is over.
bool LateWriter::AwaitRound(Nanoseconds pause, std::map<Digest, UnwrittenPlan>* plans) {
  MutexLock lock(&mutex_);
  while (plans_.empty() && !stopping_) changed_.WaitFor(&mutex_, kIdleSlice);
  const Nanoseconds end = Clock::Real().Now() + pause;
  while (!stopping_) {
    const Nanoseconds left = end - Clock::Real().Now();
    if (left <= Nanoseconds(0)) break;
    changed_.WaitFor(&mutex_, left);
  }
  *plans = plans_;
  return !stopping_;
}

// Whether any could be written.
bool LateWriter::TryAll(const std::map<Digest, UnwrittenPlan>& plans) {
  bool any = false;
  for (const auto& [plan, facts] : plans) {
    const absl::Status written = write_(plan, facts);
    any |= written.ok();
    MutexLock lock(&mutex_);
    if (stopping_) break;
    auto it = plans_.find(plan);
    if (it == plans_.end()) continue;
    if (written.ok()) {
      plans_.erase(it);
    } else {
      it->second.reason = Message(written);
    }
  }
  return any;
}

void LateWriter::Work() {
  Nanoseconds pause = pauses_.first;
  std::map<Digest, UnwrittenPlan> plans;
  while (AwaitRound(pause, &plans)) {
    pause = TryAll(plans) ? pauses_.first : std::min(2 * pause, pauses_.most);
  }
}

}  // namespace fusion
