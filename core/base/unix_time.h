#pragma once

#include "core/base/clock.h"

namespace fusion {

/// Wall time in milliseconds since the Unix epoch, the unit of stored and sent times.
inline int64_t UnixMilliseconds(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock.UnixTime()).count();
}

}  // namespace fusion
