#pragma once

#include <cstddef>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// A copy of the first `count` elements along `dim`; 0 <= count <= extent.
HostTensor FirstRows(const HostTensor& whole, size_t dim, int64_t count);

/// Copies the first elements of `whole` along `dim` into `rows`, as many as `rows` has. The other
/// dims and the dtypes must be equal.
void ReadFirstRows(const HostTensor& whole, size_t dim, HostTensor* rows);

/// Copies `rows` over the first elements of `whole` along `dim`. `whole` may be longer along `dim`.
/// The other dims and the dtypes must be equal.
void WriteFirstRows(const HostTensor& rows, size_t dim, HostTensor* whole);

}  // namespace fusion
