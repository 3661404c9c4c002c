#pragma once

#include <vector>

#include "core/runtime/loaded_kernel.h"
#include "core/schedule/ir/schedule.h"
#include "core/schedule/lower/reference.h"

namespace fusion {

struct KernelRunOptions {
  /// Every pair of Schedule::may_alias shares its memory.
  bool in_place = false;
  /// Of a kernel that takes sizes: FusionKernelArgs.dims. Refers to the caller's.
  const std::vector<int64_t>* sizes = nullptr;
};

/// Runs a kernel once on this thread, as hostile as the ABI allows: one task a call, backwards
/// (tasks must not depend on each other), scratch, workspace and outputs full of NaN (what is read
/// was written), and a pattern around every tensor that must survive.
///
/// `inputs` by input of reference.program, row-major. Returns one tensor per output of the program;
/// for a packed output (PackSchedule) the param as it was stored. Internal if the kernel wrote
/// where it must not or answers an error; InvalidArgument if schedule, reference and kernel do not
/// fit together.
absl::StatusOr<std::vector<HostTensor>> RunKernel(const LoadedKernel& kernel,
                                                  const Schedule& schedule,
                                                  const KernelReference& reference,
                                                  const std::vector<HostTensor>& inputs,
                                                  const KernelRunOptions& options = {});

/// The elements of a param (flat, in the order of memory, padding 0) that hold `value`, a row-major
/// tensor of reference.program.
absl::StatusOr<HostTensor> ToStorage(const Buffer& buffer, const KernelReference& reference,
                                     const KernelReference::Param& param, const HostTensor& value);

}  // namespace fusion
