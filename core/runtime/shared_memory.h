#pragma once

#include <cstdint>
#include <vector>

#include "core/bundle/plan.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// The caller's memory behind the shared buffers of a plan (Plan::shared_buffers), in their order.
/// What one run leaves there is what the next one finds: of a model that appends to caches, one for
/// each sequence.
struct SharedMemory {
  /// Of the dims of the outputs, with the capacities along the shared dims.
  std::vector<HostTensor> buffers;
  /// Elements along the shared dims that there are: those of the next run's inputs.
  std::vector<int64_t> rows;
};

/// Zeroed memory that holds nothing yet, of the dims that the outputs have where the plan's symbols
/// have these values (`units`, as SymbolUnits gives them). ResourceExhausted if there is no memory
/// for it.
absl::StatusOr<SharedMemory> MakeSharedMemory(const Plan& plan, const std::vector<int64_t>& units);

/// The same with the elements of `inputs`, dense and by graph input. InvalidArgument for an input
/// that has other dims than the buffer, but for the shared one, or more elements than it can take.
absl::StatusOr<SharedMemory> LoadSharedMemory(const Plan& plan,
                                              const std::vector<const HostTensor*>& inputs);

/// The dims of the inputs of a run, by graph input: of those that share buffers what `memory` has.
/// InvalidArgument, naming the buffer, if it is not what the plan says, and for an input that is
/// null though it lies in no buffer. `memory` may be null: nothing is shared then.
absl::StatusOr<std::vector<Dims>> InputDims(const Plan& plan,
                                            const std::vector<const HostTensor*>& inputs,
                                            const SharedMemory* memory);

/// The elements that buffer `i` of `memory` has, dense.
HostTensor RowsOf(const Plan& plan, const SharedMemory& memory, size_t i);
/// The same of every buffer into the tensors of its outputs. InvalidArgument, naming the output,
/// for one that is null or of another type.
absl::Status StoreRows(const Plan& plan, const SharedMemory& memory,
                       const std::vector<HostTensor*>& outputs);

/// Whether input `i` lies in a shared buffer.
bool IsSharedInput(const Plan& plan, size_t i);

}  // namespace fusion
