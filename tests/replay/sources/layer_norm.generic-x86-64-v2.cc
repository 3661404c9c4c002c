// kernel fk_replay_0: ReduceSum+Div+Sub+Pow+ReduceSum+Div+Add+Sqrt+Div+Mul+Add
// dims d0:9 d1:133 d11:133   spatial d0:5   for x86-64-v2
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
enum { W = 4 };  // floats of a vector
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

AI vf sqrt_f(vf x) {
#if defined(__clang__)
  vf r;
  for (int i = 0; i < W; ++i) r[i] = __builtin_sqrtf(x[i]);
  return r;
#elif defined(__AVX512F__)
  typedef float v16 __attribute__((vector_size(64)));
  return (vf)__builtin_ia32_sqrtps512_mask((v16)x, (v16){}, -1, 4);
#elif defined(__AVX2__)
  typedef float v8 __attribute__((vector_size(32)));
  return (vf)__builtin_ia32_sqrtps256((v8)x);
#else
  typedef float v4 __attribute__((vector_size(16)));
  return (vf)__builtin_ia32_sqrtps((v4)x);
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

AI bool has_reciprocal(float y) {
#if defined(__FMA__)
  return y >= 0x1p-100f && y <= 0x1p100f;
#else
  return (void)y, false;
#endif
}
AI vf quotient(vf x, vf y, vf r) {
  const vf q = x * r;
  const vf p = q - (q * y - x) * r;
  return p == p ? p : q;
}

static void block0_0(const FusionKernelArgs* args, char* scratch, i64 d0_0) {
  const float* p0 = (const float*)args->tensors[0].data;  // f32[9,133]
  (void)p0;
  const float* p1 = (const float*)args->tensors[1].data;  // weight f32[133]
  (void)p1;
  const float* p2 = (const float*)args->tensors[2].data;  // weight f32[133]
  (void)p2;
  float* p3 = (float*)args->tensors[3].data;  // f32[9,133]
  (void)p3;
  const i64 d0_0_end = min_i64(d0_0 + 5, 9);
  (void)scratch;
  for (i64 d0_1 = d0_0; d0_1 < d0_0_end; d0_1 += 4) {
    const i64 d0_1_end = min_i64(d0_1 + 4, d0_0_end);
    float* t0 = (float*)(scratch + 0);  // staged [d0:4]
    for (i64 i = 0; i < 4; ++i) t0[i] = 0x0p+0f;  // identity of sum
    float* t1 = (float*)(scratch + 64);  // staged [d0:4]
    float* t2 = (float*)(scratch + 128);  // staged [d0:4]
    for (i64 i = 0; i < 4; ++i) t2[i] = 0x0p+0f;  // identity of sum
    float* t3 = (float*)(scratch + 192);  // staged [d0:4, d11:133]
    float* t4 = (float*)(scratch + 2368);  // staged [d0:4]
    /* reduce.sum */ {
      for (i64 d0 = d0_1; d0 < d0_1_end; ++d0) {
         {
          vf r0[4] = {splat(0x0p+0f), splat(0x0p+0f), splat(0x0p+0f), splat(0x0p+0f)};
           {
            i64 d1_at = 0;
            for (; d1_at + 4 * W <= 133; d1_at += 4 * W) {
              #pragma GCC unroll 4
              for (int u = 0; u < 4; ++u) {
                const i64 d1 = d1_at + u * W;
                const vf v0 = load_f32(p0 + d0 * 133 + d1);
                r0[u] = r0[u] + v0;
              }
            }
            for (; d1_at + W <= 133; d1_at += W) {
              const i64 d1 = d1_at;
              const vf v0 = load_f32(p0 + d0 * 133 + d1);
              r0[0] = r0[0] + v0;
            }
            if (d1_at < 133) {
              const i64 d1 = d1_at;
              const i64 d1_left = 133 - d1_at;
              const vf v0 = loadn_f32(p0 + d0 * 133 + d1, d1_left);
              r0[0] = r0[0] + select_f(lane_numbers() < (int)d1_left, v0, splat(0x0p+0f));
            }
          }
          r0[0] = r0[0] + r0[1];
          r0[0] = r0[0] + r0[2];
          r0[0] = r0[0] + r0[3];
          *(t0 + (d0 - d0_1)) = *(t0 + (d0 - d0_1)) + fold_sum<float>(r0[0]);
        }
      }
    }
    /* div */ {
       {
        i64 d0_at = d0_1;
        for (; d0_at + W <= d0_1_end; d0_at += W) {
          const i64 d0 = d0_at;
          const vf v0 = load_f32(t0 + (d0 - d0_1));
          const vf v1 = splat(0x1.0ap+7f);
          const vf v2 = v0 / v1;
          store_f32(t1 + (d0 - d0_1), v2);
        }
        if (d0_at < d0_1_end) {
          const i64 d0 = d0_at;
          const i64 d0_left = d0_1_end - d0_at;
          const vf v0 = loadn_f32(t0 + (d0 - d0_1), d0_left);
          const vf v1 = splat(0x1.0ap+7f);
          const vf v2 = v0 / v1;
          storen_f32(t1 + (d0 - d0_1), v2, d0_left);
        }
      }
    }
    /* sub mul reduce.sum */ {
      for (i64 d0 = d0_1; d0 < d0_1_end; ++d0) {
         {
          vf r0[4] = {splat(0x0p+0f), splat(0x0p+0f), splat(0x0p+0f), splat(0x0p+0f)};
           {
            i64 d11_at = 0;
            for (; d11_at + 4 * W <= 133; d11_at += 4 * W) {
              #pragma GCC unroll 4
              for (int u = 0; u < 4; ++u) {
                const i64 d11 = d11_at + u * W;
                const vf v0 = load_f32(p0 + d0 * 133 + d11);
                const vf v1 = splat(*(t1 + (d0 - d0_1)));
                const vf v2 = v0 - v1;
                const vf v3 = v2 * v2;
                r0[u] = r0[u] + v3;
                store_f32(t3 + (d0 - d0_1) * 136 + d11, v2);
              }
            }
            for (; d11_at + W <= 133; d11_at += W) {
              const i64 d11 = d11_at;
              const vf v0 = load_f32(p0 + d0 * 133 + d11);
              const vf v1 = splat(*(t1 + (d0 - d0_1)));
              const vf v2 = v0 - v1;
              const vf v3 = v2 * v2;
              r0[0] = r0[0] + v3;
              store_f32(t3 + (d0 - d0_1) * 136 + d11, v2);
            }
            if (d11_at < 133) {
              const i64 d11 = d11_at;
              const i64 d11_left = 133 - d11_at;
              const vf v0 = loadn_f32(p0 + d0 * 133 + d11, d11_left);
              const vf v1 = splat(*(t1 + (d0 - d0_1)));
              const vf v2 = v0 - v1;
              const vf v3 = v2 * v2;
              r0[0] = r0[0] + select_f(lane_numbers() < (int)d11_left, v3, splat(0x0p+0f));
              storen_f32(t3 + (d0 - d0_1) * 136 + d11, v2, d11_left);
            }
          }
          r0[0] = r0[0] + r0[1];
          r0[0] = r0[0] + r0[2];
          r0[0] = r0[0] + r0[3];
          *(t2 + (d0 - d0_1)) = *(t2 + (d0 - d0_1)) + fold_sum<float>(r0[0]);
        }
      }
    }
    /* div add sqrt */ {
       {
        i64 d0_at = d0_1;
        for (; d0_at + W <= d0_1_end; d0_at += W) {
          const i64 d0 = d0_at;
          const vf v0 = load_f32(t2 + (d0 - d0_1));
          const vf v1 = splat(0x1.0ap+7f);
          const vf v2 = v0 / v1;
          const vf v3 = splat(0x1p-20f);
          const vf v4 = v2 + v3;
          const vf v5 = sqrt_f(v4);
          store_f32(t4 + (d0 - d0_1), v5);
        }
        if (d0_at < d0_1_end) {
          const i64 d0 = d0_at;
          const i64 d0_left = d0_1_end - d0_at;
          const vf v0 = loadn_f32(t2 + (d0 - d0_1), d0_left);
          const vf v1 = splat(0x1.0ap+7f);
          const vf v2 = v0 / v1;
          const vf v3 = splat(0x1p-20f);
          const vf v4 = v2 + v3;
          const vf v5 = sqrt_f(v4);
          storen_f32(t4 + (d0 - d0_1), v5, d0_left);
        }
      }
    }
    /* div mul add */ {
      for (i64 d0 = d0_1; d0 < d0_1_end; ++d0) {
         {
          const float by2 = *(t4 + (d0 - d0_1));
          if (has_reciprocal(by2)) {
            const vf inverse2 = splat(1.0f / by2);
             {
              i64 d11_at = 0;
              for (; d11_at + W <= 133; d11_at += W) {
                const i64 d11 = d11_at;
                const vf v0 = load_f32(t3 + (d0 - d0_1) * 136 + d11);
                const vf v1 = splat(*(t4 + (d0 - d0_1)));
                const vf v2 = quotient(v0, v1, inverse2);
                const vf v3 = load_f32(p1 + d11);
                const vf v4 = v2 * v3;
                const vf v5 = load_f32(p2 + d11);
                const vf v6 = v4 + v5;
                store_f32(p3 + d0 * 133 + d11, v6);
              }
              if (d11_at < 133) {
                const i64 d11 = d11_at;
                const i64 d11_left = 133 - d11_at;
                const vf v0 = loadn_f32(t3 + (d0 - d0_1) * 136 + d11, d11_left);
                const vf v1 = splat(*(t4 + (d0 - d0_1)));
                const vf v2 = quotient(v0, v1, inverse2);
                const vf v3 = loadn_f32(p1 + d11, d11_left);
                const vf v4 = v2 * v3;
                const vf v5 = loadn_f32(p2 + d11, d11_left);
                const vf v6 = v4 + v5;
                storen_f32(p3 + d0 * 133 + d11, v6, d11_left);
              }
            }
          }
          else {
             {
              i64 d11_at = 0;
              for (; d11_at + W <= 133; d11_at += W) {
                const i64 d11 = d11_at;
                const vf v0 = load_f32(t3 + (d0 - d0_1) * 136 + d11);
                const vf v1 = splat(*(t4 + (d0 - d0_1)));
                const vf v2 = v0 / v1;
                const vf v3 = load_f32(p1 + d11);
                const vf v4 = v2 * v3;
                const vf v5 = load_f32(p2 + d11);
                const vf v6 = v4 + v5;
                store_f32(p3 + d0 * 133 + d11, v6);
              }
              if (d11_at < 133) {
                const i64 d11 = d11_at;
                const i64 d11_left = 133 - d11_at;
                const vf v0 = loadn_f32(t3 + (d0 - d0_1) * 136 + d11, d11_left);
                const vf v1 = splat(*(t4 + (d0 - d0_1)));
                const vf v2 = v0 / v1;
                const vf v3 = loadn_f32(p1 + d11, d11_left);
                const vf v4 = v2 * v3;
                const vf v5 = loadn_f32(p2 + d11, d11_left);
                const vf v6 = v4 + v5;
                storen_f32(p3 + d0 * 133 + d11, v6, d11_left);
              }
            }
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
        const i64 d0_0 = rest % 2 * 5;
        rest /= 2;
        block0_0(args, scratch, d0_0);
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
    case 0: return 1197;
    case 1: return 133;
    case 2: return 133;
    case 3: return 1197;
  }
  return 0;
}
extern "C" const FusionKernelDescriptor fk_replay_0_descriptor = {sizeof(FusionKernelDescriptor), FUSION_KERNEL_ABI_VERSION, "x86-64-v2", 4, 0, 1, tasks, 2384, 0, 64, reach};
