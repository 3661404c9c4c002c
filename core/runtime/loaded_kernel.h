#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/kernel_abi.h"
#include "core/base/kernel_guard_abi.h"
#include "core/base/status.h"

namespace fusion {

/// A kernel loaded in this process. Immutable. Run is thread-safe for concurrent calls with
/// different workers or different scratch. The code stays mapped as long as the object lives.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  /// The kernel's descriptor, checked when it was loaded. Valid as long as this object.
  virtual const FusionKernelDescriptor& descriptor() const = 0;

  /// True if the kernel checks its accesses. `args` of Run must then be the first member of a
  /// FusionGuardedKernelArgs.
  virtual bool guarded() const { return false; }

  /// Runs tasks [begin, end) of a phase on the scratch slice of `worker`. Internal if the kernel
  /// returns an error code; for a guarded kernel see also its FusionKernelFault and FaultStatus.
  virtual absl::Status Run(const FusionKernelArgs& args, int phase, int64_t begin, int64_t end,
                           int worker) const = 0;
};

/// Checks that every access of a call with these `dims` (null: a kernel of static shape) stays
/// inside its tensors. `elements`: by tensor, the elements in its memory from `data` on. DataLoss,
/// naming the tensor by its position, if the kernel accesses more, or if it takes run-time dims and
/// its descriptor has no `reach`. OK for guarded kernels, which check each access, and for static
/// ones without `reach`, which are written by hand.
absl::Status CheckReach(const LoadedKernel& kernel, const FusionInt64* dims,
                        std::span<const FusionInt64> elements);

/// The status for a fault of a guarded kernel: InvalidArgument for FUSION_KERNEL_BAD_INDEX, which
/// the caller's data cause, else Internal.
absl::Status FaultStatus(const FusionKernelFault& fault);

/// Loads a kernel from memory. `backend`: the code generator that made it (PlanKernel::backend).
/// `shared_object`: the bytes of a shared object with `symbol` and `symbol`_descriptor; they are
/// copied. Loading
/// runs the object's initialisers: pass verified objects only. FailedPrecondition if its ABI
/// version differs or this machine lacks its ISA; DataLoss if it is not such an object;
/// Unimplemented, naming the backend, if this build has no loader for it; ResourceExhausted if
/// there is no memory.
absl::StatusOr<std::shared_ptr<const LoadedKernel>> LoadKernel(std::string_view backend,
                                                               std::string_view shared_object,
                                                               std::string_view symbol);

}  // namespace fusion
