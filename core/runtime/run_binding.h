#pragma once

#include <cstddef>
#include <vector>

#include "core/runtime/bound_tensor.h"
#include "core/runtime/shared_memory.h"

namespace fusion {

/// The caller's tensors of one run, by input and output of the plan, and what their dims say.
/// Points into itself and into these tensors.
struct RunBinding {
  RunBinding() = default;
  RunBinding(const RunBinding&) = delete;
  RunBinding& operator=(const RunBinding&) = delete;

  std::vector<BoundTensor> inputs;
  std::vector<BoundTensor> outputs;
  std::vector<Dims> input_dims;      // where memory is shared or dims are open: of every input
  std::vector<Dims> shared_outputs;  // by shared buffer
  std::vector<int64_t> units;        // of the symbols
  std::vector<HostTensor> strided;   // by Plan::bound_strides: copies, of dense tensors only
};

/// Binds the inputs, those that share buffers to `memory`; null: every input is a tensor of its
/// own. InvalidArgument for one that is missing, and for dims that no run of the plan has.
absl::Status BindInputs(const Plan& plan, const std::vector<const HostTensor*>& inputs,
                        const SharedMemory* memory, RunBinding* binding);

/// After the inputs the outputs, likewise. InvalidArgument, naming the tensor, for inputs and
/// outputs of other types than the plan says.
absl::Status BindOutputs(const Plan& plan, const std::vector<HostTensor*>& outputs,
                         const SharedMemory* memory, RunBinding* binding);

/// Binds tensors that lie where the plan says. InvalidArgument, naming the tensor, as above, for
/// memory that is too small, and for an input and an output that share a buffer and lie apart.
absl::Status BindInPlace(const Plan& plan, const std::vector<BoundTensor>& inputs,
                         const std::vector<BoundTensor>& outputs, RunBinding* binding);

/// Of dense tensors bound before: copies what has strides (Plan::bound_strides) to memory in which
/// it has them, and binds that. ResourceExhausted if there is no memory for it.
absl::Status CopyToStrides(const Plan& plan, RunBinding* binding);
/// After the run: copies such outputs to the tensors that they belong to.
void CopyFromStrides(const Plan& plan, const std::vector<HostTensor*>& outputs,
                     const RunBinding& binding);

/// InvalidArgument if a tensor of the plan leaves the caller's input or output that it lies in,
/// where symbols have these values.
absl::Status CheckWithinBound(const Plan& plan, const std::vector<int64_t>& units);

}  // namespace fusion
