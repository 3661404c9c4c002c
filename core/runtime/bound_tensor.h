#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace fusion {

/// A tensor in the caller's memory, which outlives the run that it is given to. Elements lie as the
/// plan says: dense and row-major, with the strides of Plan::bound_strides, or in a shared buffer.
struct BoundTensor {
  DType dtype = DType::kF32;
  const Dims* dims = nullptr;
  std::byte* data = nullptr;
  int64_t bytes = 0;  // behind `data`
};

}  // namespace fusion
