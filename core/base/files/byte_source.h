#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>

#include "core/base/status.h"

namespace fusion {

/// Bytes that are read once, in order: of a file, of a member of an archive, of memory.
struct ByteSource {
  /// Puts at most `most` bytes at `to` and returns how many; 0 at the end.
  std::function<absl::StatusOr<size_t>(char* to, size_t most)> read;
  /// How many there are in all, where that is known before they are read.
  std::optional<int64_t> bytes = std::nullopt;

  /// Reads `count` bytes, or fewer where the source ends: how many.
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

/// `text` must outlive the source.
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
