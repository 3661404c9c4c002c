#include "core/plan/planner.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/base/contains.h"
#include "core/base/saturate.h"
#include "core/graph/build/body_graph.h"
#include "core/plan/assemble/assembler.h"
#include "core/plan/cost/pin.h"
#include "core/plan/ledger/ledger.h"
#include "core/plan/obey/follow_registered.h"
#include "core/plan/obey/follow_rules.h"
#include "core/plan/rules/seen_graph.h"
#include "core/plan/search/frontier.h"
#include "core/plan/search/group_by_node.h"
#include "core/plan/sets/loop_sets.h"
#include "core/rewrite/program_passes.h"
#include "core/schedule/tiles/tiles_text.h"

namespace fusion {
namespace {

void AddLaunch(const Estimate& e, PlanTotals* out) {
  out->kernels += 1;
  out->launches += 1;
  out->activation_bytes += e.activation_bytes + e.recompute_bytes;
  out->weight_bytes += e.weight_bytes;
  out->estimated_us += e.time_us;
}

void AddPasses(const PlanTotals& pass, const ProgramLoop& loop, PlanTotals* out) {
  const int64_t passes = loop.counted_passes();
  for (int64_t PlanTotals::*sum : {&PlanTotals::kernels, &PlanTotals::launches,
                                   &PlanTotals::activation_bytes, &PlanTotals::weight_bytes}) {
    out->*sum = SaturatedSum(out->*sum, SaturatedProduct(passes, pass.*sum));
  }
  out->estimated_us += static_cast<double>(passes) * pass.estimated_us;
}

// The cost of the plan's ops with one kernel per node, in total and by group of the plan.
absl::Status SumBaseline(const Grouping& nodes, GroupEvaluator* evaluator, PlannedModel* model) {
  std::map<LoopId, PlanGroup*> group_of;
  for (size_t g = 0; g < model->groups.size(); ++g) {
    for (LoopId loop : model->groups[g]) group_of[loop] = &model->plan.groups[g];
  }
  for (const std::vector<LoopId>& loops : nodes.groups) {
    if (evaluator->AreConstant(loops)) continue;
    if (HasRepeat(model->program, loops)) {
      // The groups of a body have theirs.
      ASSIGN_OR_RETURN(const GroupChoice* loop, evaluator->Choose(loops));
      AddPasses(loop->body->plan.op_by_op, *model->program.op(loops[0]).loop,
                &model->plan.op_by_op);
      continue;
    }
    ASSIGN_OR_RETURN(const GroupVerdict* choice, evaluator->EvaluateGenerated(loops));
    AddLaunch(choice->estimate, &model->plan.op_by_op);
    auto group = group_of.find(loops.front());
    if (group != group_of.end()) AddLaunch(choice->estimate, &group->second->op_by_op);
  }
  return absl::OkStatus();
}

// Fills the parts of the plan that only describe it: the limits of the device, the tiling of each
// kernel and what bounds it.
void Describe(const DeviceSpec& device, PlannedModel* model) {
  Plan& plan = model->plan;
  plan.device = {.kind = device.kind,
                 .unit = device.unit,
                 .explicit_memory = device.explicit_memory,
                 .on_chip_level = device.StagedLevel().name,
                 .on_chip_bytes = device.OnChipBytes()};
  for (const MemoryLevel& level : device.levels) {
    plan.device.levels.push_back(
        {level.name, level.shared, level.bytes, level.UsableBytes(), level.total_bytes_per_s});
  }
  for (PlanGroup& group : plan.groups) {
    group.bound = BoundOf(group.estimate, device);
    if (group.registered.empty()) {
      group.tiles = TilesText(model->kernels[static_cast<size_t>(group.kernel)].schedule);
    } else {
      group.tiles = StrCat("registered kernel ", Quote(group.registered));
    }
  }
}

void Head(const DeviceSpec& device, const PlanOptions& options, Plan* plan) {
  plan->target = device.name;
  plan->isa = device.arch;
  plan->threads = device.threads;
  plan->numerics = options.numerics;
  plan->fusion = options.fusion;
}

// `nodes`: one group per node. `seen` null: no rules and no registered kernels.
absl::StatusOr<ChosenPlan> Choose(const SeenGraph* seen, const Grouping& nodes,
                                  const PlanOptions& options,
                                  const std::map<NodeId, std::string>& unfused_nodes,
                                  const RegisteredOptions& registered, GroupEvaluator* evaluator,
                                  RegisteredOutcome* outcome) {
  if (options.fusion == FusionMode::kOpByOp) {
    return TakePlan(nodes, kOpByOpPoint, "the request asked for one kernel a node", evaluator);
  }
  if (seen == nullptr) return ChoosePlan(nodes, options, unfused_nodes, evaluator);
  ASSIGN_OR_RETURN(Grouping start,
                   FollowRules(*seen, nodes, options.rules, unfused_nodes, evaluator));
  if (!registered.kernels.empty()) {
    ASSIGN_OR_RETURN(start, FollowRegistered(*seen, nodes, std::move(start), registered.kernels,
                                             registered.unused, unfused_nodes, evaluator, outcome));
  }
  return ChoosePlan(start, options, unfused_nodes, evaluator);
}

// The arguments of a plan.
struct Asked {
  const Graph& graph;
  /// What rules and registered kernels see; null: nothing.
  const SeenGraph* seen;
  const DeviceSpec& device;
  const PlanOptions& options;
  const CancelToken* cancel;
  const std::map<NodeId, std::string>& unfused_nodes;
  const RegisteredOptions& registered;
  const std::vector<ProgramPass>& passes;
  /// The program as it is before passes.
  std::function<absl::StatusOr<Program>()> stated;
  std::set<std::string> without = {};  // passes, by name
  bool member = false;                 // kernels and tensors alone, by a lock
  const TileSearch* search = nullptr;  // of a graph
};

absl::Status PlanProgram(const Asked& asked, ProgramOf of, PlannedModel* model);

// Whether patterns are matched in a body: if they are matched outside, and if the body has nodes of
// the model. A recurrence repeats steps of its own decomposition, which are no nodes, like those of
// a Softmax.
bool SeesBody(const Asked& asked, const ProgramLoop& loop) {
  const PlanOptions& options = asked.options;
  return loop.source != nullptr && asked.seen != nullptr && options.lock == nullptr &&
         options.fusion != FusionMode::kOpByOp &&
         !(options.rules.empty() && asked.registered.kernels.empty());
}

absl::StatusOr<std::shared_ptr<const PlannedModel>> PlanOfBody(
    const Asked& asked, const LoopOp& op, std::shared_ptr<const PlanLock> lock) {
  PlanOptions options = asked.options;
  options.lock = std::move(lock);
  options.frontier = false;
  auto model = std::make_shared<PlannedModel>();
  Asked of_body = {.graph = asked.graph,
                   .seen = nullptr,
                   .device = asked.device,
                   .options = options,
                   .cancel = asked.cancel,
                   .unfused_nodes = asked.unfused_nodes,
                   .registered = asked.registered,
                   .passes = asked.passes,
                   .stated = [&op]() -> absl::StatusOr<Program> { return *op.loop->body; },
                   .without = asked.without,
                   .member = asked.member};
  std::optional<Graph> body;
  std::optional<SeenGraph> seen;
  if (SeesBody(asked, *op.loop)) {
    ASSIGN_OR_RETURN(body, BodyGraph(*op.loop));
    seen.emplace(SeenGraph{.graph = *body, .request = asked.graph, .repeats = op.origin});
    of_body.seen = &*seen;
  }
  RETURN_IF_ERROR(PlanProgram(of_body, ProgramOf::kBody, model.get()));
  return std::shared_ptr<const PlannedModel>(std::move(model));
}

// Starts `model` anew, with the program after the passes; these leave the nodes in `left`
// unchanged. Returns those nodes of `left` that a pass would have changed.
absl::StatusOr<std::set<NodeId>> Rewrite(const Asked& asked, const std::set<NodeId>& left,
                                         PlannedModel* model) {
  *model = PlannedModel();
  ASSIGN_OR_RETURN(model->program, asked.stated());
  std::set<NodeId> spared;
  const LeaveProduct leave = [&](const LoopOp& op) {
    if (left.empty()) return false;
    const NodeId node = asked.seen->NodeOf(op);
    if (!left.contains(node)) return false;
    spared.insert(node);
    return true;
  };
  std::set<std::string> without = asked.without;
  for (const ProgramPass& pass : asked.passes) {
    if (pass.joins_nodes && asked.options.fusion == FusionMode::kOpByOp) without.insert(pass.name);
  }
  ASSIGN_OR_RETURN(model->plan.skipped_passes,
                   RunPasses(asked.passes, asked.device, asked.options.numerics, without, leave,
                             asked.stated, &model->program));
  return spared;
}

// Applies the tilings that a search found best. Entries for groups that do not exist are dropped. A
// tiling that does not fit is replaced by the estimated best: it is a fault of ours, but must not
// fail the plan.
absl::StatusOr<TileSearch> TileAsMeasured(const TileSearch& search, const Grouping& grouping,
                                          GroupEvaluator* evaluator) {
  TileSearch out = search;
  std::erase_if(out.kernels, [&](const TunedKernel& kernel) {
    return std::find(grouping.groups.begin(), grouping.groups.end(), kernel.ops) ==
           grouping.groups.end();
  });
  for (TunedKernel& kernel : out.kernels) {
    if (kernel.chosen == 0) continue;
    const TriedTiling& tiling = kernel.tried[static_cast<size_t>(kernel.chosen)];
    absl::Status pinned = evaluator->Pin(kernel.ops, tiling.choice);
    if (WasGivenUp(pinned)) return pinned;
    if (pinned.ok()) continue;
    kernel.reason = StrCat("cut ", kernel.chosen, " is faster, but does not fit this plan (",
                           tiling.tiles, "): ", Message(pinned));
    kernel.chosen = 0;
    --out.changed;
  }
  return out;
}

// -1: none.
int GroupOf(const PlannedModel& model, const std::vector<LoopId>& ops) {
  auto group = std::find(model.groups.begin(), model.groups.end(), ops);
  return group == model.groups.end() ? -1 : static_cast<int>(group - model.groups.begin());
}

// Bytes that each pass of a loop with this body accesses; weights count as before packing.
int64_t BytesOfPass(const Program& program) {
  const std::vector<bool> known = KnownBeforeRuns(program);
  std::vector<bool> counted(program.values.size(), false);
  int64_t bytes = 0;
  auto count = [&](ValueId v) {
    if (counted[static_cast<size_t>(v)]) return;
    counted[static_cast<size_t>(v)] = true;
    const Value& value = program.value(v);
    bytes =
        SaturatedSum(bytes, SaturatedProduct(StorageElements(value), DTypeBytes(value.type.dtype)));
  };
  for (const LoopOp& op : program.ops) {
    if (known[static_cast<size_t>(op.output)]) continue;
    for (ValueId v : op.inputs) count(v);
    count(op.output);
  }
  return bytes;
}

absl::Status PlanNarrowed(const Asked& asked, ProgramOf of, PlannedModel* model) {
  const auto& [graph, seen, given, options, cancel, unfused_nodes, registered, passes, stated,
               without, member, search] = asked;
  const DeviceSpec device =
      of == ProgramOf::kBody ? given.InLoop(BytesOfPass(model->program)) : given;
  GroupEvaluator evaluator(model->program, device, options, cancel,
                           [&asked](const LoopOp& op, std::shared_ptr<const PlanLock> lock) {
                             return PlanOfBody(asked, op, std::move(lock));
                           });
  std::optional<Grouping> pinned;
  if (options.lock != nullptr) {
    ASSIGN_OR_RETURN(pinned, PinGroups(*options.lock, &evaluator));
  }
  if (member) {
    FUSION_CHECK(pinned.has_value(), "bodies of a member follow its lock");
    Head(device, options, &model->plan);
    return Assemble(graph, of, *pinned, &evaluator, model);
  }
  ASSIGN_OR_RETURN(Grouping nodes, GroupByNode(graph, &evaluator));
  RegisteredOutcome outcome;
  ASSIGN_OR_RETURN(
      ChosenPlan chosen,
      pinned.has_value()
          ? TakePlan(*std::move(pinned), kLockPoint, "the request has a lock", &evaluator)
          : Choose(seen, nodes, options, unfused_nodes, registered, &evaluator, &outcome));
  model->notes = std::move(outcome.notes);
  Plan& plan = model->plan;
  Head(device, options, &plan);
  for (const auto& [node, reason] : unfused_nodes) plan.fallbacks.push_back({node, reason});
  plan.fallbacks.insert(plan.fallbacks.end(), outcome.fallbacks.begin(), outcome.fallbacks.end());
  plan.frontier = std::move(chosen.frontier);
  if (search != nullptr) {
    ASSIGN_OR_RETURN(plan.search, TileAsMeasured(*search, chosen.grouping, &evaluator));
  }
  RETURN_IF_ERROR(Assemble(graph, of, chosen.grouping, &evaluator, model));
  for (TunedKernel& kernel : plan.search.kernels) kernel.group = GroupOf(*model, kernel.ops);
  RETURN_IF_ERROR(SumBaseline(nodes, &evaluator, model));
  Describe(device, model);
  return WriteLedger(graph, of, nodes.groups, chosen.grouping.considered, options, unfused_nodes,
                     &evaluator, model);
}

// Nodes that registered kernels compute.
std::set<NodeId> RegisteredNodes(const SeenGraph& seen, const PlannedModel& model) {
  std::set<NodeId> nodes;
  for (size_t g = 0; g < model.groups.size(); ++g) {
    if (model.plan.groups[g].registered.empty()) continue;
    const std::vector<NodeId> own = seen.NodesOf(model.program, model.groups[g]);
    nodes.insert(own.begin(), own.end());
  }
  return nodes;
}

// Registered kernels read tensors of the model, so passes must not change the products of their
// nodes. If none of the kernels runs in the end, products are rewritten as usual: registered
// kernels do not affect a plan that uses none.
absl::Status PlanProgram(const Asked& asked, ProgramOf of, PlannedModel* model) {
  std::set<NodeId> left;
  const bool registers = asked.seen != nullptr && !asked.registered.kernels.empty() &&
                         asked.options.fusion != FusionMode::kOpByOp &&
                         asked.options.lock == nullptr && !asked.member;
  if (registers) {
    ASSIGN_OR_RETURN(left, NodesOfRegistered(*asked.seen, asked.device, asked.registered.kernels,
                                             asked.unfused_nodes));
  }
  if (left.empty()) {
    RETURN_IF_ERROR(Rewrite(asked, left, model).status());
    return PlanNarrowed(asked, of, model);
  }
  Asked pass = asked;
  pass.search = nullptr;  // it knows the ops of the last pass
  std::optional<PlannedModel> first;
  while (true) {
    ASSIGN_OR_RETURN(const std::set<NodeId> spared, Rewrite(pass, left, model));
    RETURN_IF_ERROR(PlanNarrowed(pass, of, model));
    std::set<NodeId> ran;
    if (!spared.empty()) ran = RegisteredNodes(*asked.seen, *model);
    std::erase_if(ran, [&](NodeId n) { return !spared.contains(n); });
    if (ran.size() == spared.size()) break;
    left = std::move(ran);  // fewer each time
    if (!first) first = std::move(*model);
  }
  if (asked.search != nullptr) {
    RETURN_IF_ERROR(Rewrite(asked, left, model).status());
    RETURN_IF_ERROR(PlanNarrowed(asked, of, model));
  }
  if (!first) return absl::OkStatus();
  // The first plan has the reasons why kernels do not run, since nothing else hindered them there.
  model->notes = std::move(first->notes);
  for (PlanFallback& fallback : first->plan.fallbacks) {
    if (Contains(model->plan.fallbacks, fallback)) continue;
    model->plan.fallbacks.push_back(std::move(fallback));
  }
  return absl::OkStatus();
}

absl::StatusOr<PlannedModel> PlanGraph(const Asked& asked) {
  PlannedModel model;
  RETURN_IF_ERROR(PlanProgram(asked, ProgramOf::kGraph, &model));
  if (asked.member) return model;  // its family verifies it
  const auto& [arena, prepared] = std::pair(model.plan.arena_bytes, model.plan.prepared_bytes);
  if (std::max(arena, prepared) > kMaxSpaceBytes) {
    return ResourceExhausted("the plan takes ", arena, " bytes for intermediates and ", prepared,
                             " bytes of prepared weights; expected at most ", kMaxSpaceBytes,
                             " each: the tensors of the model are too large together");
  }
  absl::Status status = Verify(model.plan);
  if (!status.ok()) return Internal("the planner made an inconsistent plan: ", Message(status));
  return model;
}

std::function<absl::StatusOr<Program>()> StatedBy(const Graph& graph, const PlanOptions& options) {
  return [&graph, &options] { return BuildProgram(graph, ProgramOptionsFor(options)); };
}

// A plan without the pass that broke it, if there is one: leaves out each pass that may run, the
// last one first, and then all.
absl::StatusOr<PlannedModel> PlanWithoutBroken(Asked asked, const absl::Status& broken) {
  std::vector<std::set<std::string>> tries;
  std::set<std::string> all;
  for (const ProgramPass& pass : asked.passes) {
    if (!pass.allowed(asked.options.numerics)) continue;
    all.insert(pass.name);
    tries.insert(tries.begin(), {pass.name});
  }
  if (all.size() > 1) tries.push_back(all);
  for (const std::set<std::string>& without : tries) {
    asked.without = without;
    absl::StatusOr<PlannedModel> model = PlanGraph(asked);
    if (WasGivenUp(model.status())) return model;
    if (!model.ok()) continue;
    // Reports of other passes remain; these passes did not run, so there are none yet.
    for (const std::string& pass : without) {
      model->plan.skipped_passes.push_back({pass, std::string(Message(broken))});
    }
    return model;
  }
  return broken;
}

}  // namespace

// Loops are not unrolled in plans of a family: all members have the same loops, whatever their
// number of passes.
ProgramOptions ProgramOptionsFor(const PlanOptions& options) {
  return {.open_dims = !options.dim_ranges.empty()};
}

absl::StatusOr<PlannedModel> MakePlan(const Graph& graph, const DeviceSpec& device,
                                      const PlanOptions& options, const CancelToken* cancel,
                                      const std::map<NodeId, std::string>& unfused_nodes,
                                      const RegisteredOptions& registered, const TileSearch* search,
                                      const std::vector<ProgramPass>& passes) {
  const SeenGraph seen{.graph = graph, .request = graph};
  const Asked asked{.graph = graph,
                    .seen = &seen,
                    .device = device,
                    .options = options,
                    .cancel = cancel,
                    .unfused_nodes = unfused_nodes,
                    .registered = registered,
                    .passes = passes,
                    .stated = StatedBy(graph, options),
                    .search = search};
  absl::StatusOr<PlannedModel> model = PlanGraph(asked);
  if (!absl::IsInternal(model.status())) return model;
  return PlanWithoutBroken(asked, model.status());
}

absl::StatusOr<PlannedModel> MakeMember(const Graph& graph, const DeviceSpec& device,
                                        const PlanOptions& options, const CancelToken* cancel) {
  FUSION_CHECK(options.lock != nullptr, "a member follows a lock");
  return PlanGraph({.graph = graph,
                    .seen = nullptr,
                    .device = device,
                    .options = options,
                    .cancel = cancel,
                    .unfused_nodes = {},
                    .registered = {},
                    .passes = ProgramPasses(),
                    .stated = StatedBy(graph, options),
                    .member = true});
}

}  // namespace fusion
