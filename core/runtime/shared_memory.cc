#include "core/runtime/shared_memory.h"

#include <algorithm>
#include <utility>

#include "core/bundle/symbol_values.h"
#include "core/tensor/rows.h"

namespace fusion {

absl::StatusOr<SharedMemory> MakeSharedMemory(const Plan& plan, const std::vector<int64_t>& units) {
  SharedMemory out;
  for (const SharedBuffer& shared : plan.shared_buffers) {
    const auto output = static_cast<size_t>(plan.outputs[static_cast<size_t>(shared.output)]);
    const PlanTensor& tensor = plan.tensors[output];
    ASSIGN_OR_RETURN(HostTensor buffer,
                     HostTensor::Create(tensor.dtype, WithCapacity(shared, DimsAt(tensor, units))));
    out.buffers.push_back(std::move(buffer));
    out.rows.push_back(0);
  }
  return out;
}

absl::StatusOr<SharedMemory> LoadSharedMemory(const Plan& plan,
                                              const std::vector<const HostTensor*>& inputs) {
  SharedMemory out;
  for (const SharedBuffer& shared : plan.shared_buffers) {
    if (static_cast<size_t>(shared.input) >= inputs.size()) {
      return InvalidArgument(inputs.size(), " inputs given, the plan has ", plan.inputs.size());
    }
    if (inputs[static_cast<size_t>(shared.input)] == nullptr) {
      return InvalidArgument("input ", shared.input, " is not given");
    }
    const HostTensor& input = *inputs[static_cast<size_t>(shared.input)];
    const auto dim = static_cast<size_t>(shared.dim);
    const auto output = static_cast<size_t>(plan.outputs[static_cast<size_t>(shared.output)]);
    if (input.dims().size() != plan.tensors[output].dims.size() ||
        input.dims()[dim] > shared.capacity) {
      return InvalidArgument("input ", shared.input, " is ", DTypeName(input.dtype()),
                             DimsToString(input.dims()), ", expected rank ",
                             plan.tensors[output].dims.size(), " and at most ", shared.capacity,
                             " along dim ", dim);
    }
    ASSIGN_OR_RETURN(HostTensor buffer,
                     HostTensor::Create(input.dtype(), WithCapacity(shared, input.dims())));
    WriteFirstRows(input, dim, &buffer);
    out.buffers.push_back(std::move(buffer));
    out.rows.push_back(input.dims()[dim]);
  }
  return out;
}

absl::StatusOr<std::vector<Dims>> InputDims(const Plan& plan,
                                            const std::vector<const HostTensor*>& inputs,
                                            const SharedMemory* memory) {
  if (inputs.size() != plan.inputs.size()) {
    return InvalidArgument(inputs.size(), " inputs given, the plan has ", plan.inputs.size());
  }
  std::vector<Dims> out(inputs.size());
  std::vector<bool> known(inputs.size(), false);
  if (memory != nullptr) {
    const std::vector<SharedBuffer>& shared = plan.shared_buffers;
    if (memory->buffers.size() != shared.size() || memory->rows.size() != shared.size()) {
      return InvalidArgument(memory->buffers.size(), " shared buffers with ", memory->rows.size(),
                             " numbers of elements given, the plan has ", shared.size());
    }
    for (size_t s = 0; s < shared.size(); ++s) {
      Dims dims = memory->buffers[s].dims();
      const auto dim = static_cast<size_t>(shared[s].dim);
      const int64_t rows = memory->rows[s];
      if (dim >= dims.size() || dims[dim] != shared[s].capacity || rows < 0 || rows > dims[dim]) {
        return InvalidArgument("shared buffer ", s, " is ", DimsToString(dims), " with ", rows,
                               " elements, expected ", shared[s].capacity, " along dim ", dim);
      }
      dims[dim] = rows;
      const auto input = static_cast<size_t>(shared[s].input);
      out[input] = std::move(dims);
      known[input] = true;
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (known[i]) continue;
    if (inputs[i] == nullptr) return InvalidArgument("input ", i, " is not given");
    out[i] = inputs[i]->dims();
  }
  return out;
}

HostTensor RowsOf(const Plan& plan, const SharedMemory& memory, size_t i) {
  const SharedBuffer& shared = plan.shared_buffers[i];
  return FirstRows(memory.buffers[i], static_cast<size_t>(shared.dim), memory.rows[i]);
}

absl::Status StoreRows(const Plan& plan, const SharedMemory& memory,
                       const std::vector<HostTensor*>& outputs) {
  for (size_t s = 0; s < plan.shared_buffers.size(); ++s) {
    const SharedBuffer& shared = plan.shared_buffers[s];
    HostTensor* const output = outputs[static_cast<size_t>(shared.output)];
    const auto dim = static_cast<size_t>(shared.dim);
    const HostTensor& buffer = memory.buffers[s];
    Dims dims = buffer.dims();
    dims[dim] = memory.rows[s];
    if (output == nullptr || output->dtype() != buffer.dtype() || output->dims() != dims) {
      return InvalidArgument("output ", shared.output, " is ",
                             output == nullptr
                                 ? "not given"
                                 : StrCat(DTypeName(output->dtype()), DimsToString(output->dims())),
                             ", expected ", DTypeName(buffer.dtype()), DimsToString(dims));
    }
    ReadFirstRows(buffer, dim, output);
  }
  return absl::OkStatus();
}

bool IsSharedInput(const Plan& plan, size_t i) {
  return std::any_of(plan.shared_buffers.begin(), plan.shared_buffers.end(),
                     [&](const SharedBuffer& s) { return static_cast<size_t>(s.input) == i; });
}

}  // namespace fusion
