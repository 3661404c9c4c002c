#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/threads/job.h"
#include "core/graph/program/half_precision.h"
#include "core/plan/cost/evaluator.h"
#include "core/plan/cost/split_choice.h"
#include "core/plan/sets/loop_sets.h"
#include "core/plan/sets/planned_model.h"
#include "core/schedule/ir/join.h"
#include "core/schedule/lower/opaque.h"
#include "core/schedule/memory/scratch.h"

namespace fusion {
namespace {

// Schedules are cached up to this many ops, some tens of megabytes, so that the chosen ones need
// not be made again. Beyond it, the groups of the plan are scheduled a second time.
constexpr size_t kMostKeptOps = 16384;

// Adds an estimate multiplied by the number of runs.
void AddRuns(const Estimate& one, double runs, Estimate* sum) {
  auto whole = [runs](int64_t value) {
    return static_cast<int64_t>(std::min(static_cast<double>(value) * runs, 0x1p62));
  };
  sum->time_us += one.time_us * runs;
  sum->compute_us += one.compute_us * runs;
  sum->product_us += one.product_us * runs;
  sum->memory_us += one.memory_us * runs;
  sum->off_chip_us += one.off_chip_us * runs;
  sum->local_us += one.local_us * runs;
  sum->stall_us += one.stall_us * runs;
  sum->launch_us += one.launch_us * runs;
  sum->tiling_loss_us += one.tiling_loss_us * runs;
  sum->flops += one.flops * runs;
  sum->activation_bytes += whole(one.activation_bytes);
  sum->recompute_bytes += whole(one.recompute_bytes);
  sum->weight_bytes += whole(one.weight_bytes);
  sum->on_chip_bytes = std::max(sum->on_chip_bytes, one.on_chip_bytes);
  sum->tasks = std::max(sum->tasks, one.tasks);
  sum->waves = std::max(sum->waves, one.waves);
}

}  // namespace

void GroupEvaluator::SetTerms(const Schedule& schedule, const Estimate& estimate,
                              GroupVerdict* verdict) const {
  verdict->estimate = estimate;
  verdict->phases = CountPhases(schedule);
  verdict->run_bytes = PlanWorkspace(schedule, device_.alignment).bytes;
  // Explicit memory on chip is not memory of the run.
  if (!device_.explicit_memory) verdict->run_bytes += device_.threads * estimate.on_chip_bytes;
}

absl::StatusOr<GroupEvaluator::Known*> GroupEvaluator::Find(const std::vector<LoopId>& loops) {
  auto known = known_.find(Key(loops));
  if (known == known_.end()) {
    std::vector<int> key = key_;  // a copy: the search overwrites key_
    Known found;
    found.verdict.refusal = rules_.Forbids(loops);
    if (found.verdict.refusal.empty()) found.verdict.refusal = registered_.Forbids(loops);
    if (found.verdict.refusal.empty() && HasRepeat(program_, loops)) {
      ASSIGN_OR_RETURN(found, FindRepeat(loops));
    } else if (found.verdict.refusal.empty()) {
      ASSIGN_OR_RETURN(found, Search(loops, /*whole=*/false));
      found.verdict.factor = rules_.Factor(loops);
      if (const auto* matches = registered_.Of(loops)) WeighRegistered(loops, *matches, &found);
    }
    const bool again = found.choice != nullptr && found.choice->body == nullptr;
    if (again && kept_ops_ + loops.size() > kMostKeptOps) found.choice = nullptr;
    if (found.choice != nullptr) kept_ops_ += loops.size();
    known = known_.emplace(std::move(key), std::move(found)).first;
  }
  return &known->second;
}

absl::StatusOr<GroupEvaluator::Known> GroupEvaluator::FindRepeat(const std::vector<LoopId>& loops) {
  if (loops.size() == 1) return RepeatBy(loops[0], nullptr);
  Known known;
  known.verdict.refusal = Refuse(RefusalCode::kLoop, "a part is a loop, whose ",
                                 "launches run once in every pass, and by themselves");
  return known;
}

absl::StatusOr<GroupEvaluator::Known> GroupEvaluator::RepeatBy(
    LoopId repeat, std::shared_ptr<const PlanLock> lock) {
  Known known;
  FUSION_CHECK(plan_body_ != nullptr, "a program with repeats is planned with their bodies");
  auto choice = std::make_shared<GroupChoice>();
  ASSIGN_OR_RETURN(choice->body, plan_body_(program_.op(repeat), std::move(lock)));
  const Plan& body = choice->body->plan;
  const int64_t passes = program_.op(repeat).loop->counted_passes();
  const std::vector<int64_t> runs = CountedRuns(body);
  for (size_t l = 0; l < body.launches.size(); ++l) {
    const PlanGroup& group = body.groups[static_cast<size_t>(body.launches[l].group)];
    AddRuns(group.estimate, static_cast<double>(passes) * static_cast<double>(runs[l]),
            &choice->estimate);
    known.verdict.phases += body.kernels[static_cast<size_t>(body.launches[l].kernel)].phases;
  }
  known.verdict.estimate = choice->estimate;
  known.verdict.run_bytes = body.arena_bytes;
  known.verdict.factor = rules_.Factor({repeat});
  known.choice = std::move(choice);
  return known;
}

absl::StatusOr<const GroupChoice*> GroupEvaluator::Choose(const std::vector<LoopId>& loops) {
  RETURN_IF_ERROR(CheckCancel());
  ASSIGN_OR_RETURN(Known * known, Find(loops));
  ASSIGN_OR_RETURN(known->choice, ChoiceOf(loops, *known));
  return known->choice.get();
}

absl::StatusOr<std::shared_ptr<const GroupChoice>> GroupEvaluator::ChoiceOf(
    const std::vector<LoopId>& loops, const Known& known) {
  FUSION_CHECK(known.verdict.refusal.empty(), "a group of a plan has a schedule");
  if (known.choice != nullptr) return known.choice;
  if (known.verdict.registered != nullptr) {
    return ChoiceOfRegistered(*known.verdict.registered, known.verdict.estimate);
  }
  ASSIGN_OR_RETURN(Known again, Search(loops, /*whole=*/true));
  return again.choice;
}

absl::StatusOr<std::shared_ptr<GroupChoice>> GroupEvaluator::ChoiceOfOpaque(LoopId opaque) const {
  auto made = std::make_shared<GroupChoice>();
  std::vector<ValueId> values;
  std::vector<bool> outside;
  ProgramOf({opaque}, kNoValue, &values, &outside, &made->program);
  std::vector<bool> constant;
  for (ValueId v : values) constant.push_back(constant_[static_cast<size_t>(v)]);
  ASSIGN_OR_RETURN(OpaqueKernel kernel,
                   LowerOpaque(made->program, constant, device_,
                               {.bitwise = Candidates().bitwise, .open = program_.open_dims}));
  made->group = std::move(kernel.group);
  made->lowered = std::move(kernel.lowered);
  made->estimate = EstimateKernel(made->lowered.schedule, device_);
  return made;
}

absl::StatusOr<GroupEvaluator::Known> GroupEvaluator::FindOpaque(const std::vector<LoopId>& loops) {
  Known known;
  if (loops.size() > 1) {
    auto opaque = std::find_if(loops.begin(), loops.end(),
                               [&](LoopId l) { return program_.op(l).kind == LoopOp::kOpaque; });
    known.verdict.refusal =
        Refuse(RefusalCode::kOpaque, program_.op(*opaque).label, " is a kernel of its own");
    return known;
  }
  absl::StatusOr<std::shared_ptr<GroupChoice>> made = ChoiceOfOpaque(loops[0]);
  if (!made.ok()) {
    known.verdict.refusal = RefusalFrom(Message(made.status()));
    return known;
  }
  SetTerms((*made)->lowered.schedule, (*made)->estimate, &known.verdict);
  known.choice = *std::move(made);
  return known;
}

absl::StatusOr<GroupEvaluator::Known> GroupEvaluator::Search(const std::vector<LoopId>& loops,
                                                             bool whole,
                                                             std::optional<ValueId> without) {
  const ValueId unneeded = without.value_or(kNoValue);
  if (HasOpaque(program_, loops)) return FindOpaque(loops);
  std::vector<std::vector<LoopId>> parts = Parts(loops);
  // With more parts than this, running them sequentially in one task is better.
  if (parts.size() < 2 || parts.size() > kMostBeside) return SearchWhole(loops, unneeded);
  ASSIGN_OR_RETURN(Known apart, SearchSideBySide(loops, parts, whole, without));
  const bool fits = apart.verdict.refusal.empty();
  const Estimate& estimate = apart.verdict.estimate;
  if (fits && estimate.tasks > static_cast<int64_t>(parts.size())) return apart;
  ASSIGN_OR_RETURN(Known together, SearchWhole(loops, unneeded));
  bool better = together.verdict.refusal.empty() &&
                (!fits || together.verdict.estimate.time_us <= estimate.time_us);
  return better ? together : apart;
}

absl::StatusOr<GroupEvaluator::Known> GroupEvaluator::SearchSideBySide(
    const std::vector<LoopId>& loops, const std::vector<std::vector<LoopId>>& parts, bool whole,
    std::optional<ValueId> without) {
  Known known;
  Choices made;
  for (const std::vector<LoopId>& part : parts) {
    if (without.has_value()) {
      ASSIGN_OR_RETURN(Known free, SearchWhole(part, *without));
      if (!free.verdict.refusal.empty()) return free;
      made.push_back(std::move(free.choice));
      continue;
    }
    ASSIGN_OR_RETURN(const GroupVerdict* verdict, Evaluate(part));
    if (!verdict->refusal.empty()) {
      known.verdict.refusal = verdict->refusal;
      return known;
    }
    if (verdict->registered != nullptr) {
      known.verdict.refusal =
          Refuse(RefusalCode::kSideBySide, "a part is the registered kernel ",
                 Quote(verdict->registered->kernel->name()), ", a launch of its own");
      return known;
    }
    ASSIGN_OR_RETURN(const Known* of_part, Find(part));
    ASSIGN_OR_RETURN(std::shared_ptr<const GroupChoice> choice, ChoiceOf(part, *of_part));
    made.push_back(std::move(choice));
  }
  return Join(loops, parts, std::move(made), whole);
}

GroupEvaluator::Joining GroupEvaluator::NameParams(const SequentialPhases& parts,
                                                   const Choices& made) {
  Joining joining;
  int packed = -1;
  for (size_t i = 0; i < parts.size(); ++i) {
    joining.values.push_back(Values(parts[i]));
    joining.names.emplace_back();
    for (const LoweredParam& param : made[i]->lowered.params) {
      // Packed forms of one value may differ.
      joining.names.back().push_back(
          param.packed ? packed-- : joining.values.back()[static_cast<size_t>(param.value)]);
    }
    joining.schedules.push_back(&made[i]->lowered.schedule);
  }
  return joining;
}

GroupEvaluator::Known GroupEvaluator::Join(const std::vector<LoopId>& loops,
                                           const std::vector<std::vector<LoopId>>& parts,
                                           Choices made, bool whole) {
  Known known;
  Joining joining = NameParams(parts, made);
  auto joined = PutSideBySide(joining.schedules, joining.names);
  if (!joined.ok()) {
    known.verdict.refusal = RefusalFrom(Message(joined.status()));
    return known;
  }
  auto choice = std::make_shared<GroupChoice>();
  choice->parts = std::move(made);
  choice->estimate = EstimateKernel(joined->schedule, device_);
  SetTerms(joined->schedule, choice->estimate, &known.verdict);
  if (!whole) return known;
  choice->source = std::move(joined->source);
  choice->lowered.schedule = std::move(joined->schedule);
  Complete(loops, parts, joining.values, choice.get());
  known.choice = std::move(choice);
  return known;
}

void GroupEvaluator::Complete(const std::vector<LoopId>& loops, const SequentialPhases& parts,
                              const std::vector<std::vector<ValueId>>& values_of_parts,
                              GroupChoice* choice) const {
  std::vector<ValueId> values;
  choice->program = ExtractProgram(program_, loops, &values);
  std::map<ValueId, ValueId> local;  // of the whole program's value
  for (size_t v = 0; v < values.size(); ++v) local[values[v]] = static_cast<ValueId>(v);
  // A value that one part passes to another is rounded like any value that is needed outside.
  std::vector<bool> outside(values.size(), false);
  for (const std::vector<LoopId>& part : parts) {
    for (LoopId l : part) {
      const ValueId v = program_.op(l).output;
      if (NeededOutside(v, part)) outside[static_cast<size_t>(local.at(v))] = true;
    }
  }
  Rounded(outside, &choice->program);
  for (const auto& [i, p] : choice->source) {
    const GroupChoice& part = *choice->parts[static_cast<size_t>(i)];
    LoweredParam param = part.lowered.params[static_cast<size_t>(p)];
    const ValueId of_part = param.value;
    param.value = local.at(values_of_parts[static_cast<size_t>(i)][static_cast<size_t>(of_part)]);
    if (param.packed) {
      const TensorView& view = part.group.view(of_part);
      // In elements from the start: parts may see the value under other dims.
      IndexExpr flat(0);
      for (size_t d = 0; d < param.source.size(); ++d) {
        flat = flat + param.source[d] * view.strides[d];
      }
      param.source = {flat};
      choice->group.views[param.value] = {
          .dtype = view.dtype, .shape = {}, .strides = {1}, .constant = true};
    }
    if (param.output) choice->group.outputs.push_back(param.value);
    choice->lowered.params.push_back(std::move(param));
  }
  std::sort(choice->group.outputs.begin(), choice->group.outputs.end());
}

std::vector<LoopId> GroupEvaluator::ProgramOf(const std::vector<LoopId>& loops, ValueId unneeded,
                                              std::vector<ValueId>* values,
                                              std::vector<bool>* outside, Program* program) const {
  *program = ExtractProgram(program_, loops, values);
  for (ValueId v : *values) outside->push_back(v != unneeded && NeededOutside(v, loops));
  return Rounded(*outside, program);
}

std::vector<LoopId> GroupEvaluator::Rounded(const std::vector<bool>& outside,
                                            Program* program) const {
  if (options_.numerics != Numerics::kBitwise) return KeepWide(outside, program);
  std::vector<LoopId> all(program->ops.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Refusal GroupEvaluator::Extract(const std::vector<LoopId>& loops, ValueId unneeded,
                                GroupChoice* out) const {
  std::vector<ValueId> values;
  std::vector<bool> outside;
  const std::vector<LoopId> all = ProgramOf(loops, unneeded, &values, &outside, &out->program);
  std::vector<bool> constant;
  for (ValueId v : values) constant.push_back(constant_[static_cast<size_t>(v)]);
  auto group = MakeGroup(out->program, all, outside, constant);
  if (!group.ok()) return RefusalFrom(Message(group.status()));
  out->group = *std::move(group);
  out->group.flushes = options_.numerics == Numerics::kFast;
  return {};
}

absl::StatusOr<GroupEvaluator::Known> GroupEvaluator::SearchWhole(const std::vector<LoopId>& loops,
                                                                  ValueId unneeded) {
  scheduled_ops_ += static_cast<int64_t>(loops.size());
  Known known;
  auto best = std::make_shared<GroupChoice>();
  known.verdict.refusal = Extract(loops, unneeded, best.get());
  if (!known.verdict.refusal.empty()) return known;
  CandidateOptions options = Candidates();
  absl::StatusOr<BestSchedule> schedule = FindBestSchedule(best->group, device_, options, cancel_);
  if (WasGivenUp(schedule.status())) return schedule.status();
  if (!schedule.ok()) {
    known.verdict.refusal = RefusalFrom(Message(schedule.status()));
    return known;
  }
  best->lowered = std::move(schedule->lowered);
  best->tiling = std::move(schedule->tiling);
  best->estimate = schedule->estimate;
  ASSIGN_OR_RETURN(std::shared_ptr<GroupChoice> split,
                   ChooseSplit(best->group, device_, options, best->estimate, cancel_));
  if (split != nullptr) {
    // Its phases number values as the group does.
    std::vector<ValueId> values = Values(loops);
    Complete(loops, {loops}, {values, values}, split.get());
    best = std::move(split);
  }
  SetTerms(best->lowered.schedule, best->estimate, &known.verdict);
  known.choice = std::move(best);
  return known;
}

}  // namespace fusion
