#pragma once

#include <string>
#include <string_view>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// NumPy's .npy format (numpy.lib.format, versions 1.0 to 3.0): a header that is a Python dict of
/// descr, fortran_order and shape, then the elements. Little-endian and row-major; bf16, which
/// NumPy has no type for, is written as '<V2' as ml_dtypes does, and read so.

/// InvalidArgument for bytes that are no such file or of another length than their shape says;
/// Unimplemented for big-endian, column-major or structured arrays and types that DType lacks.
absl::StatusOr<HostTensor> ParseNpy(std::string_view bytes);

/// Version 1.0; ParseNpy gives the tensor back.
std::string ToNpy(const HostTensor& tensor);

}  // namespace fusion
