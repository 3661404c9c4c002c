#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/logging.h"
#include "core/base/status.h"

namespace fusion {

// A damaged database is renamed to `<dir>.corrupt-<Unix seconds>`, for diagnosis. Only the newest
// is kept: each one may be as large as --store-limit.

/// Renames a damaged, closed database, deletes those renamed before, and logs both. Returns the new
/// path. ResourceExhausted: no space; Unavailable: it cannot be renamed.
absl::StatusOr<std::string> SetAside(const std::string& dir, std::string_view reason,
                                     Logger& logger, const Clock& clock);

/// Bytes that all renamed databases of `dir` occupy.
int64_t SetAsideBytes(const std::string& dir);

}  // namespace fusion
