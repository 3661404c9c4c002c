#pragma once

#include <string>

#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace fusion {

/// Layout of an input or output in the caller's memory that is not dense and row-major. Element [i,
/// j] is `strides[0] * i + strides[1] * j` elements behind the first.
struct BoundStrides {
  bool output = false;
  int position = 0;  // among the inputs or the outputs
  Dims strides;
  bool operator==(const BoundStrides&) const = default;
};

/// Strides as a caller requests them, by tensor name.
struct NamedStrides {
  std::string tensor;  // name of an input or an output
  Dims strides;
  bool operator==(const NamedStrides&) const = default;
};

/// OK if there is one stride >= 1 for each dim, no two elements share a place, and the last element
/// is less than kMaxTensorBytes behind the first. Else InvalidArgument. Elements count as separate
/// if, with dims sorted by stride, each stride is at least the span of the dims before it.
/// `element_bytes`: bytes of one element.
absl::Status CheckBoundStrides(const Dims& dims, const Dims& strides, int64_t element_bytes);

}  // namespace fusion
