#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

constexpr std::string_view kProduct = R"(
// Rows of windows overlap: what one step of a sum reads the next ones read again. Compilers that notice keep all of it
// in registers that are not there; here the pointer could be any.
template <class P> AI void any_pointer(P& p) { __asm__("" : "+r"(p)); }
// A summed dim: its length, and how far a step of it moves in each operand.
struct Walk {
  i64 count, a, b;
};
// Operands of mma: a step of the sum takes kPack neighbours of a row and of each column at once.
struct F32 {
  typedef float A;
  typedef float B;
  typedef vf Row;
  typedef vf Column;
  enum { kPack = 1 };
  template <class P> AI Row row(P a, i64) { return splat(a[0]); }
  template <class P> AI Row rest(P a) { return splat(a[0]); }
  template <class P> AI Column column(P b, int at) { return load_f32(b + at); }
  template <class P> AI Column columns_below(P b, int at, i64 n) { return loadn_f32(b + at, n); }
  AI vf add(vf sum, Row x, Column y) { return sum + x * y; }
};
// c[i][j] = (kAccumulate ? c[i][j] : 0) + sum over k of a[i * row + k] * b[k][j] for R rows and N vectors of columns;
// k walks the D dims of `walk`, the last one fastest and in packs, in kSums sums apart from each other. `rest`: elements
// of the last dim behind its last whole pack. `last` < W: the last vector of b has that many columns.
template <class F, int R, int N, bool kAccumulate, bool kPartial, int kSums, int D>
static __attribute__((noinline)) void mma(const Walk (&walk)[D], i64 rest, const typename F::A* __restrict a, i64 a_row,
                                          const typename F::B* __restrict b, float* __restrict c, i64 c_row,
                                          i64 last) {
  vf acc[kSums][R][N];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      acc[0][i][j] = kAccumulate ? load_f32(c + i * c_row + j * W) : (vf){};
#pragma GCC unroll 16
      for (int s = 1; s < kSums; ++s) acc[s][i][j] = (vf){};
    }
  }
  const i64 inner = walk[D - 1].count, a_inner = walk[D - 1].a, b_inner = walk[D - 1].b;
  i64 outer = 1, a_at = 0, b_at = 0, at[D] = {};
  for (int d = 0; d < D - 1; ++d) outer *= walk[d].count;
  const i64 apart = a_inner / F::kPack;
  auto step = [&](const typename F::A* __restrict pa, const typename F::B* __restrict pb, vf (&sum)[R][N],
                  bool whole) __attribute__((always_inline)) {
    typename F::Column column[N];
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      const int first = j * W * F::kPack;
      column[j] = kPartial && j == N - 1 ? F::columns_below(pb, first, last) : F::column(pb, first);
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      typename F::Row x = whole ? F::row(pa + i * a_row, apart) : F::rest(pa + i * a_row);
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) sum[i][j] = F::add(sum[i][j], x, column[j]);
    }
  };
  for (i64 o = 0; o < outer; ++o) {
    const typename F::A* __restrict pa = a + a_at;
    const typename F::B* __restrict pb = b + b_at;
    i64 k = 0;
    for (; kSums > 1 && k + kSums <= inner; k += kSums) {
#pragma GCC unroll 16
      for (int s = 0; s < kSums; ++s) step(pa + s * a_inner, pb + s * b_inner, acc[s], true);
      pa += kSums * a_inner;
      pb += kSums * b_inner;
    }
    for (; k < inner; ++k) {
      any_pointer(pa);
      step(pa, pb, acc[0], true);
      pa += a_inner;
      pb += b_inner;
    }
    if (F::kPack > 1 && rest > 0) step(pa, pb, acc[0], false);
    for (int d = D - 2; d >= 0; --d) {
      a_at += walk[d].a;
      b_at += walk[d].b;
      if (++at[d] < walk[d].count) break;
      a_at -= walk[d].count * walk[d].a;
      b_at -= walk[d].count * walk[d].b;
      at[d] = 0;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
#pragma GCC unroll 16
      for (int half = kSums / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
        for (int s = 0; s < half; ++s) acc[s][i][j] += acc[s + half][i][j];
      }
      store_f32(c + i * c_row + j * W, acc[0][i][j]);
    }
  }
}
)";

constexpr std::string_view kProductI8 = R"(
// Rows of f32 by columns of i8.
struct F32I8 {
  typedef float A;
  typedef signed char B;
  typedef vf Row;
  typedef vf Column;
  enum { kPack = 1 };
  template <class P> AI Row row(P a, i64) { return splat(a[0]); }
  template <class P> AI Row rest(P a) { return splat(a[0]); }
  template <class P> AI Column column(P b, int at) { return __builtin_convertvector(load_i8(b + at), vf); }
  template <class P> AI Column columns_below(P b, int at, i64 n) {
    return __builtin_convertvector(loadn_i8(b + at, n), vf);
  }
  AI vf add(vf sum, Row x, Column y) { return sum + x * y; }
};
)";

constexpr std::string_view kProductBF16 = R"(
// Pairs of bf16 in lanes of i32, the first one in the lower half.
typedef int mem_pairs __attribute__((vector_size(4 * W), aligned(2), may_alias));
typedef int mem_pair __attribute__((aligned(2), may_alias));
AI vi load_pairs(const unsigned short* p) { return *(const mem_pairs*)p; }
AI int load_pair(const unsigned short* p) { return *(const mem_pair*)p; }
struct Pair {
  vf first, second;
};
AI Pair widened(vi pairs) { return {(vf)(pairs << 16), (vf)(pairs & (int)0xffff0000)}; }
AI vf add_pair(vf sum, Pair x, Pair y) { return (sum + x.first * y.first) + x.second * y.second; }
// Rows of f32 by columns of bf16.
struct F32BF16 {
  typedef float A;
  typedef unsigned short B;
  typedef Pair Row;
  typedef Pair Column;
  enum { kPack = 2 };
  template <class P> AI Row row(P a, i64 apart) { return {splat(a[0]), splat(a[apart])}; }
  template <class P> AI Row rest(P a) { return {splat(a[0]), vf{}}; }
  template <class P> AI Column column(P b, int at) { return widened(load_pairs(b + at)); }
  template <class P> AI Column columns_below(P b, int at, i64) { return column(b, at); }
  AI vf add(vf sum, const Row& x, const Column& y) { return add_pair(sum, x, y); }
};
// Rows and columns of bf16; neighbours of a row lie next to each other.
struct BF16 {
  typedef unsigned short A;
  typedef unsigned short B;
  typedef Pair Row;
  typedef Pair Column;
  enum { kPack = 2 };
  template <class P> AI Row row(P a, i64) { return widened(splat(load_pair(a))); }
  template <class P> AI Row rest(P a) { return widened(splat((int)a[0])); }
  template <class P> AI Column column(P b, int at) { return widened(load_pairs(b + at)); }
  template <class P> AI Column columns_below(P b, int at, i64) { return column(b, at); }
  AI vf add(vf sum, const Row& x, const Column& y) { return add_pair(sum, x, y); }
};
)";

// vdpbf16ps takes denormals for zero and rounds once for each of the two products it adds.
constexpr std::string_view kProductBF16Flushed = R"(
// The same where denormals may count as zero.
#if defined(__AVX512BF16__)
struct BF16Flushed {
  typedef unsigned short A;
  typedef unsigned short B;
  typedef vi Row;
  typedef vi Column;
  enum { kPack = 2 };
  template <class P> AI Row row(P a, i64) { return splat(load_pair(a)); }
  template <class P> AI Row rest(P a) { return splat((int)a[0]); }
  template <class P> AI Column column(P b, int at) { return load_pairs(b + at); }
  template <class P> AI Column columns_below(P b, int at, i64) { return column(b, at); }
  AI vf add(vf sum, Row x, Column y) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
  }
};
#else
typedef BF16 BF16Flushed;
#endif
)";

// Found by their argument when forms are used.
constexpr std::string_view kGuardedProduct = R"(
template <class T> AI void any_pointer(Guarded<T>&) {}
)";
constexpr std::string_view kGuardedPairs = R"(
AI vi load_pairs(Guarded<const unsigned short> p) { return p.holds(0, 2 * W) ? load_pairs(p.plain()) : vi{}; }
AI int load_pair(Guarded<const unsigned short> p) { return p.holds(0, 2) ? load_pair(p.plain()) : 0; }
)";

}  // namespace

std::vector<PreludePart> ProductParts() {
  return {{"product", {"mem_f32"}, kProduct, kGuardedProduct},
          {"product_bf16", {"product"}, kProductBF16, kGuardedPairs},
          {"product_bf16_flushed", {"product_bf16"}, kProductBF16Flushed},
          {"product_i8", {"product", "mem_i8"}, kProductI8}};
}

}  // namespace fusion
