#include "core/pipeline/plan_fusion.h"

#include <algorithm>
#include <map>

#include "absl/strings/cord.h"
#include "core/pipeline/requests/miss.h"
#include "core/plan/planner.h"
#include "core/wire/options/tile_search.h"

namespace fusion {
namespace {

// Replaces the planner's canonical positions in an error by the caller's node names.
absl::Status NameFailedNodes(const absl::Status& status, const std::vector<std::string>& names) {
  constexpr std::string_view kNameless = "node \"\"";
  absl::optional<absl::Cord> payload = status.GetPayload(kFailedNode);
  if (!payload.has_value()) return status;
  std::string positions(*payload);
  std::string_view rest = Message(status);
  std::string message;
  for (std::string_view position : StrSplit(positions, ' ')) {
    size_t at = rest.find(kNameless);
    auto node = static_cast<size_t>(std::stoll(std::string(position)));
    if (at == std::string_view::npos || node >= names.size()) break;
    message += StrCat(rest.substr(0, at), "node ", QuoteShort(names[node]));
    rest.remove_prefix(at + kNameless.size());
  }
  return absl::Status(status.code(), StrCat(message, rest));
}

// Names the request's rules that an error is about. If it is about rules of the service only (they
// precede the request's), the error becomes Internal: the request is not at fault.
void BlameRules(const absl::Status& failed, const Rules& rules, const Rules& of_request,
                absl::Status* named) {
  absl::optional<absl::Cord> payload = failed.GetPayload(kFailedRules);
  if (!payload.has_value()) return;
  const size_t own = rules.size() - of_request.size();
  std::vector<std::string> names;
  const std::string positions(*payload);
  for (std::string_view position : StrSplit(positions, ' ')) {
    auto rule = static_cast<size_t>(std::stoll(std::string(position)));
    if (rule >= own) names.push_back(rules[rule].name);
  }
  if (names.empty()) {
    *named = Internal("a rule of this service (--rules-file): ", Message(*named));
  } else {
    named->SetPayload(kBlamedRules, absl::Cord(StrJoin(names, " ")));
  }
}

// Graphs are shown as they come from import; all else comes from the plan's making.
bool NeedsPlanning(const DumpKinds& dumps) {
  return std::any_of(dumps.begin(), dumps.end(),
                     [](DumpKind kind) { return kind != DumpKind::kGraph; });
}

// The finished search of a stored plan; null if it has none.
std::shared_ptr<const TileSearch> SearchOf(const Plan& plan) {
  if (plan.search.level == 0 || plan.search.state == TileSearchState::kPending) return nullptr;
  return std::make_shared<const TileSearch>(plan.search);
}

bool SameSearch(const TileSearch* a, const TileSearch* b) {
  return a == nullptr || b == nullptr ? a == b : DigestOf(*a) == DigestOf(*b);
}

void WarnSearch(const TileSearch& search, PlanReply* reply) {
  if (search.level == 0) return;
  if (search.state == TileSearchState::kNone) {
    reply->warnings.push_back(
        StrCat("opt_level ", search.level, ": no tiles were tried: ", search.reason));
  }
  if (search.state == TileSearchState::kCutShort) {
    reply->warnings.push_back(
        StrCat("opt_level ", search.level,
               ": not all tiles were tried, the next request goes on: ", search.reason));
  }
}

void WarnUnfused(const Plan& plan, PlanReply* reply) {
  const size_t unfused = UnfusedNodesOf(plan).size();
  if (unfused > 0) {
    reply->warnings.push_back(
        StrCat(unfused, " nodes are not fused: a kernel that held them failed"));
  }
  for (const auto& [name, reason] : UnusedOf(plan)) reply->warnings.push_back(reason);
}

void WarnSkipped(const Plan& plan, PlanReply* reply) {
  for (const SkippedPass& skipped : plan.skipped_passes) {
    reply->warnings.push_back(StrCat("the planner went without its pass ", skipped.pass,
                                     ", which is a fault of ours; the plan is right and may be "
                                     "slower: ",
                                     skipped.reason));
  }
}

void WarnUnverified(const Plan& plan, PlanReply* reply) {
  std::map<std::string, int> kernels_by_reason;
  for (size_t k = 0; k < reply->kernels.size(); ++k) {
    const KernelStatus& status = reply->kernels[k];
    if (status.state == KernelState::kReady && !status.check.verified) {
      ++kernels_by_reason[status.check.reason];
    }
  }
  for (const auto& [reason, kernels] : kernels_by_reason) {
    reply->warnings.push_back(
        StrCat(kernels, " of ", plan.kernels.size(), " kernels unverified: ", reason));
  }
}

}  // namespace

FusionPipeline::FusionPipeline(const PipelineOptions& options, std::vector<DeviceSpec> specs,
                               const Toolchain& toolchain, Store& store, WorkerPool& workers,
                               Logger& logger, const Clock& clock)
    : toolchain_(toolchain),
      store_(store),
      clock_(clock),
      resolver_(std::move(specs), toolchain, options.recalled_bytes, options.rules,
                options.registered, options.max_opt_level, options.planning.job,
                options.planning.memory),
      registry_(options.registered, logger),
      planning_(options.planning, toolchain, logger, clock),
      builds_(options.builds, toolchain, planning_, registry_, store, workers, logger, clock) {}

FusionPipeline::~FusionPipeline() { Stop(); }

void FusionPipeline::Stop() {
  planning_.Stop();
  builds_.Stop();
}

// The path of a request, top to bottom.
absl::StatusOr<PlanReply> FusionPipeline::PlanFusion(const PlanRequest& request,
                                                     const CancelToken& cancel,
                                                     StageObserver* observer) {
  StageContext stages{cancel, clock_, request.dumps};
  stages.observer = observer;
  stages.owner = request.owner;
  ASSIGN_OR_RETURN(std::shared_ptr<const Resolved> resolved, resolver_.Resolve(request, stages));
  if (request.mode != PlanMode::kPlanOnly) {
    RETURN_IF_ERROR(CanCompile(resolved->work->device, toolchain_));
  }
  PlanReply reply;
  reply.warnings = resolved->warnings;
  if (request.explain_miss) {
    // Before the plan is made and stored, which may evict others.
    ASSIGN_OR_RETURN(reply.miss, RunStage(stages, "miss", [&] {
                       return absl::StatusOr<MissExplanation>(
                           ExplainMiss(resolved->work->full_key, store_, cancel, clock_));
                     }));
  }
  absl::Status answered = Answer(resolved->work, request, stages, &reply);
  if (!answered.ok()) {
    absl::Status named = NameFailedNodes(answered, resolved->binding.nodes);
    BlameRules(answered, resolved->work->options.rules, request.options.rules, &named);
    return named;
  }
  WarnUnfused(reply.stored->plan, &reply);
  WarnSkipped(reply.stored->plan, &reply);
  WarnUnverified(reply.stored->plan, &reply);
  WarnSearch(reply.stored->plan.search, &reply);
  reply.binding = resolved->binding;
  reply.stages = std::move(stages.times);
  reply.dumps = std::move(stages.dumps);
  return reply;
}

// Answers from the store, or makes and publishes the plan.
absl::Status FusionPipeline::Answer(const WorkPtr& asked, const PlanRequest& request,
                                    StageContext& stages, PlanReply* reply) {
  ASSIGN_OR_RETURN(bool complete,
                   RunStage(stages, "lookup", [&] { return LookUp(*asked, reply); }));
  bool compile = request.mode != PlanMode::kPlanOnly;
  bool known = reply->stored != nullptr;
  // A search that is not over goes on when there is something to compile for.
  const bool searches = known && compile && GoesOn(reply->stored->plan.search);
  bool answered = known && (complete || !compile) && !searches;
  if (answered) {
    const std::string unwritten = store_.WhyUnwritten(reply->stored->key);
    if (!unwritten.empty()) reply->warnings.push_back(StrCat(kNotStored, unwritten));
    if (!NeedsPlanning(request.dumps)) return absl::OkStatus();
  }

  // A plan whose kernels or texts are missing is made again with the same restrictions.
  UnfusedNodes unfused_nodes = known ? UnfusedNodesOf(reply->stored->plan) : UnfusedNodes();
  WorkPtr work = WithUnused(asked, known ? UnusedOf(reply->stored->plan) : registry_.Quarantined());
  if (known && !searches) work = WithSearch(work, SearchOf(reply->stored->plan));
  ASSIGN_OR_RETURN(std::shared_ptr<const Planned> planned,
                   Plan(work, unfused_nodes, stages, reply));
  if (answered) return absl::OkStatus();
  if (!known) reply->stored = planned->stored;
  if (compile) {
    std::shared_ptr<const StoredPlan> further = complete && searches ? reply->stored : nullptr;
    RETURN_IF_ERROR(AnswerBuilt(work, request, planned, std::move(further), stages, reply));
    UnfusedNodes built = UnfusedNodesOf(reply->stored->plan);
    std::map<std::string, std::string> unused = UnusedOf(reply->stored->plan);
    std::shared_ptr<const TileSearch> search = SearchOf(reply->stored->plan);
    bool same = built == unfused_nodes && unused == UnusedOf(planned->stored->plan) &&
                SameSearch(work->search.get(), search.get());
    if (same || !NeedsPlanning(request.dumps)) return absl::OkStatus();
    // A kernel failed and its nodes were planned apart, or other tiles are faster: the texts must
    // be of that plan.
    work = WithSearch(WithUnused(asked, std::move(unused)), std::move(search));
    return Plan(work, built, stages, reply).status();
  }
  reply->kernels = builds_.Describe(reply->stored->plan);
  return RunStage(stages, "publish",
                  [&] {
                    builds_.Publish(reply->stored, &reply->warnings, stages.owner);
                    return absl::StatusOr<bool>(true);
                  })
      .status();
}

// True if the store has the plan with all its kernels; puts what it has into the reply.
absl::StatusOr<bool> FusionPipeline::LookUp(const Work& work, PlanReply* reply) {
  Found<StoredPlan> found = store_.GetPlan({work.key, work.full_key});
  if (!found) return false;
  reply->stored = found.value;
  reply->cache = found.tier == Tier::kMemory ? CacheOutcome::kHitMemory : CacheOutcome::kHitStore;
  reply->kernels = builds_.Describe(found.value->plan);
  const bool complete =
      std::all_of(reply->kernels.begin(), reply->kernels.end(),
                  [](const KernelStatus& kernel) { return kernel.state == KernelState::kReady; });
  if (complete) registry_.NoteReady(found.value->plan);
  return complete;
}

PlannedOr FusionPipeline::Plan(const WorkPtr& work, const UnfusedNodes& unfused_nodes,
                               StageContext& stages, PlanReply* reply) {
  Nanoseconds start = clock_.Now();
  DumpKinds dumps = NeedsPlanning(stages.wanted) ? stages.wanted : DumpKinds();
  PlanOrigin origin;
  ASSIGN_OR_RETURN(std::shared_ptr<const Planned> planned,
                   planning_.Plan(work, unfused_nodes, dumps, stages.cancel, &origin,
                                  stages.observer, stages.owner));
  // Keep only the texts of the plan in the answer.
  std::erase_if(stages.dumps, [](const Dump& dump) { return dump.kind != DumpKind::kGraph; });
  stages.dumps.insert(stages.dumps.end(), planned->dumps.begin(), planned->dumps.end());
  reply->lock = planned->lock;
  if (origin == PlanOrigin::kMade) {
    stages.times.insert(stages.times.end(), planned->times.begin(), planned->times.end());
    return planned;
  }
  bool remembered = origin == PlanOrigin::kRemembered;
  stages.times.push_back(
      {remembered ? "plan (remembered)" : "plan (shared)", clock_.Now() - start});
  if (reply->cache == CacheOutcome::kMiss) {
    reply->cache = remembered ? CacheOutcome::kHitMemory : CacheOutcome::kSharedFlight;
  }
  return planned;
}

// `known`: the stored plan with all its kernels, whose search was cut short; null: none.
absl::Status FusionPipeline::AnswerBuilt(const WorkPtr& work, const PlanRequest& request,
                                         std::shared_ptr<const Planned> planned,
                                         std::shared_ptr<const StoredPlan> known,
                                         StageContext& stages, PlanReply* reply) {
  bool by_deadline = request.mode == PlanMode::kByDeadline;
  CancelToken patience(stages.cancel, clock_.Now() + request.ready_within);
  reply->stored = planned->stored;  // the one whose kernels are started now
  BuiltOr built = RunStage(stages, kCompileStage, [&] {
    return builds_.Build(work, planned, by_deadline ? patience : stages.cancel, stages.observer,
                         /*goes_on=*/by_deadline, stages.owner);
  });
  if (by_deadline && absl::IsDeadlineExceeded(built.status()) && stages.cancel.Check().ok()) {
    reply->kernels = builds_.Describe(reply->stored->plan);  // the build goes on
    return absl::OkStatus();
  }
  if (!built.ok()) return built.status();
  if (const Nanoseconds searched = (*built)->searched; searched > Nanoseconds(0)) {
    // Only the part within this request, if the build began earlier.
    Nanoseconds& took = stages.times.back().took;
    const Nanoseconds own = std::min(searched, took);
    took -= own;
    stages.times.push_back({std::string(kSearchStage), own});
  }
  reply->warnings.insert(reply->warnings.end(), (*built)->warnings.begin(),
                         (*built)->warnings.end());
  if (known != nullptr && (*built)->unsearched.has_value()) {
    reply->stored = std::move(known);
    reply->kernels = builds_.Describe(reply->stored->plan);
    return absl::OkStatus();
  }
  reply->stored = (*built)->stored;
  reply->kernels.clear();
  for (size_t k = 0; k < (*built)->kernels.size(); ++k) {
    reply->kernels.push_back(ReadyStatus(*(*built)->kernels[k], (*built)->found[k]));
  }
  return absl::OkStatus();
}

KernelReply FusionPipeline::GetKernel(const Digest& key, const CancelToken& cancel,
                                      std::optional<std::string_view> tenant) {
  return builds_.GetKernel(key, cancel, tenant);
}

}  // namespace fusion
