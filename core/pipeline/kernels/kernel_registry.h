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

/// The kernels that the server's operator registered, and what became of each since the server
/// started. One that fails is quarantined until the next start: no new plan uses it, whatever it
/// is for. Thread-safe. `logger` outlives it.
class KernelRegistry {
 public:
  KernelRegistry(RegisteredKernels kernels, Logger& logger);

  const RegisteredKernels& kernels() const { return kernels_; }

  /// Those that no new plan may use, by name with the words of a fallback.
  std::map<std::string, std::string> Quarantined() const;
  /// True if one of `plan`'s fallbacks may not come again: what failed ran into a limit or killed
  /// its worker.
  bool MayPass(const Plan& plan) const;
  /// A kernel of `name` failed. Logs it, once.
  void Quarantine(const std::string& name, const absl::Status& why);
  /// The kernels of these groups are there.
  void NoteReady(const Plan& plan);

  /// In the order of the files.
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
