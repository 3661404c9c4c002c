#pragma once

#include <atomic>
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
#include "core/cache/single_flight.h"
#include "core/cache/store.h"
#include "core/pipeline/kernels/kernel_builds.h"
#include "core/pipeline/kernels/kernel_registry.h"
#include "core/pipeline/kernels/tile_search.h"
#include "core/pipeline/planning.h"

namespace fusion {

/// One kernel by key, or why there is none.
struct KernelReply {
  KernelState state = KernelState::kPending;
  std::shared_ptr<const KernelArtifact> kernel;  // kReady
  absl::Status why;  // kFailed: the reason; kPending: what ended the wait
};

/// A plan with all its kernels.
struct Built {
  std::shared_ptr<const StoredPlan> stored;
  std::vector<std::shared_ptr<const KernelArtifact>> kernels;  // by plan kernel
  std::vector<bool> found;                                     // in the store before
  std::vector<std::string> warnings;
  Nanoseconds searched{0};  // part of the time: the search for tiles, or the wait for it

  /// What a search for tiles begins with: how `stored` was made.
  struct Unsearched {
    WorkPtr work;
    std::shared_ptr<const Planned> planned;
    bool lasting = true;  // the plan may be stored
    WorkOwner owner;      // who is charged for what is found
  };
  /// Of a plan whose search is pending, or has come less far than that of the stored one.
  std::optional<Unsearched> unsearched;
};
using BuiltOr = absl::StatusOr<std::shared_ptr<const Built>>;

/// A warning: the answer is as good, and a restart forgets it. The reason is behind it.
inline constexpr std::string_view kNotStored = "not stored: ";

struct PlanBuildsOptions {
  int threads = 16;          // that wait for workers: plans being compiled at the same time
  size_t queue_limit = 256;  // plans that may wait for a thread
  int spare_threads = 0;     // more, for tenants with fewer builds under way than that
  Nanoseconds failure_ttl = std::chrono::minutes(10);  // a failed kernel is not tried again
  /// Kernels that are not tried at all, because two workers died over each. May be null; else it
  /// outlives the workers.
  Quarantine* quarantine = nullptr;
  /// Kernels of one search that are with the workers at the same time: as many as there are, and
  /// one for each to go on with.
  size_t search_window = 4;
  /// Searches that may wait for the one under way: there is one at a time, on a thread of its own,
  /// because another one's kernels would be in its times. Chosen: with level 3 the last of them
  /// begins after half an hour.
  size_t search_queue = 8;
  /// How long a build that nobody waits for any more goes on. Then its kernels, unless others want
  /// them, are cancelled; those that are made by then are published.
  Nanoseconds linger = Interest::kForEver;
};

/// From a plan to its kernels: from the store, from builds under way, or compiled. Publishes plan
/// and kernels together. A group whose kernel fails is taken apart and planned anew, for good
/// unless the failure may pass. A registered kernel that fails is quarantined in the registry, and
/// what it would have run is planned anew without it. Of a plan whose search for tiles is pending
/// the kernels are built and published first, as the model picked them; then others are measured,
/// one search after the other, and the plan is made again of the fastest. Nothing that goes wrong
/// with that takes the first plan away.
///
/// Thread-safe. Everything referred to outlives it.
class PlanBuilds {
 public:
  PlanBuilds(const PlanBuildsOptions& options, const Toolchain& toolchain, Planning& planning,
             KernelRegistry& registry, Store& store, WorkerPool& workers, Logger& logger,
             const Clock& clock);
  /// Stop().
  ~PlanBuilds();

  /// Builds `planned`, of `work`, or joins the build of the same plan that is under way. Until that
  /// has ended, Find and the store know its kernels, also if `waiter` ends first: kCancelled or
  /// kDeadlineExceeded. What is built may be another plan than `planned`: with fewer fused groups.
  /// Internal if a kernel cannot be made and is of one node; FailedPrecondition if it cannot and a
  /// lock pins it; ResourceExhausted, Unavailable:
  /// kernels could not be tried. `observer` (may be null) is told how many kernels of `planned` are
  /// there, whoever has them compiled; of "search", and how many kernels were searched for; and of
  /// "plan", then of the kernels of the new plan, where one has failed or others are faster.
  ///
  /// A search ends with the level's own limit, or when nobody waits for it any more and nobody has
  /// had it `goes_on` without him; so does a build, after a while (PlanBuildsOptions::linger). Who
  /// waits leaves shortly before his deadline, also if another one began the search: with the best
  /// so far if he is the last, else with the model's picks, whose search is then pending, and a
  /// warning. So does who waits as long as a search may take, and it has not begun. `goes_on`: who
  /// waits leaves at the end of `waiter`.
  BuiltOr Build(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                const CancelToken& waiter, StageObserver* observer = nullptr, bool goes_on = false,
                const WorkOwner& owner = {});

  /// What is known now about the kernels of a plan, in its order.
  std::vector<KernelStatus> Describe(const fusion::Plan& plan);

  /// Waits for a kernel that is being compiled. Where tenants are kept apart, what is not of
  /// `tenant` is as if it were not there: NotFound.
  KernelReply GetKernel(const Digest& key, const CancelToken& cancel,
                        std::optional<std::string_view> tenant = std::nullopt);

  int64_t failures() const { return kernel_builds_.failures(); }

  /// Stores a plan without its kernels. A failure is logged and added to `warnings`.
  void Publish(std::shared_ptr<const StoredPlan> plan, std::vector<std::string>* warnings,
               const WorkOwner& owner) {
    if (registry_.MayPass(plan->plan)) return;
    Publish(Bundle{.plan = std::move(plan), .kernels = {}}, warnings, owner);
  }

  /// Ends searches under way with the best so far, and those that come at once.
  void EndSearches() { stopping_.Cancel(); }
  /// EndSearches, and waits until every build has ended; the worker pool and planning are to be
  /// stopped first.
  void Stop();

  /// As KernelBuilds.
  int64_t ForgetFailures(const std::vector<Digest>& keys, bool all) {
    return kernel_builds_.ForgetFailures(keys, all);
  }

  int64_t shared_total() const { return flights_.shared_total() + searches_shared_; }
  int64_t waiters() const { return flights_.waiters() + searches_waiters_; }
  /// Builds that ended because nobody waited for them.
  int64_t abandoned_total() const { return abandoned_.load(std::memory_order_relaxed); }
  SearchStats searches() const;

 private:
  // The kernels of a plan on their way.
  struct Batch {
    std::vector<std::shared_ptr<const KernelArtifact>> kernels;  // by plan kernel; null: not yet
    std::vector<bool> found;                                     // in the store
    std::vector<absl::Status> results;
    std::vector<std::pair<size_t, KernelBuilds::Claim>> claims;  // those under way
  };

  using FlightKey = std::pair<Digest, UnfusedNodes>;
  // How far a search is.
  struct SearchCount {
    std::atomic<int> done{0};
    int total = 0;
  };
  // What a build is at: planning anew (no batch yet), making kernels, or searching.
  struct Round {
    int number = 0;  // how often it has planned anew
    std::shared_ptr<const Batch> batch;
    std::shared_ptr<const SearchCount> search = nullptr;
  };
  // A search that somebody wants, waiting for its turn or under way.
  struct Search {
    explicit Search(const CancelToken& stopping) : given_up(stopping, Nanoseconds::max()) {}
    CancelToken given_up;  // nobody wants it any more
    ResultCell<std::shared_ptr<const Built>> result;
    std::atomic<bool> begun{false};
    // Under the mutex of PlanBuilds.
    Round round;  // counted from the search on
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
  std::shared_ptr<RaceTicket> last_race_;  // of the thread that searches
  ThreadPool threads_;
  ThreadPool search_thread_;
  SingleFlight<FlightKey, Built> flights_;
};

/// The status of a kernel that is there.
KernelStatus ReadyStatus(const KernelArtifact& kernel, bool cached);

}  // namespace fusion
