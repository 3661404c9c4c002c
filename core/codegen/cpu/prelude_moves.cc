#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

// Lane i of vector j becomes lane j of vector i, by exchanges of ever longer runs of lanes between
// vectors that are as far apart.
constexpr std::string_view kTranspose = R"(
template <int H, class V>
AI void exchange(V& a, V& b) {
#define LOW(i) ((i) & H ? W + (i) - H : (i))
#define HIGH(i) ((i) & H ? W + (i) : (i) + H)
#define FOUR(f, i) f(i), f(i + 1), f(i + 2), f(i + 3)
  const V x = a, y = b;
  if constexpr (W == 16) {
    a = __builtin_shufflevector(x, y, FOUR(LOW, 0), FOUR(LOW, 4), FOUR(LOW, 8), FOUR(LOW, 12));
    b = __builtin_shufflevector(x, y, FOUR(HIGH, 0), FOUR(HIGH, 4), FOUR(HIGH, 8), FOUR(HIGH, 12));
  } else if constexpr (W == 8) {
    a = __builtin_shufflevector(x, y, FOUR(LOW, 0), FOUR(LOW, 4));
    b = __builtin_shufflevector(x, y, FOUR(HIGH, 0), FOUR(HIGH, 4));
  } else {
    a = __builtin_shufflevector(x, y, FOUR(LOW, 0));
    b = __builtin_shufflevector(x, y, FOUR(HIGH, 0));
  }
#undef LOW
#undef HIGH
#undef FOUR
}
template <int H>
AI void exchange_all(vf* v) {
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) {
    if ((i & H) == 0) exchange<H>(v[i], v[i + H]);
  }
}
AI void transpose_f32(vf* v) {
  vf r[W];
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) r[i] = v[i];
  exchange_all<1>(r);
  exchange_all<2>(r);
  if constexpr (W > 4) exchange_all<4>(r);
  if constexpr (W > 8) exchange_all<8>(r);
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) v[i] = r[i];
}
)";

// `rows` times `width` elements, of which those of a row are `apart`, into rows of `block` that are
// `to_apart`, filled up with zeros.
constexpr std::string_view kCopyTurned = R"(
template <class F, class T>
static void copy_turned(F from, i64 apart, T to, i64 to_apart, i64 rows, i64 width, i64 block) {
  for (i64 column = 0; column < block; column += W) {
    const i64 columns = min_i64(W, width - column);
    const i64 stored = min_i64(W, block - column);
    for (i64 row = 0; row < rows; row += W) {
      const i64 n = min_i64(W, rows - row);
      vf v[W];
      if (n == W && columns == W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) v[i] = load_f32(from + ((column + i) * apart + row));
      } else {
        for (i64 i = 0; i < W; ++i) v[i] = i < columns ? loadn_f32(from + ((column + i) * apart + row), n) : (vf){};
      }
      transpose_f32(v);
      if (n == W && stored == W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) store_f32(to + ((row + i) * to_apart + column), v[i]);
      } else {
        for (i64 i = 0; i < n; ++i) storen_f32(to + ((row + i) * to_apart + column), v[i], stored);
      }
    }
  }
}
)";

// Elements p[0], p[2], ...: n of them. The second half is read from one element earlier on, as the
// last element has none behind it.
constexpr std::string_view kLoadEven = R"(
template <class P, class V = vf>
AI V load_even_f32(P p, i64 n) {
  V a, b;
  if (n == W) {
    a = load_f32(p);
    b = load_f32(p + (W - 1));
  } else {
    a = loadn_f32(p, min_i64(W, 2 * n - 1));
    b = loadn_f32(p + (W - 1), max_i64(0, 2 * n - W));
  }
#define EVEN(i) ((i) < W / 2 ? 2 * (i) : 2 * (i) + 1)
#define FOUR(i) EVEN(i), EVEN(i + 1), EVEN(i + 2), EVEN(i + 3)
  if constexpr (W == 16) {
    return __builtin_shufflevector(a, b, FOUR(0), FOUR(4), FOUR(8), FOUR(12));
  } else if constexpr (W == 8) {
    return __builtin_shufflevector(a, b, FOUR(0), FOUR(4));
  } else {
    return __builtin_shufflevector(a, b, FOUR(0));
  }
#undef FOUR
#undef EVEN
}
)";

// Stores of whole vectors that go past the caches where they may; a fence must follow before others
// read.
constexpr std::string_view kStorePast = R"(
AI void store_past_f32(float* p, vf v) {
  if (((u64)p & (4 * W - 1)) != 0) return store_f32(p, v);
#if defined(__AVX512F__)
  typedef float v16 __attribute__((vector_size(64)));
  __builtin_ia32_movntps512(p, (v16)v);
#elif defined(__AVX__)
  typedef float v8 __attribute__((vector_size(32)));
  __builtin_ia32_movntps256(p, (v8)v);
#else
  typedef float v4 __attribute__((vector_size(16)));
  __builtin_ia32_movntps(p, (v4)v);
#endif
}
)";

}  // namespace

std::vector<PreludePart> MoveParts() {
  return {{"transpose", {"mem_f32"}, kTranspose},
          {"copy_turned", {"transpose"}, kCopyTurned},
          {"load_even", {"mem_f32"}, kLoadEven},
          {"store_past", {"mem_f32"}, kStorePast}};
}

}  // namespace fusion
