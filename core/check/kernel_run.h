#pragma once

#include <vector>

#include "core/runtime/loaded_kernel.h"
#include "core/schedule/ir/schedule.h"
#include "core/schedule/lower/reference.h"

namespace fusion {

struct KernelRunOptions {
  /// The params of each pair of Schedule::may_alias share their memory.
  bool in_place = false;
  /// FusionKernelArgs.dims, for a kernel that takes sizes; else null or empty. Owned by the caller.
  const std::vector<int64_t>* sizes = nullptr;
};

/// Runs a kernel once on this thread, under the most hostile conditions that the ABI allows: one
/// task per call, in reverse order (tasks must be independent); scratch, workspace and outputs
/// filled with NaN (the kernel must not read what it did not write); and guard bytes around every
/// tensor, which must stay unchanged.
///
/// `inputs`: one row-major tensor per input of reference.program. Returns one tensor per output of
/// the program; for a packed output (PackSchedule), the param as stored. Internal if the kernel
/// wrote outside its outputs or returned an error code; InvalidArgument if kernel, schedule,
/// reference, inputs and sizes do not match; DataLoss as CheckReach. An index out of range in a
/// guarded kernel is no error: the kernel uses the nearest element instead.
absl::StatusOr<std::vector<HostTensor>> RunKernel(const LoadedKernel& kernel,
                                                  const Schedule& schedule,
                                                  const KernelReference& reference,
                                                  const std::vector<HostTensor>& inputs,
                                                  const KernelRunOptions& options = {});

/// The content of param `buffer` for `value`, a row-major tensor of reference.program: a flat
/// tensor in the order of memory, with 0 as padding of packed params. InvalidArgument if type or
/// number of elements do not match, or if a packed param reads outside its source.
absl::StatusOr<HostTensor> ToStorage(const Buffer& buffer, const KernelReference& reference,
                                     const KernelReference::Param& param, const HostTensor& value);

}  // namespace fusion
