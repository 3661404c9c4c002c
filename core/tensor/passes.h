#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace fusion {

/// What a run says whose loop would go on behind the passes that there is room for.
inline absl::Status MorePasses(int64_t most) {
  return ResourceExhausted(
      "a loop would make more than ", most,
      " passes, which is what there is room for; a plan for a known number has room "
      "for that");
}

}  // namespace fusion
