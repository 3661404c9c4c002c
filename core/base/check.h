#pragma once

#include <string_view>

namespace fusion {

/// Prints `sentence` with its place and aborts. Use through FUSION_CHECK.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view sentence);

}  // namespace fusion

/// Aborts if an invariant of ours is broken; `sentence` states the invariant. Only for our own
/// bugs: request bytes, files, toolchain output and ONNX are validated with Status.
#define FUSION_CHECK(condition, sentence)                              \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::fusion::CheckFailed(__FILE__, __LINE__, #condition, sentence); \
  } while (false)
