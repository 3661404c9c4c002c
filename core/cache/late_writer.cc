#include "core/cache/late_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/threads/named_thread.h"

namespace fusion {
namespace {

// Upper bound of a wait; new plans and the destructor notify.
constexpr Nanoseconds kIdleSlice = std::chrono::seconds(1);
// Limit for the last round: the shutdown of the service waits for it.
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
    if (!thread_.joinable()) thread_ = NamedThread("late-writer", [this] { Work(); });
  } catch (const std::system_error&) {
    return;  // no thread available now; the next plan tries again
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

std::string LateWriter::ReasonOf(const Digest& plan) const {
  MutexLock lock(&mutex_);
  auto it = plans_.find(plan);
  return it == plans_.end() ? std::string() : it->second.facts.reason;
}

bool LateWriter::empty() const {
  MutexLock lock(&mutex_);
  return plans_.empty();
}

int64_t LateWriter::waiting() const {
  MutexLock lock(&mutex_);
  return std::count_if(plans_.begin(), plans_.end(),
                       [](const auto& plan) { return plan.second.facts.may_pass(); });
}

LateWriter::Numbered LateWriter::All() const {
  MutexLock lock(&mutex_);
  Numbered all;
  all.reserve(plans_.size());
  for (const auto& [plan, entry] : plans_) all.emplace_back(plan, entry.number);
  return all;
}

// Null if the plan was removed, or added again.
LateWriter::Entry* LateWriter::FindLocked(const Digest& plan, uint64_t number) {
  auto it = plans_.find(plan);
  return it != plans_.end() && it->second.number == number ? &it->second : nullptr;
}

void LateWriter::Prune() {
  for (const auto& [plan, number] : All()) {
    if (disk_.is_kept(plan)) continue;
    MutexLock lock(&mutex_);
    if (FindLocked(plan, number) != nullptr) plans_.erase(plan);
  }
}

bool LateWriter::IsStopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

// Waits for the next round. False: the last round.
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
  Prune();
  if (!disk_.is_writable()) return;
  for (const auto& [plan, number] : All()) {
    if (!may_go_on()) return;
    std::optional<UnwrittenPlan> facts = Find(plan);
    if (!facts.has_value() || !facts->may_pass()) continue;
    const Now now = disk_.write(plan, &*facts);
    MutexLock lock(&mutex_);
    Entry* entry = FindLocked(plan, number);
    if (entry == nullptr) continue;
    if (now == Now::kDone) {
      plans_.erase(plan);
    } else {
      entry->facts = *std::move(facts);
    }
  }
}

void LateWriter::Work() {
  while (AwaitRound()) TryAll([this] { return !IsStopping(); });
  const Nanoseconds end = Clock::Real().Now() + kLastRound;
  TryAll([end] { return Clock::Real().Now() < end; });
}

}  // namespace fusion
