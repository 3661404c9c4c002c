#pragma once

#include <string_view>

namespace fusion {

/// C++ source that is appended to every kernel source: memset, memcpy, memmove and memcmp with
/// hidden visibility. Compilers emit calls of them whatever their flags, and a kernel must not
/// depend on the symbols of the process that loads it.
std::string_view FreestandingSource();

}  // namespace fusion
