#include "core/plan/assemble/assembler.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/contains.h"
#include "core/base/saturate.h"
#include "core/plan/assemble/loop_tensors.h"
#include "core/plan/assemble/tensor_table.h"
#include "core/plan/cost/phase_pipelines.h"
#include "core/plan/sets/loop_sets.h"
#include "core/smg/structure.h"

namespace fusion {
namespace {

// For a kernel and all kernels that it is joined from.
std::vector<std::string> DerivationOf(const GroupChoice& choice) {
  std::vector<std::string> lines = choice.lowered.certificate;
  for (const auto& part : choice.parts) {
    for (std::string& line : DerivationOf(*part)) {
      if (!Contains(lines, line)) lines.push_back(std::move(line));
    }
  }
  return lines;
}

// Converts ordered groups to a plan: deduplicated kernels, launches, tensors and their memory.
class Assembler {
 public:
  Assembler(const Graph& graph, ProgramOf of, const Program& program, GroupEvaluator* evaluator,
            const Grouping& grouping, PlannedModel* out)
      : graph_(graph),
        of_(of),
        program_(program),
        evaluator_(evaluator),
        grouping_(grouping),
        out_(*out),
        tensors_(program, *evaluator, &out->plan) {}

  absl::Status Run() {
    const std::vector<std::vector<LoopId>>& groups = grouping_.groups;
    for (size_t g = 0; g < groups.size();) {
      const size_t end = EndOfLaunch(grouping_.follows, g, groups.size());
      RETURN_IF_ERROR(AddGroup(SequentialPhases(groups.begin() + static_cast<int64_t>(g),
                                                groups.begin() + static_cast<int64_t>(end))));
      g = end;
    }
    tensors_.Place();
    Plan& plan = out_.plan;
    plan.nodes = static_cast<int>(graph_.nodes().size());
    if (of_ == ProgramOf::kGraph) {
      AttachViews();
      plan.output_extents = graph_.output_extents();
      plan.shared_buffers = graph_.shared_buffers();
      plan.bound_strides = graph_.bound_strides();
    }
    out_.inner.resize(plan.groups.size(), false);
    const std::vector<int64_t> runs = CountedRuns(plan);
    for (size_t l = 0; l < plan.launches.size(); ++l) {
      const PlanLaunch& launch = plan.launches[l];
      const Estimate& e = plan.groups[static_cast<size_t>(launch.group)].estimate;
      auto add = [&](int64_t once, int64_t* total) {
        *total = SaturatedSum(*total, SaturatedProduct(runs[l], once));
      };
      add(CountPhases(out_.kernels[static_cast<size_t>(launch.kernel)].schedule),
          &plan.totals.kernels);
      add(1, &plan.totals.launches);
      add(e.activation_bytes + e.recompute_bytes, &plan.totals.activation_bytes);
      add(e.weight_bytes, &plan.totals.weight_bytes);
      plan.totals.estimated_us += static_cast<double>(runs[l]) * e.time_us;
    }
    return absl::OkStatus();
  }

 private:
  // The kernel of the plan that equals a kernel of a loop body.
  int KernelOf(const PlannedKernel& kernel, const PlanKernel& head) {
    auto [it, fresh] = kernel_of_.try_emplace(kernel.text, static_cast<int>(out_.kernels.size()));
    if (fresh) {
      out_.plan.kernels.push_back(head);
      out_.kernels.push_back(kernel);
    }
    return it->second;
  }

  int KernelOf(const Schedule& schedule, const std::function<KernelReference()>& reference,
               std::shared_ptr<const RegisteredMatch> registered = nullptr) {
    std::string text = ToString(schedule);
    auto [it, fresh] = kernel_of_.try_emplace(text, static_cast<int>(out_.kernels.size()));
    if (fresh) {
      out_.plan.kernels.push_back(
          {.label = schedule.label, .phases = static_cast<int>(schedule.phases.size())});
      out_.kernels.push_back({.schedule = schedule,
                              .text = std::move(text),
                              .reference = reference(),
                              .registered = std::move(registered)});
    }
    return it->second;
  }

  // The packed form of a weight, created once for all kernels that read it.
  int PackedTensor(const GroupChoice& choice, size_t param, ValueId value) {
    const FusionGroup& group = choice.group;
    const Lowered& lowered = choice.lowered;
    int& kernel =
        kernel_of_choice_.try_emplace({&choice, static_cast<int>(param)}, -1).first->second;
    if (kernel < 0) {
      kernel = KernelOf(PackSchedule(group, lowered, param),
                        [&] { return MakePackReference(group, lowered, param); });
    }
    auto known = packed_.find({value, kernel});
    if (known != packed_.end()) return known->second;
    const Buffer& b = lowered.schedule.buffer(static_cast<BufferId>(param));
    int source = tensors_.Of(value);
    int target = tensors_.AddPacked(b.dtype, StoredDims(b));
    PlanGroup pack_group{.kind = GroupKind::kPrepare, .label = "Pack", .kernel = kernel};
    out_.plan.groups.push_back(std::move(pack_group));
    out_.groups.emplace_back();
    out_.choice_of.push_back(-1);
    out_.plan.prepare.push_back({.group = static_cast<int>(out_.plan.groups.size()) - 1,
                                 .kernel = kernel,
                                 .tensors = {source, target}});
    tensors_.AddLaunch(/*prepare=*/true, {source, target});
    packed_[{value, kernel}] = target;
    return target;
  }

  static GroupKind KindOf(const GroupChoice& choice) {
    if (!choice.pipelines.empty()) return GroupKind::kPipeline;
    if (!choice.sequence.empty()) return GroupKind::kAllInOne;
    int anchors = 0;
    for (const LoopOp& op : choice.program.ops) anchors += op.body.reduce ? 1 : 0;
    return anchors > 1 ? GroupKind::kCrossOperator : GroupKind::kInner;
  }

  // The position of a choice in out_.choices; its parts precede it.
  size_t LockedOf(const GroupChoice& choice) {
    auto known = choice_of_.find(&choice);
    if (known != choice_of_.end()) return known->second;
    LockedChoice locked;
    for (size_t i = 0; i < choice.sequence.size(); ++i) {
      locked.turns.push_back({choice.sequence[i], static_cast<int>(LockedOf(*choice.parts[i]))});
    }
    locked.pipelines = fusion::LockedOf(choice.lowered.schedule, choice.pipelines);
    if (choice.parts.empty() || choice.tiling.split.has_value()) {
      locked.parts = {choice.tiling};
    } else if (choice.sequence.empty()) {
      for (const auto& part : choice.parts) locked.parts.push_back(part->tiling);
    }
    out_.choices.push_back(std::move(locked));
    structures_.push_back(StructureOf(choice));
    return choice_of_[&choice] = out_.choices.size() - 1;
  }

  static std::string StructureOf(const GroupChoice& choice) {
    if (!choice.sequence.empty() || choice.registered != nullptr) return "";
    if (choice.parts.empty() || choice.tiling.split.has_value()) {
      return StructureHash({&choice.group.smg});
    }
    std::vector<const Smg*> parts;
    for (const auto& part : choice.parts) parts.push_back(&part->group.smg);
    return StructureHash(parts);
  }

  // The launches of a body, which run in every pass; the first group stands for the loop.
  absl::Status AddLoop(LoopId l, std::shared_ptr<const PlannedModel> planned) {
    const PlannedModel& model = *planned;
    const Plan& body = model.plan;
    Plan& plan = out_.plan;
    absl::StatusOr<LoopTensors> tensors =
        AddLoopTensors(program_.op(l), body, places_, *evaluator_, &tensors_);
    if (!tensors.ok()) {
      const NodeId node = program_.op(l).origin;
      return node == kNoNode ? tensors.status() : Annotate(tensors.status(), graph_.Describe(node));
    }
    tensors_.AddLaunch(/*prepare=*/false, tensors->used);
    std::vector<int> kernel_of;
    for (size_t k = 0; k < body.kernels.size(); ++k) {
      kernel_of.push_back(KernelOf(model.kernels[k], body.kernels[k]));
    }
    const auto first_group = static_cast<int>(plan.groups.size());
    for (const PlanGroup& of_body : body.groups) {
      PlanGroup group = of_body;
      group.kernel = kernel_of[static_cast<size_t>(group.kernel)];
      plan.groups.push_back(std::move(group));
      out_.groups.emplace_back();
      out_.choice_of.push_back(-1);
    }
    const int stands_for_it = first_group + body.launches[0].group;
    out_.groups[static_cast<size_t>(stands_for_it)] = {l};
    out_.bodies[stands_for_it] = std::move(planned);
    out_.inner.resize(out_.groups.size(), false);
    std::fill(out_.inner.begin() + first_group, out_.inner.end(), true);
    const auto first_launch = static_cast<int>(plan.launches.size());
    for (auto launches : {&Plan::prepare, &Plan::launches}) {
      for (PlanLaunch launch : body.*launches) {
        launch.group += first_group;
        launch.kernel = kernel_of[static_cast<size_t>(launch.kernel)];
        for (int& t : launch.tensors) t = tensors->of_body[static_cast<size_t>(t)];
        (plan.*launches).push_back(std::move(launch));
      }
    }
    tensors->loop.first = first_launch;
    tensors->loop.launches = static_cast<int>(body.launches.size());
    plan.loops.push_back(tensors->loop);
    int inner_places = 0;
    for (const PlanLoop& inner : body.loops) {
      plan.loops.push_back(MovedLoop(inner, *tensors, places_, first_launch));
      inner_places += static_cast<int>(inner.places());
    }
    places_ += tensors->places + inner_places;
    TellDecisions(body, first_group);
    TellRegistered(model);
    TellSkipped(model);
    return absl::OkStatus();
  }

  // The ledger entries of a body's groups; its other entries are only counted.
  void TellDecisions(const Plan& body, int first_group) {
    out_.inner_candidates += body.candidates;
    for (const PlanDecision& of_body : body.decisions) {
      if (of_body.subject == DecisionSubject::kCandidate) continue;
      PlanDecision decision = of_body;
      for (DecisionPlace& place : decision.places) {
        for (int* group : {&place.first_group, &place.second_group}) {
          if (*group >= 0) *group += first_group;
        }
        for (int& group : place.between) group += first_group;
      }
      out_.inner_decisions.push_back(std::move(decision));
    }
  }

  // Fallbacks and notes of a body; all of them refer to the one node that repeats it.
  void TellRegistered(const PlannedModel& body) {
    out_.notes.insert(out_.notes.end(), body.notes.begin(), body.notes.end());
    std::vector<PlanFallback>& known = out_.plan.fallbacks;
    for (const PlanFallback& fallback : body.plan.fallbacks) {
      auto same = [&](const PlanFallback& other) {
        return other.node == fallback.node && other.registered == fallback.registered;
      };
      if (fallback.registered.empty() || std::any_of(known.begin(), known.end(), same)) continue;
      known.push_back(fallback);
    }
  }

  // Program passes that were left out for a body.
  void TellSkipped(const PlannedModel& body) {
    std::vector<SkippedPass>& known = out_.plan.skipped_passes;
    for (const SkippedPass& skipped : body.plan.skipped_passes) {
      auto same = [&](const SkippedPass& other) { return other.pass == skipped.pass; };
      if (std::none_of(known.begin(), known.end(), same)) known.push_back(skipped);
    }
  }

  absl::Status AddGroup(const SequentialPhases& sequence) {
    ASSIGN_OR_RETURN(const GroupChoice* found, evaluator_->ChooseSequential(sequence));
    const std::vector<LoopId> loops = UnionOf(sequence);
    const GroupChoice& choice = *found;
    if (choice.body != nullptr) return AddLoop(loops[0], choice.body);
    bool prepare = evaluator_->AreConstant(loops);
    std::vector<int> tensors;
    std::vector<ValueId> values = evaluator_->Values(loops);
    for (size_t p = 0; p < choice.lowered.params.size(); ++p) {
      const LoweredParam& param = choice.lowered.params[p];
      ValueId value = values[static_cast<size_t>(param.value)];
      auto [of, q] = choice.OriginOf(p);
      tensors.push_back(param.packed ? PackedTensor(*of, q, value) : tensors_.Of(value));
    }
    int& kernel = kernel_of_choice_.try_emplace({&choice, -1}, -1).first->second;
    if (kernel < 0) {
      kernel = KernelOf(
          choice.lowered.schedule,
          [&] { return MakeReference(choice.program, choice.group, choice.lowered); },
          choice.registered);
    }
    if (!prepare) tensors_.NoteInPlace(choice.lowered.schedule, tensors);
    tensors_.AddLaunch(prepare, tensors);
    PlanGroup group{.kind = prepare ? GroupKind::kPrepare : KindOf(choice),
                    .label = choice.lowered.schedule.label,
                    .kernel = kernel,
                    .estimate = choice.estimate,
                    .derivation = DerivationOf(choice)};
    if (choice.registered != nullptr) group.registered = choice.registered->kernel->name();
    std::set<int> nodes;
    for (LoopId l : loops) nodes.insert(program_.op(l).origin);
    nodes.erase(kNoNode);  // copies an input or a constant to an output
    group.nodes.assign(nodes.begin(), nodes.end());
    const size_t locked = LockedOf(choice);
    group.structure = structures_[locked];
    out_.plan.groups.push_back(std::move(group));
    out_.groups.push_back(loops);
    out_.choice_of.push_back(static_cast<int>(locked));
    (prepare ? out_.plan.prepare : out_.plan.launches)
        .push_back({.group = static_cast<int>(out_.plan.groups.size()) - 1,
                    .kernel = kernel,
                    .tensors = std::move(tensors)});
    return absl::OkStatus();
  }

  // Nodes that became index maps belong to the group that reads through them.
  void AttachViews() {
    std::vector<int> group_of(graph_.nodes().size(), -1);
    for (size_t g = 0; g < out_.plan.groups.size(); ++g) {
      for (int n : out_.plan.groups[g].nodes)
        group_of[static_cast<size_t>(n)] = static_cast<int>(g);
    }
    std::vector<std::vector<size_t>> readers(graph_.tensors().size());
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      for (TensorId t : graph_.nodes()[n].inputs) {
        if (t != kNoTensor) readers[static_cast<size_t>(t)].push_back(n);
      }
    }
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      if (group_of[n] >= 0) continue;
      for (TensorId t : graph_.nodes()[n].outputs) {
        for (size_t reader : readers[static_cast<size_t>(t)]) {
          if (group_of[n] < 0) group_of[n] = group_of[reader];
        }
      }
      if (group_of[n] < 0 && !graph_.nodes()[n].inputs.empty()) {
        // An output that is a view: with the node that writes it.
        TensorId in = graph_.nodes()[n].inputs[0];
        NodeId producer = in == kNoTensor ? kNoNode : graph_.tensor(in).producer;
        if (producer != kNoNode) group_of[n] = group_of[static_cast<size_t>(producer)];
      }
      if (group_of[n] < 0) continue;
      std::vector<int>& nodes = out_.plan.groups[static_cast<size_t>(group_of[n])].nodes;
      nodes.insert(std::lower_bound(nodes.begin(), nodes.end(), static_cast<int>(n)),
                   static_cast<int>(n));
    }
  }

  const Graph& graph_;
  const ProgramOf of_;
  const Program& program_;
  GroupEvaluator* evaluator_;
  const Grouping& grouping_;
  PlannedModel& out_;
  TensorTable tensors_;
  int places_ = 0;  // of the loops so far
  std::map<std::string, int> kernel_of_;
  // Equal groups share their choice: its kernel (-1), or the one that packs a param.
  std::map<std::pair<const GroupChoice*, int>, int> kernel_of_choice_;
  std::map<std::pair<ValueId, int>, int> packed_;
  // By choice: its position in out_.choices and in structures_. Only for lookup: iteration order
  // depends on addresses.
  std::map<const GroupChoice*, size_t> choice_of_;
  std::vector<std::string> structures_;
};

}  // namespace

absl::Status Assemble(const Graph& graph, ProgramOf of, const Grouping& grouping,
                      GroupEvaluator* evaluator, PlannedModel* model) {
  return Assembler(graph, of, model->program, evaluator, grouping, model).Run();
}

}  // namespace fusion
