#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

// As many rows at a time as have their sums in registers.
constexpr std::string_view kProductRows = R"(
// mma for more rows than registers hold sums of.
template <class F, int R, int N, bool kAccumulate, bool kPartial, int D, class Next = NothingAhead>
static void mma_rows(const Walk (&walk)[D], i64 rest, const typename F::A* __restrict a, i64 a_row,
                     const typename F::B* __restrict b, typename F::C* __restrict c, i64 c_row, i64 last,
                     Next = {}) {
  enum { kStep = 24 / N < R ? 24 / N : R, kLeft = R % kStep };
  i64 i = 0;
  for (; i + kStep <= R; i += kStep) {
    mma<F, kStep, N, kAccumulate, kPartial, 1>(walk, rest, a + i * a_row, a_row, b, c + i * c_row, c_row, last);
  }
  if constexpr (kLeft > 0) {
    mma<F, kLeft, N, kAccumulate, kPartial, 1>(walk, rest, a + i * a_row, a_row, b, c + i * c_row, c_row, last);
  }
}
)";

// The state of AMX: eight tiles of 16 rows of 64 bytes.
constexpr std::string_view kTiles = R"c(
// Tiles 0 to 3 hold sums, 4 and 5 rows, 6 and 7 columns: 16 packs of each in a tile.
enum { kTilePacks = 16 };
struct TileShapes {
  unsigned char palette, start_row, none[14];
  unsigned short row_bytes[16];
  unsigned char rows[16];
};
// Of R <= 32 rows; what is behind the first 16 has tiles of its own.
template <int R>
AI void shape_tiles() {
  enum { kUpper = R < 16 ? R : 16, kLower = R > 16 ? R - 16 : R };
  static const TileShapes shapes = {1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {
      kUpper, kUpper, kLower, kLower, kUpper, kLower, 16, 16}};
  __asm__ volatile("ldtilecfg %0" : : "m"(shapes));
}
// Other code of a thread does not carry their contents.
AI void leave_tiles() { __asm__ volatile("tilerelease"); }
template <int T>
AI void zero_tile() { __asm__ volatile("tilezero %%tmm%c0" : : "i"(T)); }
template <int T>
AI void load_tile(const void* p, i64 row_bytes) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(row_bytes), "i"(T) : "memory");
}
template <int T>
AI void store_tile(void* p, i64 row_bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(row_bytes), "i"(T) : "memory");
}
// As mma: c[i][j] (+)= sum over k of a[i * row + k] * b[k][j] for R <= 32 rows and N columns of 16, R > 16 ones with
// N <= 2. Neighbours of a row lie next to each other. Whole tiles of the last dim first; what is behind the last one,
// if there is any (kLeft), afterwards by vectors.
template <class F, int R, int N, bool kAccumulate, bool kLeft, int D, class Next = NothingAhead>
static __attribute__((noinline)) void mma_tiles(const Walk (&walk)[D], i64 rest, const typename F::A* __restrict a,
                                                i64 a_row, const typename F::B* __restrict b,
                                                typename F::C* __restrict c, i64 c_row, i64 last, Next next = {}) {
  static_assert(R <= 32 && N <= (R > 16 ? 2 : 4), "four tiles of sums");
  const i64 a_bytes = a_row * sizeof(*a), b_bytes = walk[D - 1].b * sizeof(*b), c_bytes = c_row * sizeof(*c);
  const i64 tiles = walk[D - 1].count / kTilePacks;
  shape_tiles<R>();
  enum { kLower = R > 16 };
  if (kAccumulate) {
    load_tile<0>(c, c_bytes);
    if (N > 1) load_tile<1>(c + W, c_bytes);
    if (kLower) load_tile<2>(c + 16 * c_row, c_bytes);
    if (kLower && N > 1) load_tile<3>(c + 16 * c_row + W, c_bytes);
    if (!kLower && N > 2) load_tile<2>(c + 2 * W, c_bytes);
    if (!kLower && N > 3) load_tile<3>(c + 3 * W, c_bytes);
  } else {
    zero_tile<0>();
    zero_tile<1>();
    zero_tile<2>();
    zero_tile<3>();
  }
  Stretches<D> at;
  for (i64 o = at.count(walk); o > 0; --o) {
    const typename F::A* __restrict pa = a + at.a;
    const typename F::B* __restrict pb = b + at.b;
    for (i64 k = 0; k < tiles; ++k) {
      next.ask_for(kTilePacks);
      for (int i = 0; !Next::kAsks && i < kTilePacks; ++i) {
#pragma GCC unroll 16
        for (int j = 0; j < N; ++j) fetch(pb + (i + kStepsAhead) * walk[D - 1].b + j * W * F::kPack);
      }
      load_tile<4>(pa, a_bytes);
      load_tile<6>(pb, b_bytes);
      F::template add_tile<0, 4, 6>();
      if (N > 1) {
        load_tile<7>(pb + W * F::kPack, b_bytes);
        F::template add_tile<1, 4, 7>();
      }
      if (kLower) {
        load_tile<5>(pa + 16 * a_row, a_bytes);
        F::template add_tile<2, 5, 6>();
        if (N > 1) F::template add_tile<3, 5, 7>();
      } else {
        if (N > 2) {
          load_tile<6>(pb + 2 * W * F::kPack, b_bytes);
          F::template add_tile<2, 4, 6>();
        }
        if (N > 3) {
          load_tile<7>(pb + 3 * W * F::kPack, b_bytes);
          F::template add_tile<3, 4, 7>();
        }
      }
      pa += kTilePacks * walk[D - 1].a;
      pb += kTilePacks * walk[D - 1].b;
    }
    at.next(walk);
  }
  store_tile<0>(c, c_bytes);
  if (N > 1) store_tile<1>(c + W, c_bytes);
  if (kLower) store_tile<2>(c + 16 * c_row, c_bytes);
  if (kLower && N > 1) store_tile<3>(c + 16 * c_row + W, c_bytes);
  if (!kLower && N > 2) store_tile<2>(c + 2 * W, c_bytes);
  if (!kLower && N > 3) store_tile<3>(c + 3 * W, c_bytes);
  if constexpr (kLeft) {
    Walk behind[D];
    for (int d = 0; d < D; ++d) behind[d] = walk[d];
    behind[D - 1].count -= tiles * kTilePacks;
    mma_rows<F, R, N, true, false>(behind, rest, a + tiles * kTilePacks * walk[D - 1].a, a_row,
                                   b + tiles * kTilePacks * walk[D - 1].b, c, c_row, last);
  }
}
)c";

constexpr std::string_view kTilesBF16 = R"(
struct TilesBF16 : BF16Flushed {
  template <int C, int A, int B>
  AI void add_tile() { __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B)); }
};
)";

constexpr std::string_view kTilesU8I8 = R"(
struct TilesU8I8 : U8I8 {
  template <int C, int A, int B>
  AI void add_tile() { __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B)); }
};
)";

}  // namespace

std::vector<PreludePart> TileParts() {
  return {{"product_rows", {"product"}, kProductRows},
          {"tiles", {"product_rows"}, kTiles},
          {"tiles_bf16", {"tiles", "product_bf16_flushed"}, kTilesBF16},
          {"tiles_u8_i8", {"tiles", "product_u8_i8"}, kTilesU8I8}};
}

}  // namespace fusion
