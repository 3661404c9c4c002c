#include "core/graph/program/renumber.h"

#include "core/base/check.h"

namespace fusion {

std::vector<ValueId> Renumber(const std::vector<ValueId>& order, Program* program) {
  std::vector<ValueId> number(program->values.size(), kNoValue);
  std::vector<Value> values;
  values.reserve(order.size());
  for (ValueId old : order) {
    ValueId& to = number[static_cast<size_t>(old)];
    FUSION_CHECK(to == kNoValue, "a value gets one number");
    to = static_cast<ValueId>(values.size());
    values.push_back(std::move(program->values[static_cast<size_t>(old)]));
  }
  auto follow = [&](ValueId* v) {
    *v = number[static_cast<size_t>(*v)];
    FUSION_CHECK(*v != kNoValue, "what is left of a program names no value that is gone");
  };
  std::vector<LoopOp> ops;
  ops.reserve(program->ops.size());
  for (LoopOp& op : program->ops) {
    if (number[static_cast<size_t>(op.output)] == kNoValue) continue;
    follow(&op.output);
    for (ValueId& v : op.inputs) follow(&v);
    values[static_cast<size_t>(op.output)].producer = static_cast<LoopId>(ops.size());
    ops.push_back(std::move(op));
  }
  for (Value& value : values) {
    if (value.lies_in != kNoValue) follow(&value.lies_in);
  }
  for (auto ids : {&Program::inputs, &Program::weights, &Program::outputs}) {
    for (ValueId& v : program->*ids) follow(&v);
  }
  program->ops = std::move(ops);
  program->values = std::move(values);
  return number;
}

}  // namespace fusion
