#pragma once

#include <functional>
#include <utility>

#include "core/runtime/loaded_kernel.h"

namespace fusion {

/// A kernel written in a test: `body` does one task.
///
///   HandMadeKernel add(3, TaskCount<4>, [](const FusionKernelArgs& args, int64_t task) { ... });
///   add.own.phases = 2;
///
/// As thread-safe as its body.
class HandMadeKernel final : public LoadedKernel {
 public:
  struct Call {
    const FusionKernelArgs& args;
    int phase;
    int64_t task;
    int worker;
  };
  using Body = std::function<void(const Call&)>;

  HandMadeKernel(int tensors, FusionInt64 (*tasks)(int, const FusionInt64*), Body body)
      : body_(std::move(body)) {
    own.struct_size = sizeof(own);
    own.abi_version = FUSION_KERNEL_ABI_VERSION;
    own.isa = "x86-64-v2";
    own.tensors = tensors;
    own.phases = 1;
    own.tasks = tasks;
    own.scratch_bytes = 256;
    own.alignment = 64;
  }

  const FusionKernelDescriptor& descriptor() const override { return own; }
  bool guarded() const override { return checks; }
  absl::Status Run(const FusionKernelArgs& args, int phase, int64_t begin, int64_t end,
                   int worker) const override {
    for (int64_t task = begin; task < end; ++task) body_({args, phase, task, worker});
    return fails ? Internal("kernel answers 3") : absl::OkStatus();
  }

  FusionKernelDescriptor own{};
  bool fails = false;
  bool checks = false;  // its args are those of a guarded kernel

 private:
  Body body_;
};

/// For FusionKernelDescriptor::tasks: as many in every phase.
template <int64_t kTasks>
FusionInt64 TaskCount(int /*phase*/, const FusionInt64* /*dims*/) {
  return kTasks;
}

/// Tensor `i` of a call, as floats.
inline float* Floats(const HandMadeKernel::Call& call, int i) {
  return static_cast<float*>(call.args.tensors[i].data);
}

}  // namespace fusion
