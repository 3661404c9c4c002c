// Replaces the global operator new and delete in programs that link fusion_job_heap. They charge
// the current job of the calling thread (core/base/threads/job.h). Memory comes from malloc, which
// another allocator may provide.

#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

#include "core/base/threads/job.h"

namespace {

// From this size on (bytes), a block for which the job has no room is refused before it is
// allocated.
constexpr std::size_t kLarge = std::size_t{1} << 20;

bool IsTooLarge(std::size_t size) {
  if (size < kLarge || fusion::Job::Current() == nullptr) return false;
  const bool refused = size > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) ||
                       !fusion::Job::HasRoom(static_cast<std::int64_t>(size));
  if (refused) fusion::Job::Current()->Refuse();
  return refused;
}

template <typename Allocate>
void* Counted(std::size_t size, Allocate allocate) {
  if (IsTooLarge(size)) throw std::bad_alloc();
  for (;;) {
    if (void* const p = allocate()) {
      if (fusion::Job::Current() != nullptr) {
        fusion::Job::Charge(static_cast<std::int64_t>(malloc_usable_size(p)));
      }
      return p;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void Free(void* p) noexcept {
  if (p == nullptr) return;
  if (fusion::Job::Current() != nullptr) {
    fusion::Job::Release(static_cast<std::int64_t>(malloc_usable_size(p)));
  }
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) {
  return Counted(size, [size] { return std::malloc(size == 0 ? 1 : size); });
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return Counted(size,
                 [=] { return std::aligned_alloc(align, (size + align - 1) / align * align); });
}

void operator delete(void* p) noexcept { Free(p); }
void operator delete(void* p, std::size_t) noexcept { Free(p); }
void operator delete(void* p, std::align_val_t) noexcept { Free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { Free(p); }
