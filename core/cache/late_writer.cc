#include "core/cache/late_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace fusion {
namespace {

// Only bounds the wait; plans and the end notify.
constexpr Nanoseconds kIdleSlice = std::chrono::seconds(1);
// Of the last round: whoever stops a service waits for it.
constexpr Nanoseconds kLastRound = std::chrono::seconds(2);

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
  auto known = plans_.find(plan);
  if (stopping_ || (known == plans_.end() && plans_.size() >= kMost)) return;
  if (known != plans_.end()) {
    const UnwrittenPlan& before = known->second.facts;
    for (const Digest& kernel : before.kernels) {
      if (std::find(facts.kernels.begin(), facts.kernels.end(), kernel) == facts.kernels.end()) {
        facts.kernels.push_back(kernel);
      }
    }
    facts.tenant = before.tenant;
  }
  plans_.insert_or_assign(plan, Entry{std::move(facts), ++added_});
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error&) {
    return;  // no more threads now; with the next plan there may be
  }
  changed_.NotifyAll();
}

void LateWriter::Remove(const Digest& plan) {
  MutexLock lock(&mutex_);
  plans_.erase(plan);
}

std::optional<UnwrittenPlan> LateWriter::Find(const Digest& plan) const {
  MutexLock lock(&mutex_);
  auto it = plans_.find(plan);
  if (it == plans_.end()) return std::nullopt;
  return it->second.facts;
}

int64_t LateWriter::waiting() const {
  MutexLock lock(&mutex_);
  return std::count_if(plans_.begin(), plans_.end(),
                       [](const auto& plan) { return plan.second.facts.may_pass; });
}

bool LateWriter::IsStopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

// False: it is the last one.
bool LateWriter::AwaitRound() {
  MutexLock lock(&mutex_);
  while (plans_.empty() && !stopping_) changed_.WaitFor(&mutex_, kIdleSlice);
  const Nanoseconds end = Clock::Real().Now() + pause_;
  while (!stopping_) {
    const Nanoseconds left = end - Clock::Real().Now();
    if (left <= Nanoseconds(0)) break;
    changed_.WaitFor(&mutex_, left);
  }
  return !stopping_;
}

void LateWriter::TryAll(const std::function<bool()>& may_go_on) {
  if (!disk_.is_writable()) return;
  Entries plans;
  {
    MutexLock lock(&mutex_);
    plans = plans_;
  }
  for (auto& [plan, entry] : plans) {
    if (!may_go_on()) return;
    const Now now = disk_.write(plan, &entry.facts);
    MutexLock lock(&mutex_);
    auto it = plans_.find(plan);
    if (it == plans_.end() || it->second.number != entry.number) continue;
    if (now == Now::kDone) {
      plans_.erase(it);
    } else {
      it->second.facts = entry.facts;
    }
  }
}

void LateWriter::Work() {
  while (AwaitRound()) TryAll([this] { return !IsStopping(); });
  const Nanoseconds end = Clock::Real().Now() + kLastRound;
  TryAll([end] { return Clock::Real().Now() < end; });
}

}  // namespace fusion
