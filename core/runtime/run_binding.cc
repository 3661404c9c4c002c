#include "core/runtime/run_binding.h"

#include <utility>

#include "core/bundle/symbol_values.h"

namespace fusion {
namespace {

// `id`: the plan's tensor; below 0: nobody reads it.
absl::Status CheckType(const Plan& plan, int id, const std::vector<int64_t>& units,
                       const BoundTensor& bound, std::string_view what, size_t i) {
  if (id < 0) return absl::OkStatus();
  const PlanTensor& t = plan.tensors[static_cast<size_t>(id)];
  const bool open = !t.sizes.empty();
  if (bound.dtype == t.dtype && (open ? *bound.dims == DimsAt(t, units) : *bound.dims == t.dims)) {
    return absl::OkStatus();
  }
  return InvalidArgument(what, " ", i, " is ", DTypeName(bound.dtype), DimsToString(*bound.dims),
                         ", expected ", DTypeName(t.dtype), DimsToString(DimsAt(t, units)));
}

}  // namespace

absl::Status BindInputs(const Plan& plan, const std::vector<const HostTensor*>& inputs,
                        const SharedMemory* memory, RunBinding* binding) {
  const bool open = !plan.symbols.empty();
  if (inputs.size() != plan.inputs.size()) {
    return InvalidArgument("executor: ", inputs.size(), " inputs given, the plan has ",
                           plan.inputs.size());
  }
  if (memory != nullptr || open) {
    ASSIGN_OR_RETURN(binding->input_dims, InputDims(plan, inputs, memory));
  }
  if (open) {
    ASSIGN_OR_RETURN(binding->units, SymbolUnits(plan, binding->input_dims));
  }
  binding->inputs.resize(inputs.size());
  for (size_t s = 0; memory != nullptr && s < plan.shared_buffers.size(); ++s) {
    const HostTensor& buffer = memory->buffers[s];
    const auto input = static_cast<size_t>(plan.shared_buffers[s].input);
    binding->inputs[input] = {buffer.dtype(), &binding->input_dims[input],
                              const_cast<std::byte*>(buffer.bytes())};
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (binding->inputs[i].dims != nullptr) continue;
    if (inputs[i] == nullptr) return InvalidArgument("executor: input ", i, " is not given");
    binding->inputs[i] = {inputs[i]->dtype(), &inputs[i]->dims(),
                          const_cast<std::byte*>(inputs[i]->bytes())};
  }
  return absl::OkStatus();
}

absl::Status BindOutputs(const Plan& plan, const std::vector<HostTensor*>& outputs,
                         const SharedMemory* memory, RunBinding* binding) {
  if (outputs.size() != plan.outputs.size()) {
    return InvalidArgument("executor: ", outputs.size(), " outputs given, the plan has ",
                           plan.outputs.size());
  }
  binding->outputs.resize(outputs.size());
  for (size_t s = 0; memory != nullptr && s < plan.shared_buffers.size(); ++s) {
    const SharedBuffer& shared = plan.shared_buffers[s];
    const auto output = static_cast<size_t>(shared.output);
    const auto dim = static_cast<size_t>(shared.dim);
    Dims dims = memory->buffers[s].dims();
    dims[dim] =
        DimsAt(plan.tensors[static_cast<size_t>(plan.outputs[output])], binding->units)[dim];
    binding->shared_outputs.push_back(std::move(dims));
  }
  for (size_t s = 0; memory != nullptr && s < plan.shared_buffers.size(); ++s) {
    binding->outputs[static_cast<size_t>(plan.shared_buffers[s].output)] = {
        memory->buffers[s].dtype(), &binding->shared_outputs[s],
        const_cast<std::byte*>(memory->buffers[s].bytes())};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (binding->outputs[i].dims != nullptr) continue;
    if (outputs[i] == nullptr) return InvalidArgument("executor: output ", i, " is not given");
    binding->outputs[i] = {outputs[i]->dtype(), &outputs[i]->dims(), outputs[i]->bytes()};
  }
  for (size_t i = 0; i < binding->inputs.size(); ++i) {
    RETURN_IF_ERROR(
        CheckType(plan, plan.inputs[i], binding->units, binding->inputs[i], "input", i));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    RETURN_IF_ERROR(
        CheckType(plan, plan.outputs[i], binding->units, binding->outputs[i], "output", i));
  }
  return absl::OkStatus();
}

absl::Status CheckWithinBound(const Plan& plan, const std::vector<int64_t>& units) {
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlanTensor& t = plan.tensors[i];
    const bool input = t.space == Space::kInput;
    if (!input && t.space != Space::kOutput) continue;
    const int id = (input ? plan.inputs : plan.outputs)[static_cast<size_t>(t.index)];
    Dims dims = DimsAt(plan.tensors[static_cast<size_t>(id)], units);
    for (const SharedBuffer& s : plan.shared_buffers) {
      if ((input ? s.input : s.output) == t.index) dims = WithCapacity(s, std::move(dims));
    }
    const int64_t first = OffsetAt(t, units) / DTypeBytes(t.dtype);
    const int64_t span = ElementsAt(t, units);
    if (span == 0 || (first >= 0 && first <= NumElements(dims) - span)) continue;
    return InvalidArgument("executor: tensor ", i, " of the plan leaves ",
                           input ? "input " : "output ", t.index, " where that is ",
                           DimsToString(dims));
  }
  return absl::OkStatus();
}

}  // namespace fusion
