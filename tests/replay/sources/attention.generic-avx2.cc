// kernel fk_replay_0: MatMul+Mul+Cast+Sub+Mul+Add+ReduceMax+Sub+Exp+ReduceSum+Div+MatMul
// dims b0:2 m:13 n:19 k:8 n1:5   spatial b0:1 m:13   for avx2
/*
 * The ABI between a fusiond kernel and whoever runs it. Plain C, no includes: the same text is the
 * head of every generated source, so there is one definition. Version it: a change of any struct or
 * meaning here raises FUSION_KERNEL_ABI_VERSION, and a loader refuses a kernel with another
 * version.
 *
 *   int32_t fk_<key>(const FusionKernelArgs* args, int32_t phase, int64_t task_begin, int64_t
 * task_end, int32_t worker); extern const FusionKernelDescriptor fk_<key>_descriptor;
 *
 * Call every phase in order with a barrier between phases. The tasks [0, tasks) of a phase are
 * independent: any split, any order, any thread. `worker` (0 <= worker < number of threads) picks
 * the scratch slice that a thread owns during the call. A kernel creates no threads, allocates
 * nothing, keeps no state and touches nothing but its tensors, its workspace and its scratch.
 */
#ifndef FUSION_KERNEL_ABI_H_
#define FUSION_KERNEL_ABI_H_

#define FUSION_KERNEL_ABI_VERSION 2

/* Return codes. */
#define FUSION_KERNEL_OK 0
#define FUSION_KERNEL_BAD_PHASE 1 /* phase outside [0, descriptor.phases) */
#define FUSION_KERNEL_BAD_ABI 2   /* args->abi_version is not the kernel's */
#define FUSION_KERNEL_BAD_TASKS 3 /* task range outside [0, tasks) or reversed */

typedef __INT64_TYPE__ FusionInt64;

/* One tensor: where element (0, 0, ...) lies and the distance between neighbours of each dim, in
 * elements. */
typedef struct FusionTensor {
  void* data;
  const FusionInt64* strides;
} FusionTensor;

typedef struct FusionKernelArgs {
  unsigned int struct_size;    /* sizeof(FusionKernelArgs) of the caller */
  unsigned int abi_version;    /* FUSION_KERNEL_ABI_VERSION of the caller */
  const FusionTensor* tensors; /* in the order of the schedule's params */
  const FusionInt64*
      dims;        /* run-time extents in descriptor order; null for a kernel of static shape */
  void* workspace; /* shared by all workers, descriptor.workspace_bytes; may be null if that is 0 */
  void* scratch; /* worker w owns [scratch + w * scratch_stride, ... + descriptor.scratch_bytes) */
  unsigned long long scratch_stride;
} FusionKernelArgs;

typedef struct FusionKernelDescriptor {
  unsigned int struct_size; /* sizeof(FusionKernelDescriptor) of the kernel */
  unsigned int abi_version;
  const char* isa; /* "x86-64-v2", "avx2", "avx512", "avx512-vnni", "avx512-bf16" or "avx512-amx": what
                      is needed. For the last one the process asks Linux before the first call:
                      arch_prctl(ARCH_REQ_XCOMP_PERM, 18) */
  int tensors;     /* number of params */
  int dims;        /* number of run-time dims; 0 for a kernel of static shape */
  int phases;
  FusionInt64 (*tasks)(int phase,
                       const FusionInt64* dims); /* tasks of a phase; dims as in FusionKernelArgs */
  unsigned long long scratch_bytes;              /* per worker */
  unsigned long long workspace_bytes;
  unsigned int alignment; /* of scratch and workspace, in bytes */
  /* Elements of tensor `tensor`, counted from its `data`, within which every access of a call with
   * these dims lies. Who runs the kernel compares them with the memory there is, before the call.
   * Null: not told, which only a kernel of static shape may do. */
  FusionInt64 (*reach)(int tensor, const FusionInt64* dims);
} FusionKernelDescriptor;

#endif /* FUSION_KERNEL_ABI_H_ */
enum { W = 8 };  // floats of a vector
#pragma GCC diagnostic ignored "-Wpsabi"
typedef FusionInt64 i64;
typedef unsigned long long u64;
#define AI static inline __attribute__((always_inline))
typedef float vf __attribute__((vector_size(4 * W), may_alias));
typedef int vi __attribute__((vector_size(4 * W), may_alias));  // i32, narrower integers, and masks (0 or -1)
typedef double vd __attribute__((vector_size(8 * W), may_alias));
typedef i64 vl __attribute__((vector_size(8 * W), may_alias));  // i64 and u32
typedef u64 vu __attribute__((vector_size(8 * W), may_alias));
AI i64 min_i64(i64 a, i64 b) { return a < b ? a : b; }
AI i64 max_i64(i64 a, i64 b) { return a > b ? a : b; }
// x - 0 keeps -0 and NaN, x + 0 would not.
AI vf splat(float x) { return x - (vf){}; }
AI vd splat(double x) { return x - (vd){}; }
AI vi splat(int x) { return x - (vi){}; }
AI vl splat(i64 x) { return x - (vl){}; }
AI vu splat(u64 x) { return x - (vu){}; }

typedef i64 mem_i64 __attribute__((vector_size(sizeof(i64) * W), aligned(sizeof(i64)), may_alias));
AI vl load_i64(const i64* p) { return __builtin_convertvector(*(const mem_i64*)p, vl); }
AI vl loadn_i64(const i64* p, i64 n) {
  vl v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
AI vl loads_i64(const i64* p, i64 stride, i64 n) {
  vl v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i * stride];
  return v;
}
AI void store_i64(i64* p, vl v) { *(mem_i64*)p = __builtin_convertvector(v, mem_i64); }
AI void storen_i64(i64* p, vl v, i64 n) {
  for (i64 i = 0; i < n; ++i) p[i] = (i64)v[i];
}
AI void stores_i64(i64* p, i64 stride, vl v, i64 n) {
  for (i64 i = 0; i < n; ++i) p[i * stride] = (i64)v[i];
}

typedef float mem_f32 __attribute__((vector_size(4 * W), aligned(4), may_alias));
AI vf load_f32(const float* p) { return *(const mem_f32*)p; }
AI void store_f32(float* p, vf v) { *(mem_f32*)p = v; }
#if defined(__AVX512F__)
AI vf loadn_f32(const float* p, i64 n) {
  typedef float v16 __attribute__((vector_size(64)));
  return (vf)__builtin_ia32_loadups512_mask((const float*)p, (v16){}, (unsigned short)((1u << n) - 1));
}
AI void storen_f32(float* p, vf v, i64 n) {
  typedef float v16 __attribute__((vector_size(64)));
  __builtin_ia32_storeups512_mask(p, (v16)v, (unsigned short)((1u << n) - 1));
}
#elif defined(__AVX2__)
AI vi lanes_below(i64 n) { return (vi){0, 1, 2, 3, 4, 5, 6, 7} < (int)n; }
AI vf loadn_f32(const float* p, i64 n) {
  typedef float v8 __attribute__((vector_size(32)));
  typedef int m8 __attribute__((vector_size(32)));
  return (vf)__builtin_ia32_maskloadps256((const v8*)p, (m8)lanes_below(n));
}
AI void storen_f32(float* p, vf v, i64 n) {
  typedef float v8 __attribute__((vector_size(32)));
  typedef int m8 __attribute__((vector_size(32)));
  __builtin_ia32_maskstoreps256((v8*)p, (m8)lanes_below(n), (v8)v);
}
#else
AI vf loadn_f32(const float* p, i64 n) {
  vf v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
AI void storen_f32(float* p, vf v, i64 n) {
  for (i64 i = 0; i < n; ++i) p[i] = v[i];
}
#endif
AI vf loads_f32(const float* p, i64 stride, i64 n) {
  vf v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i * stride];
  return v;
}
AI void stores_f32(float* p, i64 stride, vf v, i64 n) {
  for (i64 i = 0; i < n; ++i) p[i * stride] = v[i];
}

AI vf select_f(vi c, vf a, vf b) { return c ? a : b; }
AI vi select_i(vi c, vi a, vi b) { return c ? a : b; }
AI vl select_l(vi c, vl a, vl b) { return __builtin_convertvector(c, vl) ? a : b; }
AI vu select_u(vi c, vu a, vu b) { return __builtin_convertvector(c, vl) ? a : b; }
AI vd select_d(vi c, vd a, vd b) { return __builtin_convertvector(c, vl) ? a : b; }

#if defined(__AVX512F__) && !defined(__clang__)
typedef float v16f __attribute__((vector_size(64)));
AI vf rawmax(vf a, vf b) { return (vf)__builtin_ia32_maxps512_mask((v16f)a, (v16f)b, (v16f){}, -1, 4); }
AI vf rawmin(vf a, vf b) { return (vf)__builtin_ia32_minps512_mask((v16f)a, (v16f)b, (v16f){}, -1, 4); }
#elif defined(__AVX2__) && !defined(__clang__)
typedef float v8f __attribute__((vector_size(32)));
AI vf rawmax(vf a, vf b) { return (vf)__builtin_ia32_maxps256((v8f)a, (v8f)b); }
AI vf rawmin(vf a, vf b) { return (vf)__builtin_ia32_minps256((v8f)a, (v8f)b); }
#elif !defined(__clang__)
typedef float v4f __attribute__((vector_size(16)));
AI vf rawmax(vf a, vf b) { return (vf)__builtin_ia32_maxps((v4f)a, (v4f)b); }
AI vf rawmin(vf a, vf b) { return (vf)__builtin_ia32_minps((v4f)a, (v4f)b); }
#else
AI vf rawmax(vf a, vf b) { return a > b ? a : b; }
AI vf rawmin(vf a, vf b) { return a < b ? a : b; }
#endif

// NaN if either is NaN.
AI vf max_f(vf a, vf b) { return a == a ? rawmax(a, b) : a; }
AI vf min_f(vf a, vf b) { return a == a ? rawmin(a, b) : a; }
AI vi max_i(vi a, vi b) { return a > b ? a : b; }
AI vi min_i(vi a, vi b) { return a < b ? a : b; }
AI vl max_l(vl a, vl b) { return a > b ? a : b; }
AI vl min_l(vl a, vl b) { return a < b ? a : b; }
AI vu max_u(vu a, vu b) { return a > b ? a : b; }
AI vu min_u(vu a, vu b) { return a < b ? a : b; }
AI vd max_d(vd a, vd b) { return a == a ? (a > b ? a : b) : a; }
AI vd min_d(vd a, vd b) { return a == a ? (a < b ? a : b) : a; }

AI vf exp_f(vf x) {
  vf c = rawmin(splat(89.0f), x);
#if !defined(__AVX512F__)
  c = rawmax(splat(-104.5f), c);
#endif
  vf t = c * 1.44269504088896341f + 12582912.0f;  // nearest integer by the magic number
  vf n = t - 12582912.0f;
  vf r = c - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
#if defined(__AVX512F__)
  typedef float v16 __attribute__((vector_size(64)));
  p = (p * r + 1.0f) * r + 1.0f;
  const unsigned short stays = __builtin_ia32_cmpps512_mask((v16)c, (v16)splat(-103.98f), 0x15, -1, 4);  // not less
  return (vf)__builtin_ia32_scalefps512_mask((v16)p, (v16)n, (v16){}, stays, 4);
#else
  p = p * (r * r) + (r + 1.0f);
  p = c < splat(-103.98f) ? (vf){} : p;
  vi e = (vi)t - 0x4b400000;
  vi half = e >> 1;  // 2^n in two steps, so that neither leaves the exponent range
  return p * (vf)((half + 127) << 23) * (vf)((e - half + 127) << 23);
#endif
}

template <class T> AI T scalar_max(T a, T b) { return a > b || a != a ? a : b; }
template <class T> AI T scalar_min(T a, T b) { return a < b || a != a ? a : b; }
template <int S, class V> AI V rotated(V v) {
#define AT(i) ((i) + S) % W
  if constexpr (W == 16) {
    return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7), AT(8), AT(9), AT(10),
                                   AT(11), AT(12), AT(13), AT(14), AT(15));
  } else if constexpr (W == 8) {
    return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
  } else {
    return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3));
  }
#undef AT
}
template <class V> AI V lanes_sum(V a, V b) { return a + b; }
template <class V> AI V lanes_prod(V a, V b) { return a * b; }
template <class V> AI V lanes_max(V a, V b) { return ((a > b) | (a != a)) ? a : b; }
template <class V> AI V lanes_min(V a, V b) { return ((a < b) | (a != a)) ? a : b; }
AI vf lanes_max(vf a, vf b) { return max_f(a, b); }
AI vf lanes_min(vf a, vf b) { return min_f(a, b); }
#define FOLD(op)                                            \
  template <class T, class V> AI T fold_##op(V v) {         \
    if constexpr (W > 8) v = lanes_##op(v, rotated<8>(v));  \
    if constexpr (W > 4) v = lanes_##op(v, rotated<4>(v));  \
    v = lanes_##op(v, rotated<2>(v));                       \
    return (T)lanes_##op(v, rotated<1>(v))[0];              \
  }
FOLD(sum)
FOLD(prod)
FOLD(max)
FOLD(min)
#undef FOLD

AI vi lane_numbers() {
  vi v = {};
  for (int i = 0; i < W; ++i) v[i] = i;
  return v;
}

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

// Asks for a line of memory, to lie in the nearest cache, and in the one behind it.
template <class T> AI void fetch(const T* p) { __builtin_prefetch(p); }
template <class T> AI void fetch_behind(const T* p) { __builtin_prefetch(p, 0, 2); }

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

static void block0_0(const FusionKernelArgs* args, char* scratch, i64 b0_0, i64 m0) {
  const float* p0 = (const float*)args->tensors[0].data;  // f32[2,13,8]
  (void)p0;
  const float* p1 = (const float*)args->tensors[1].data;  // f32[2,19,8]
  (void)p1;
  const i64* p2 = (const i64*)args->tensors[2].data;  // i64[2,19]
  (void)p2;
  const float* p3 = (const float*)args->tensors[3].data;  // f32[2,19,5]
  (void)p3;
  float* p4 = (float*)args->tensors[4].data;  // f32[2,13,5]
  (void)p4;
  (void)scratch;
  float* t0 = (float*)(scratch + 0);  // staged [b0:1, n:19]
  /* cast sub mul */ {
     {
      i64 n_at = 0;
      for (; n_at + W <= 19; n_at += W) {
        const i64 n = n_at;
        const vf v0 = splat(0x1p+0f);
        const vl v1 = load_i64(p2 + b0_0 * 19 + n);
        const vf v2 = __builtin_convertvector(v1, vf);
        const vf v3 = v0 - v2;
        const vf v4 = splat(-0x1.388p+13f);
        const vf v5 = v3 * v4;
        store_f32(t0 + n, v5);
      }
      if (n_at < 19) {
        const i64 n = n_at;
        const i64 n_left = 19 - n_at;
        const vf v0 = splat(0x1p+0f);
        const vl v1 = loadn_i64(p2 + b0_0 * 19 + n, n_left);
        const vf v2 = __builtin_convertvector(v1, vf);
        const vf v3 = v0 - v2;
        const vf v4 = splat(-0x1.388p+13f);
        const vf v5 = v3 * v4;
        storen_f32(t0 + n, v5, n_left);
      }
    }
  }
  float* t1 = (float*)(scratch + 128);  // staged [b0:1, k:8, m:13]
  float* t3 = (float*)(scratch + 640);  // staged [b0:1, n:19, m:13]
  for (i64 m_block = m0; m_block < m0 + 13; m_block += 16) {
    const i64 m_width = min_i64(16, m0 + 13 - m_block);
    const i64 k = 0;
    float* to = t1 + ((m_block - m0)) / 16 * 128 + k * 16;
    const float* from = p0 + b0_0 * 104 + k + m_block * 8;
    copy_turned(from, 8, to, 16, 8 - k, m_width, 16);
  }
  for (i64 n0 = 0; n0 < 19; n0 += 5) {
    const i64 n0_end = min_i64(n0 + 5, 19);
    alignas(64) float t2[80];  // accumulators [n:5, m:13]
    // t2 = p1 * t1 over k
    if ((n0_end) - (n0) == 4) mma<F32, 4, 2, false, false, 1>({{8, 1, 16}}, 0, p1 + b0_0 * 152 + n0 * 8, 8, t1, t2, 16, 8);
    if ((n0_end) - (n0) == 5) mma<F32, 5, 2, false, false, 1>({{8, 1, 16}}, 0, p1 + b0_0 * 152 + n0 * 8, 8, t1, t2, 16, 8);
    /* mul add */ {
      for (i64 n = n0; n < n0_end; ++n) {
         {
          i64 m_at = m0;
          for (; m_at + W <= m0 + 13; m_at += W) {
            const i64 m = m_at;
            const vf v0 = load_f32(t2 + (m - m0) + (n - n0) * 16);
            const vf v1 = splat(0x1p-2f);
            const vf v2 = v0 * v1;
            const vf v3 = splat(*(t0 + n));
            const vf v4 = v2 + v3;
            store_f32(t3 + (m - m0) + n * 16, v4);
          }
          if (m_at < m0 + 13) {
            const i64 m = m_at;
            const i64 m_left = m0 + 13 - m_at;
            const vf v0 = loadn_f32(t2 + (m - m0) + (n - n0) * 16, m_left);
            const vf v1 = splat(0x1p-2f);
            const vf v2 = v0 * v1;
            const vf v3 = splat(*(t0 + n));
            const vf v4 = v2 + v3;
            storen_f32(t3 + (m - m0) + n * 16, v4, m_left);
          }
        }
      }
    }
  }
  for (i64 m1 = m0; m1 < m0 + 13; m1 += 8) {
    const i64 m1_end = min_i64(m1 + 8, m0 + 13);
    float* t4 = (float*)(scratch + 0);  // staged [b0:1, m:8]
    for (i64 i = 0; i < 8; ++i) t4[i] = -__builtin_inff();  // identity of max
    float* t5 = (float*)(scratch + 64);  // staged [b0:1, m:8]
    for (i64 i = 0; i < 8; ++i) t5[i] = 0x0p+0f;  // identity of sum
    /* reduce.max */ {
       {
        i64 m_at = m1;
        for (; m_at + W <= m1_end; m_at += W) {
          const i64 m = m_at;
          vf r0[4] = {splat(-__builtin_inff()), splat(-__builtin_inff()), splat(-__builtin_inff()), splat(-__builtin_inff())};
           {
            i64 n_at = 0;
            for (; n_at + 4 <= 19; n_at += 4) {
              #pragma GCC unroll 4
              for (int u = 0; u < 4; ++u) {
                const i64 n = n_at + u;
                const vf v0 = load_f32(t3 + (m - m0) + n * 16);
                r0[u] = max_f(r0[u], v0);
              }
            }
            for (; n_at < 19; ++n_at) {
              const i64 n = n_at;
              const vf v0 = load_f32(t3 + (m - m0) + n * 16);
              r0[0] = max_f(r0[0], v0);
            }
          }
          r0[0] = max_f(r0[0], r0[1]);
          r0[0] = max_f(r0[0], r0[2]);
          r0[0] = max_f(r0[0], r0[3]);
          vf r0_all = max_f(load_f32(t4 + (m - m1)), r0[0]);
          store_f32(t4 + (m - m1), r0_all);
        }
        if (m_at < m1_end) {
          const i64 m = m_at;
          const i64 m_left = m1_end - m_at;
          vf r0[4] = {splat(-__builtin_inff()), splat(-__builtin_inff()), splat(-__builtin_inff()), splat(-__builtin_inff())};
           {
            i64 n_at = 0;
            for (; n_at + 4 <= 19; n_at += 4) {
              #pragma GCC unroll 4
              for (int u = 0; u < 4; ++u) {
                const i64 n = n_at + u;
                const vf v0 = loadn_f32(t3 + (m - m0) + n * 16, m_left);
                r0[u] = max_f(r0[u], v0);
              }
            }
            for (; n_at < 19; ++n_at) {
              const i64 n = n_at;
              const vf v0 = loadn_f32(t3 + (m - m0) + n * 16, m_left);
              r0[0] = max_f(r0[0], v0);
            }
          }
          r0[0] = max_f(r0[0], r0[1]);
          r0[0] = max_f(r0[0], r0[2]);
          r0[0] = max_f(r0[0], r0[3]);
          vf r0_all = max_f(loadn_f32(t4 + (m - m1), m_left), r0[0]);
          storen_f32(t4 + (m - m1), r0_all, m_left);
        }
      }
    }
    /* sub exp reduce.sum */ {
       {
        i64 m_at = m1;
        for (; m_at + W <= m1_end; m_at += W) {
          const i64 m = m_at;
          vf r0[4] = {splat(0x0p+0f), splat(0x0p+0f), splat(0x0p+0f), splat(0x0p+0f)};
           {
            i64 n_at = 0;
            for (; n_at + 4 <= 19; n_at += 4) {
              #pragma GCC unroll 4
              for (int u = 0; u < 4; ++u) {
                const i64 n = n_at + u;
                const vf v0 = load_f32(t3 + (m - m0) + n * 16);
                const vf v1 = load_f32(t4 + (m - m1));
                const vf v2 = v0 - v1;
                const vf v3 = exp_f(v2);
                r0[u] = r0[u] + v3;
                store_f32(t3 + (m - m0) + n * 16, v3);
              }
            }
            for (; n_at < 19; ++n_at) {
              const i64 n = n_at;
              const vf v0 = load_f32(t3 + (m - m0) + n * 16);
              const vf v1 = load_f32(t4 + (m - m1));
              const vf v2 = v0 - v1;
              const vf v3 = exp_f(v2);
              r0[0] = r0[0] + v3;
              store_f32(t3 + (m - m0) + n * 16, v3);
            }
          }
          r0[0] = r0[0] + r0[1];
          r0[0] = r0[0] + r0[2];
          r0[0] = r0[0] + r0[3];
          vf r0_all = load_f32(t5 + (m - m1)) + r0[0];
          store_f32(t5 + (m - m1), r0_all);
        }
        if (m_at < m1_end) {
          const i64 m = m_at;
          const i64 m_left = m1_end - m_at;
          vf r0[4] = {splat(0x0p+0f), splat(0x0p+0f), splat(0x0p+0f), splat(0x0p+0f)};
           {
            i64 n_at = 0;
            for (; n_at + 4 <= 19; n_at += 4) {
              #pragma GCC unroll 4
              for (int u = 0; u < 4; ++u) {
                const i64 n = n_at + u;
                const vf v0 = loadn_f32(t3 + (m - m0) + n * 16, m_left);
                const vf v1 = loadn_f32(t4 + (m - m1), m_left);
                const vf v2 = v0 - v1;
                const vf v3 = exp_f(v2);
                r0[u] = r0[u] + v3;
                storen_f32(t3 + (m - m0) + n * 16, v3, m_left);
              }
            }
            for (; n_at < 19; ++n_at) {
              const i64 n = n_at;
              const vf v0 = loadn_f32(t3 + (m - m0) + n * 16, m_left);
              const vf v1 = loadn_f32(t4 + (m - m1), m_left);
              const vf v2 = v0 - v1;
              const vf v3 = exp_f(v2);
              r0[0] = r0[0] + v3;
              storen_f32(t3 + (m - m0) + n * 16, v3, m_left);
            }
          }
          r0[0] = r0[0] + r0[1];
          r0[0] = r0[0] + r0[2];
          r0[0] = r0[0] + r0[3];
          vf r0_all = loadn_f32(t5 + (m - m1), m_left) + r0[0];
          storen_f32(t5 + (m - m1), r0_all, m_left);
        }
      }
    }
    /* div */ {
      for (i64 n = 0; n < 19; ++n) {
         {
          i64 m_at = m1;
          for (; m_at + W <= m1_end; m_at += W) {
            const i64 m = m_at;
            const vf v0 = load_f32(t3 + (m - m0) + n * 16);
            const vf v1 = load_f32(t5 + (m - m1));
            const vf v2 = v0 / v1;
            store_f32(t3 + (m - m0) + n * 16, v2);
          }
          if (m_at < m1_end) {
            const i64 m = m_at;
            const i64 m_left = m1_end - m_at;
            const vf v0 = loadn_f32(t3 + (m - m0) + n * 16, m_left);
            const vf v1 = loadn_f32(t5 + (m - m1), m_left);
            const vf v2 = v0 / v1;
            storen_f32(t3 + (m - m0) + n * 16, v2, m_left);
          }
        }
      }
    }
  }
  alignas(64) float t6[80];  // accumulators [n1:5, m:13]
  // t6 = p3 * t3 over n
  mma<F32, 5, 2, false, true, 1>({{19, 5, 16}}, 0, p3 + b0_0 * 95, 1, t3, t6, 16, 5);
  /* copy */ {
     {
      i64 m_at = m0;
      for (; m_at + W <= m0 + 13; m_at += W) {
        const i64 m = m_at;
        for (i64 n1_at = 0; n1_at < 5; n1_at += W) {
          const i64 n1_points = min_i64(W, 5 - n1_at);
          vf turned1[W] = {};
          for (i64 u = 0; u < n1_points; ++u) {
            const i64 n1 = n1_at + u;
            const vf v0 = load_f32(t6 + (m - m0) + n1 * 16);
            turned1[u] = v0;
          }
          transpose_f32(turned1);
          #pragma GCC unroll 16
          for (int j = 0; j < W; ++j) {
            const i64 m_lane = m + j;
            storen_f32(p4 + b0_0 * 65 + m_lane * 5 + n1_at, turned1[j], n1_points);
          }
        }
      }
      if (m_at < m0 + 13) {
        const i64 m = m_at;
        const i64 m_left = m0 + 13 - m_at;
        for (i64 n1_at = 0; n1_at < 5; n1_at += W) {
          const i64 n1_points = min_i64(W, 5 - n1_at);
          vf turned1[W] = {};
          for (i64 u = 0; u < n1_points; ++u) {
            const i64 n1 = n1_at + u;
            const vf v0 = loadn_f32(t6 + (m - m0) + n1 * 16, m_left);
            turned1[u] = v0;
          }
          transpose_f32(turned1);
          #pragma GCC unroll 16
          for (int j = 0; j < m_left; ++j) {
            const i64 m_lane = m + j;
            storen_f32(p4 + b0_0 * 65 + m_lane * 5 + n1_at, turned1[j], n1_points);
          }
        }
      }
    }
  }
}

extern "C" int fk_replay_0(const FusionKernelArgs* args, int phase, i64 task_begin, i64 task_end, int worker) {
  if (args->abi_version != FUSION_KERNEL_ABI_VERSION) return FUSION_KERNEL_BAD_ABI;
  char* scratch = (char*)args->scratch + (unsigned long long)worker * args->scratch_stride;
  if (phase == 0) {
    if (task_begin < 0 || task_end < task_begin || task_end > 2) return FUSION_KERNEL_BAD_TASKS;
    for (i64 task = task_begin; task < task_end; ++task) {
      i64 rest = task;
      if (rest >= 0 && rest < 2) {
        const i64 m0 = rest % 1 * 13;
        rest /= 1;
        const i64 b0_0 = rest % 2 * 1;
        rest /= 2;
        block0_0(args, scratch, b0_0, m0);
        continue;
      }
    }
    return FUSION_KERNEL_OK;
  }
  return FUSION_KERNEL_BAD_PHASE;
}

static i64 tasks(int phase, const i64*) {
  if (phase == 0) return 2;
  return 0;
}
static i64 reach(int tensor, const i64*) {
  switch (tensor) {
    case 0: return 208;
    case 1: return 304;
    case 2: return 38;
    case 3: return 190;
    case 4: return 130;
  }
  return 0;
}
extern "C" const FusionKernelDescriptor fk_replay_0_descriptor = {sizeof(FusionKernelDescriptor), FUSION_KERNEL_ABI_VERSION, "avx2", 5, 0, 1, tasks, 1856, 0, 64, reach};
