#include "core/pipeline/plan_builds.h"

#include <utility>

#include "core/pipeline/plan_builds_parts.h"

namespace fusion {

PlanBuilds::PlanBuilds(const PlanBuildsOptions& options, const Toolchain& toolchain,
                       Planning& planning, KernelRegistry& registry, Store& store,
                       WorkerPool& workers, Logger& logger, const Clock& clock)
    : options_(options),
      toolchain_(toolchain),
      planning_(planning),
      registry_(registry),
      store_(store),
      workers_(workers),
      logger_(logger),
      clock_(clock),
      kernel_builds_(workers, options.failure_ttl, options.quarantine, logger, clock),
      stopping_(clock),
      threads_("build", options.threads, options.queue_limit, options.spare_threads),
      search_thread_("search", /*threads=*/1, options.search_queue),
      flights_(threads_, {.linger = options.linger}, clock) {}

PlanBuilds::~PlanBuilds() { Stop(); }

void PlanBuilds::Stop() {
  EndSearches();
  threads_.Stop();
  search_thread_.Stop();
}

BuiltOr PlanBuilds::Build(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                          const CancelToken& waiter, StageObserver* observer, bool goes_on,
                          const WorkOwner& owner) {
  // Started here, not in the flight: after the answer GetKernel must find every kernel that it
  // names. A flight of the same plan holds the same kernels.
  std::shared_ptr<Batch> batch = StartKernels(*planned, owner);
  FlightKey key(work->planning_key, UnfusedNodesOf(planned->stored->plan));
  ProgressReporter reporter(observer);
  const auto tell = reporter.Meanwhile([&] { reporter.Report(RoundOf(key, batch)); });
  if (tell) tell();
  BuiltOr built = flights_.Run(key, waiter,
                               [this, work, planned, batch, key, owner](Interest& interest) {
                                 return BuildForAll(work, planned, batch, key, owner, interest);
                               },
                               {.owner = owner, .meanwhile = tell, .goes_on = goes_on});
  if (built.ok() && (*built)->unsearched.has_value()) {
    built = AwaitSearch(key, *built, waiter, &reporter, goes_on);
  }
  if (built.ok()) reporter.ReportAll(static_cast<int>((*built)->kernels.size()));
  return built;
}

// The progress of a build; `first` if its plan was not made again.
PlanBuilds::Round PlanBuilds::RoundOf(const FlightKey& key,
                                      const std::shared_ptr<const Batch>& first) const {
  MutexLock lock(&mutex_);
  auto it = replanned_.find(key);
  return it == replanned_.end() ? Round{.number = 0, .batch = first} : it->second;
}

BuiltOr PlanBuilds::BuildForAll(const WorkPtr& work, std::shared_ptr<const Planned> planned,
                                std::shared_ptr<Batch> batch, const FlightKey& key,
                                const WorkOwner& owner, Interest& interest) {
  BuiltOr built = BuildRounds(work, std::move(planned), batch, key, owner, interest);
  decltype(replanned_)::node_type ended;  // dies unlocked
  {
    MutexLock lock(&mutex_);
    ended = replanned_.extract(key);
  }
  // Other callers of this flight may hold claims slightly longer than it lasts. Later requests must
  // not share a failure that has been answered.
  const auto retire = [](const Batch& held) {
    for (const auto& [k, claim] : held.claims) claim.RetireFailure();
  };
  retire(*batch);
  if (!ended.empty() && ended.mapped().batch != nullptr) retire(*ended.mapped().batch);
  return built;
}

BuiltOr PlanBuilds::BuildRounds(WorkPtr work, std::shared_ptr<const Planned> planned,
                                std::shared_ptr<Batch> batch, const FlightKey& key,
                                const WorkOwner& owner, Interest& interest) {
  auto built = std::make_shared<Built>();
  UnfusedNodes unfused_nodes = UnfusedNodesOf(planned->stored->plan);
  bool lasting = true;
  std::set<Digest> made_here;  // kernels that were published on the way
  for (int round = 1;; ++round) {
    WaitForKernels(batch.get(), &interest);
    size_t before = unfused_nodes.size();
    const fusion::Plan& plan = planned->stored->plan;
    const bool unregistered = Unregister(plan, batch.get(), &work);
    absl::Status isolated = work->options.lock != nullptr
                                ? CheckPinned(plan, batch->results)
                                : IsolateFailures(plan, batch->results, logger_, &unfused_nodes);
    if (isolated.ok() && unfused_nodes.size() == before && !unregistered) break;
    lasting &= std::none_of(batch->results.begin(), batch->results.end(), MayPass);
    // Publish finished kernels that other answers name, whatever becomes of the plan.
    Bundle ready = BundleOf(nullptr, *batch);
    for (const auto& kernel : ready.kernels) made_here.insert(kernel->key);
    Publish(std::move(ready), &built->warnings, owner);
    RETURN_IF_ERROR(isolated);
    SetRound(key, {.number = round, .batch = nullptr});
    PlanOrigin origin;
    ASSIGN_OR_RETURN(planned, planning_.Plan(work, unfused_nodes, {}, CancelToken(), &origin,
                                             /*observer=*/nullptr, owner));
    batch = StartKernels(*planned, owner);
    SetRound(key, {.number = round, .batch = batch});
  }
  lasting &= !registry_.MayPass(planned->stored->plan);
  registry_.NoteReady(planned->stored->plan);
  built->stored = planned->stored;
  built->kernels = batch->kernels;
  built->found = batch->found;
  const bool pending = planned->model != nullptr;
  // Before the claims of `batch` end.
  const bool stays = lasting && !(pending && IsKnown(*planned->stored));
  Publish(BundleOf(stays ? built->stored : nullptr, *batch), &built->warnings, owner);
  for (size_t k = 0; k < built->found.size(); ++k) {
    if (made_here.contains(built->kernels[k]->key)) built->found[k] = false;
  }
  if (pending) built->unsearched = {work, planned, lasting, owner};
  return BuiltOr(std::move(built));
}

// True if the store has the plan; its search may have progressed further there.
bool PlanBuilds::IsKnown(const StoredPlan& pending) {
  const std::shared_ptr<const StoredPlan> known = store_.PeekPlan(pending.key);
  return known != nullptr && UnfusedNodesOf(known->plan) == UnfusedNodesOf(pending.plan) &&
         UnusedOf(known->plan) == UnusedOf(pending.plan);
}

void PlanBuilds::SetRound(const FlightKey& key, Round round) {
  MutexLock lock(&mutex_);
  replanned_[key] = std::move(round);
}

}  // namespace fusion
