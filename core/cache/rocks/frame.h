#pragma once

#include <string>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/status.h"

namespace fusion {

/// `payload` behind a mark, a format version and the payload's SHA-256: how entries lie on disk.
std::string Frame(std::string_view payload);

/// The payload within `framed` (no copy). DataLoss if anything of it was cut off or changed;
/// Unimplemented if it was written by another format version.
absl::StatusOr<std::string_view> Unframe(std::string_view framed);

/// The payload's digest as a string made by Frame carries it.
Digest FrameDigest(std::string_view framed);

}  // namespace fusion
