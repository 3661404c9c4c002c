#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/codegen/backend.h"
#include "core/graph/evaluate.h"
#include "core/runtime/loaded_kernel.h"
#include "core/schedule/lower.h"

namespace fusion::testing {

/// A random tensor: normal floats; integers and bools 0 or 1.
HostTensor RandomTensor(const TensorType& type, uint32_t seed);

/// Like RandomTensor, with NaN, infinities, -0 and subnormals sprinkled over the floats.
HostTensor AdversarialTensor(const TensorType& type, uint32_t seed);

/// A resolved built-in device spec.
DeviceSpec Device(std::string_view name, int threads = 1);

/// Every op of a program as one group, outputs and weights as the program says.
absl::StatusOr<FusionGroup> WholeProgram(const Program& program);

/// Compiles a generated source with g++ for an ISA and loads it.
absl::StatusOr<std::shared_ptr<const LoadedKernel>> CompileAndLoad(const KernelSource& source,
                                                                   Isa isa, bool bitwise);

/// Runs a lowered group on the CPU backend. `values[v]` holds each program value that is an input or weight; outputs
/// are written to `values`.
absl::Status RunLowered(const FusionGroup& group, const Lowered& lowered, const DeviceSpec& device,
                        std::vector<HostTensor>* values, std::string* source = nullptr);

/// Empty if `got` equals `want` within atol + rtol * max|want|, NaN and infinities in the same places; else where not.
std::string Difference(const HostTensor& got, const HostTensor& want, double atol = 1e-5,
                       double rtol = 1e-4);

}  // namespace fusion::testing
