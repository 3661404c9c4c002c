#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/mutex.h"

namespace fusion {

class Job;

/// What one job may take.
struct JobLimits {
  /// Memory that it holds at a time.
  int64_t bytes = int64_t{192} << 20;
  /// Steps in all: an allocation is one, and so is each Job::Step.
  int64_t steps = int64_t{1} << 30;
};

/// Memory that all jobs of a process share. When the jobs hold more than `limit_bytes` together,
/// the owner who holds the most loses the largest of its jobs. This repeats until the rest fits.
/// Thread-safe; outlives its jobs.
class JobMemory {
 public:
  explicit JobMemory(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  int64_t limit_bytes() const { return limit_bytes_; }
  /// Of jobs under way, in steps of Job::kReportBytes each.
  int64_t used_bytes() const;
  /// Jobs that were ended to make room, since the start.
  int64_t ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  friend class Job;
  struct Share {
    int64_t bytes = 0;
    bool ending = false;
  };
  void Report(Job* job, int64_t bytes);
  void Forget(Job* job);

  const int64_t limit_bytes_;
  std::atomic<int64_t> ended_{0};
  mutable Mutex mutex_;
  std::map<Job*, Share> shares_ ABSL_GUARDED_BY(mutex_);
};

/// Work for one request that is bounded, whatever the request says: by memory, by steps, and by its
/// CancelToken.
///
///   Job job("planning", {.bytes = 192 << 20}, &shared, owner, &cancel);
///   absl::StatusOr<Plan> plan = job.Do([&] { return MakePlan(graph); });
///
/// While Do runs, memory that its thread gets from operator new is charged to the job, in programs
/// that link fusion_job_heap. In all programs, what Charge is told is charged. Step compares the
/// charge with the limits; code that adds to a graph, program, schedule or source calls it. Where a
/// limit is passed, Step throws an exception that only Do catches. Nothing else ends the work,
/// because copies of std::variant (libstdc++ 12) and insertions into Abseil's hash tables are not
/// exception-safe; only an allocation of kReportBytes or more is refused by itself, where the job
/// has no room for it (HasRoom). The work must not change anything that others see. One thread.
class Job {
 public:
  /// So much is told to the JobMemory at once. A block of this size is told before it is taken.
  static constexpr int64_t kReportBytes = int64_t{1} << 20;

  /// `what`, a literal, begins messages. `shared` and `cancel` may be null; both outlive the job.
  Job(std::string_view what, const JobLimits& limits, JobMemory* shared, std::string owner,
      const CancelToken* cancel);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// What `run`, which gives a Status or StatusOr, gives; or ResourceExhausted, naming the budget
  /// that is used up and the node that was worked on; or what `cancel` says. Inside of another
  /// job's Do: part of that one.
  template <typename Run>
  auto Do(Run run) -> decltype(run()) {
    if (Current() != nullptr) return run();
    try {
      const Scope scope(this);
      auto result = run();
      // What was refused for want of room may be told as something else.
      if (over_ == Over::kNo) return result;
    } catch (const std::bad_alloc&) {
      // Told below, once what the work held is free again.
    } catch (const std::length_error&) {
      Refuse();
    }
    return Why();
  }

  /// Of this thread; null: none.
  static Job* Current();
  /// So many bytes were allocated, by other means than operator new, or freed. Without a job
  /// nothing happens.
  static void Charge(int64_t bytes);
  static void Release(int64_t bytes);
  /// Whether the job of this thread, if there is one, may take a block of so many bytes: it has
  /// room for it, and for a large block the JobMemory has room too and the job is not asked to end.
  static bool HasRoom(int64_t bytes);
  /// One step of work whose number of steps a request decides. Not to be called where an exception
  /// leaves something broken, see above.
  static void Step(int64_t count = 1);
  /// An allocation is about to fail for want of room (HasRoom): Do says so if that ends the work.
  void Refuse();

  /// Whether it ended because the same work will always take more than its limits.
  bool IsOverBudget() const { return over_ == Over::kBytes || over_ == Over::kSteps; }
  /// The most that it held at a time.
  int64_t most_bytes() const { return most_; }
  int64_t steps() const { return steps_; }

 private:
  friend class JobMemory;
  friend class AtNode;
  enum class Over : uint8_t { kNo, kBytes, kSteps, kShared, kCancelled };
  // The job of a thread while it works for it.
  class Scope {
   public:
    explicit Scope(Job* job);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  void Take(int64_t bytes);
  bool IsSpent();
  // What the others say of a job that holds so many bytes.
  Over Look(int64_t bytes);
  void NoteWhere();
  [[noreturn]] static void End();
  absl::Status Why() const;

  static constexpr int64_t kLookSteps = 256;
  static constexpr int64_t kLookBytes = int64_t{256} << 10;

  const std::string_view what_;
  const JobLimits limits_;
  JobMemory* const shared_;
  const std::string owner_;
  const CancelToken* const cancel_;
  // Of the thread in Do.
  int64_t bytes_ = 0;
  int64_t most_ = 0;
  int64_t steps_ = 0;
  int64_t reported_ = 0;
  int64_t look_at_steps_ = kLookSteps;
  int64_t look_at_bytes_ = kLookBytes;
  Over over_ = Over::kNo;
  int over_node_ = -1;
  std::array<char, 160> over_at_{};   // what the message says of the node
  std::atomic<bool> evicted_{false};  // set by JobMemory
};

/// While it lives, the job of this thread, if there is one, is at this node: what messages say
/// where it had to end. Both views outlive it. `position` of a canonical graph: the name is not
/// known there, who knows it puts it in (kFailedNode).
class AtNode {
 public:
  AtNode(std::string_view name, std::string_view op) : AtNode(-1, name, op) {}
  AtNode(int position, std::string_view op) : AtNode(position, "", op) {}
  ~AtNode();
  AtNode(const AtNode&) = delete;
  AtNode& operator=(const AtNode&) = delete;

 private:
  friend class Job;
  AtNode(int position, std::string_view name, std::string_view op);

  const AtNode* const outer_;
  const int position_;
  const std::string_view name_, op_;
};

/// Payload of an error about nodes of a canonical graph, each of which is `node ""` in its message,
/// in this order: their positions in decimal, with spaces between.
inline constexpr char kFailedNode[] = "fusion.v1/failed_node";

}  // namespace fusion
