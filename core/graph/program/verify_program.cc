// What must hold of a program, however it was made: read from text, built, or rewritten by a pass.

#include <algorithm>
#include <set>

#include "core/graph/program/program.h"
#include "core/graph/program/program_checks.h"
#include "core/op/derive.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

bool IsLeaf(const Program& program, ValueId v) {
  if (v < 0 || static_cast<size_t>(v) >= program.values.size()) return false;
  const TensorKind kind = program.value(v).kind;
  return kind == TensorKind::kInput || kind == TensorKind::kWeight;
}

absl::Status CheckAppend(const Program& program, const LoopOp& op) {
  const Value& whole = program.value(op.output);
  bool fits = op.inputs.size() == 2 && whole.room.has_value();
  for (ValueId in : op.inputs) {
    const TensorType& type = program.value(in).type;
    fits = fits && type.dtype == whole.type.dtype && type.shape.rank() == whole.type.shape.rank();
  }
  for (int d = 0; fits && d < whole.type.shape.rank(); ++d) {
    auto extent = [&](size_t i) { return program.value(op.inputs[i]).type.shape.dim(d).value(); };
    const int64_t all = whole.type.shape.dim(d).value();
    fits =
        d == whole.room->dim ? extent(0) + extent(1) == all : extent(0) == all && extent(1) == all;
  }
  return fits ? absl::OkStatus() : Internal("parts of a tensor with room");
}

absl::Status CheckReinterpret(const Program& program, const LoopOp& op) {
  auto elements = [&](ValueId v) { return NumElements(program.value(v).type.shape.ToDims()); };
  if (op.inputs.size() == 1 && elements(op.inputs[0]) == elements(op.output)) {
    return absl::OkStatus();
  }
  return Internal("as many elements on both sides");
}

// Whether the operands are of the types that the body's inputs have, each of them once.
absl::Status CheckRepeat(const Program& program, const LoopOp& op) {
  const ProgramLoop& loop = *op.loop;
  const Program& body = *loop.body;
  if (program.value(op.output).type != TensorType{DType::kBool, Shape()}) {
    return Internal("a bool");
  }
  auto type = [&](size_t i) { return program.value(op.inputs[i]).type; };
  const size_t head = loop.first_operand();
  bool fits = op.inputs.size() == head + loop.operands.size() && loop.most >= 0;
  if (fits && loop.counted) fits = type(0) == TensorType{DType::kI64, Shape()};
  if (fits && loop.conditional) fits = type(head - 1) == TensorType{DType::kBool, Shape()};
  std::vector<bool> given(body.values.size(), false);
  if (fits && loop.pass != kNoValue) {
    fits =
        IsLeaf(body, loop.pass) && body.value(loop.pass).type == TensorType{DType::kI64, Shape()};
    if (fits) given[static_cast<size_t>(loop.pass)] = true;
  }
  for (size_t i = 0; fits && i < loop.operands.size(); ++i) {
    const ProgramLoop::Port port = loop.operands[i].port;
    const ValueId leaf = loop.operands[i].leaf;
    fits = IsLeaf(body, leaf) && !given[static_cast<size_t>(leaf)];
    if (!fits) break;
    given[static_cast<size_t>(leaf)] = true;
    const bool part =
        port == ProgramLoop::Port::kElement || port == ProgramLoop::Port::kElementFromEnd;
    const TensorType& expected = body.value(leaf).type;
    fits = type(head + i) == (part ? StackedType(expected, loop.most) : expected);
  }
  for (size_t v = 0; fits && v < body.values.size(); ++v) {
    fits = given[v] || !IsLeaf(body, static_cast<ValueId>(v));
  }
  const size_t states = (loop.conditional ? 1U : 0U) + loop.carried();
  fits = fits && body.outputs.size() == states + loop.from_end.size();
  return fits ? absl::OkStatus() : Internal("a body that fits the repeat");
}

absl::Status CheckResult(const Program& program, const LoopOp& op) {
  const LoopId producer = op.inputs.size() == 1 ? program.value(op.inputs[0]).producer : kNoLoop;
  if (producer == kNoLoop || program.op(producer).kind != LoopOp::kRepeat) {
    return Internal("a repeat");
  }
  const std::optional<TensorType> given = program.op(producer).loop->ResultType(op.result);
  if (given == program.value(op.output).type) return absl::OkStatus();
  return Internal("a result of the repeat, and its type");
}

absl::Status CheckOpaque(const Program& program, const LoopOp& op) {
  const OpDef* def = FindOp(op.label);
  if (def == nullptr || !def->opaque || op.attrs == nullptr) return Internal("an opaque op");
  std::vector<std::optional<TensorType>> types;
  for (ValueId id : op.inputs) types.emplace_back(program.value(id).type);
  const OpCall call(*def, std::move(types), *op.attrs);
  RETURN_IF_ERROR(CheckCall(call));
  ASSIGN_OR_RETURN(TensorType made, def->opaque(call));
  if (made == program.value(op.output).type) return absl::OkStatus();
  return Internal("type ", made.ToString(), " for %", op.output);
}

absl::Status CheckLoop(const Program& program, const LoopOp& op) {
  std::vector<TensorType> types;
  for (ValueId id : op.inputs) types.push_back(program.value(id).type);
  RETURN_IF_ERROR(op.body.Verify(types));
  const TensorType made = op.body.OutputType();
  if (made == program.value(op.output).type) return absl::OkStatus();
  return Internal("type ", made.ToString(), " for %", op.output);
}

// Rows that lie in another value are what that, the next one, appends behind what it is appended
// to.
absl::Status CheckRows(const Program& program) {
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& rows = program.values[i];
    if (rows.lies_in == kNoValue) continue;
    const auto whole = static_cast<size_t>(rows.lies_in);
    bool sound = whole == i + 1 && whole < program.values.size() && rows.room.has_value() &&
                 program.values[whole].producer != kNoLoop;
    if (sound) {
      const LoopOp& op = program.op(program.values[whole].producer);
      sound = op.kind == LoopOp::kAppend && op.inputs[0] == static_cast<ValueId>(i) &&
              program.values[whole].room == rows.room &&
              program.value(op.inputs[1]).room == rows.room &&
              program.value(op.inputs[1]).type.shape.dim(rows.room->dim).value() == rows.begin;
    }
    if (!sound) return Internal("%", rows.lies_in, " to append %", i);
  }
  return absl::OkStatus();
}

// A repeat writes all it gives, so there is a value for each of it, read or not.
absl::Status CheckResults(const Program& program) {
  std::vector<std::set<int>> results(program.values.size());  // by value of a repeat
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kResult) continue;
    if (results[static_cast<size_t>(op.inputs[0])].insert(op.result).second) continue;
    return Internal("one value for result ", op.result, " of %", op.inputs[0]);
  }
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kRepeat) continue;
    for (int number = 0; op.loop->ResultType(number).has_value(); ++number) {
      if (results[static_cast<size_t>(op.output)].contains(number)) continue;
      return Internal("result ", number, " of the repeat %", op.output);
    }
  }
  return absl::OkStatus();
}

// That each op reads what was made before it and makes one value of its own.
absl::Status CheckOrder(const Program& program) {
  const auto values = static_cast<ValueId>(program.values.size());
  auto exists = [&](ValueId v) { return v >= 0 && v < values; };
  std::vector<bool> made(program.values.size(), false);
  for (size_t l = 0; l < program.ops.size(); ++l) {
    const LoopOp& op = program.ops[l];
    if (!exists(op.output)) return Internal("op ", l, " makes %", op.output);
    const Value& out = program.value(op.output);
    if (out.kind != TensorKind::kIntermediate || out.producer != static_cast<LoopId>(l)) {
      return Internal("op ", l, " makes %", op.output, ", which something else makes");
    }
    made[static_cast<size_t>(op.output)] = true;
    for (ValueId in : op.inputs) {
      if (!exists(in)) return Internal("op ", l, " reads %", in);
      const Value& value = program.value(in);
      const bool ready =
          value.producer == kNoLoop || (value.producer < static_cast<LoopId>(l) && in < op.output);
      if (!ready) return Internal("op ", l, " reads %", in, ", which is made later");
    }
  }
  for (ValueId v = 0; v < values; ++v) {
    const Value& value = program.value(v);
    const bool computed = value.kind == TensorKind::kIntermediate;
    if (computed != made[static_cast<size_t>(v)] || computed != (value.producer != kNoLoop)) {
      return Internal("%", v, " is made by no op");
    }
    if (value.kind == TensorKind::kConstant && value.value == nullptr) {
      return Internal("%", v, " is a constant of no value");
    }
  }
  for (ValueId v : program.outputs) {
    if (!exists(v)) return Internal("output %", v);
  }
  return absl::OkStatus();
}

// Inputs and weights are listed by their positions.
absl::Status CheckLeaves(const Program& program) {
  for (const auto& [ids, kind] : {std::pair{&program.inputs, TensorKind::kInput},
                                  std::pair{&program.weights, TensorKind::kWeight}}) {
    for (size_t i = 0; i < ids->size(); ++i) {
      const ValueId v = (*ids)[i];
      if (!IsLeaf(program, v) || program.value(v).kind != kind ||
          program.value(v).index != static_cast<int>(i)) {
        return Internal("leaf ", i, " is %", v);
      }
    }
  }
  size_t leaves = 0;
  for (size_t v = 0; v < program.values.size(); ++v) {
    leaves += IsLeaf(program, static_cast<ValueId>(v)) ? 1U : 0U;
  }
  if (leaves == program.inputs.size() + program.weights.size()) return absl::OkStatus();
  return Internal(leaves, " values are inputs or weights, ",
                  program.inputs.size() + program.weights.size(), " are listed");
}

// A value lies as its dims allow.
absl::Status CheckStorage(const Program& program) {
  for (size_t v = 0; v < program.values.size(); ++v) {
    const Value& value = program.values[v];
    if (value.order.empty()) continue;
    std::vector<int> sorted = value.order;
    std::sort(sorted.begin(), sorted.end());
    bool permutes = static_cast<int>(sorted.size()) == value.type.shape.rank();
    for (size_t d = 0; d < sorted.size(); ++d) permutes &= sorted[d] == static_cast<int>(d);
    if (!permutes) return Internal("the order of %", v, " is none of its dims");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOp(const Program& program, const LoopOp& op) {
  switch (op.kind) {
    case LoopOp::kLoop:
      return CheckLoop(program, op);
    case LoopOp::kReinterpret:
      return CheckReinterpret(program, op);
    case LoopOp::kAppend:
      return CheckAppend(program, op);
    case LoopOp::kRepeat:
      return CheckRepeat(program, op);
    case LoopOp::kResult:
      return CheckResult(program, op);
    case LoopOp::kOpaque:
      return CheckOpaque(program, op);
  }
  return Internal("an op of a kind that is known");
}

absl::Status CheckWhole(const Program& program) {
  RETURN_IF_ERROR(CheckRows(program));
  return CheckResults(program);
}

absl::Status Verify(const Program& program) {
  RETURN_IF_ERROR(CheckOrder(program));
  RETURN_IF_ERROR(CheckLeaves(program));
  RETURN_IF_ERROR(CheckStorage(program));
  for (const LoopOp& op : program.ops) {
    absl::Status sound = CheckOp(program, op);
    if (!sound.ok())
      return Internal("%", op.output, " (", op.label, "): expected ", Message(sound));
    if (op.kind == LoopOp::kRepeat) {
      sound = Verify(*op.loop->body);
      if (!sound.ok()) return Internal("body of %", op.output, ": ", Message(sound));
    }
  }
  absl::Status whole = CheckWhole(program);
  return whole.ok() ? whole : Internal("expected ", Message(whole));
}

}  // namespace fusion
