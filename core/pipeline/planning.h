#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/cancel.h"
#include "core/base/threads/job.h"
#include "core/base/threads/thread_pool.h"
#include "core/bundle/answer.h"
#include "core/bundle/plan_lock.h"
#include "core/cache/memory/failure_cache.h"
#include "core/cache/memory/lru_map.h"
#include "core/cache/single_flight.h"
#include "core/cache/store.h"
#include "core/compile/compile_job.h"
#include "core/pipeline/kernels/isolate.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/pipeline/requests/resolve.h"
#include "core/rewrite/program_passes.h"

namespace fusion {

struct PlanningOptions {
  int threads = 2;
  size_t queue_limit = 256;  // plannings that may wait for a thread
  /// Extra threads, for tenants with fewer running plannings than this.
  int spare_threads = 0;
  /// Time limit of planning one graph; also of waiting for a thread before that.
  Nanoseconds limit = std::chrono::seconds(60);
  int64_t remembered_bytes = int64_t{64} << 20;
  /// A graph that exceeded a limit is not planned again for this long.
  Nanoseconds failure_ttl = std::chrono::minutes(10);
  /// Memory and steps of one planning.
  JobLimits job;
  /// Memory of all plannings and imports together; null: unlimited. Outlives the Planning.
  JobMemory* memory = nullptr;
  /// Grace period before an abandoned planning is cancelled.
  Nanoseconds linger = Interest::kForEver;
  /// The program rewrites; tests replace them.
  std::vector<ProgramPass> passes = ProgramPasses();
};

/// A plan and the compile jobs of its kernels.
struct Planned {
  std::shared_ptr<const StoredPlan> stored;
  std::vector<CompileJob> jobs;  // by plan kernel
  std::vector<StageTime> times;
  std::vector<Dump> dumps;
  std::shared_ptr<const PlanLock> lock;  // with DumpKind::kLock, else null
  /// The source of alternative tilings; null if no search is pending.
  std::shared_ptr<const PlannedModel> model = nullptr;
};
using PlannedOr = absl::StatusOr<std::shared_ptr<const Planned>>;

enum class PlanOrigin : uint8_t { kMade, kShared, kRemembered };

/// Makes plans on a few threads of its own, however many requests wait. Equal plannings are shared
/// while they run; none exceeds the limit. A caller that leaves does not end a planning that others
/// wait for; without waiters it ends after PlanningOptions::linger. Threads are shared fairly
/// between owners.
///
///   PlanOrigin origin;
///   auto planned = planning.Plan(work, /*unfused_nodes=*/{}, /*dumps=*/{}, cancel, &origin);
///
/// Thread-safe. Everything referred to outlives it.
class Planning {
 public:
  Planning(const PlanningOptions& options, const Toolchain& toolchain, Logger& logger,
           const Clock& clock);
  /// Calls Stop().
  ~Planning();

  /// The plan of `work` in which `unfused_nodes` fuse with nothing. `*origin`: made by this call,
  /// shared with an equal one under way, or remembered. With `dumps` it is never remembered,
  /// because the texts come from values between stages, which are not kept.
  ///
  /// Errors: FailedPrecondition if the result is not what the request's lock pins, or a pinned
  /// kernel cannot be generated. ResourceExhausted if planning exceeds the time limit or
  /// PlanningOptions::job, did so lately, or the queue is full. kCancelled or kDeadlineExceeded if
  /// `waiter` ends first, which does not end the planning. Otherwise those of MakePlan. `observer`
  /// (may be null) gets the stages, on this thread.
  PlannedOr Plan(const WorkPtr& work, const UnfusedNodes& unfused_nodes, const DumpKinds& dumps,
                 const CancelToken& waiter, PlanOrigin* origin, StageObserver* observer = nullptr,
                 const WorkOwner& owner = {});

  /// Cancels planning under way and waits until it has ended.
  void Stop();

  /// Forgets remembered plans; with `overruns` also the plannings that exceeded a limit. Returns
  /// the number of forgotten overruns.
  int64_t Forget(bool overruns) {
    {
      MutexLock lock(&mutex_);
      remembered_.Clear();
    }
    return overruns ? overruns_.ForgetAll() : 0;
  }

  /// Forgets the least recently used of the remembered plans; a quarter of their limit stays.
  void MakeRoom() {
    std::vector<std::pair<PlanId, std::shared_ptr<const Planned>>> forgotten;
    MutexLock lock(&mutex_);
    forgotten = remembered_.MakeRoom();
  }

  /// Bytes of the remembered plans, sources of their kernels included.
  int64_t remembered_bytes() const {
    MutexLock lock(&mutex_);
    return remembered_.cost();
  }

  /// Number of plans that were made without a pass because the pass broke them, by pass.
  std::map<std::string, int64_t> skipped_passes() const {
    MutexLock lock(&mutex_);
    return skipped_passes_;
  }

  int64_t shared_total() const { return flights_.shared_total(); }
  int64_t waiters() const { return flights_.waiters(); }

 private:
  // Other unfused nodes make another plan.
  using PlanId = std::pair<Digest, UnfusedNodes>;
  static Digest DigestOf(const PlanId& id);

  PlannedOr MakeInTime(const Work& work, const UnfusedNodes& unfused_nodes, const DumpKinds& dumps,
                       Nanoseconds asked, StageObserver* observer, Interest& interest,
                       const WorkOwner& owner);
  PlannedOr Make(const Work& work, UnfusedNodes unfused_nodes, StageContext& stages);
  void CountSkipped(const std::vector<SkippedPass>& skipped);
  void Remember(const PlanId& id, std::shared_ptr<const Planned> planned);
  std::shared_ptr<const Planned> Remembered(const PlanId& id);

  const PlanningOptions options_;
  const Toolchain& toolchain_;
  Logger& logger_;
  const Clock& clock_;
  CancelToken stopping_;
  ThreadPool threads_;
  SingleFlight<std::tuple<Digest, UnfusedNodes, DumpKinds>, Planned> flights_;
  FailureCache overruns_;  // by DigestOf
  mutable Mutex mutex_;
  LruMap<PlanId, std::shared_ptr<const Planned>> remembered_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> skipped_passes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
