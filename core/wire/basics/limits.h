#pragma once

namespace fusion {

/// Keys in one GetKernels call. The service refuses more; clients split their request.
inline constexpr int kMaxKernelKeys = 4096;

/// Entries of PlanOptions.shared_buffers in one request.
inline constexpr int kMaxSharedBuffers = 4096;
/// Entries of PlanOptions.bound_strides in one request.
inline constexpr int kMaxBoundStrides = 4096;

/// Entries of PlanOptions.dim_bindings and PlanOptions.keep_outputs in one request.
inline constexpr int kMaxDimBindings = 4096;
inline constexpr int kMaxKeptOutputs = 65536;

}  // namespace fusion
