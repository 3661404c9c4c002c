#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// A stream of bytes that is read once, in order: a file, a member of an archive, or memory.
struct ByteSource {
  /// Copies 1 to `most` bytes to `to` and returns how many; 0 at the end.
  std::function<absl::StatusOr<size_t>(char* to, size_t most)> read;
  /// Total number of bytes, if it is known before reading.
  std::optional<int64_t> bytes = std::nullopt;

  /// Reads `count` bytes, or fewer if the source ends before. Returns how many.
  absl::StatusOr<size_t> ReadFully(char* to, size_t count) const {
    size_t done = 0;
    while (done < count) {
      ASSIGN_OR_RETURN(const size_t some, read(to + done, count - done));
      if (some == 0) break;
      done += some;
    }
    return done;
  }
};

/// Reads `text`, which must outlive the source.
inline ByteSource BytesOf(std::string_view text) {
  return {.read = [left = text](char* to, size_t most) mutable -> absl::StatusOr<size_t> {
            const size_t count = std::min(most, left.size());
            std::memcpy(to, left.data(), count);
            left.remove_prefix(count);
            return count;
          },
          .bytes = static_cast<int64_t>(text.size())};
}

}  // namespace fusion
