#include "core/graph/tidy.h"

#include <vector>

namespace fusion {
namespace {

// By op whether its result, or that of a repeat, is read or returned.
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
  return needed;
}

class Renumbering {
 public:
  explicit Renumbering(Program* program)
      : program_(*program), number_(program->values.size(), kNoValue) {}

  void Run() {
    const std::vector<bool> needed = NeededOps(program_);
    std::vector<LoopOp> ops;
    std::vector<bool> made(program_.values.size(), false);
    for (const LoopOp& op : program_.ops) made[static_cast<size_t>(op.output)] = true;
    for (size_t l = 0; l < program_.ops.size(); ++l) {
      if (!needed[l]) continue;
      LoopOp op = std::move(program_.ops[l]);
      for (ValueId& v : op.inputs) v = NumberOf(v);
      op.output = NumberOf(op.output);
      values_[static_cast<size_t>(op.output)].producer = static_cast<LoopId>(ops.size());
      ops.push_back(std::move(op));
    }
    // What no op makes stays, read or not.
    for (size_t v = 0; v < made.size(); ++v) {
      if (!made[v]) NumberOf(static_cast<ValueId>(v));
    }
    for (Value& value : values_) {
      if (value.lies_in != kNoValue) value.lies_in = NumberOf(value.lies_in);
    }
    for (auto ids : {&Program::inputs, &Program::weights, &Program::outputs}) {
      for (ValueId& v : program_.*ids) v = NumberOf(v);
    }
    program_.ops = std::move(ops);
    program_.values = std::move(values_);
  }

 private:
  ValueId NumberOf(ValueId old) {
    ValueId& number = number_[static_cast<size_t>(old)];
    if (number == kNoValue) {
      number = static_cast<ValueId>(values_.size());
      values_.push_back(program_.value(old));
    }
    return number;
  }

  Program& program_;
  std::vector<ValueId> number_;  // by old number
  std::vector<Value> values_;
};

}  // namespace

void Tidy(Program* program) { Renumbering(program).Run(); }

}  // namespace fusion
