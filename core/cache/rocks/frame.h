#pragma once

#include <string>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/status.h"

namespace fusion {

/// The format of entries on disk: a mark, a format version, the payload's SHA-256, `payload`.
std::string Frame(std::string_view payload);

/// The payload within `framed` (no copy: valid as long as `framed`). DataLoss if it is truncated or
/// changed; Unimplemented if it has another format version.
absl::StatusOr<std::string_view> Unframe(std::string_view framed);

/// The payload's SHA-256, read from a string that Frame made.
Digest FrameDigest(std::string_view framed);

}  // namespace fusion
