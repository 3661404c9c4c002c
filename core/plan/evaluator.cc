#include "core/plan/evaluator.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/job.h"
#include "core/graph/halves.h"
#include "core/op/repeat.h"
#include "core/plan/loop_sets.h"
#include "core/plan/pin.h"
#include "core/plan/planner.h"
#include "core/plan/split_choice.h"
#include "core/schedule/join.h"
#include "core/schedule/legality.h"
#include "core/schedule/opaque.h"
#include "core/schedule/scratch.h"
#include "core/schedule/split_group.h"

namespace fusion {
namespace {

// Schedules are kept for the one that will be chosen; some tens of megabytes. Beyond that what was
// found is found again for the groups of the plan.
constexpr size_t kMostKeptOps = 16384;
// Sets that run side by side in one launch.
constexpr size_t kMostBeside = 16;

// Adds an estimate as often as it holds.
void AddRuns(const Estimate& one, double runs, Estimate* sum) {
  auto whole = [runs](int64_t value) {
    return static_cast<int64_t>(std::min(static_cast<double>(value) * runs, 0x1p62));
  };
  sum->time_us += one.time_us * runs;
  sum->compute_us += one.compute_us * runs;
  sum->product_us += one.product_us * runs;
  sum->memory_us += one.memory_us * runs;
  sum->off_chip_us += one.off_chip_us * runs;
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

// What lies in memory with room, or as a caller says, is read with other strides.
std::string MemoryText(const Value& value) {
  if (!value.strides.empty()) return StrCat("strides", DimsToString(value.strides));
  return value.room ? StrCat("room", value.room->dim, ":", value.room->capacity) : "";
}

}  // namespace

std::pair<const GroupChoice*, size_t> GroupChoice::OriginOf(size_t p) const {
  if (parts.empty()) return {this, p};
  const auto& [part, param] = source[p];
  return parts[static_cast<size_t>(part)]->OriginOf(static_cast<size_t>(param));
}

GroupEvaluator::GroupEvaluator(const Program& program, const DeviceSpec& device,
                               const PlanOptions& options, const CancelToken* cancel,
                               PlanBody plan_body)
    : program_(program),
      device_(device),
      options_(options),
      cancel_(cancel),
      plan_body_(std::move(plan_body)) {
  // What the program returns must be computed by every run, into memory of the caller; so must what
  // is made from it.
  returned_.assign(program.values.size(), false);
  for (ValueId v : program.outputs) returned_[static_cast<size_t>(v)] = true;
  for (size_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].lies_in != kNoValue) returned_[v] = true;
  }
  constant_ = KnownBeforeRuns(program);
  readers_.resize(program.values.size());
  number_.assign(program.values.size(), -1);
  part_.assign(program.ops.size(), -1);
  set_.assign(program.ops.size(), 0);
  for (size_t v = 0; v < program.values.size(); ++v) {
    const TensorType& type = program.values[v].type;
    bytes_.push_back(NumElements(type.shape.ToDims()) * DTypeBytes(type.dtype));
  }
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const LoopOp& op = program.ops[i];
    bool reinterpreted = false;
    for (ValueId in : op.inputs) {
      LoopId producer = program.value(in).producer;
      reinterpreted |= producer != kNoLoop && program.op(producer).IsAlias();
      readers_[static_cast<size_t>(in)].push_back(static_cast<LoopId>(i));
    }
    reads_reinterpreted_.push_back(reinterpreted);
  }
  ClassifyOps();
  reinterpreted_.refusal =
      Refuse(RefusalCode::kReshape, "read under a shape without common factors, so from memory");
}

void GroupEvaluator::SetTerms(const Schedule& schedule, const Estimate& estimate,
                              GroupVerdict* verdict) const {
  verdict->estimate = estimate;
  verdict->phases = CountPhases(schedule);
  verdict->run_bytes = PlanWorkspace(schedule, device_.alignment).bytes;
  // Memory that a kernel fills itself is not memory of the run.
  if (!device_.explicit_memory) verdict->run_bytes += device_.threads * estimate.on_chip_bytes;
}

void GroupEvaluator::ClassifyOps() {
  std::map<std::string, int> classes;
  for (const LoopOp& op : program_.ops) {
    auto name = [](int axis) { return StrCat("d", axis); };  // a bare number would be a constant
    std::string text = StrCat(op.label, op.kind);
    for (const LoopAxis& axis : op.body.axes)
      text += StrCat(" ", axis.name, ":", axis.extent.value());
    text += IndexMapToString(op.body.write, name);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Value& v = program_.value(op.inputs[i]);
      text += StrCat(v.type.ToString(), StrJoin(v.order, ","), MemoryText(v),
                     constant_[static_cast<size_t>(op.inputs[i])]);
      if (op.kind != LoopOp::kLoop) continue;
      const Read& read = op.body.reads[i];
      text += IndexMapToString(read.index, name);
      for (const Guard& g : read.guards) text += StrCat("?", g.axis, ":", g.begin, ":", g.end);
    }
    if (op.kind == LoopOp::kLoop) text += op.body.value.ToString();
    if (op.kind == LoopOp::kRepeat) {
      // Rules look at what the body is made from.
      text += LoopToString(op);
      if (op.loop->source != nullptr) text += ToString(*op.loop->source);
    }
    if (op.kind == LoopOp::kOpaque) text += op.attrs->ToString();
    if (op.body.reduce) text += op.body.reduce->name();
    const Value& out = program_.value(op.output);
    text += StrCat(StrJoin(out.order, ","), MemoryText(out), out.tensor == kNoTensor,
                   constant_[static_cast<size_t>(op.output)]);
    class_of_op_.push_back(
        classes.try_emplace(std::move(text), static_cast<int>(classes.size())).first->second);
  }
}

bool GroupEvaluator::NeededOutside(ValueId v, const std::vector<LoopId>& loops) const {
  if (returned_[static_cast<size_t>(v)]) return true;
  const std::vector<LoopId>& readers = readers_[static_cast<size_t>(v)];
  return std::any_of(readers.begin(), readers.end(), [&](LoopId reader) {
    return !std::binary_search(loops.begin(), loops.end(), reader);
  });
}

int64_t GroupEvaluator::KeptBytes(const std::vector<LoopId>& loops) const {
  int64_t bytes = 0;
  for (LoopId l : loops) {
    ValueId v = program_.op(l).output;
    if (IsReturned(v) || IsConstant(v) || !NeededOutside(v, loops)) continue;
    bytes += bytes_[static_cast<size_t>(v)];
  }
  return bytes;
}

const std::vector<int>& GroupEvaluator::Key(const std::vector<LoopId>& loops) {
  std::vector<int>& key = key_;
  std::vector<ValueId>& numbered = numbered_;
  key.clear();
  numbered.clear();
  auto number = [&](ValueId v) {
    int& at = number_[static_cast<size_t>(v)];
    if (at < 0) {
      at = static_cast<int>(numbered.size());
      numbered.push_back(v);
    }
    return at;
  };
  ++sets_;
  for (LoopId l : loops) set_[static_cast<size_t>(l)] = sets_;
  auto outside = [&](LoopId l) { return set_[static_cast<size_t>(l)] != sets_; };
  for (LoopId l : loops) {
    const LoopOp& op = program_.op(l);
    key.push_back(class_of_op_[static_cast<size_t>(l)]);
    for (ValueId in : op.inputs) key.push_back(number(in));
    number(op.output);
    auto out = static_cast<size_t>(op.output);
    bool needed =
        returned_[out] || std::any_of(readers_[out].begin(), readers_[out].end(), outside);
    key.push_back(needed ? -2 : -1);
  }
  for (ValueId v : numbered) number_[static_cast<size_t>(v)] = -1;
  rules_.AppendKey(loops, &key);
  registered_.AppendKey(loops, &key);
  return key;
}

std::vector<ValueId> GroupEvaluator::Values(const std::vector<LoopId>& loops) {
  // In the order of ExtractProgram.
  std::vector<ValueId> values;
  auto add = [&](ValueId v) {
    int& at = number_[static_cast<size_t>(v)];
    if (at >= 0) return;
    at = static_cast<int>(values.size());
    values.push_back(v);
  };
  for (LoopId l : loops) {
    for (ValueId in : program_.op(l).inputs) add(in);
    add(program_.op(l).output);
  }
  for (ValueId v : values) number_[static_cast<size_t>(v)] = -1;
  return values;
}

bool GroupEvaluator::AreConstant(const std::vector<LoopId>& loops) const {
  return std::all_of(loops.begin(), loops.end(),
                     [&](LoopId l) { return IsConstant(program_.op(l).output); });
}

bool GroupEvaluator::ReadsReinterpreted(const std::vector<LoopId>& loops) const {
  auto inside = [&](LoopId l) { return std::binary_search(loops.begin(), loops.end(), l); };
  for (LoopId l : loops) {
    if (!reads_reinterpreted_[static_cast<size_t>(l)]) continue;
    for (ValueId in : program_.op(l).inputs) {
      LoopId producer = program_.value(in).producer;
      if (producer == kNoLoop || !program_.op(producer).IsAlias()) continue;
      while (producer != kNoLoop && program_.op(producer).IsAlias()) {
        producer = program_.value(program_.op(producer).inputs[0]).producer;
      }
      if (producer != kNoLoop && inside(producer)) return true;
    }
  }
  return false;
}

absl::StatusOr<const GroupVerdict*> GroupEvaluator::Evaluate(const std::vector<LoopId>& loops) {
  const LoopOp& last = program_.op(loops.back());
  const AtNode at(last.origin, last.label);
  Job::Step();
  RETURN_IF_ERROR(CheckCancel());
  if (ReadsReinterpreted(loops) && !HasRepeat(program_, loops)) return &reinterpreted_;
  ASSIGN_OR_RETURN(const Known* known, Find(loops));
  return &known->verdict;
}

absl::StatusOr<GroupEvaluator::Known*> GroupEvaluator::Find(const std::vector<LoopId>& loops) {
  auto known = known_.find(Key(loops));
  if (known == known_.end()) {
    std::vector<int> key = key_;  // the search asks for others
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

absl::StatusOr<const GroupVerdict*> GroupEvaluator::EvaluateGenerated(
    const std::vector<LoopId>& loops) {
  if (registered_.Of(loops) == nullptr) return Evaluate(loops);
  RETURN_IF_ERROR(CheckCancel());
  ASSIGN_OR_RETURN(const Known* known, Find(loops));
  return known->generated == nullptr ? &known->verdict : known->generated.get();
}

void GroupEvaluator::WeighRegistered(const std::vector<LoopId>& loops,
                                     const std::vector<RegisteredMatch>& matches,
                                     Known* known) const {
  known->generated = std::make_shared<const GroupVerdict>(known->verdict);
  const bool generated = known->verdict.refusal.empty();
  const Estimate of_code = known->verdict.estimate;
  const RegisteredMatch* best = nullptr;
  Estimate least;
  for (const RegisteredMatch& match : matches) {
    const Estimate estimate =
        EstimateRegistered(match, program_, constant_, generated ? &of_code : nullptr, device_);
    const bool forced = match.kernel->force;
    const bool over = best != nullptr && best->kernel->force;
    const bool worth = forced || !generated || estimate.time_us <= of_code.time_us;
    const bool better =
        best == nullptr || forced > over || (forced == over && estimate.time_us < least.time_us);
    if (!worth || !better) continue;
    best = &match;
    least = estimate;
  }
  if (best == nullptr) return;
  known->choice = ChoiceOfRegistered(*best, least);
  known->verdict = {.registered = best};
  known->verdict.factor = rules_.Factor(loops);
  SetTerms(known->choice->lowered.schedule, least, &known->verdict);
}

std::shared_ptr<const GroupChoice> GroupEvaluator::ChoiceOfRegistered(
    const RegisteredMatch& match, const Estimate& estimate) const {
  auto choice = std::make_shared<GroupChoice>();
  std::vector<ValueId> values;
  std::vector<bool> outside;
  ProgramOf(match.loops, kNoValue, &values, &outside, &choice->program);
  std::map<ValueId, ValueId> local;  // of the whole program's value
  for (size_t v = 0; v < values.size(); ++v) {
    local[values[v]] = static_cast<ValueId>(v);
    if (outside[v] && choice->program.values[v].producer != kNoLoop) {
      choice->group.outputs.push_back(static_cast<ValueId>(v));
    }
  }
  std::vector<Buffer> buffers;
  buffers.reserve(match.params.size());
  for (const RegisteredMatch::Param& param : match.params) {
    const TensorType& type = program_.value(param.value).type;
    const Dims dims = type.shape.ToDims();
    const ParamKind kind = param.output              ? ParamKind::kOutput
                           : IsConstant(param.value) ? ParamKind::kWeight
                                                     : ParamKind::kInput;
    buffers.push_back({.name = StrCat("p", buffers.size()),
                       .level = Level::kGlobal,
                       .dtype = type.dtype,
                       .kind = kind,
                       .shape = dims,
                       .layout = {.strides = RowMajorStrides(dims)}});
    choice->lowered.params.push_back({.value = local.at(param.value), .output = param.output});
  }
  std::string label;
  for (LoopId l : match.loops)
    StrAppend(&label, StrCat(label.empty() ? "" : "+", program_.op(l).label));
  choice->lowered.schedule = RegisteredSchedule(match, std::move(buffers), std::move(label));
  choice->estimate = estimate;
  choice->registered = std::make_shared<const RegisteredMatch>(match);
  return choice;
}

bool GroupEvaluator::IsKnown(const std::vector<LoopId>& loops) {
  return known_.contains(Key(loops)) || ReadsReinterpreted(loops);
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

std::vector<std::vector<LoopId>> GroupEvaluator::Parts(const std::vector<LoopId>& loops) {
  for (size_t i = 0; i < loops.size(); ++i)
    part_[static_cast<size_t>(loops[i])] = static_cast<int>(i);
  std::vector<int> root(loops.size());
  std::iota(root.begin(), root.end(), 0);
  auto find = [&root](int i) {
    while (root[static_cast<size_t>(i)] != i) i = root[static_cast<size_t>(i)];
    return i;
  };
  for (size_t i = 0; i < loops.size(); ++i) {
    for (ValueId v : program_.op(loops[i]).inputs) {
      LoopId producer = program_.value(v).producer;
      int from = producer == kNoLoop ? -1 : part_[static_cast<size_t>(producer)];
      if (from < 0) continue;
      int a = find(from);
      int b = find(static_cast<int>(i));
      root[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  std::vector<std::vector<LoopId>> parts;
  std::vector<int> number(loops.size(), -1);
  for (size_t i = 0; i < loops.size(); ++i) {
    int& at = number[static_cast<size_t>(find(static_cast<int>(i)))];
    if (at < 0) {
      at = static_cast<int>(parts.size());
      parts.emplace_back();
    }
    parts[static_cast<size_t>(at)].push_back(loops[i]);
  }
  for (LoopId l : loops) part_[static_cast<size_t>(l)] = -1;
  return parts;
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
  // So many small pieces are better one after the other in one task.
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

GroupEvaluator::Joining GroupEvaluator::NameParams(const Turns& parts, const Choices& made) {
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

// How `made->group` becomes a kernel, as a cut says that nobody vouches for.
absl::Status GroupEvaluator::CutAs(const LockedCut& cut, GroupChoice* made) const {
  const bool bitwise = Candidates().bitwise;
  const LockUse use = options_.lock == nullptr ? LockUse::kAsIs : options_.lock->use;
  ASSIGN_OR_RETURN(Choice choice, ChoiceFrom(cut, made->group, device_, bitwise, use));
  absl::StatusOr<Lowered> lowered = Lower(made->group, choice, device_, bitwise);
  if (!lowered.ok()) return InvalidArgument("no schedule: ", Message(lowered.status()));
  RETURN_IF_ERROR(Verify(lowered->schedule));
  std::string misfit = Misfit(NeedOnChip(lowered->schedule, device_), device_);
  if (!misfit.empty() && use != LockUse::kMember) return InvalidArgument(misfit);
  made->lowered = *std::move(lowered);
  made->cut = cut;
  if (use != LockUse::kMember) {
    made->cut.extents.clear();
    for (const SmgDim& d : made->group.smg.dims) made->cut.extents.push_back(d.extent);
  }
  made->estimate = EstimateKernel(made->lowered.schedule, device_);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const GroupChoice>> GroupEvaluator::MakePinned(
    const std::vector<LoopId>& loops, const LockedCut& cut) {
  if (HasOpaque(program_, loops)) {
    if (loops.size() > 1) return InvalidArgument("an opaque op is a kernel of its own");
    ASSIGN_OR_RETURN(std::shared_ptr<GroupChoice> opaque, ChoiceOfOpaque(loops[0]));
    return std::shared_ptr<const GroupChoice>(std::move(opaque));
  }
  auto made = std::make_shared<GroupChoice>();
  Refusal refusal = Extract(loops, kNoValue, made.get());
  if (!refusal.empty()) return InvalidArgument("no kernel holds its ops: ", refusal.ToString());
  if (!cut.split.has_value()) {
    RETURN_IF_ERROR(CutAs(cut, made.get()));
    return std::shared_ptr<const GroupChoice>(std::move(made));
  }
  if (Candidates().bitwise) return InvalidArgument("split: sums in index order are not split");
  ASSIGN_OR_RETURN(DimId dim, DimOf("split", cut.split->dim, made->group.smg));
  absl::StatusOr<SplitGroups> groups = SplitGroup(made->group, dim, cut.split->tile);
  if (!groups.ok()) return InvalidArgument("split: ", Message(groups.status()));
  std::vector<std::shared_ptr<const GroupChoice>> phases;
  for (FusionGroup* group : {&groups->partial, &groups->merge}) {
    auto phase = std::make_shared<GroupChoice>();
    phase->group = std::move(*group);
    absl::Status status = CutAs(cut.phases[phases.size()], phase.get());
    if (!status.ok()) return Annotate(status, phases.empty() ? "split.partial" : "split.merge");
    phases.push_back(std::move(phase));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<GroupChoice> joined,
                   JoinPhases(made->group, *cut.split, std::move(phases), device_));
  std::vector<ValueId> values = Values(loops);
  Complete(loops, {loops}, {values, values}, joined.get());
  return std::shared_ptr<const GroupChoice>(std::move(joined));
}

absl::StatusOr<TriedChoice> GroupEvaluator::Try(const std::vector<LoopId>& loops,
                                                const LockedChoice& choice) {
  RETURN_IF_ERROR(CheckCancel());
  if (ReadsReinterpreted(loops)) return InvalidArgument(reinterpreted_.refusal.ToString());
  std::vector<std::vector<LoopId>> parts = {loops};
  if (choice.parts.size() != 1) parts = Parts(loops);
  if (choice.parts.size() != parts.size() || parts.size() > kMostBeside) {
    return InvalidArgument("choice: cuts for ", choice.parts.size(), " parts; the ops fall into ",
                           parts.size(), ", at most ", kMostBeside, " run side by side");
  }
  Choices made;
  for (size_t i = 0; i < parts.size(); ++i) {
    absl::StatusOr<std::shared_ptr<const GroupChoice>> part = MakePinned(parts[i], choice.parts[i]);
    if (!part.ok()) return Annotate(part.status(), StrCat("choice.parts[", i, "]"));
    made.push_back(*std::move(part));
  }
  return TryBeside(loops, parts, std::move(made));
}

absl::StatusOr<TriedChoice> GroupEvaluator::TryBeside(const std::vector<LoopId>& loops,
                                                      const std::vector<std::vector<LoopId>>& parts,
                                                      Choices made) {
  TriedChoice tried;
  if (parts.size() == 1) {
    SetTerms(made[0]->lowered.schedule, made[0]->estimate, &tried.verdict);
    tried.choice = std::move(made[0]);
    return tried;
  }
  Known known = Join(loops, parts, std::move(made), /*whole=*/true);
  if (!known.verdict.refusal.empty()) {
    return InvalidArgument("choice: ", known.verdict.refusal.ToString());
  }
  return TriedChoice{std::move(known.choice), std::move(known.verdict)};
}

absl::Status GroupEvaluator::Pin(const std::vector<LoopId>& loops, const LockedChoice& choice) {
  ASSIGN_OR_RETURN(TriedChoice tried, Try(loops, choice));
  known_[Key(loops)] = {.verdict = std::move(tried.verdict), .choice = std::move(tried.choice)};
  return absl::OkStatus();
}

absl::Status GroupEvaluator::PinRepeat(LoopId repeat, std::shared_ptr<const PlanLock> lock) {
  RETURN_IF_ERROR(CheckCancel());
  ASSIGN_OR_RETURN(Known known, RepeatBy(repeat, std::move(lock)));
  known_[Key({repeat})] = std::move(known);
  return absl::OkStatus();
}

void GroupEvaluator::Complete(const std::vector<LoopId>& loops, const Turns& parts,
                              const std::vector<std::vector<ValueId>>& values_of_parts,
                              GroupChoice* choice) const {
  std::vector<ValueId> values;
  choice->program = ExtractProgram(program_, loops, &values);
  std::map<ValueId, ValueId> local;  // of the whole program's value
  for (size_t v = 0; v < values.size(); ++v) local[values[v]] = static_cast<ValueId>(v);
  // What one part hands to the next is rounded as for others.
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

absl::StatusOr<GroupVerdict> GroupEvaluator::EvaluateWithout(const std::vector<LoopId>& loops,
                                                             ValueId unneeded) {
  RETURN_IF_ERROR(CheckCancel());
  if (HasRepeat(program_, loops)) {
    ASSIGN_OR_RETURN(Known repeat, FindRepeat(loops));
    return std::move(repeat.verdict);
  }
  if (ReadsReinterpreted(loops)) return reinterpreted_;
  ASSIGN_OR_RETURN(Known found, Search(loops, /*whole=*/false, unneeded));
  return std::move(found.verdict);
}

std::optional<FitProbe> GroupEvaluator::Probe(const std::vector<LoopId>& loops) const {
  if (!device_.explicit_memory || ReadsReinterpreted(loops) || HasRepeat(program_, loops) ||
      HasOpaque(program_, loops)) {
    return std::nullopt;
  }
  GroupChoice alone;
  if (!Extract(loops, kNoValue, &alone).empty()) return std::nullopt;
  return ProbeFit(alone.group, device_, Candidates());
}

CandidateOptions GroupEvaluator::Candidates() const {
  return {.forbid_recompute = IsHighPressure(options_.hints.compute_pressure),
          .bitwise = options_.numerics == Numerics::kBitwise};
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
  best->cut = std::move(schedule->cut);
  best->estimate = schedule->estimate;
  ASSIGN_OR_RETURN(std::shared_ptr<GroupChoice> split,
                   ChooseSplit(best->group, device_, options, best->estimate, cancel_));
  if (split != nullptr) {
    // Its phases name values as the group does.
    std::vector<ValueId> values = Values(loops);
    Complete(loops, {loops}, {values, values}, split.get());
    best = std::move(split);
  }
  SetTerms(best->lowered.schedule, best->estimate, &known.verdict);
  known.choice = std::move(best);
  return known;
}

}  // namespace fusion
