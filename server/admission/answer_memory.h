#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace fusion {

/// Of an answer; those of as many calls as gRPC keeps come to 64 MB. Smaller ones are not counted.
inline constexpr int64_t kSmallAnswerBytes = 16 << 10;

/// What an answer keeps of memory until its caller has read it.
struct AnswerMemory {
  /// Of what caches and other answers keep, too, as long as they want: once however many do.
  struct Part {
    const void* what = nullptr;
    int64_t bytes = 0;
  };

  int64_t own = 0;  // bytes
  absl::InlinedVector<Part, 2> shared = {};
  bool cached = false;  // a cache has what is shared, for the time being

  /// If nobody else keeps any of it.
  int64_t most() const {
    int64_t bytes = own;
    for (const Part& part : shared) bytes += part.bytes;
    return bytes;
  }
};

}  // namespace fusion
