#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/base/threads/result_cell.h"
#include "core/base/threads/thread_pool.h"
#include "core/bundle/answer.h"
#include "core/bundle/measured/kernel_timings.h"
#include "core/cache/single_flight.h"
#include "core/cache/store.h"
#include "core/pipeline/kernels/kernel_builds.h"
#include "core/pipeline/kernels/kernel_registry.h"
#include "core/pipeline/planning.h"
#include "core/tune/tile_search.h"

namespace fusion {

/// One kernel by key, or why there is none.
struct KernelReply {
  KernelState state = KernelState::kPending;
  std::shared_ptr<const KernelArtifact> kernel;  // kReady
  absl::Status why;  // kFailed: the reason; kPending: why the wait ended
};

/// A plan with all its kernels.
struct Built {
  std::shared_ptr<const StoredPlan> stored;
  std::vector<std::shared_ptr<const KernelArtifact>> kernels;  // by plan kernel
  std::vector<bool> found;  // by plan kernel: it was stored already
  std::vector<std::string> warnings;
  Nanoseconds searched{0};  // time spent in the tile search, or waiting for it

  /// The input of a tile search: how `stored` was made.
  struct Unsearched {
    WorkPtr work;
    std::shared_ptr<const Planned> planned;
    bool lasting = true;  // the plan may be stored
    WorkOwner owner;      // is charged for the stored findings
  };
  /// Set if the plan's search is still pending, or if the stored plan of this key has more kernels
  /// timed.
  std::optional<Unsearched> unsearched;
};
using BuiltOr = absl::StatusOr<std::shared_ptr<const Built>>;

/// Prefix of the warning that an answer is complete but was not stored, so that a restart loses it.
/// The reason follows.
inline constexpr std::string_view kNotStored = "not stored: ";

struct PlanBuildsOptions {
  int threads = 16;          // plans built at the same time; each thread waits for workers
  size_t queue_limit = 256;  // plans that may wait for a thread
  int spare_threads = 0;     // extra threads, for tenants with fewer running builds than this
  Nanoseconds failure_ttl = std::chrono::minutes(10);  // until a failed kernel is retried
  /// Kernels that are never tried, because two workers died over each. May be null; else it
  /// outlives the workers.
  Quarantine* quarantine = nullptr;
  /// Kernels of one search that are submitted to the workers at the same time. Choose the number of
  /// workers, plus one for each worker to continue with.
  size_t search_window = 4;
  /// Searches that may wait. One search runs at a time, on a thread of its own, because kernels of
  /// another search would disturb its measurements. Chosen: at level 3 the last of 8 starts after
  /// half an hour.
  size_t search_queue = 8;
  /// Gets the times of each kernel that a search has run on this machine, without the time of the
  /// report. `tenant` is empty, or that of the plan where plans belong to tenants. May be empty.
  /// Called on the thread of the searches, between two races.
  std::function<void(const KernelTimings&)> on_timed = nullptr;
  /// Grace period before an abandoned build is cancelled. Its kernels are then cancelled, unless
  /// other builds want them; kernels that are finished by then are published.
  Nanoseconds linger = Interest::kForEver;
};

/// Gets the kernels of a plan: from the store, from builds under way, or compiled. Publishes plan
/// and kernels together.
///
/// - A group whose kernel fails is split into unfused nodes and the plan is made again. The new
///   plan is stored unless the failure may pass (MayPass).
/// - A registered kernel that fails is quarantined in the registry, and the plan is made again
///   without it.
/// - A plan whose tile search is pending is first built and published with the tiles that the
///   benefit model chose. Then other tilings are measured, one search at a time, and the plan is
///   made again with the fastest ones. No failure of a search affects the first plan.
///
/// Thread-safe. Everything referred to outlives it.
class PlanBuilds {
 public:
  PlanBuilds(const PlanBuildsOptions& options, const Toolchain& toolchain, Planning& planning,
             KernelRegistry& registry, Store& store, WorkerPool& workers, Logger& logger,
             const Clock& clock);
  /// Calls Stop().
  ~PlanBuilds();

  /// Builds `planned`, the plan of `work`, or joins a build of the same plan that is under way.
  /// Until that build has ended, GetKernel finds its kernels, also if `waiter` ends first
  /// (kCancelled, kDeadlineExceeded).
  ///
  /// The result may be a plan with fewer fused groups than `planned`. Errors: Internal if a kernel
  /// of a single node fails, Unimplemented if the backend cannot generate it; both with the payload
  /// kFailedNode if the node is known. FailedPrecondition if a kernel fails and a lock pins the
  /// plan; ResourceExhausted or Unavailable if kernels could not be tried.
  ///
  /// `observer` (may be null) gets kCompileStage with the number of finished kernels, kSearchStage
  /// with the number of kernels searched for, and "plan" followed by kCompileStage whenever the
  /// plan is made again.
  ///
  /// A search ends at the time limit of its level, or when its last waiter leaves, unless a waiter
  /// had `goes_on`. A build without waiters ends after PlanBuildsOptions::linger, unless a waiter
  /// had `goes_on`. Without `goes_on` a caller leaves a search shortly before the deadline of
  /// `waiter`: with the best tiles so far if it is the last waiter, else with the tiles that the
  /// model chose and a warning (Built::unsearched). It also leaves if the search has not begun
  /// within the time limit of the level. With `goes_on` a caller waits until `waiter` ends.
  BuiltOr Build(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                const CancelToken& waiter, StageObserver* observer = nullptr, bool goes_on = false,
                const WorkOwner& owner = {});

  /// The current status of each kernel of a plan, in plan order. Does not wait.
  std::vector<KernelStatus> Describe(const fusion::Plan& plan);

  /// Returns a kernel that is stored, or waits for one that is being compiled; kFailed with
  /// NotFound if it is neither. `tenant`: set where tenants are isolated; kernels of other tenants
  /// are then NotFound.
  KernelReply GetKernel(const Digest& key, const CancelToken& cancel,
                        std::optional<std::string_view> tenant = std::nullopt);

  int64_t failures() const { return kernel_builds_.failures(); }

  /// Stores a plan without its kernels, unless it works around a registered kernel whose failure
  /// may pass. A failure to store is logged and added to `warnings`.
  void Publish(std::shared_ptr<const StoredPlan> plan, std::vector<std::string>* warnings,
               const WorkOwner& owner) {
    if (registry_.MayPass(plan->plan)) return;
    Publish(Bundle{.plan = std::move(plan), .kernels = {}}, warnings, owner);
  }

  /// Ends running searches with their best result so far; later ones end at once.
  void EndSearches() { stopping_.Cancel(); }
  /// EndSearches(), then waits until every build has ended. Stop the worker pool and planning
  /// first.
  void Stop();

  /// As KernelBuilds::ForgetFailures.
  int64_t ForgetFailures(const std::vector<Digest>& keys, bool all) {
    return kernel_builds_.ForgetFailures(keys, all);
  }

  int64_t shared_total() const { return flights_.shared_total() + searches_shared_; }
  int64_t waiters() const { return flights_.waiters() + searches_waiters_; }
  /// Builds that were cancelled after their last waiter had left.
  int64_t abandoned_total() const { return abandoned_.load(std::memory_order_relaxed); }
  SearchStats searches() const;

 private:
  // The kernels of a plan while they are built.
  struct Batch {
    std::vector<std::shared_ptr<const KernelArtifact>> kernels;  // by plan kernel; null: not yet
    std::vector<bool> found;  // by plan kernel: it was stored already
    std::vector<absl::Status> results;
    std::vector<std::pair<size_t, KernelBuilds::Claim>> claims;  // builds under way, by plan kernel
  };

  using FlightKey = std::pair<Digest, UnfusedNodes>;
  // Progress of a search, in kernels.
  struct SearchCount {
    std::atomic<int> done{0};
    int total = 0;
  };
  // Progress of a build: planning again (no batch yet), making kernels, or searching.
  struct Round {
    int number = 0;  // how often the plan was made again
    std::shared_ptr<const Batch> batch;
    std::shared_ptr<const SearchCount> search = nullptr;
  };
  // A search that has waiters, queued or running.
  struct Search {
    explicit Search(const CancelToken& stopping) : given_up(stopping, Nanoseconds::max()) {}
    CancelToken given_up;  // cancelled when the last waiter has left
    ResultCell<std::shared_ptr<const Built>> result;
    std::atomic<bool> begun{false};
    // Guarded by PlanBuilds::mutex_.
    Round round;  // Round::number counts from the start of the search
    int waiters = 0;
    bool goes_on = false;
  };
  class ProgressReporter;
  class Bench;

  static int DoneOf(const Batch& batch);
  Round RoundOf(const FlightKey& key, const std::shared_ptr<const Batch>& first) const;
  void SetRound(const FlightKey& key, Round round);
  std::shared_ptr<Batch> StartKernels(const Planned& planned, const WorkOwner& owner,
                                      const Bench* bench = nullptr);
  void WaitForKernels(Batch* batch, Interest* interest);
  BuiltOr BuildForAll(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                      std::shared_ptr<Batch> batch, const FlightKey& key, const WorkOwner& owner,
                      Interest& interest);
  BuiltOr BuildRounds(WorkPtr work, std::shared_ptr<const Planned> planned,
                      std::shared_ptr<Batch> batch, const FlightKey& key, const WorkOwner& owner,
                      Interest& interest);
  bool IsKnown(const StoredPlan& pending);
  bool IsFurther(const StoredPlan& tuned);

  BuiltOr AwaitSearch(const FlightKey& key, const std::shared_ptr<const Built>& picks,
                      const CancelToken& waiter, ProgressReporter* reporter, bool goes_on);
  absl::StatusOr<std::shared_ptr<Search>> Join(const FlightKey& key,
                                               const std::shared_ptr<const Built>& picks,
                                               bool goes_on);
  bool Leave(const FlightKey& key, const std::shared_ptr<Search>& search);
  void Forget(const FlightKey& key, const std::shared_ptr<Search>& search)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunSearch(const FlightKey& key, const std::shared_ptr<Search>& search, const Built& picks);
  std::shared_ptr<const Built> SearchAndPlan(const Built& picks, Search* search);
  TileSearch SearchFor(const Work& work, const Planned& planned, Search* search, Bench* bench);
  absl::StatusOr<std::shared_ptr<const StoredPlan>> PlanTuned(const Built& picks,
                                                              const TileSearch& found,
                                                              Search* search, const Bench& bench,
                                                              std::shared_ptr<Batch>* batch);
  void SetRound(Search* search, Round round);
  Round RoundOf(const Search& search) const;

  void Publish(Bundle bundle, std::vector<std::string>* warnings, const WorkOwner& owner);
  bool Unregister(const fusion::Plan& plan, Batch* batch, WorkPtr* work);
  static Bundle BundleOf(std::shared_ptr<const StoredPlan> plan, const Batch& batch);

  const PlanBuildsOptions options_;
  const Toolchain& toolchain_;
  Planning& planning_;
  KernelRegistry& registry_;
  Store& store_;
  WorkerPool& workers_;
  Logger& logger_;
  const Clock& clock_;
  KernelBuilds kernel_builds_;
  mutable Mutex mutex_;
  std::map<FlightKey, Round> replanned_ ABSL_GUARDED_BY(mutex_);  // of builds under way
  std::map<FlightKey, std::shared_ptr<Search>> searches_ ABSL_GUARDED_BY(mutex_);
  SearchStats search_stats_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> searches_shared_{0};
  std::atomic<int64_t> searches_waiters_{0};
  std::atomic<int64_t> abandoned_{0};
  CancelToken stopping_;
  std::shared_ptr<RaceTicket> last_race_;  // used by the search thread only
  ThreadPool threads_;
  ThreadPool search_thread_;
  SingleFlight<FlightKey, Built> flights_;
};

/// The status of a finished kernel. `cached`: it was not compiled for this request.
KernelStatus ReadyStatus(const KernelArtifact& kernel, bool cached);

}  // namespace fusion
