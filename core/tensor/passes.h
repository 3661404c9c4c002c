#pragma once

#include <cstdint>

#include "core/base/status.h"

namespace fusion {

/// ResourceExhausted: the error of a run whose loop would need more than `most` passes, the number
/// that its buffers have room for.
inline absl::Status MorePasses(int64_t most) {
  return ResourceExhausted(
      "a loop would make more than ", most,
      " passes, which is what there is room for; a plan for a known number has room "
      "for that");
}

}  // namespace fusion
