// kernel fk_replay_0: Gather+Exp
// dims d0:4 d1:33   spatial -   for avx2
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

static void block0_0(const FusionKernelArgs* args, char* scratch) {
  const float* p0 = (const float*)args->tensors[0].data;  // weight f32[9,33]
  (void)p0;
  const i64* p1 = (const i64*)args->tensors[1].data;  // i64[4]
  (void)p1;
  float* p2 = (float*)args->tensors[2].data;  // f32[4,33]
  (void)p2;
  (void)scratch;
  /* exp */ {
    for (i64 d0 = 0; d0 < 4; ++d0) {
       {
        i64 d1_at = 0;
        for (; d1_at + W <= 33; d1_at += W) {
          const i64 d1 = d1_at;
          const vl v0 = splat((i64)*(p1 + d0));
          const vf v1 = load_f32(p0 + d1 + max_i64(0, min_i64(8, (i64)v0[0] < 0 ? (i64)v0[0] + 9 : (i64)v0[0])) * 33);
          const vf v2 = exp_f(v1);
          store_f32(p2 + d0 * 33 + d1, v2);
        }
        if (d1_at < 33) {
          const i64 d1 = d1_at;
          const i64 d1_left = 33 - d1_at;
          const vl v0 = splat((i64)*(p1 + d0));
          const vf v1 = loadn_f32(p0 + d1 + max_i64(0, min_i64(8, (i64)v0[0] < 0 ? (i64)v0[0] + 9 : (i64)v0[0])) * 33, d1_left);
          const vf v2 = exp_f(v1);
          storen_f32(p2 + d0 * 33 + d1, v2, d1_left);
        }
      }
    }
  }
}

extern "C" int fk_replay_0(const FusionKernelArgs* args, int phase, i64 task_begin, i64 task_end, int worker) {
  if (args->abi_version != FUSION_KERNEL_ABI_VERSION) return FUSION_KERNEL_BAD_ABI;
  char* scratch = (char*)args->scratch + (unsigned long long)worker * args->scratch_stride;
  if (phase == 0) {
    if (task_begin < 0 || task_end < task_begin || task_end > 1) return FUSION_KERNEL_BAD_TASKS;
    for (i64 task = task_begin; task < task_end; ++task) {
      i64 rest = task;
      if (rest >= 0 && rest < 1) {
        block0_0(args, scratch);
        continue;
      }
    }
    return FUSION_KERNEL_OK;
  }
  return FUSION_KERNEL_BAD_PHASE;
}

static i64 tasks(int phase, const i64*) {
  if (phase == 0) return 1;
  return 0;
}
static i64 reach(int tensor, const i64*) {
  switch (tensor) {
    case 0: return 297;
    case 1: return 4;
    case 2: return 132;
  }
  return 0;
}
extern "C" const FusionKernelDescriptor fk_replay_0_descriptor = {sizeof(FusionKernelDescriptor), FUSION_KERNEL_ABI_VERSION, "avx2", 3, 0, 1, tasks, 0, 0, 64, reach};
