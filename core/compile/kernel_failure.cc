#include "core/compile/kernel_failure.h"

namespace fusion {

bool IsKernelsFault(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsDeadlineExceeded(status) || absl::IsAborted(status) ||
         absl::IsUnimplemented(status);
}

bool MayPass(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsAborted(status);
}

}  // namespace fusion
