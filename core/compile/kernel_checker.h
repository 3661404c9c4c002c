#pragma once

#include <string_view>

#include "core/bundle/plan.h"
#include "core/compile/compile_job.h"

namespace fusion {

/// Decides whether a freshly compiled kernel may be published. Runs in a worker process: the kernel
/// may crash or hang there, which ends the worker and fails this one job.
class KernelChecker {
 public:
  virtual ~KernelChecker() = default;

  /// A report: the kernel may be published, `verified` saying whether it was compared. An error: it
  /// must not be published; the message reaches whoever asked for the kernel. Called by one thread.
  virtual absl::StatusOr<CheckReport> Check(const CompileJob& job,
                                            std::string_view shared_object) = 0;
};

}  // namespace fusion
