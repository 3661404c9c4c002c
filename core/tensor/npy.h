#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/files/byte_source.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// NumPy's .npy format (numpy.lib.format, versions 1.0 to 3.0): a header that is a Python dict of
/// descr, fortran_order and shape, then the elements, in either byte order, row-major or
/// column-major. bf16, which NumPy has no type for, is written as '<V2' as ml_dtypes does, and read
/// so.

/// Whether a tensor is wanted, by its type and extents; an error if not.
using TypeCheck = std::function<absl::Status(DType dtype, const Dims& dims)>;

/// Reads one array. The header is read first, and `check` is asked before there is memory for the
/// elements. InvalidArgument for bytes that are no such file or of another length than their shape
/// says; Unimplemented for structured arrays and types that DType lacks; ResourceExhausted if there
/// is no memory; else what `check` or the source says.
absl::StatusOr<HostTensor> ReadNpy(const ByteSource& source, const TypeCheck& check = nullptr);
absl::StatusOr<HostTensor> ParseNpy(std::string_view bytes);

/// Version 1.0, little-endian, row-major; ParseNpy gives the tensor back.
std::string ToNpy(const HostTensor& tensor);

}  // namespace fusion
