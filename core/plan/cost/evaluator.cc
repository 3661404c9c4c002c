#include "core/plan/cost/evaluator.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/threads/job.h"
#include "core/op/repeat.h"
#include "core/plan/sets/loop_sets.h"

namespace fusion {
namespace {

// Values with room, or with strides of the caller, are read with other strides.
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
  // Outputs must be computed by every run, into the caller's memory; so must values that lie in an
  // output.
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

bool GroupEvaluator::IsKnown(const std::vector<LoopId>& loops) {
  return known_.contains(Key(loops)) || ReadsReinterpreted(loops);
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

}  // namespace fusion
