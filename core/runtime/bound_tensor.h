#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace fusion {

/// A tensor in the caller's memory. `data` and `dims` must stay valid until the run returns. The
/// layout is the plan's: dense and row-major, with the strides of Plan::bound_strides, or in a
/// shared buffer.
struct BoundTensor {
  DType dtype = DType::kF32;
  const Dims* dims = nullptr;
  std::byte* data = nullptr;
  int64_t bytes = 0;  // size of the memory at `data`
};

}  // namespace fusion
