#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "core/tensor/host_tensor.h"

namespace fusion {

/// Type and size of a TensorProto.
struct TensorHeader {
  DType dtype = DType::kF32;
  Dims dims;
  int64_t bytes = 0;         // in memory
  int64_t stored_bytes = 0;  // in a file, where elements may be packed
};

/// TensorProto <-> HostTensor. `what` names the tensor in messages: 'initializer "w"'. Pure, any
/// thread.
///
/// Reads type and size of a tensor; does not look at its bytes. Unimplemented for unsupported
/// element types (strings, complex, ...) and for segmented tensors; InvalidArgument for negative
/// extents, a rank above kMaxTensorRank and more than kMaxTensorBytes.
absl::StatusOr<TensorHeader> ReadTensorHeader(const onnx::TensorProto& tensor,
                                              std::string_view what);

/// True if the bytes are not in the message (data_location EXTERNAL).
bool IsExternal(const onnx::TensorProto& tensor);

/// The elements of a tensor whose bytes are in the message, in any of ONNX's encodings (raw_data,
/// float_data, int32_data, int64_data, double_data, uint64_data). Bools become 0 or 1. Errors as
/// ReadTensorHeader; InvalidArgument if the number of elements differs from the extents or the
/// bytes are external; ResourceExhausted without memory.
absl::StatusOr<HostTensor> ReadInlineTensor(const onnx::TensorProto& tensor, std::string_view what);

/// The tensor with its bytes as raw_data.
onnx::TensorProto MakeTensorProto(const HostTensor& tensor, const std::string& name);

/// The supported element types, for messages: "bool, u8, ...".
std::string SupportedTypeNames();

}  // namespace fusion
