#pragma once

#include "core/cache/store.h"
#include "tests/support/sample_bundle.h"

namespace fusion {

/// A plan and kernels that differ from those of every other seed.
inline Bundle SampleBundle(int seed, int kernels = 2) {
  Bundle bundle;
  bundle.plan =
      std::make_shared<StoredPlan>(MakeStoredPlan(StrCat("graph ", seed), SamplePlan(), 1));
  for (int i = 0; i < kernels; ++i) {
    bundle.kernels.push_back(std::make_shared<KernelArtifact>(SampleKernel(seed * 100 + i)));
  }
  return bundle;
}

}  // namespace fusion
