// kernel fk_replay_0: Pack
// dims i0:20 i1:50   spatial i1:16   for avx2
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

static void block0_0(const FusionKernelArgs* args, char* scratch, i64 i1_0) {
  const float* p0 = (const float*)args->tensors[0].data;  // weight f32[20,50]
  (void)p0;
  float* p1 = (float*)args->tensors[1].data;  // f32[20,50] in blocks of 16
  (void)p1;
  const i64 i1_0_end = min_i64(i1_0 + 16, 50);
  (void)scratch;
  for (i64 i1_block = i1_0; i1_block < i1_0_end; i1_block += 16) {
    const i64 i1_width = min_i64(16, i1_0_end - i1_block);
    for (i64 i0 = 0; i0 < 20; ++i0) {
      float* to = p1 + (i1_block) / 16 * 320 + i0 * 16;
      const float* from = p0 + i0 * 50 + i1_block;
      i64 i = 0;
      for (; i < i1_width; ++i) to[i] = from[i];
      for (; i < 16; ++i) to[i] = 0;
    }
  }
}

extern "C" int fk_replay_0(const FusionKernelArgs* args, int phase, i64 task_begin, i64 task_end, int worker) {
  if (args->abi_version != FUSION_KERNEL_ABI_VERSION) return FUSION_KERNEL_BAD_ABI;
  char* scratch = (char*)args->scratch + (unsigned long long)worker * args->scratch_stride;
  if (phase == 0) {
    if (task_begin < 0 || task_end < task_begin || task_end > 4) return FUSION_KERNEL_BAD_TASKS;
    for (i64 task = task_begin; task < task_end; ++task) {
      i64 rest = task;
      if (rest >= 0 && rest < 4) {
        const i64 i1_0 = rest % 4 * 16;
        rest /= 4;
        block0_0(args, scratch, i1_0);
        continue;
      }
    }
    return FUSION_KERNEL_OK;
  }
  return FUSION_KERNEL_BAD_PHASE;
}

static i64 tasks(int phase, const i64*) {
  if (phase == 0) return 4;
  return 0;
}
static i64 reach(int tensor, const i64*) {
  switch (tensor) {
    case 0: return 1000;
    case 1: return 1280;
  }
  return 0;
}
extern "C" const FusionKernelDescriptor fk_replay_0_descriptor = {sizeof(FusionKernelDescriptor), FUSION_KERNEL_ABI_VERSION, "avx2", 2, 0, 1, tasks, 0, 0, 64, reach};
