#pragma once

#include <string_view>

namespace fusion {

/// C++ that stands behind every kernel source: memset, memcpy, memmove and memcmp, visible in that
/// object only. Compilers call them for arrays and structs whatever flags they get, and a kernel
/// must not depend on what the process that loads it happens to export.
std::string_view FreestandingSource();

}  // namespace fusion
