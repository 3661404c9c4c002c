#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

constexpr std::string_view kFetch = R"(
// Asks for a line of memory, to lie in the nearest cache, and in the one behind it.
template <class T> AI void fetch(const T* p) { __builtin_prefetch(p); }
template <class T> AI void fetch_behind(const T* p) { __builtin_prefetch(p, 0, 2); }
)";
constexpr std::string_view kGuardedFetch = R"(
template <class T> AI void fetch(Guarded<T>) {}
)";

constexpr std::string_view kProduct = R"(
// Rows of windows overlap: what one step of a sum reads the next ones read again. Compilers that notice keep all of it
// in registers that are not there; here the pointer could be any.
template <class P> AI void any_pointer(P& p) { __asm__("" : "+r"(p)); }
// Columns come from afar once, faster than a processor looks for them by itself: they are asked for 32 steps before.
// 8, 16 and 32 rows by weights of 64 MiB take 0.6, 0.5 and 0.65 of the time, one row and weights in L2 as long (Intel
// family 6 model 167, 2026-11). Behind the last ones nothing is read.
enum { kStepsAhead = 32 };
// A summed dim: its length, and how far a step of it moves in each operand.
struct Walk {
  i64 count, a, b;
};
// Where the stretches of the last summed dim begin in each operand.
template <int D>
struct Stretches {
  i64 a = 0, b = 0, at[D] = {};
  inline __attribute__((always_inline)) i64 count(const Walk (&walk)[D]) const {
    i64 n = 1;
    for (int d = 0; d < D - 1; ++d) n *= walk[d].count;
    return n;
  }
  inline __attribute__((always_inline)) void next(const Walk (&walk)[D]) {
    for (int d = D - 2; d >= 0; --d) {
      a += walk[d].a;
      b += walk[d].b;
      if (++at[d] < walk[d].count) break;
      a -= walk[d].count * walk[d].a;
      b -= walk[d].count * walk[d].b;
      at[d] = 0;
    }
  }
};
// What is asked for while others are multiplied: for each pack of a sum so many bytes from `at` on, which are kLines
// lines of the cache at most; or nothing.
template <int kLines>
struct Ahead {
  enum { kAsks = true };
  const char* at;
  i64 step;
  inline __attribute__((always_inline)) void ask() {
#pragma GCC unroll 16
    for (int i = 0; i < kLines; ++i) fetch_behind(at + 64 * i);
    at += step;
  }
  inline __attribute__((always_inline)) void ask_for(int packs) {
    for (i64 i = 0; i < packs * step; i += 64) fetch_behind(at + i);
    at += packs * step;
  }
};
struct NothingAhead {
  enum { kAsks = false };
  inline __attribute__((always_inline)) void ask() {}
  inline __attribute__((always_inline)) void ask_for(int) {}
};
struct SumsOfF32 {
  typedef float C;
  typedef vf Sum;
  template <class P> AI Sum load(P p) { return load_f32(p); }
  template <class P> AI void store(P p, Sum v) { store_f32(p, v); }
};
// Operands of mma, elements A and B with sums of C: a step of the sum takes kPack neighbours of a row and of each column
// at once; `rest` the n < kPack that are left of a row.
struct F32 : SumsOfF32 {
  typedef float A;
  typedef float B;
  typedef vf Row;
  typedef vf Column;
  enum { kPack = 1 };
  template <class P> AI Row row(P a, i64) { return splat(a[0]); }
  template <class P> AI Row rest(P a, i64) { return splat(a[0]); }
  template <class P> AI Column column(P b, int at) { return load_f32(b + at); }
  template <class P> AI Column columns_below(P b, int at, i64 n) { return loadn_f32(b + at, n); }
  AI vf add(vf sum, Row x, Column y) { return sum + x * y; }
};
// c[i][j] = (kAccumulate ? c[i][j] : 0) + sum over k of a[i * row + k] * b[k][j] for R rows and N vectors of columns;
// k walks the D dims of `walk`, the last one fastest and in packs, in kSums sums apart from each other. `rest`: elements
// of the last dim behind its last whole pack. `last` < W: the last vector of b has that many columns.
template <class F, int R, int N, bool kAccumulate, bool kPartial, int kSums, int D, class Next = NothingAhead>
static __attribute__((noinline)) void mma(const Walk (&walk)[D], i64 rest, const typename F::A* __restrict a, i64 a_row,
                                          const typename F::B* __restrict b, typename F::C* __restrict c,
                                          i64 c_row, i64 last, Next next = {}) {
  typedef typename F::Sum Sum;
  Sum acc[kSums][R][N];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      acc[0][i][j] = kAccumulate ? F::load(c + i * c_row + j * W) : Sum{};
#pragma GCC unroll 16
      for (int s = 1; s < kSums; ++s) acc[s][i][j] = Sum{};
    }
  }
  const i64 inner = walk[D - 1].count, a_inner = walk[D - 1].a, b_inner = walk[D - 1].b;
  Stretches<D> at;
  const i64 apart = a_inner / F::kPack;
  auto step = [&](const typename F::A* __restrict pa, const typename F::B* __restrict pb, Sum (&sum)[R][N],
                  bool whole) __attribute__((always_inline)) {
    typename F::Column column[N];
    next.ask();
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) {
      const int first = j * W * F::kPack;
      fetch(pb + first + kStepsAhead * b_inner);
      column[j] = kPartial && j == N - 1 ? F::columns_below(pb, first, last) : F::column(pb, first);
    }
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      typename F::Row x = whole ? F::row(pa + i * a_row, apart) : F::rest(pa + i * a_row, rest);
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) sum[i][j] = F::add(sum[i][j], x, column[j]);
    }
  };
  for (i64 o = at.count(walk); o > 0; --o) {
    const typename F::A* __restrict pa = a + at.a;
    const typename F::B* __restrict pb = b + at.b;
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
    at.next(walk);
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
      F::store(c + i * c_row + j * W, acc[0][i][j]);
    }
  }
}
)";

constexpr std::string_view kProductI8 = R"(
// Rows of f32 by columns of i8.
struct F32I8 : SumsOfF32 {
  typedef float A;
  typedef signed char B;
  typedef vf Row;
  typedef vf Column;
  enum { kPack = 1 };
  template <class P> AI Row row(P a, i64) { return splat(a[0]); }
  template <class P> AI Row rest(P a, i64) { return splat(a[0]); }
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
struct F32BF16 : SumsOfF32 {
  typedef float A;
  typedef unsigned short B;
  typedef Pair Row;
  typedef Pair Column;
  enum { kPack = 2 };
  template <class P> AI Row row(P a, i64 apart) { return {splat(a[0]), splat(a[apart])}; }
  template <class P> AI Row rest(P a, i64) { return {splat(a[0]), vf{}}; }
  template <class P> AI Column column(P b, int at) { return widened(load_pairs(b + at)); }
  template <class P> AI Column columns_below(P b, int at, i64) { return column(b, at); }
  AI vf add(vf sum, const Row& x, const Column& y) { return add_pair(sum, x, y); }
};
// Rows and columns of bf16; neighbours of a row lie next to each other.
struct BF16 : SumsOfF32 {
  typedef unsigned short A;
  typedef unsigned short B;
  typedef Pair Row;
  typedef Pair Column;
  enum { kPack = 2 };
  template <class P> AI Row row(P a, i64) { return widened(splat(load_pair(a))); }
  template <class P> AI Row rest(P a, i64) { return widened(splat((int)a[0])); }
  template <class P> AI Column column(P b, int at) { return widened(load_pairs(b + at)); }
  template <class P> AI Column columns_below(P b, int at, i64) { return column(b, at); }
  AI vf add(vf sum, const Row& x, const Column& y) { return add_pair(sum, x, y); }
};
)";

// vdpbf16ps takes denormals for zero and rounds once for each of the two products it adds.
constexpr std::string_view kProductBF16Flushed = R"(
// The same where denormals may count as zero.
#if defined(__AVX512BF16__)
struct BF16Flushed : SumsOfF32 {
  typedef unsigned short A;
  typedef unsigned short B;
  typedef vi Row;
  typedef vi Column;
  enum { kPack = 2 };
  template <class P> AI Row row(P a, i64) { return splat(load_pair(a)); }
  template <class P> AI Row rest(P a, i64) { return splat((int)a[0]); }
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

// u8 by i8 in i32: both operands hold four neighbours in a lane.
constexpr std::string_view kProductU8I8 = R"(
// Four bytes in lanes of i32, the first one lowest.
typedef int mem_quads __attribute__((vector_size(4 * W), aligned(1), may_alias));
typedef int mem_quad __attribute__((aligned(1), may_alias));
AI vi load_quads(const signed char* p) { return *(const mem_quads*)p; }
AI int load_quad(const unsigned char* p) { return *(const mem_quad*)p; }
// Products of four neighbours, added to a sum modulo 2^32.
#if defined(__AVX512VNNI__)
typedef vi Bytes;
AI Bytes bytes_of_u8(vi x) { return x; }
AI Bytes bytes_of_i8(vi y) { return y; }
AI vi add_quads(vi sum, Bytes x, Bytes y) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
  return sum;
}
#else
// As 16-bit numbers, those at even places and those at odd ones.
typedef short halves __attribute__((vector_size(4 * W), may_alias));
struct Bytes {
  vi even, odd;
};
AI Bytes bytes_of_u8(vi x) { return {x & 0x00ff00ff, (x >> 8) & 0x00ff00ff}; }
AI Bytes bytes_of_i8(vi y) { return {(vi)(((halves)y << 8) >> 8), (vi)((halves)y >> 8)}; }
AI vi multiplied_pairs(vi x, vi y) {
#if defined(__AVX512F__)
  __asm__("vpmaddwd %1, %0, %0" : "+v"(x) : "v"(y));
#elif defined(__AVX2__)
  __asm__("vpmaddwd %1, %0, %0" : "+x"(x) : "x"(y));
#else
  __asm__("pmaddwd %1, %0" : "+x"(x) : "x"(y));
#endif
  return x;
}
AI vi add_quads(vi sum, Bytes x, Bytes y) {
  return sum + (multiplied_pairs(x.even, y.even) + multiplied_pairs(x.odd, y.odd));
}
#endif
// Rows of u8 by columns of i8; neighbours of a row lie next to each other.
struct U8I8 {
  typedef unsigned char A;
  typedef signed char B;
  typedef int C;
  typedef vi Sum;
  typedef Bytes Row;
  typedef Bytes Column;
  enum { kPack = 4 };
  template <class P> AI Sum load(P p) { return load_i32(p); }
  template <class P> AI void store(P p, Sum v) { store_i32(p, v); }
  template <class P> AI Row row(P a, i64) { return bytes_of_u8(splat(load_quad(a))); }
  template <class P> AI Row rest(P a, i64 n) {
    int x = a[0];
    if (n > 1) x |= (int)a[1] << 8;
    if (n > 2) x |= (int)a[2] << 16;
    return bytes_of_u8(splat(x));
  }
  template <class P> AI Column column(P b, int at) { return bytes_of_i8(load_quads(b + at)); }
  template <class P> AI Column columns_below(P b, int at, i64) { return column(b, at); }
  AI vi add(vi sum, const Row& x, const Column& y) { return add_quads(sum, x, y); }
};
)";

// Found by their argument when forms are used.
constexpr std::string_view kGuardedProduct = R"(
template <class T> AI void any_pointer(Guarded<T>&) {}
)";
constexpr std::string_view kGuardedPairs = R"(
AI vi load_pairs(Guarded<const unsigned short> p) { return p.holds(0, 2 * W) ? load_pairs(p.plain()) : vi{}; }
AI int load_pair(Guarded<const unsigned short> p) { return p.holds(0, 2) ? load_pair(p.plain()) : 0; }
)";
constexpr std::string_view kGuardedQuads = R"(
AI vi load_quads(Guarded<const signed char> p) { return p.holds(0, 4 * W) ? load_quads(p.plain()) : vi{}; }
AI int load_quad(Guarded<const unsigned char> p) { return p.holds(0, 4) ? load_quad(p.plain()) : 0; }
)";

}  // namespace

std::vector<PreludePart> ProductParts() {
  return {{"fetch", {}, kFetch, kGuardedFetch},
          {"product", {"fetch", "mem_f32"}, kProduct, kGuardedProduct},
          {"product_bf16", {"product"}, kProductBF16, kGuardedPairs},
          {"product_bf16_flushed", {"product_bf16"}, kProductBF16Flushed},
          {"product_i8", {"product", "mem_i8"}, kProductI8},
          {"product_u8_i8", {"product", "mem_i32"}, kProductU8I8, kGuardedQuads}};
}

}  // namespace fusion
