/*
 * y = LeakyRelu(Conv(x, w) + b), one task for each image and filter.
 *
 * fusiond compiles this file as it stands, with these in front: core/base/kernel_abi.h; the macros
 * FUSION_KERNEL and FUSION_KERNEL_DESCRIPTOR, by which the entry point and its descriptor are
 * called; FUSION_KERNEL_ISA and FUSION_KERNEL_VECTOR_BYTES of the device; and the constants that
 * the registration declares. There is no libc; nothing may be included. The flags are those of
 * generated kernels, so this is read as C++17: C that is also C++ is fine.
 *
 * A kernel creates no threads, allocates nothing and keeps no state. Tasks of a phase are
 * independent: any split, any order, any thread.
 */
static float tap(const float* image, FusionInt64 row, FusionInt64 column) {
  /* The border is 0, not skipped: 0 times an infinite weight is NaN. */
  int inside = row >= 0 && row < HEIGHT && column >= 0 && column < WIDTH;
  return inside ? image[row * WIDTH + column] : 0.0f;
}

static void add_row(float* sum, const float* image, FusionInt64 row, FusionInt64 left,
                    float weight) {
  for (FusionInt64 ow = 0; ow < OUT_W; ++ow) {
    sum[ow] += weight * tap(image, row, ow * STRIDE_W + left);
  }
}

static void plane(const float* x, const float* w, float bias, float* y, float* sum) {
  for (FusionInt64 oh = 0; oh < OUT_H; ++oh) {
    for (FusionInt64 ow = 0; ow < OUT_W; ++ow) sum[ow] = bias;
    for (FusionInt64 c = 0; c < CHANNELS; ++c) {
      for (FusionInt64 kh = 0; kh < KERNEL_H; ++kh) {
        for (FusionInt64 kw = 0; kw < KERNEL_W; ++kw) {
          add_row(sum, x + c * HEIGHT * WIDTH, oh * STRIDE_H + kh * DILATION_H - PAD_TOP,
                  kw * DILATION_W - PAD_LEFT, w[(c * KERNEL_H + kh) * KERNEL_W + kw]);
        }
      }
    }
    for (FusionInt64 ow = 0; ow < OUT_W; ++ow) {
      y[oh * OUT_W + ow] = sum[ow] >= 0 ? sum[ow] : (float)ALPHA * sum[ow];
    }
  }
}

int FUSION_KERNEL(const FusionKernelArgs* args, int phase, FusionInt64 task_begin,
                  FusionInt64 task_end, int worker) {
  if (args->abi_version != FUSION_KERNEL_ABI_VERSION) return FUSION_KERNEL_BAD_ABI;
  if (phase != 0) return FUSION_KERNEL_BAD_PHASE;
  if (task_begin < 0 || task_begin > task_end || task_end > BATCH * FILTERS) {
    return FUSION_KERNEL_BAD_TASKS;
  }
  const float* x = (const float*)args->tensors[0].data;
  const float* w = (const float*)args->tensors[1].data;
  const float* b = (const float*)args->tensors[2].data;
  float* y = (float*)args->tensors[3].data;
  /* A row of sums, in the scratch that this worker owns during the call. */
  float* sum = (float*)((char*)args->scratch + worker * args->scratch_stride);
  for (FusionInt64 task = task_begin; task < task_end; ++task) {
    FusionInt64 n = task / FILTERS;
    FusionInt64 m = task % FILTERS;
    plane(x + n * CHANNELS * HEIGHT * WIDTH, w + m * CHANNELS * KERNEL_H * KERNEL_W, b[m],
          y + task * OUT_H * OUT_W, sum);
  }
  return FUSION_KERNEL_OK;
}

static FusionInt64 tasks(int phase, const FusionInt64* dims) {
  (void)phase;
  (void)dims; /* null: shapes are constants of this kernel */
  return BATCH * FILTERS;
}

const FusionKernelDescriptor FUSION_KERNEL_DESCRIPTOR = {
    sizeof(FusionKernelDescriptor),
    FUSION_KERNEL_ABI_VERSION,
    FUSION_KERNEL_ISA,
    4, /* tensors */
    0, /* run-time dims */
    1, /* phases */
    tasks,
    OUT_W * sizeof(float), /* scratch bytes of each worker */
    0,                     /* workspace bytes */
    64                     /* alignment of both, in bytes */
};
