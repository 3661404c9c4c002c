#pragma once

#include <cstddef>
#include <vector>

#include "core/runtime/bound_tensor.h"
#include "core/runtime/shared_memory.h"

namespace fusion {

/// The caller's tensors of one run, by position in the plan, and the values of symbols that follow
/// from their dims. Points into itself and into the caller's tensors: keep both until the run is
/// over.
struct RunBinding {
  RunBinding() = default;
  RunBinding(const RunBinding&) = delete;
  RunBinding& operator=(const RunBinding&) = delete;

  std::vector<BoundTensor> inputs;
  std::vector<BoundTensor> outputs;
  std::vector<Dims> input_dims;  // of every input; set if memory is shared or the plan has symbols
  std::vector<Dims> shared_outputs;  // by shared buffer: the dims of its output
  std::vector<int64_t> units;        // values of the symbols, as SymbolUnits returns them
  /// By Plan::bound_strides: copies with those strides (CopyToStrides).
  std::vector<HostTensor> strided;
};

/// Binds the inputs. Those in shared buffers are bound to `memory`; null: every input is a tensor
/// of its own. InvalidArgument for a missing input, and for dims that the plan does not cover.
absl::Status BindInputs(const Plan& plan, const std::vector<const HostTensor*>& inputs,
                        const SharedMemory* memory, RunBinding* binding);

/// Binds the outputs likewise. Call after BindInputs. InvalidArgument, naming the tensor, for a
/// missing output, and for inputs and outputs whose type or dims differ from the plan's.
absl::Status BindOutputs(const Plan& plan, const std::vector<HostTensor*>& outputs,
                         const SharedMemory* memory, RunBinding* binding);

/// Binds inputs and outputs that have the plan's layout already. InvalidArgument, naming the
/// tensor, for another type or dims, for too little memory, and for an input and an output that
/// share a buffer but have different addresses.
absl::Status BindInPlace(const Plan& plan, const std::vector<BoundTensor>& inputs,
                         const std::vector<BoundTensor>& outputs, RunBinding* binding);

/// Call after binding dense tensors: replaces those with Plan::bound_strides by memory with these
/// strides, and copies inputs to it. ResourceExhausted if there is no memory.
absl::Status CopyToStrides(const Plan& plan, RunBinding* binding);
/// Call after the run: copies such outputs to the caller's dense tensors.
void CopyFromStrides(const Plan& plan, const std::vector<HostTensor*>& outputs,
                     const RunBinding& binding);

/// InvalidArgument if a tensor of the plan, for these values of the symbols, extends beyond the
/// caller's input or output that it is part of.
absl::Status CheckWithinBound(const Plan& plan, const std::vector<int64_t>& units);

}  // namespace fusion
