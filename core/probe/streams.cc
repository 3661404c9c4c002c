#include "core/probe/streams.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace fusion {
namespace {

volatile float stream_sink;

constexpr size_t kHugePage = size_t{2} << 20;

using V4 = float __attribute__((vector_size(16), may_alias));
using V8 = float __attribute__((vector_size(32), may_alias));
using V16 = float __attribute__((vector_size(64), may_alias));

template <class V, int kReads, int kWrites, bool kStreaming>
inline __attribute__((always_inline)) void Sweep(const Streams& s, int64_t begin, int64_t end) {
  constexpr int64_t kStep = sizeof(V) / sizeof(float);
  V sums[4] = {};
  const float* from[kReads > 0 ? kReads : 1];
  float* to[kWrites > 0 ? kWrites : 1];
  for (int r = 0; r < kReads; ++r) from[r] = s.read(r);
  for (int w = 0; w < kWrites; ++w) to[w] = s.written(w);
  for (int64_t i = begin; i < end; i += 4 * kStep) {
#pragma GCC unroll 4
    for (int64_t j = 0; j < 4; ++j) {
      V v = {};
#pragma GCC unroll 4
      for (int r = 0; r < kReads; ++r) v += *reinterpret_cast<const V*>(from[r] + i + j * kStep);
      if (kWrites == 0) sums[j] += v;
#pragma GCC unroll 4
      for (int w = 0; w < kWrites; ++w) {
        V* place = reinterpret_cast<V*>(to[w] + i + j * kStep);
        if (!kStreaming) {
          *place = v;
        } else if constexpr (sizeof(V) == 16) {
          asm volatile("movntps %1, %0" : "=m"(*place) : "x"(v));
        } else {
          asm volatile("vmovntps %1, %0" : "=m"(*place) : "v"(v));
        }
      }
    }
  }
  stream_sink = sums[0][0] + sums[1][0] + sums[2][0] + sums[3][0];
}

template <int kReads, int kWrites, bool kStreaming>
void Pass128(const Streams& s, int64_t begin, int64_t end) {
  Sweep<V4, kReads, kWrites, kStreaming>(s, begin, end);
}
template <int kReads, int kWrites, bool kStreaming>
__attribute__((target("avx2"))) void Pass256(const Streams& s, int64_t begin, int64_t end) {
  Sweep<V8, kReads, kWrites, kStreaming>(s, begin, end);
}
template <int kReads, int kWrites, bool kStreaming>
__attribute__((target("avx512f"))) void Pass512(const Streams& s, int64_t begin, int64_t end) {
  Sweep<V16, kReads, kWrites, kStreaming>(s, begin, end);
}

template <int kReads, int kWrites, bool kStreaming>
StreamPass PassFor(Isa isa) {
  if (isa >= Isa::kAvx512) return Pass512<kReads, kWrites, kStreaming>;
  if (isa >= Isa::kAvx2) return Pass256<kReads, kWrites, kStreaming>;
  return Pass128<kReads, kWrites, kStreaming>;
}

template <bool kStreaming>
StreamPass FindPass(int reads, int writes, Isa isa) {
  if (reads == 1 && writes == 0) return PassFor<1, 0, false>(isa);
  if (reads == 2 && writes == 0) return PassFor<2, 0, false>(isa);
  if (reads == 1 && writes == 1) return PassFor<1, 1, kStreaming>(isa);
  if (reads == 2 && writes == 1) return PassFor<2, 1, kStreaming>(isa);
  if (reads == 3 && writes == 1) return PassFor<3, 1, kStreaming>(isa);
  return nullptr;
}

}  // namespace

Streams::Streams(int reads, int writes, int64_t bytes) : reads_(reads) {
  floats_ = std::max<int64_t>(bytes / 4 / (reads + writes), 1024) / 64 * 64;
  for (int a = 0; a < reads + writes; ++a) {
    const size_t filled = static_cast<size_t>(floats_) * 4;
    const size_t page = filled < kHugePage ? size_t{4096} : kHugePage;
    const size_t room = (filled + page - 1) / page * page;
    Array array(static_cast<float*>(std::aligned_alloc(page, room)), &std::free);
    if (array == nullptr) throw std::bad_alloc();
    if (page == kHugePage) madvise(array.get(), room, MADV_HUGEPAGE);  // only a hint
    std::fill_n(array.get(), floats_, 1.0F);
    arrays_.push_back(std::move(array));
  }
}

StreamPass FindStreamPass(int reads, int writes, bool streaming, Isa isa) {
  return streaming ? FindPass<true>(reads, writes, isa) : FindPass<false>(reads, writes, isa);
}

}  // namespace fusion
