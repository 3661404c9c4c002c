#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace fusion {

/// A tensor in the caller's memory. `data` and `dims` must stay valid until the run returns. The
/// layout is dense and row-major, unless the plan gives the tensor strides (Plan::bound_strides) or
/// puts it in a shared buffer.
struct BoundTensor {
  DType dtype = DType::kF32;
  const Dims* dims = nullptr;
  std::byte* data = nullptr;
  int64_t bytes = 0;  // size of the memory at `data`
};

}  // namespace fusion
