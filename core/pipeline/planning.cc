#include "core/pipeline/planning.h"

#include <atomic>
#include <optional>

#include "core/base/heap_bytes.h"
#include "core/base/threads/retry_after.h"
#include "core/base/unix_time.h"
#include "core/graph/heap_bytes.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/pipeline/plan_search.h"
#include "core/pipeline/requests/lock.h"
#include "core/plan/assemble/group_terms.h"
#include "core/plan/outline/plan_outline.h"
#include "core/plan/planner.h"

namespace fusion {
namespace {

int64_t ChargedBytes(const CompileJob& job) {
  auto bytes = static_cast<int64_t>(sizeof(job));
  for (const std::string* text : {&job.full_key, &job.symbol, &job.source, &job.schedule,
                                  &job.reference, &job.label, &job.registered, &job.backend}) {
    bytes += HeapBytes(*text);
  }
  for (const CheckedMember& member : job.members) {
    bytes += static_cast<int64_t>(sizeof(member)) + HeapBytes(member.sizes) +
             HeapBytes(member.schedule) + HeapBytes(member.reference);
  }
  return bytes;
}

int64_t ChargedBytes(const Planned& planned) {
  constexpr int64_t kPartsBytes = 1024;  // times of the stages and the like
  int64_t bytes = static_cast<int64_t>(sizeof(planned)) + kPartsBytes;
  // A model is its plan once more, with schedules and programs as values (fitted with glibc 2.36,
  // 2026-11-27; redo: pipeline_test --gtest_filter=*CachedBytes*).
  bytes += ChargedBytes(*planned.stored) * (planned.model == nullptr ? 1 : 5);
  for (const CompileJob& job : planned.jobs) bytes += ChargedBytes(job);
  return bytes;
}

}  // namespace

Planning::Planning(const PlanningOptions& options, const Toolchain& toolchain, Logger& logger,
                   const Clock& clock)
    : options_(options),
      toolchain_(toolchain),
      logger_(logger),
      clock_(clock),
      stopping_(clock),
      threads_("plan", options.threads, options.queue_limit, options.spare_threads),
      flights_(threads_, {.linger = options.linger}, clock),
      overruns_(/*limit=*/4096, clock),
      remembered_(options.remembered_bytes, LargestEntryBytes(options.remembered_bytes)) {
  // The counters exist from the start, so that monitoring sees their first step.
  MutexLock lock(&mutex_);
  for (const ProgramPass& pass : options.passes) skipped_passes_[pass.name] = 0;
}

Planning::~Planning() { Stop(); }

void Planning::Stop() {
  stopping_.Cancel();
  threads_.Stop();
}

PlannedOr Planning::Plan(const WorkPtr& work, const UnfusedNodes& unfused_nodes,
                         const DumpKinds& dumps, const CancelToken& waiter, PlanOrigin* origin,
                         StageObserver* observer, const WorkOwner& owner) {
  PlanId id(work->planning_key, unfused_nodes);
  std::string told = "plan";
  if (observer != nullptr) observer->OnStage(told, 0, 0);
  if (dumps.empty()) {
    if (std::shared_ptr<const Planned> known = Remembered(id)) {
      *origin = PlanOrigin::kRemembered;
      return known;
    }
  }
  if (std::optional<FailureCache::Failure> overrun = overruns_.Find(DigestOf(id))) {
    *origin = PlanOrigin::kRemembered;
    return overrun->why;
  }
  // Shared with the work, which may go on after this call.
  const bool follows = observer != nullptr && observer->FollowsOthers();
  auto watch = follows ? std::make_shared<StageWatch>() : nullptr;
  auto late = std::make_shared<std::atomic<bool>>(false);  // made between the lookup and the flight
  auto make = [this, work, id, dumps, watch, late, owner,
               asked = clock_.Now()](Interest& interest) -> PlannedOr {
    if (!dumps.empty())
      return MakeInTime(*work, id.second, dumps, asked, watch.get(), interest, owner);
    if (auto known = Remembered(id)) {
      *late = true;
      return known;
    }
    PlannedOr made = MakeInTime(*work, id.second, dumps, asked, watch.get(), interest, owner);
    if (made.ok()) Remember(id, *made);
    return made;
  };
  auto tell = [&] {
    std::string now = watch->stage();
    if (now.empty() || now == told) return;
    observer->OnStage(now, 0, 0);
    told = std::move(now);
  };
  bool shared = false;
  decltype(flights_)::Caller caller{.owner = owner, .shared = &shared};
  if (follows) caller.meanwhile = tell;
  PlannedOr planned =
      flights_.Run({work->planning_key, unfused_nodes, dumps}, waiter, std::move(make), caller);
  if (follows) tell();
  *origin = shared ? PlanOrigin::kShared : *late ? PlanOrigin::kRemembered : PlanOrigin::kMade;
  return planned;
}

PlannedOr Planning::MakeInTime(const Work& work, const UnfusedNodes& unfused_nodes,
                               const DumpKinds& dumps, Nanoseconds asked, StageObserver* observer,
                               Interest& interest, const WorkOwner& owner) {
  Nanoseconds start = clock_.Now();
  int64_t seconds = options_.limit / std::chrono::seconds(1);
  if (start - asked > options_.limit) {
    return ServerBusy("planning did not begin within ", seconds, " s");
  }
  CancelToken patience(stopping_, start + options_.limit, interest);
  StageContext stages{patience, clock_, dumps};
  stages.observer = observer;
  Job job("planning", options_.job, options_.memory, owner.tenant, &patience);
  stages.job = &job;
  PlannedOr planned = Make(work, unfused_nodes, stages);
  absl::Status overrun;
  if (absl::IsDeadlineExceeded(planned.status())) {
    overrun = ResourceExhausted("planning ", work.graph.nodes().size(), " nodes takes more than ",
                                seconds, " s",
                                dumps.empty() ? "; it is not tried again for a while" : "");
  } else if (job.IsOverBudget()) {
    overrun = planned.status();
  } else {
    return planned;
  }
  if (!dumps.empty()) return overrun;  // perhaps because of the texts
  overruns_.Remember(DigestOf({work.planning_key, unfused_nodes}), {overrun}, options_.failure_ttl);
  return overrun;
}

Digest Planning::DigestOf(const PlanId& id) {
  if (id.second.empty()) return id.first;
  std::string text = id.first.ToHex();
  for (const auto& [node, reason] : id.second) text += StrCat(" ", node);
  return Sha256(text);
}

// Plans a canonical graph and generates its kernels. Pure except for the clock.
PlannedOr Planning::Make(const Work& work, UnfusedNodes unfused_nodes, StageContext& stages) {
  PlannedModel model;
  NamedKernels kernels;
  const CodegenIdentity codegen = IdentifyCodegen(work.device, toolchain_, work.options);
  const DeviceSpec device = PlanningDevice(work);
  int64_t held = HeapBytes(work.graph);  // memory of the import, mostly constants
  for (;;) {
    stages.dumps.clear();  // of the previous round
    absl::StatusOr<PlannedModel> made = RunStage(stages, "plan", [&] {
      Job::Charge(std::exchange(held, 0));
      Job::Step();
      return work.family == nullptr
                 ? MakePlan(work.graph, device, work.options, &stages.cancel, unfused_nodes,
                            work.registered, work.search.get(), options_.passes)
                 : PlanFamily(*work.family, work.graph, device, work.options, &stages.cancel,
                              unfused_nodes);
    });
    if (!made.ok() && work.options.lock != nullptr) {
      return BlameVersions(made.status(), work, codegen.version);
    }
    RETURN_IF_ERROR(made.status());
    model = *std::move(made);
    ASSIGN_OR_RETURN(kernels, RunStage(stages, "emit", [&] {
                       return work.family == nullptr
                                  ? EmitKernels(work.device, codegen, &model)
                                  : MakeFamily(*work.family, work.device, work.options, toolchain_,
                                               &model, &stages.cancel);
                     }));
    if (work.options.lock != nullptr) {
      RETURN_IF_ERROR(CheckPinned(model.plan, kernels.refusals));
      break;
    }
    size_t before = unfused_nodes.size();
    RETURN_IF_ERROR(IsolateFailures(model.plan, kernels.refusals, logger_, &unfused_nodes));
    if (!kernels.no_variant.empty()) unfused_nodes.emplace(kNoVariant, kernels.no_variant);
    if (unfused_nodes.size() == before) break;
  }
  if (work.family == nullptr) NoteTerms(device, work.calibration.factors, &model);
  model.plan.calibration = work.calibration;
  CountSkipped(model.plan.skipped_passes);
  for (const std::string& note : model.notes) {
    logger_.Info("registered_kernel_not_used", {{"reason", note}});
  }
  if (work.options.opt_level > 0 && work.search == nullptr) {
    model.plan.search = StartOfSearch(work.options.opt_level, work.device, work.family != nullptr,
                                      work.options.guard);
  } else if (work.search != nullptr && work.family != nullptr) {
    model.plan.search = *work.search;
  }
  auto planned = std::make_shared<Planned>();
  const bool wants_lock = stages.wanted.contains(DumpKind::kLock);
  if (wants_lock) RETURN_IF_ERROR(CanLock(model.plan));
  if (wants_lock || work.options.lock != nullptr) {
    PlanLock lock = MakeLock(work, model, kernels);
    if (work.options.lock != nullptr) RETURN_IF_ERROR(CheckLock(*work.options.lock, lock));
    if (wants_lock) planned->lock = std::make_shared<const PlanLock>(std::move(lock));
  }
  if (model.plan.search.state == TileSearchState::kPending) {
    planned->model = std::make_shared<const PlannedModel>(model);
  }
  planned->stored = std::make_shared<const StoredPlan>(
      MakeStoredPlan(work.full_key, model.plan, UnixMilliseconds(clock_), work.model_name,
                     work.family == nullptr ? OutlineOf(work.graph, model.plan) : PlanOutline{}));
  // A copy has no spare capacity.
  planned->jobs = kernels.jobs;
  planned->times = std::move(stages.times);
  planned->dumps = std::move(stages.dumps);
  return PlannedOr(std::move(planned));
}

// Logs and counts skipped passes, which are bugs.
void Planning::CountSkipped(const std::vector<SkippedPass>& skipped) {
  for (const SkippedPass& one : skipped) {
    logger_.Warning("pass_skipped", {{"pass", one.pass}, {"reason", one.reason}});
    MutexLock lock(&mutex_);
    ++skipped_passes_[one.pass];
  }
}

void Planning::Remember(const PlanId& id, std::shared_ptr<const Planned> planned) {
  const int64_t bytes = ChargedBytes(*planned);
  std::vector<std::pair<PlanId, std::shared_ptr<const Planned>>> forgotten;  // dies unlocked
  MutexLock lock(&mutex_);
  forgotten = remembered_.Insert(id, std::move(planned), bytes);
}

std::shared_ptr<const Planned> Planning::Remembered(const PlanId& id) {
  MutexLock lock(&mutex_);
  std::shared_ptr<const Planned>* known = remembered_.Find(id);
  return known == nullptr ? nullptr : *known;
}

}  // namespace fusion
