#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace fusion {

/// Answers up to this size are not counted: 4,096 calls, the most that gRPC keeps, have at most 64
/// MiB of them.
inline constexpr int64_t kSmallAnswerBytes = 16 << 10;

/// The memory that an answer keeps until its caller has read it.
struct AnswerMemory {
  /// An object that caches and other answers may keep too. It counts once, however many keep it.
  struct Part {
    const void* what = nullptr;  // identity of the object
    int64_t bytes = 0;
  };

  int64_t own = 0;  // bytes of this answer alone
  absl::InlinedVector<Part, 2> shared = {};
  bool cached = false;  // a cache currently keeps the shared objects

  /// Total bytes if nothing else keeps the shared objects.
  int64_t most() const {
    int64_t bytes = own;
    for (const Part& part : shared) bytes += part.bytes;
    return bytes;
  }
};

}  // namespace fusion
