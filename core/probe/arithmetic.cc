#include "core/probe/arithmetic.h"

#include <immintrin.h>

namespace fusion {
namespace {

volatile float arithmetic_sink;

// Tiles of 16 rows, two of rows by two of columns, fetched from L1 for each step.
struct TileShapes {
  unsigned char palette = 1, start_row = 0, none[14] = {};
  unsigned short row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
TileShapes tile_shapes;  // in memory: the intrinsic says that it reads 8 bytes
alignas(64) char tile_rows[4][1024];

using Lanes4 = float __attribute__((vector_size(16), may_alias));
using Lanes8 = float __attribute__((vector_size(32), may_alias));
using Lanes16 = float __attribute__((vector_size(64), may_alias));

constexpr int kAdditions = 16;  // of an element
constexpr size_t kArrayFloats = 1024;

struct alignas(64) Arrays {
  float x[kArrayFloats];
  float y[kArrayFloats];
  float sum[kArrayFloats];
};

// One pass over arrays in L1: x + y + ... + y, the additions of an element in a chain.
template <class V>
inline __attribute__((always_inline)) double AddChains(long n) {
  constexpr size_t kLanes = sizeof(V) / sizeof(float);
  thread_local Arrays arrays = {};
  for (long k = 0; k < n; ++k) {
    for (size_t i = 0; i < kArrayFloats; i += 4 * kLanes) {
      V sums[4];
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) {
        sums[j] = *reinterpret_cast<const V*>(arrays.x + i + j * kLanes);
        V y = *reinterpret_cast<const V*>(arrays.y + i + j * kLanes);
#pragma GCC unroll 16
        for (int a = 0; a < kAdditions; ++a) sums[j] += y;
      }
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) *reinterpret_cast<V*>(arrays.sum + i + j * kLanes) = sums[j];
    }
    asm volatile("" : : "r"(arrays.sum) : "memory");
  }
  arithmetic_sink = arrays.sum[0];
  return static_cast<double>(kArrayFloats) * kAdditions * static_cast<double>(n);
}

__attribute__((target("avx2"))) double Additions256(long n) { return AddChains<Lanes8>(n); }
__attribute__((target("avx512f"))) double Additions512(long n) { return AddChains<Lanes16>(n); }
double Additions128(long n) { return AddChains<Lanes4>(n); }

}  // namespace

__attribute__((target("avx512f"))) double MultiplyAdd512(long n) {
  __m512 acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i) * 0.1f);
  __m512 x = _mm512_set1_ps(0.999f);
  __m512 y = _mm512_set1_ps(1e-5f);
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) acc[i] = _mm512_fmadd_ps(acc[i], x, y);
  }
  float sum = 0;
  for (const __m512& a : acc) sum += _mm512_reduce_add_ps(a);
  arithmetic_sink = sum;
  return 16.0 * 32.0 * static_cast<double>(n);
}

// Two products a lane and instruction.
__attribute__((target("avx512f,avx512bf16"))) double DotBf16(long n) {
  __m512 acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i) * 0.1f);
  const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  const __m512bh y = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-5f), _mm512_set1_ps(1e-6f));
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) acc[i] = _mm512_dpbf16_ps(acc[i], x, y);
  }
  float sum = 0;
  for (const __m512& a : acc) sum += _mm512_reduce_add_ps(a);
  arithmetic_sink = sum;
  return 16.0 * 64.0 * static_cast<double>(n);
}

// Four products a lane and instruction.
__attribute__((target("avx512f,avx512vnni"))) double DotI8(long n) {
  __m512i acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = _mm512_set1_epi32(i);
  const __m512i x = _mm512_set1_epi8(3);
  const __m512i y = _mm512_set1_epi8(-1);
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) acc[i] = _mm512_dpbusd_epi32(acc[i], x, y);
  }
  int sum = 0;
  for (const __m512i& a : acc) sum += _mm512_reduce_add_epi32(a);
  arithmetic_sink = static_cast<float>(sum);
  return 16.0 * 128.0 * static_cast<double>(n);
}

static __attribute__((target("amx-tile,amx-bf16,amx-int8"))) double Tiles(long n, bool bytes) {
  _tile_loadconfig(&tile_shapes);
  for (long k = 0; k < n; ++k) {
    _tile_loadd(4, tile_rows[0], 64);
    _tile_loadd(5, tile_rows[1], 64);
    _tile_loadd(6, tile_rows[2], 64);
    _tile_loadd(7, tile_rows[3], 64);
    if (bytes) {
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    } else {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_release();
  return 4 * 2.0 * 16 * 16 * (bytes ? 64 : 32) * static_cast<double>(n);
}

__attribute__((target("avx2,fma"))) double MultiplyAdd256(long n) {
  __m256 acc[12];
  for (int i = 0; i < 12; ++i) acc[i] = _mm256_set1_ps(static_cast<float>(i) * 0.1f);
  __m256 x = _mm256_set1_ps(0.999f);
  __m256 y = _mm256_set1_ps(1e-5f);
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) acc[i] = _mm256_fmadd_ps(acc[i], x, y);
  }
  float sum = 0;
  for (const __m256& a : acc) sum += a[0] + a[5];
  arithmetic_sink = sum;
  return 12.0 * 16.0 * static_cast<double>(n);
}

double MultiplyAdd128(long n) {
  __m128 acc[8];
  for (int i = 0; i < 8; ++i) acc[i] = _mm_set1_ps(static_cast<float>(i) * 0.1f);
  __m128 x = _mm_set1_ps(0.999f);
  __m128 y = _mm_set1_ps(1e-5f);
  for (long k = 0; k < n; ++k) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) acc[i] = _mm_add_ps(_mm_mul_ps(acc[i], x), y);
  }
  float sum = 0;
  for (const __m128& a : acc) sum += a[0];
  arithmetic_sink = sum;
  return 8.0 * 8.0 * static_cast<double>(n);
}

double TilesBf16(long n) { return Tiles(n, /*bytes=*/false); }
double TilesI8(long n) { return Tiles(n, /*bytes=*/true); }

WorkLoop ProductLoop(DType type, Isa isa) {
  if (type == DType::kF32) {
    if (isa >= Isa::kAvx512) return MultiplyAdd512;
    return isa >= Isa::kAvx2 ? MultiplyAdd256 : MultiplyAdd128;
  }
  if (type == DType::kBF16) {
    if (isa >= Isa::kAvx512Amx) return TilesBf16;
    return isa >= Isa::kAvx512Bf16 ? DotBf16 : nullptr;
  }
  if (type == DType::kI8) {
    if (isa >= Isa::kAvx512Amx) return TilesI8;
    return isa >= Isa::kAvx512Vnni ? DotI8 : nullptr;
  }
  return nullptr;
}

WorkLoop AdditionLoop(Isa isa) {
  if (isa >= Isa::kAvx512) return Additions512;
  return isa >= Isa::kAvx2 ? Additions256 : Additions128;
}

}  // namespace fusion
