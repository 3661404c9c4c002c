// A library for LD_PRELOAD that has no memory for large blocks.
//
//   FUSION_BLOCK_LIMIT  bytes: allocations of more fail with ENOMEM; without it nothing happens
//
// What a shortage does is then the same in every run, and libraries, whose blocks are small, have
// what they need. Plain C++ and no library of ours: it must not change what it looks at.
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

extern "C" {

// glibc's own, under the names that it exports for this.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

static int IsTooMuch(size_t bytes) {
  static const char* const text = getenv("FUSION_BLOCK_LIMIT");
  static const size_t limit = text == nullptr ? 0 : strtoull(text, nullptr, 10);
  if (limit == 0 || bytes <= limit) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) { return IsTooMuch(bytes) ? nullptr : __libc_malloc(bytes); }

void* calloc(size_t count, size_t bytes) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all) || IsTooMuch(all)) return nullptr;
  return __libc_calloc(count, bytes);
}

void* realloc(void* block, size_t bytes) {
  return IsTooMuch(bytes) ? nullptr : __libc_realloc(block, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  return IsTooMuch(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  void* made = memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

}  // extern "C"
