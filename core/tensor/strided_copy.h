#pragma once

#include <cstddef>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace fusion {

/// Copies the elements of a tensor from memory in which they lie with one set of strides to memory
/// with another, both in elements and at least 0. The two do not overlap.
void CopyStrided(DType dtype, const Dims& dims, const std::byte* from, const Dims& from_strides,
                 std::byte* to, const Dims& to_strides);

}  // namespace fusion
