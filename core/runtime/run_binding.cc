#include "core/runtime/run_binding.h"

#include <utility>

#include "core/bundle/symbol_values.h"
#include "core/tensor/strided_copy.h"

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

absl::Status CheckTypes(const Plan& plan, const RunBinding& binding) {
  for (size_t i = 0; i < binding.inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckType(plan, plan.inputs[i], binding.units, binding.inputs[i], "input", i));
  }
  for (size_t i = 0; i < binding.outputs.size(); ++i) {
    RETURN_IF_ERROR(
        CheckType(plan, plan.outputs[i], binding.units, binding.outputs[i], "output", i));
  }
  return absl::OkStatus();
}

// The caller's memory behind an input or output that has these dims in a run, in elements.
int64_t ElementsBehind(const Plan& plan, bool output, int position, Dims dims) {
  for (const BoundStrides& b : plan.bound_strides) {
    if (b.output == output && b.position == position) return SpanOf(dims, b.strides);
  }
  for (const SharedBuffer& s : plan.shared_buffers) {
    if ((output ? s.output : s.input) == position) dims = WithCapacity(s, std::move(dims));
  }
  return NumElements(dims);
}

int64_t BytesBehind(const Plan& plan, bool output, int position, const Dims& dims) {
  const int id = (output ? plan.outputs : plan.inputs)[static_cast<size_t>(position)];
  return ElementsBehind(plan, output, position, dims) *
         DTypeBytes(plan.tensors[static_cast<size_t>(id)].dtype);
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
                              const_cast<std::byte*>(buffer.bytes()), buffer.byte_size()};
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (binding->inputs[i].dims != nullptr) continue;
    if (inputs[i] == nullptr) return InvalidArgument("executor: input ", i, " is not given");
    binding->inputs[i] = {inputs[i]->dtype(), &inputs[i]->dims(),
                          const_cast<std::byte*>(inputs[i]->bytes()), inputs[i]->byte_size()};
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
        const_cast<std::byte*>(memory->buffers[s].bytes()), memory->buffers[s].byte_size()};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (binding->outputs[i].dims != nullptr) continue;
    if (outputs[i] == nullptr) return InvalidArgument("executor: output ", i, " is not given");
    binding->outputs[i] = {outputs[i]->dtype(), &outputs[i]->dims(), outputs[i]->bytes(),
                           outputs[i]->byte_size()};
  }
  return CheckTypes(plan, *binding);
}

absl::Status BindInPlace(const Plan& plan, const std::vector<BoundTensor>& inputs,
                         const std::vector<BoundTensor>& outputs, RunBinding* binding) {
  if (inputs.size() != plan.inputs.size() || outputs.size() != plan.outputs.size()) {
    return InvalidArgument("executor: ", inputs.size(), " inputs and ", outputs.size(),
                           " outputs given, the plan has ", plan.inputs.size(), " and ",
                           plan.outputs.size());
  }
  for (const auto* list : {&inputs, &outputs}) {
    for (size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i].dims != nullptr) continue;
      return InvalidArgument("executor: ", list == &inputs ? "input " : "output ", i,
                             " is not given");
    }
  }
  if (!plan.symbols.empty()) {
    for (const BoundTensor& input : inputs) binding->input_dims.push_back(*input.dims);
    ASSIGN_OR_RETURN(binding->units, SymbolUnits(plan, binding->input_dims));
  }
  binding->inputs = inputs;
  binding->outputs = outputs;
  RETURN_IF_ERROR(CheckTypes(plan, *binding));
  for (const bool output : {false, true}) {
    const std::vector<BoundTensor>& list = output ? outputs : inputs;
    for (size_t i = 0; i < list.size(); ++i) {
      const int id = (output ? plan.outputs : plan.inputs)[i];
      if (id < 0) continue;
      const int64_t wanted = BytesBehind(plan, output, static_cast<int>(i), *list[i].dims);
      if (list[i].bytes >= wanted && (wanted == 0 || list[i].data != nullptr)) continue;
      return InvalidArgument("executor: ", output ? "output " : "input ", i, " has ",
                             list[i].data == nullptr ? 0 : list[i].bytes,
                             " bytes of memory, expected ", wanted);
    }
  }
  for (const SharedBuffer& s : plan.shared_buffers) {
    if (inputs[static_cast<size_t>(s.input)].data == outputs[static_cast<size_t>(s.output)].data) {
      continue;
    }
    return InvalidArgument("executor: input ", s.input, " and output ", s.output,
                           " share a buffer, and do not begin at the same place");
  }
  return absl::OkStatus();
}

absl::Status CopyToStrides(const Plan& plan, RunBinding* binding) {
  for (const BoundStrides& b : plan.bound_strides) {
    BoundTensor& bound =
        (b.output ? binding->outputs : binding->inputs)[static_cast<size_t>(b.position)];
    binding->strided.emplace_back();
    // What nobody reads has dims that nobody checked.
    if (!b.output && plan.inputs[static_cast<size_t>(b.position)] < 0) continue;
    ASSIGN_OR_RETURN(HostTensor memory,
                     HostTensor::Create(bound.dtype, {SpanOf(*bound.dims, b.strides)}));
    if (!b.output) {
      CopyStrided(bound.dtype, *bound.dims, bound.data, RowMajorStrides(*bound.dims),
                  memory.bytes(), b.strides);
    }
    bound.data = memory.bytes();
    bound.bytes = memory.byte_size();
    binding->strided.back() = std::move(memory);
  }
  return absl::OkStatus();
}

void CopyFromStrides(const Plan& plan, const std::vector<HostTensor*>& outputs,
                     const RunBinding& binding) {
  for (size_t i = 0; i < plan.bound_strides.size(); ++i) {
    const BoundStrides& b = plan.bound_strides[i];
    if (!b.output) continue;
    HostTensor* const to = outputs[static_cast<size_t>(b.position)];
    CopyStrided(to->dtype(), to->dims(), binding.strided[i].bytes(), b.strides, to->bytes(),
                RowMajorStrides(to->dims()));
  }
}

absl::Status CheckWithinBound(const Plan& plan, const std::vector<int64_t>& units) {
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlanTensor& t = plan.tensors[i];
    const bool input = t.space == Space::kInput;
    if (!input && t.space != Space::kOutput) continue;
    const int id = (input ? plan.inputs : plan.outputs)[static_cast<size_t>(t.index)];
    const Dims dims = DimsAt(plan.tensors[static_cast<size_t>(id)], units);
    const int64_t first = OffsetAt(t, units) / DTypeBytes(t.dtype);
    const int64_t span = ElementsAt(t, units);
    const int64_t behind = ElementsBehind(plan, !input, t.index, dims);
    if (span == 0 || (first >= 0 && first <= behind - span)) continue;
    return InvalidArgument("executor: tensor ", i, " of the plan leaves ",
                           input ? "input " : "output ", t.index, " where that is ",
                           DimsToString(dims));
  }
  return absl::OkStatus();
}

}  // namespace fusion
