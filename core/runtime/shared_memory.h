#pragma once

#include <cstdint>
#include <vector>

#include "core/bundle/plan.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// The caller's memory for the shared buffers of a plan (Plan::shared_buffers), in their order. A
/// run appends to what the previous run left there. A model that appends to caches needs one
/// SharedMemory for each sequence.
struct SharedMemory {
  /// One tensor for each buffer, with the dims of the output and the full capacity along the shared
  /// dim.
  std::vector<HostTensor> buffers;
  /// By buffer: the valid elements along the shared dim, which the next run reads as its input.
  std::vector<int64_t> rows;
};

/// Zeroed buffers with 0 valid elements, of the dims that the outputs have for these values of the
/// plan's symbols (`units`, see SymbolUnits). ResourceExhausted if there is no memory.
absl::StatusOr<SharedMemory> MakeSharedMemory(const Plan& plan, const std::vector<int64_t>& units);

/// Buffers that contain the elements of `inputs` (dense, by graph input). InvalidArgument for a
/// missing input, and for one of another rank or with more elements along the shared dim than the
/// capacity. The run checks the other dims. ResourceExhausted if there is no memory.
absl::StatusOr<SharedMemory> LoadSharedMemory(const Plan& plan,
                                              const std::vector<const HostTensor*>& inputs);

/// The dims of a run's inputs, by graph input; for inputs in shared buffers, those in `memory`.
/// `memory` may be null: nothing is shared. InvalidArgument, naming the buffer, if `memory` does
/// not match the plan, and for a null input that is in no buffer.
absl::StatusOr<std::vector<Dims>> InputDims(const Plan& plan,
                                            const std::vector<const HostTensor*>& inputs,
                                            const SharedMemory* memory);

/// The valid elements of buffer `i` of `memory`, as a dense tensor.
HostTensor RowsOf(const Plan& plan, const SharedMemory& memory, size_t i);
/// Copies the valid elements of every buffer to the tensors of its output. InvalidArgument, naming
/// the output, for one that is null or has another type or other dims.
absl::Status StoreRows(const Plan& plan, const SharedMemory& memory,
                       const std::vector<HostTensor*>& outputs);

/// True if input `i` is in a shared buffer.
bool IsSharedInput(const Plan& plan, size_t i);

}  // namespace fusion
