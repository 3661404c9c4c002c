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
