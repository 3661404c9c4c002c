#include "core/bundle/report.h"

namespace fusion {

Digest LaunchedKernels(const Plan& plan) {
  std::string keys;
  for (const PlanLaunch& launch : plan.launches) {
    keys += BytesOf(plan.kernels[static_cast<size_t>(launch.kernel)].key);
  }
  return Sha256(keys);
}

}  // namespace fusion
