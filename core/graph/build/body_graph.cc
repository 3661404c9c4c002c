#include "core/graph/build/body_graph.h"

#include "core/graph/build/builder.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

// By input of the source whether a run, or a pass, gives it.
std::vector<bool> GivenInputs(const ProgramLoop& loop) {
  std::vector<bool> given;
  for (const Repeat::Input& input : loop.source->inputs) {
    given.push_back(input.port == Repeat::Port::kPass);
  }
  for (const ProgramLoop::Operand& operand : loop.operands) {
    const bool weight = loop.body->value(operand.leaf).kind == TensorKind::kWeight;
    if (!weight) given[static_cast<size_t>(operand.input)] = true;
  }
  return given;
}

}  // namespace

absl::StatusOr<Graph> BodyGraph(const ProgramLoop& loop) {
  const Repeat& source = *loop.source;
  GraphBuilder builder("", {.fold_limit_bytes = 0});
  const std::vector<bool> given = GivenInputs(loop);
  std::vector<TensorId> values;
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    const TensorType& type = source.inputs[i].type;
    values.push_back(given[i] ? builder.AddInput("", type) : builder.AddWeight("", type));
  }
  for (const Decomposition::Step& step : source.steps) {
    if (step.def == nullptr) {
      values.push_back(builder.AddConstant("", *step.constant));
      continue;
    }
    std::vector<TensorId> inputs;
    for (Decomposition::Value v : step.inputs) {
      inputs.push_back(v < 0 ? kNoTensor : values[static_cast<size_t>(v)]);
    }
    ASSIGN_OR_RETURN(
        std::vector<TensorId> outputs,
        builder.AddMultiNode(*step.def, std::move(inputs), step.attrs, "",
                             std::vector<std::string>(static_cast<size_t>(step.outputs))));
    values.insert(values.end(), outputs.begin(), outputs.end());
  }
  for (const Repeat::Output& output : source.outputs) {
    builder.MarkOutput(values[static_cast<size_t>(output.value)]);
  }
  return builder.Build();
}

}  // namespace fusion
