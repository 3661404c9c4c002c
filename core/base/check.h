#pragma once

#include <string_view>

namespace fusion {

/// Prints `sentence` with its place and aborts. Use through FUSION_CHECK.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view sentence);

}  // namespace fusion

/// Only for bugs of ours, with a sentence that says what we guarantee. Request bytes, files,
/// toolchain output and ONNX never reach it: they are checked with Status.
#define FUSION_CHECK(condition, sentence)                              \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::fusion::CheckFailed(__FILE__, __LINE__, #condition, sentence); \
  } while (false)
