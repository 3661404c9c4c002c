#pragma once

#include <cstddef>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace fusion {

/// Copies a tensor between two strided layouts. Strides are in elements and >= 0. The two memory
/// regions must not overlap.
void CopyStrided(DType dtype, const Dims& dims, const std::byte* from, const Dims& from_strides,
                 std::byte* to, const Dims& to_strides);

}  // namespace fusion
