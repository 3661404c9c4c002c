#pragma once

#include "core/base/clock.h"

namespace fusion {

/// Wall time as it is stored and sent: milliseconds since the Unix epoch.
inline int64_t UnixMilliseconds(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock.UnixTime()).count();
}

}  // namespace fusion
