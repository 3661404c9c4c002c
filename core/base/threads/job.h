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
  /// Memory held at the same time.
  int64_t bytes = int64_t{192} << 20;
  /// Steps in total: each allocation counts one, Job::Step(n) counts n.
  int64_t steps = int64_t{1} << 30;
};

/// Memory that all jobs of a process share. When the jobs hold more than `limit_bytes` together,
/// the owner who holds the most loses the largest of its jobs. This repeats until the rest fits.
/// Thread-safe; outlives its jobs.
class JobMemory {
 public:
  explicit JobMemory(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  int64_t limit_bytes() const { return limit_bytes_; }
  /// Bytes held by running jobs, each accurate to Job::kReportBytes.
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
/// Charge adds bytes to the job. In programs that link fusion_job_heap, memory that the thread gets
/// from operator new during Do is also charged. If a limit is exceeded, also for a moment, the next
/// Step throws an exception that only Do catches. Code that adds to a graph, program, schedule or
/// source calls Step. Other places do not throw, because copies of std::variant (libstdc++ 12) and
/// insertions into Abseil's hash tables are not exception-safe; with one exception: an allocation
/// of kReportBytes or more fails if the job has no room for it (HasRoom). The work must not change
/// anything that others see. Not thread-safe.
class Job {
 public:
  /// Granularity of reports to the JobMemory. A block of this size or more is reported before it is
  /// allocated.
  static constexpr int64_t kReportBytes = int64_t{1} << 20;

  /// `what`, a string literal, begins messages. `owner`: for JobMemory. `shared` and `cancel` may
  /// be null; both must outlive the job.
  Job(std::string_view what, const JobLimits& limits, JobMemory* shared, std::string owner,
      const CancelToken* cancel);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Calls `run`, which returns a Status or StatusOr, on this thread and returns its result, unless
  /// a limit ended the work:
  ///   - ResourceExhausted, naming the exceeded limit (bytes, steps) and the current node (AtNode);
  ///   - ResourceExhausted with kRetryAfter (ServerBusy): `shared` or the machine is out of memory;
  ///   - Cancelled or DeadlineExceeded: the error of `cancel`.
  /// Within Do of another job it only calls `run`, which counts for that job. May be called again:
  /// steps accumulate.
  template <typename Run>
  auto Do(Run run) -> decltype(run()) {
    if (Current() != nullptr) return run();
    try {
      const Scope scope(this);
      auto result = run();
      // `run` may have turned a refused allocation into another error.
      if (over_ == Over::kNo) return result;
    } catch (const std::bad_alloc&) {
      // Reported below, once the memory of the work is free again.
    } catch (const std::length_error&) {
      Refuse();
    }
    return Why();
  }

  /// The job whose Do runs on this thread; null: none.
  static Job* Current();
  /// Add to and subtract from the charge of the current job `bytes` that were allocated or freed by
  /// other means than operator new. No effect without a job.
  static void Charge(int64_t bytes);
  static void Release(int64_t bytes);
  /// True if the current job may allocate a block of `bytes`, or if there is no job. The job's own
  /// limit must have room; for a block of kReportBytes or more the JobMemory must have room too,
  /// and the job must not have been cancelled or evicted. May wait about 2 s for evicted jobs to
  /// free their memory.
  static bool HasRoom(int64_t bytes);
  /// Counts `count` steps of work whose amount depends on the request, and ends the current job by
  /// an exception if a limit is passed. Call it only where an exception is safe, see above. No
  /// effect without a job.
  static void Step(int64_t count = 1);
  /// Records that an allocation failed because HasRoom was false: Do then returns that error.
  void Refuse();

  /// True if the job ended at its own limits of bytes or steps: a retry would fail again.
  bool IsOverBudget() const { return over_ == Over::kBytes || over_ == Over::kSteps; }
  /// Peak of the bytes held.
  int64_t most_bytes() const { return most_; }
  int64_t steps() const { return steps_; }

 private:
  friend class JobMemory;
  friend class AtNode;
  enum class Over : uint8_t { kNo, kBytes, kSteps, kShared, kCancelled };
  // Makes a job the current one of this thread.
  class Scope {
   public:
    explicit Scope(Job* job);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  void Take(int64_t bytes);
  bool IsSpent();
  // Reports `bytes` to the JobMemory; why the job has to end because of others, if it has to.
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
  // Used by the thread in Do only.
  int64_t bytes_ = 0;
  int64_t most_ = 0;
  int64_t steps_ = 0;
  int64_t reported_ = 0;
  int64_t look_at_steps_ = kLookSteps;
  int64_t look_at_bytes_ = kLookBytes;
  Over over_ = Over::kNo;
  int over_node_ = -1;
  std::array<char, 160> over_at_{};   // the node, for the message
  std::atomic<bool> evicted_{false};  // set by JobMemory
};

/// Scope in which this thread works on one node: messages of its job name that node. Both views
/// must outlive it. In a canonical graph nodes have a `position` and no name; a caller that knows
/// the names inserts them into the message (kFailedNode).
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

/// Payload of an error about nodes of a canonical graph: their positions in decimal, separated by
/// spaces. The message has `node ""` for each of them, in the same order.
inline constexpr char kFailedNode[] = "fusion.v1/failed_node";

}  // namespace fusion
