#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace fusion {

void CheckFailed(const char* file, int line, const char* condition, std::string_view sentence) {
  std::fprintf(stderr, "%s:%d: bug: %.*s (%s)\n", file, line, static_cast<int>(sentence.size()),
               sentence.data(), condition);
  std::abort();
}

}  // namespace fusion
