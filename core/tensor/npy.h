#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/files/byte_source.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

/// NumPy's .npy format (numpy.lib.format, versions 1.0 to 3.0): a header (a Python dict with descr,
/// fortran_order and shape), then the elements. Reading accepts either byte order, row-major and
/// column-major. NumPy has no type for bf16; it is written and read as '<V2', as ml_dtypes does.
/// Types of 8 bits or less other than bool, u8 and i8 are written as bytes ("|u1", "|i1") and are
/// read back as u8 or i8.

/// Decides from type and extents whether a tensor is wanted. OK: yes; an error: no.
using TypeCheck = std::function<absl::Status(DType dtype, const Dims& dims)>;

/// Reads one array. `check` (may be null) is called after the header is read and before memory for
/// the elements is allocated.
///
/// InvalidArgument if the bytes are no .npy file or their length does not match the shape;
/// Unimplemented for structured arrays and for types that DType lacks; ResourceExhausted if there
/// is no memory. Errors of `check` and of the source are returned as they are.
absl::StatusOr<HostTensor> ReadNpy(const ByteSource& source, const TypeCheck& check = nullptr);
absl::StatusOr<HostTensor> ParseNpy(std::string_view bytes);

/// Version 1.0, little-endian, row-major. ParseNpy is the inverse, except for the types that are
/// written as bytes.
std::string ToNpy(const HostTensor& tensor);

}  // namespace fusion
