#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

// Lane i of vector j becomes lane j of vector i, by exchanges of ever longer runs of lanes between
// vectors that are as far apart.
constexpr std::string_view kTranspose = R"(
template <int H>
AI void exchange(vf& a, vf& b) {
#define LOW(i) ((i) & H ? W + (i) - H : (i))
#define HIGH(i) ((i) & H ? W + (i) : (i) + H)
#define FOUR(f, i) f(i), f(i + 1), f(i + 2), f(i + 3)
  const vf x = a, y = b;
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

}  // namespace

std::vector<PreludePart> TurnedParts() {
  return {{"transpose", {"mem_f32"}, kTranspose}, {"copy_turned", {"transpose"}, kCopyTurned}};
}

}  // namespace fusion
