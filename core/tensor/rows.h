#pragma once

#include <cstddef>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// The first `count` elements along `dim`, 0..its extent. A copy.
HostTensor FirstRows(const HostTensor& whole, size_t dim, int64_t count);

/// The same, as many as `rows` has, into that; the other dims and the dtypes are equal.
void ReadFirstRows(const HostTensor& whole, size_t dim, HostTensor* rows);

/// Writes `rows` over the first elements of `whole` along `dim`, where `whole` may be longer; the
/// other dims and the dtypes are equal.
void WriteFirstRows(const HostTensor& rows, size_t dim, HostTensor* whole);

}  // namespace fusion
