#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/kernel_abi.h"
#include "core/base/kernel_guard_abi.h"
#include "core/base/status.h"

namespace fusion {

/// A kernel in this process, ready to be called. Immutable; calls from several threads are fine as
/// long as their scratch differs. The code stays mapped as long as the object lives.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  /// Checked against the ABI of this build when loaded.
  virtual const FusionKernelDescriptor& descriptor() const = 0;

  /// True if it checks its accesses: `args` are then those of a FusionGuardedKernelArgs.
  virtual bool guarded() const { return false; }

  /// Runs tasks [begin, end) of a phase on scratch slice `worker`. Internal if the kernel answers a
  /// code; what a guarded one found is in its FusionKernelFault, and in FaultStatus.
  virtual absl::Status Run(const FusionKernelArgs& args, int phase, int64_t begin, int64_t end,
                           int worker) const = 0;
};

/// OK if every access of a call with these dims (null: a kernel of static shape) lies within
/// tensors of so many elements each, counted from their `data`. DataLoss, naming the tensor by its
/// position, if the kernel was made for larger ones, or takes dims and does not tell. Guarded
/// kernels check each access themselves.
absl::Status CheckReach(const LoadedKernel& kernel, const FusionInt64* dims,
                        std::span<const FusionInt64> elements);

/// A fault of a guarded kernel in words: InvalidArgument for FUSION_KERNEL_BAD_INDEX, which data of
/// the caller lead to, else Internal.
absl::Status FaultStatus(const FusionKernelFault& fault);

/// Loads a kernel that the code generator `backend` made (PlanKernel::backend): a shared object
/// that holds `symbol` and `symbol`_descriptor from memory. FailedPrecondition if its ABI version
/// is not ours or this machine lacks its ISA; DataLoss if it is no such object; Unimplemented,
/// naming it, for a backend that this build has no loader for. Runs the object's initialisers: load
/// only what you verified.
absl::StatusOr<std::shared_ptr<const LoadedKernel>> LoadKernel(std::string_view backend,
                                                               std::string_view shared_object,
                                                               std::string_view symbol);

}  // namespace fusion
