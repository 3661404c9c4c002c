#include "core/graph/program/tidy.h"

#include <array>
#include <vector>

#include "core/graph/program/renumber.h"

namespace fusion {
namespace {

// By op whether its result is read or returned. A repeat writes all of its results, read or not.
std::vector<bool> NeededOps(const Program& program) {
  std::vector<bool> wanted(program.values.size(), false);
  for (ValueId v : program.outputs) wanted[static_cast<size_t>(v)] = true;
  std::vector<bool> needed(program.ops.size(), false);
  for (size_t l = program.ops.size(); l-- > 0;) {
    const LoopOp& op = program.ops[l];
    needed[l] = wanted[static_cast<size_t>(op.output)];
    for (ValueId v : op.inputs) {
      if (needed[l]) wanted[static_cast<size_t>(v)] = true;
    }
  }
  for (size_t l = 0; l < program.ops.size(); ++l) {
    const LoopOp& op = program.ops[l];
    if (op.kind == LoopOp::kResult) needed[l] = wanted[static_cast<size_t>(op.inputs[0])];
  }
  return needed;
}

// The values in the order in which `needed` ops read and write them.
std::vector<ValueId> OrderOfUse(const Program& program, const std::vector<bool>& needed) {
  // By value that is appended: what it is appended to. No number comes between it and the whole.
  std::vector<ValueId> past(program.values.size(), kNoValue);
  for (const LoopOp& op : program.ops) {
    if (op.kind == LoopOp::kAppend) past[static_cast<size_t>(op.inputs[0])] = op.inputs[1];
  }
  std::vector<ValueId> order;
  std::vector<bool> taken(program.values.size(), false);
  std::array<size_t, 2> listed = {0, 0};  // inputs and weights so far
  auto take = [&](ValueId v) {
    if (v == kNoValue || taken[static_cast<size_t>(v)]) return;
    const Value& value = program.value(v);
    const bool input = value.kind == TensorKind::kInput;
    if (input || value.kind == TensorKind::kWeight) {
      // Those before it in their list come first.
      const std::vector<ValueId>& list = input ? program.inputs : program.weights;
      for (size_t& next = listed[input ? 0 : 1]; next <= static_cast<size_t>(value.index); ++next) {
        taken[static_cast<size_t>(list[next])] = true;
        order.push_back(list[next]);
      }
      return;
    }
    taken[static_cast<size_t>(v)] = true;
    order.push_back(v);
  };
  std::vector<bool> made(program.values.size(), false);
  for (size_t l = 0; l < program.ops.size(); ++l) {
    const LoopOp& op = program.ops[l];
    made[static_cast<size_t>(op.output)] = true;
    if (!needed[l]) continue;
    for (ValueId v : op.inputs) take(v);
    take(past[static_cast<size_t>(op.output)]);
    take(op.output);
  }
  // What no op makes stays, read or not.
  for (size_t v = 0; v < made.size(); ++v) {
    if (!made[v]) take(static_cast<ValueId>(v));
  }
  return order;
}

}  // namespace

void Tidy(Program* program) { Renumber(OrderOfUse(*program, NeededOps(*program)), program); }

}  // namespace fusion
