// What ProgramBuilder makes of a Repeat: an op with a program of its own.

#include <algorithm>

#include "core/graph/program/program_builder.h"
#include "core/op/forms.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

using Handles = std::vector<ProgramBuilder::Handle>;

ProgramLoop::Port PortOf(Repeat::Port port) {
  switch (port) {
    case Repeat::Port::kCarried:
      return ProgramLoop::Port::kCarried;
    case Repeat::Port::kElement:
      return ProgramLoop::Port::kElement;
    case Repeat::Port::kElementFromEnd:
      return ProgramLoop::Port::kElementFromEnd;
    case Repeat::Port::kWhole:
    case Repeat::Port::kPass:
      break;
  }
  return ProgramLoop::Port::kWhole;
}

std::vector<std::optional<TensorType>> InputTypes(const Repeat& repeat) {
  std::vector<std::optional<TensorType>> types;
  for (const Repeat::Input& input : repeat.inputs) types.emplace_back(input.type);
  return types;
}

}  // namespace

size_t ProgramLoop::carried() const {
  return static_cast<size_t>(
      std::count_if(operands.begin(), operands.end(),
                    [](const Operand& operand) { return operand.port == Port::kCarried; }));
}

std::optional<TensorType> ProgramLoop::ResultType(int64_t number) const {
  const size_t conditions = conditional ? 1 : 0;
  const auto at = static_cast<size_t>(number) + conditions;
  if (number < 0) return std::nullopt;
  if (at == body->outputs.size() && (counted || conditional)) {
    return TensorType{DType::kI64, Shape()};
  }
  if (at >= body->outputs.size()) return std::nullopt;
  const TensorType& type = body->value(body->outputs[at]).type;
  return static_cast<size_t>(number) < carried() ? type : StackedType(type, most);
}

void SettleWeights(Program* program) {
  const std::vector<bool> known = KnownBeforeRuns(*program);
  for (LoopOp& op : program->ops) {
    if (op.kind != LoopOp::kRepeat) continue;
    auto body = std::make_shared<Program>(*op.loop->body);
    for (size_t i = 0; i < op.loop->operands.size(); ++i) {
      const auto given = static_cast<size_t>(op.inputs[op.loop->first_operand() + i]);
      const ValueId leaf = op.loop->operands[i].leaf;
      if (body->value(leaf).kind != TensorKind::kWeight || known[given]) continue;
      body->values[static_cast<size_t>(leaf)].kind = TensorKind::kInput;
    }
    for (auto list : {&Program::inputs, &Program::weights}) ((*body).*list).clear();
    for (size_t v = 0; v < body->values.size(); ++v) {
      Value& value = body->values[v];
      const bool input = value.kind == TensorKind::kInput;
      if (!input && value.kind != TensorKind::kWeight) continue;
      auto& list = input ? body->inputs : body->weights;
      value.index = static_cast<int>(list.size());
      list.push_back(static_cast<ValueId>(v));
    }
    SettleWeights(body.get());  // of bodies within it
    auto loop = std::make_shared<ProgramLoop>(*op.loop);
    loop->body = std::move(body);
    op.loop = std::move(loop);
  }
}

TensorType ProgramBuilder::TypeOf(const Handle& handle) const {
  return handle.view ? handle.view->OutputType() : program_.value(handle.base).type;
}

ValueId ProgramBuilder::InMemory(const Handle& handle) {
  const ValueId value = Materialise(handle);
  direct_uses_[static_cast<size_t>(value)].mixed = true;
  return value;
}

bool ProgramBuilder::IsConstant(ValueId id) {
  // Values come behind what they are made of.
  for (auto v = static_cast<ValueId>(constant_.size()); v <= id; ++v) {
    const Value& value = program_.value(v);
    bool constant = value.kind == TensorKind::kWeight || value.kind == TensorKind::kConstant;
    if (value.kind == TensorKind::kIntermediate) {
      const LoopOp& op = program_.op(value.producer);
      constant = op.kind == LoopOp::kLoop || op.kind == LoopOp::kReinterpret;
      for (ValueId in : op.inputs) constant = constant && constant_[static_cast<size_t>(in)];
    }
    constant_.push_back(constant);
  }
  return constant_[static_cast<size_t>(id)];
}

absl::StatusOr<LoopOp> ProgramBuilder::RepeatOp(std::shared_ptr<const Repeat> source,
                                                const Handles& operands, NodeId origin,
                                                bool inner) {
  const Repeat& repeat = *source;
  auto loop = std::make_shared<ProgramLoop>();
  LoopOp op{.kind = LoopOp::kRepeat, .label = "Repeat", .origin = origin, .step = step_};
  loop->most = repeat.most;
  loop->must_end = repeat.must_end;
  loop->counted = repeat.counted;
  loop->conditional = repeat.conditional;
  if (!inner) loop->source = std::move(source);
  ProgramBuilder body(options_);
  body.count_ = count_;
  Handles values;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Repeat::Input& input = repeat.inputs[i];
    const Handle& operand = operands[i];
    const TensorId tensor = inner ? kNoTensor : static_cast<TensorId>(i);
    if (input.port == Repeat::Port::kPass) {
      loop->pass = body.AddInput(input.type, tensor);
      values.push_back({.base = loop->pass, .view = {}, .origin = origin});
      continue;
    }
    if (input.port != Repeat::Port::kWhole) {
      op.inputs.push_back(InMemory(operand));
      loop->operands.push_back(
          {PortOf(input.port), body.AddInput(input.type, tensor), static_cast<int>(i)});
      values.push_back({.base = loop->operands.back().leaf, .view = {}, .origin = origin});
      continue;
    }
    const Value& whole = program_.value(operand.base);
    if (whole.kind == TensorKind::kConstant) {
      const ValueId constant = body.AddValue({.type = whole.type,
                                              .kind = TensorKind::kConstant,
                                              .value = whole.value,
                                              .order = {},
                                              .tensor = tensor});
      values.push_back({.base = constant, .view = operand.view, .origin = origin});
      continue;
    }
    // What the body has is the operand only where it reads all of that as it lies there.
    const TensorId of_whole = operand.view ? kNoTensor : tensor;
    const ValueId leaf = IsConstant(operand.base) ? body.AddWeight(whole.type, of_whole)
                                                  : body.AddInput(whole.type, of_whole);
    op.inputs.push_back(InMemory({.base = operand.base, .view = {}, .origin = origin}));
    loop->operands.push_back({ProgramLoop::Port::kWhole, leaf, static_cast<int>(i)});
    values.push_back({.base = leaf, .view = operand.view, .origin = origin});
  }
  std::vector<std::optional<TensorType>> types = InputTypes(repeat);
  RETURN_IF_ERROR(body.AddSteps(repeat.steps, origin, inner ? StepsOf::kComposite : StepsOf::kBody,
                                &types, &values));
  for (const Repeat::Output& output : repeat.outputs) {
    // Two outputs may be one value.
    Handle given = values[static_cast<size_t>(output.value)];
    body.AddOutput(&given);
  }
  for (size_t i = repeat.outputs.size() - repeat.stacked(); i < repeat.outputs.size(); ++i) {
    loop->from_end.push_back(repeat.outputs[i].from_end);
  }
  count_ = body.count_;
  // What nothing of the body needs is gone: leaves have other numbers.
  std::vector<ValueId*> leaves;
  for (ProgramLoop::Operand& operand : loop->operands) leaves.push_back(&operand.leaf);
  if (loop->pass != kNoValue) leaves.push_back(&loop->pass);
  loop->body = std::make_shared<const Program>(std::move(body).Finish(leaves));
  op.loop = std::move(loop);
  return op;
}

absl::StatusOr<Handles> ProgramBuilder::AddRepeat(const OpCall& call, const Handles& inputs,
                                                  NodeId origin, bool inner) {
  const auto body = *call.attrs().Find<std::shared_ptr<const Repeat>>("body");
  const Repeat& repeat = *body;
  const size_t before = (repeat.counted ? 1U : 0U) + (repeat.conditional ? 1U : 0U);
  // By input of the body.
  Handles operands;
  size_t next = before;
  for (const Repeat::Input& input : repeat.inputs) {
    operands.push_back(input.port == Repeat::Port::kPass ? Handle() : inputs[next++]);
  }
  ASSIGN_OR_RETURN(LoopOp op, RepeatOp(body, operands, origin, inner));
  std::vector<ValueId> head;
  for (size_t i = 0; i < before; ++i) head.push_back(InMemory(inputs[i]));
  op.inputs.insert(op.inputs.begin(), head.begin(), head.end());
  auto add = [&](LoopOp made, TensorType type) {
    made.output = AddValue({.type = std::move(type),
                            .kind = TensorKind::kIntermediate,
                            .value = {},
                            .producer = static_cast<LoopId>(program_.ops.size()),
                            .order = {}});
    program_.ops.push_back(std::move(made));
    return program_.ops.back().output;
  };
  ++count_.loop_ops;
  const ValueId over = add(std::move(op), {DType::kBool, Shape()});
  ASSIGN_OR_RETURN(std::vector<TensorType> types, RepeatTypes(call, nullptr));
  Handles results;
  for (size_t i = 0; i < types.size(); ++i) {
    LoopOp result{.kind = LoopOp::kResult,
                  .label = "Result",
                  .origin = origin,
                  .inputs = {over},
                  .result = static_cast<int>(i)};
    ++count_.loop_ops;
    results.push_back({.base = add(std::move(result), types[i]), .view = {}, .origin = origin});
  }
  RETURN_IF_ERROR(CheckLimits());
  return results;
}

}  // namespace fusion
