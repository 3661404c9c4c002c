#pragma once

#include <string_view>

#include "core/smg/stream.h"

namespace fusion {

/// What must be derived when one dim of a graph is streamed.
struct StreamCase {
  const char* name;
  int64_t extent;  // of the dim: the only one of this extent
  Streamed::Kind kind;
  /// Code of the refusal; of a form that streams: of the one that would read its input once.
  const char* refusal;
  const char* graph;
  /// Functions of the coordinates that say which tiles matter.
  size_t needed = 0;
  /// Those that say so once what is masked by finite numbers underflows.
  size_t underflow = 0;
  /// Codes where a disguise makes another function of it, null where they are `refusal`: with the
  /// sum of squares of a value besides, and with quotients by r^1.5.
  const char* extra_reduction = nullptr;
  const char* other_scale = nullptr;
};

}  // namespace fusion
