#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/logging.h"
#include "core/base/threads/mutex.h"
#include "core/bundle/plan.h"
#include "core/bundle/report.h"
#include "core/bundle/rules/registered_kernel.h"

namespace fusion {

/// The kernels that the server's operator registered, and the state of each since the server
/// started. A kernel that fails is quarantined until the next start: no new plan uses it, in any
/// place. Thread-safe. `logger` outlives it.
class KernelRegistry {
 public:
  KernelRegistry(RegisteredKernels kernels, Logger& logger);

  const RegisteredKernels& kernels() const { return kernels_; }

  /// Kernels that no new plan may use: name -> reason, as text of a fallback.
  std::map<std::string, std::string> Quarantined() const;
  /// True if a registered kernel that `plan` works around failed for a reason that may pass: a
  /// limit, or a worker that died. Such a plan is not stored.
  bool MayPass(const Plan& plan) const;
  /// Records that a kernel of `name` failed. Logged once per name.
  void Quarantine(const std::string& name, const absl::Status& why);
  /// Records that the registered kernels of `plan` are built.
  void NoteReady(const Plan& plan);

  /// All registered kernels, in the order of the files.
  std::vector<RegisteredCapability> Describe() const;

 private:
  struct State {
    RegisteredState state = RegisteredState::kUnused;
    std::string reason;
    bool may_pass = false;
  };

  const RegisteredKernels kernels_;
  Logger& logger_;
  mutable Mutex mutex_;
  std::map<std::string, State> states_ ABSL_GUARDED_BY(mutex_);  // by name
};

}  // namespace fusion
