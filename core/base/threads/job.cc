#include "core/base/threads/job.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "absl/strings/cord.h"
#include "core/base/text/text.h"
#include "core/base/threads/retry_after.h"
#include "core/base/threads/shortage.h"

namespace fusion {
namespace {

constinit thread_local Job* current_job = nullptr;
constinit thread_local const AtNode* current_node = nullptr;

// How long the allocation of a large block waits for evicted jobs.
constexpr auto kWait = std::chrono::milliseconds(2);
constexpr int kMostWaits = 1000;

// True if all jobs hold more than the limit together, which happens only while evicted jobs have
// not ended yet.
bool IsCrowded(const JobMemory* memory) {
  return memory != nullptr && memory->used_bytes() > memory->limit_bytes();
}

// Thrown by Job::Step. Derived from std::bad_alloc, so that code which handles that handles it too.
class JobIsOver : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "the job is over"; }
};

}  // namespace

int64_t JobMemory::used_bytes() const {
  MutexLock lock(&mutex_);
  int64_t used = 0;
  for (const auto& [job, share] : shares_) used += share.bytes;
  return used;
}

void JobMemory::Report(Job* job, int64_t bytes) {
  MutexLock lock(&mutex_);
  shares_[job].bytes = bytes;
  for (;;) {
    int64_t staying = 0;
    std::map<std::string_view, int64_t> by_owner;
    for (const auto& [other, share] : shares_) {
      if (share.ending) continue;
      staying += share.bytes;
      by_owner[other->owner_] += share.bytes;
    }
    if (staying <= limit_bytes_) return;
    const auto heaviest =
        std::max_element(by_owner.begin(), by_owner.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    Job* largest = nullptr;
    for (const auto& [other, share] : shares_) {
      if (share.ending || other->owner_ != heaviest->first) continue;
      if (largest == nullptr || shares_[largest].bytes < share.bytes) largest = other;
    }
    shares_[largest].ending = true;
    largest->evicted_.store(true, std::memory_order_relaxed);
    ended_.fetch_add(1, std::memory_order_relaxed);
  }
}

void JobMemory::Forget(Job* job) {
  MutexLock lock(&mutex_);
  shares_.erase(job);
}

Job::Job(std::string_view what, const JobLimits& limits, JobMemory* shared, std::string owner,
         const CancelToken* cancel)
    : what_(what), limits_(limits), shared_(shared), owner_(std::move(owner)), cancel_(cancel) {}

Job::~Job() {
  if (shared_ != nullptr) shared_->Forget(this);
}

Job::Scope::Scope(Job* job) { current_job = job; }
Job::Scope::~Scope() { current_job = nullptr; }

Job* Job::Current() { return current_job; }

void Job::Charge(int64_t bytes) {
  if (current_job != nullptr) current_job->Take(bytes);
}

void Job::Release(int64_t bytes) {
  if (current_job != nullptr) current_job->bytes_ -= bytes;
}

bool Job::HasRoom(int64_t bytes) {
  Job* const job = current_job;
  if (job == nullptr) return true;
  if (bytes > job->limits_.bytes - job->bytes_) return false;
  if (bytes < kReportBytes) return true;
  if (job->over_ != Over::kNo) return false;
  Over why = job->Look(job->bytes_ + bytes);
  // Evicted jobs keep their memory until their next step.
  for (int wait = 0; why == Over::kNo && wait < kMostWaits && IsCrowded(job->shared_); ++wait) {
    std::this_thread::sleep_for(kWait);
    why = job->Look(job->bytes_ + bytes);
  }
  if (why == Over::kNo) return true;
  job->NoteWhere();
  job->over_ = why;
  return false;
}

void Job::Step(int64_t count) {
  Job* const job = current_job;
  if (job == nullptr) return;
  job->steps_ += count;
  if (job->IsSpent()) job->End();
}

void Job::Refuse() {
  if (over_ == Over::kNo) NoteWhere();
  if (over_ == Over::kNo) over_ = Over::kBytes;
}

void Job::Take(int64_t bytes) {
  ++steps_;
  bytes_ += bytes;
  most_ = std::max(most_, bytes_);
}

bool Job::IsSpent() {
  if (over_ != Over::kNo) return true;
  Over why = Over::kNo;
  if (most_ > limits_.bytes) {  // also for a moment since the step before
    why = Over::kBytes;
  } else if (steps_ > limits_.steps) {
    why = Over::kSteps;
  } else if (steps_ >= look_at_steps_ || bytes_ >= look_at_bytes_) {
    why = Look(bytes_);
  }
  if (why == Over::kNo) return false;
  NoteWhere();
  over_ = why;
  return true;
}

Job::Over Job::Look(int64_t bytes) {
  look_at_steps_ = steps_ + kLookSteps;
  look_at_bytes_ = bytes_ + kLookBytes;
  Job* const job = std::exchange(current_job, nullptr);  // do not charge the accounting itself
  if (shared_ != nullptr && std::abs(bytes - reported_) >= kReportBytes) {
    reported_ = bytes;
    shared_->Report(this, std::max<int64_t>(bytes, 0));
  }
  const bool cancelled = cancel_ != nullptr && !cancel_->Check().ok();
  current_job = job;
  if (evicted_.load(std::memory_order_relaxed)) return Over::kShared;
  return cancelled ? Over::kCancelled : Over::kNo;
}

void Job::NoteWhere() {
  if (current_node == nullptr) return;
  const AtNode& at = *current_node;
  over_node_ = at.position_;
  std::snprintf(over_at_.data(), over_at_.size(), "%.*s\n%.*s",
                static_cast<int>(std::min<size_t>(at.op_.size(), 60)), at.op_.data(),
                static_cast<int>(std::min<size_t>(at.name_.size(), 90)), at.name_.data());
}

void Job::End() { throw JobIsOver(); }

absl::Status Job::Why() const {
  std::string at;
  const std::string_view told = over_at_.data();
  if (const size_t end = told.find('\n'); end != std::string_view::npos) {
    at = StrCat(" at node ", QuoteShort(told.substr(end + 1)), " (", told.substr(0, end), ")");
  }
  auto named = [&](absl::Status status) {
    if (over_node_ >= 0) status.SetPayload(kFailedNode, absl::Cord(StrCat(over_node_)));
    return status;
  };
  switch (over_) {
    case Over::kNo:
      break;
    case Over::kBytes:
      return named(ResourceExhausted(what_, at, " takes more memory than the ",
                                     HumanBytes(limits_.bytes),
                                     " that one request may take (fusiond --planning-bytes)"));
    case Over::kSteps:
      return named(ResourceExhausted(what_, at, " takes more than the ", limits_.steps,
                                     " steps that one request may take (fusiond "
                                     "--planning-steps)"));
    case Over::kShared:
      return named(
          ServerBusy(what_, at, " held most of the memory for planning, which is used up"));
    case Over::kCancelled: {
      absl::Status status = cancel_->Check();
      return status.ok() ? Cancelled("request cancelled") : status;
    }
  }
  return ServerBusy(what_, ": ", kShortage);
}

AtNode::AtNode(int position, std::string_view name, std::string_view op)
    : outer_(current_node), position_(position), name_(name), op_(op) {
  current_node = this;
}

AtNode::~AtNode() { current_node = outer_; }

}  // namespace fusion
