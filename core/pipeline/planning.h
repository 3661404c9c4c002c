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
  /// More, for tenants with fewer plannings under way than that.
  int spare_threads = 0;
  /// Of planning one graph; of waiting for a thread before that.
  Nanoseconds limit = std::chrono::seconds(60);
  int64_t remembered_bytes = int64_t{64} << 20;
  /// How long a graph whose planning took longer than the limit is not tried again.
  Nanoseconds failure_ttl = std::chrono::minutes(10);
  /// What one planning may take.
  JobLimits job;
  /// What all of them may take, with imports; null: no bound. Outlives the Planning.
  JobMemory* memory = nullptr;
  /// How long a planning that nobody waits for any more goes on.
  Nanoseconds linger = Interest::kForEver;
  /// What rewrites programs; tests have others.
  std::vector<ProgramPass> passes = ProgramPasses();
};

/// A plan and how to make its kernels.
struct Planned {
  std::shared_ptr<const StoredPlan> stored;
  std::vector<CompileJob> jobs;  // by plan kernel
  std::vector<StageTime> times;
  std::vector<Dump> dumps;
  std::shared_ptr<const PlanLock> lock;  // with DumpKind::kLock, else null
  /// What a search makes other cuts from; null where none is pending.
  std::shared_ptr<const PlannedModel> model = nullptr;
};
using PlannedOr = absl::StatusOr<std::shared_ptr<const Planned>>;

enum class PlanOrigin : uint8_t { kMade, kShared, kRemembered };

/// Makes plans on a few threads of its own, however many requests wait for them: each one once at
/// a time, none longer than the limit. No single caller can end what others may wait for; when all
/// have gone it ends after PlanningOptions::linger. Threads are shared fairly between owners.
///
///   PlanOrigin origin;
///   auto planned = planning.Plan(work, /*unfused_nodes=*/{}, /*dumps=*/{}, cancel, &origin);
///
/// Thread-safe. Everything referred to outlives it.
class Planning {
 public:
  Planning(const PlanningOptions& options, const Toolchain& toolchain, Logger& logger,
           const Clock& clock);
  /// Stop().
  ~Planning();

  /// The plan of `work` in which the nodes in `unfused_nodes` fuse with nothing; made by this call,
  /// by an equal one that is under way, or lately. With `dumps` never lately: texts come from the
  /// values between stages, which are not kept. FailedPrecondition: what the request's lock pins
  /// does not come out, or cannot be compiled. ResourceExhausted: it takes longer than the limit,
  /// or took so long lately, or more than PlanningOptions::job, or too much waits to be planned.
  /// kCancelled or kDeadlineExceeded if `waiter` ends first, which leaves the planning alone.
  /// Otherwise fails as MakePlan does. `observer` (may be null) is told of the stages, which other
  /// threads run, while this one waits.
  PlannedOr Plan(const WorkPtr& work, const UnfusedNodes& unfused_nodes, const DumpKinds& dumps,
                 const CancelToken& waiter, PlanOrigin* origin, StageObserver* observer = nullptr,
                 const WorkOwner& owner = {});

  /// Tells planning under way to end, and waits until it has.
  void Stop();

  /// Plans again what was planned lately; with `overruns` also what took too long lately, and then
  /// says how much that was.
  int64_t Forget(bool overruns) {
    {
      MutexLock lock(&mutex_);
      remembered_.Clear();
    }
    return overruns ? overruns_.ForgetAll() : 0;
  }

  /// What the plans that were made lately take, with the sources of their kernels.
  int64_t remembered_bytes() const {
    MutexLock lock(&mutex_);
    return remembered_.cost();
  }

  /// By pass how many plans were made without it because it broke them.
  std::map<std::string, int64_t> skipped_passes() const {
    MutexLock lock(&mutex_);
    return skipped_passes_;
  }

  int64_t shared_total() const { return flights_.shared_total(); }
  int64_t waiters() const { return flights_.waiters(); }

 private:
  // What is made under other restrictions is another plan.
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
