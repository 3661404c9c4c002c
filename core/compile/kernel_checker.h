#pragma once

#include <string_view>

#include "core/bundle/plan.h"
#include "core/compile/compile_job.h"

namespace fusion {

/// Decides whether a newly compiled kernel may be published. Runs in a worker process. If the
/// kernel crashes or hangs, the worker ends and this one job fails.
class KernelChecker {
 public:
  virtual ~KernelChecker() = default;

  /// Returns a report if the kernel may be published; CheckReport::verified says whether it was
  /// compared with its reference. An error means that it must not be published; its message reaches
  /// the requester. Called by one thread.
  virtual absl::StatusOr<CheckReport> Check(const CompileJob& job,
                                            std::string_view shared_object) = 0;
};

}  // namespace fusion
