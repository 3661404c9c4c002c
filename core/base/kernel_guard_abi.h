/*
 * What a guarded kernel adds to kernel_abi.h, which stands before it in a source: a build of the
 * same schedule that checks every element before it is read or written. Plain C; part of every
 * guarded source. A guarded kernel says so by a further symbol:
 *
 *   extern const unsigned int fk_<key>_guarded;   the struct_size that it is called with
 *
 * It answers FUSION_KERNEL_BAD_ABI to anything else than FusionGuardedKernelArgs. What would leave
 * a tensor or a buffer is not read (0 instead) and not written. A call ends with the code of its
 * first fault when the block in which it happened is over.
 */
#ifndef FUSION_KERNEL_GUARD_ABI_H_
#define FUSION_KERNEL_GUARD_ABI_H_

#ifndef FUSION_KERNEL_ABI_H_
#include "core/base/kernel_abi.h"
#endif

/* Return codes besides those of kernel_abi.h. */
#define FUSION_KERNEL_OUT_OF_BOUNDS 4 /* an element outside of a tensor or buffer of the kernel */
#define FUSION_KERNEL_BAD_INDEX 5     /* an index that a tensor holds is outside of what it is for */

/* The first fault of a call. Texts live as long as the kernel is loaded. */
typedef struct FusionKernelFault {
  int code;             /* FUSION_KERNEL_OK: none */
  int tensor;           /* position in FusionKernelArgs.tensors; -1: a buffer of the kernel */
  FusionInt64 element;  /* first of those that were asked for; BAD_INDEX: the index */
  FusionInt64 count;    /* how many; BAD_INDEX: 1 */
  FusionInt64 elements; /* that there are; BAD_INDEX: the extent of the dim */
  const char* name;     /* of the tensor or buffer in the source: "p0", "t3" */
  const char* step;     /* what the kernel was computing: "sub exp reduce.sum", "product" */
  FusionInt64 aside[2]; /* takes the place of what lies outside; of no meaning to the caller */
} FusionKernelFault;

/* The caller's FusionKernelArgs, longer: args.struct_size is sizeof(FusionGuardedKernelArgs). */
typedef struct FusionGuardedKernelArgs {
  FusionKernelArgs args;
  const FusionInt64* elements; /* by tensor: elements that lie in its memory from `data` on */
  FusionKernelFault* faults;   /* one a worker */
} FusionGuardedKernelArgs;

#endif /* FUSION_KERNEL_GUARD_ABI_H_ */
