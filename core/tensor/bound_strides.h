#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace fusion {

/// Where the elements of an input or output lie in the caller's memory, if not dense and row-major:
/// element [i, j] is `strides[0] * i + strides[1] * j` elements behind the first.
struct BoundStrides {
  bool output = false;
  int position = 0;  // among the inputs, or the outputs
  Dims strides;
  bool operator==(const BoundStrides&) const = default;
};

/// One that a caller asks for, by name.
struct NamedStrides {
  std::string tensor;  // an input or an output
  Dims strides;
  bool operator==(const NamedStrides&) const = default;
};

/// InvalidArgument unless there is one stride of at least 1 for each dim, no two elements share a
/// place, and the last one is not too far from the first: sorted by stride, each dim steps over all
/// of those before it. `element_bytes`: of one element.
absl::Status CheckBoundStrides(const Dims& dims, const Dims& strides, int64_t element_bytes);

}  // namespace fusion
