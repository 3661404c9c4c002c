#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/status.h"

namespace fusion {

// Damaged databases lie beside the one that took their place, as `<dir>.corrupt-<Unix seconds>`:
// the newest of them, for whoever wants to know what happened. Older ones go, or every damage would
// cost the disk another --store-limit.

/// Renames a damaged, closed database, deletes what was put aside before, and logs both; where it
/// is then. ResourceExhausted: no room for that; Unavailable: it cannot be renamed.
absl::StatusOr<std::string> SetAside(const std::string& dir, std::string_view reason,
                                     Logger& logger, const Clock& clock);

/// Bytes that such databases occupy beside `dir`, whenever they were put there.
int64_t SetAsideBytes(const std::string& dir);

}  // namespace fusion
