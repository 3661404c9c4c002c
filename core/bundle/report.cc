#include "core/bundle/report.h"

namespace fusion {

Digest LaunchedKernels(const Plan& plan) {
  std::string keys;
  for (const PlanLaunch& launch : plan.launches) {
    keys += BytesOf(plan.kernels[static_cast<size_t>(launch.kernel)].key);
  }
  return Sha256(keys);
}

std::string_view RegisteredStateName(RegisteredState state) {
  constexpr std::string_view kNames[] = {"unused", "ready", "quarantined"};
  return kNames[static_cast<size_t>(state)];
}

}  // namespace fusion
