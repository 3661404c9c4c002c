#include "core/compile/freestanding.h"

namespace fusion {

std::string_view FreestandingSource() {
  // String instructions: a loop would be recognised as the function it is part of.
  return R"(
#define FUSION_HIDDEN extern "C" __attribute__((visibility("hidden")))
FUSION_HIDDEN void* memset(void* to, int value, unsigned long n) {
  void* at = to;
  __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(value) : "memory");
  return to;
}
FUSION_HIDDEN void* memcpy(void* to, const void* from, unsigned long n) {
  void* at = to;
  __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
  return to;
}
FUSION_HIDDEN void* memmove(void* to, const void* from, unsigned long n) {
  if ((unsigned long)to - (unsigned long)from >= n) return memcpy(to, from, n);
  char* at = (char*)to + n - 1;
  const char* last = (const char*)from + n - 1;
  __asm__ volatile("std; rep movsb; cld" : "+D"(at), "+S"(last), "+c"(n) : : "memory");
  return to;
}
FUSION_HIDDEN int memcmp(const void* a, const void* b, unsigned long n) {
  const unsigned char* x = (const unsigned char*)a;
  const unsigned char* y = (const unsigned char*)b;
  for (unsigned long i = 0; i < n; ++i) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}
)";
}

}  // namespace fusion
