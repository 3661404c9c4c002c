#include "core/onnx/tensor_proto.h"

#include <cstring>

#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

absl::Status CheckCount(int64_t got, int64_t wanted, std::string_view field,
                        std::string_view what) {
  if (got == wanted) return absl::OkStatus();
  return InvalidArgument(what, ": ", field, " has ", got, " elements, expected ", wanted);
}

// Copies a repeated field whose elements have the tensor's own representation.
template <typename T, typename Field>
absl::StatusOr<HostTensor> CopyField(const TensorHeader& header, const Field& field,
                                     std::string_view name, std::string_view what) {
  int64_t elements = header.bytes / DTypeBytes(header.dtype);
  RETURN_IF_ERROR(CheckCount(field.size(), elements, name, what));
  ASSIGN_OR_RETURN(HostTensor out, HostTensor::Create(header.dtype, header.dims));
  if (elements > 0) std::memcpy(out.bytes(), field.data(), static_cast<size_t>(header.bytes));
  return out;
}

// int32_data also carries every type of up to 16 bits, floats as their bits: one element in an
// entry, of types of 2 and 4 bits one packed byte.
absl::StatusOr<HostTensor> CopyInt32Data(const TensorHeader& header,
                                         const onnx::TensorProto& tensor, std::string_view what) {
  int64_t elements = header.bytes / DTypeBytes(header.dtype);
  if (DTypeBits(header.dtype) == 2 || DTypeBits(header.dtype) == 4) {
    RETURN_IF_ERROR(CheckCount(tensor.int32_data_size(),
                               HostTensor::PackedBytes(header.dtype, elements), "int32_data",
                               what));
    std::string bytes;
    for (int32_t entry : tensor.int32_data()) bytes.push_back(static_cast<char>(entry));
    return HostTensor::FromPacked(header.dtype, header.dims, bytes);
  }
  RETURN_IF_ERROR(CheckCount(tensor.int32_data_size(), elements, "int32_data", what));
  ASSIGN_OR_RETURN(HostTensor out, HostTensor::Create(header.dtype, header.dims));
  for (int i = 0; i < tensor.int32_data_size(); ++i) {
    if (IsNarrowFloat(header.dtype)) {
      out.data<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(tensor.int32_data(i));
    } else if (IsFloat(header.dtype)) {
      out.data<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(tensor.int32_data(i));
    } else {
      out.SetInt(i, tensor.int32_data(i));
    }
  }
  out.NormaliseBytes();
  return out;
}

// uint64_data also carries u32.
absl::StatusOr<HostTensor> CopyUint64Data(const TensorHeader& header,
                                          const onnx::TensorProto& tensor, std::string_view what) {
  int64_t elements = header.bytes / DTypeBytes(header.dtype);
  RETURN_IF_ERROR(CheckCount(tensor.uint64_data_size(), elements, "uint64_data", what));
  ASSIGN_OR_RETURN(HostTensor out, HostTensor::Create(header.dtype, header.dims));
  for (int i = 0; i < tensor.uint64_data_size(); ++i) {
    out.SetInt(i, static_cast<int64_t>(tensor.uint64_data(i)));
  }
  return out;
}

}  // namespace

std::string SupportedTypeNames() {
  std::string out;
  for (int i = 0; i < kDTypeCount; ++i) {
    StrAppend(&out, i > 0 ? ", " : "");
    StrAppend(&out, DTypeName(static_cast<DType>(i)));
  }
  return out;
}

absl::StatusOr<TensorHeader> ReadTensorHeader(const onnx::TensorProto& tensor,
                                              std::string_view what) {
  auto dtype = DTypeFromOnnx(tensor.data_type());
  if (!dtype) {
    return Unimplemented(what, ": element type ", OnnxTypeName(tensor.data_type()),
                         " is not supported; supported: ", SupportedTypeNames());
  }
  if (tensor.has_segment()) return Unimplemented(what, ": segmented tensors are not supported");
  if (tensor.dims_size() > kMaxTensorRank) {
    return InvalidArgument(what, ": rank ", tensor.dims_size(), ", expected at most ",
                           kMaxTensorRank);
  }
  TensorHeader header{.dtype = *dtype, .dims = {tensor.dims().begin(), tensor.dims().end()}};
  auto elements = CheckedNumElements(header.dims, DTypeBytes(*dtype));
  if (!elements.ok()) return Annotate(elements.status(), what);
  header.bytes = *elements * DTypeBytes(*dtype);
  header.stored_bytes = HostTensor::PackedBytes(*dtype, *elements);
  return header;
}

bool IsExternal(const onnx::TensorProto& tensor) {
  return tensor.data_location() == onnx::TensorProto::EXTERNAL;
}

absl::StatusOr<HostTensor> ReadInlineTensor(const onnx::TensorProto& tensor,
                                            std::string_view what) {
  ASSIGN_OR_RETURN(TensorHeader header, ReadTensorHeader(tensor, what));
  if (IsExternal(tensor)) {
    return InvalidArgument(what, ": its bytes are stored outside of the model");
  }
  if (tensor.has_raw_data()) {
    if (static_cast<int64_t>(tensor.raw_data().size()) != header.stored_bytes) {
      return InvalidArgument(what, ": ", DTypeName(header.dtype), DimsToString(header.dims),
                             " has ", tensor.raw_data().size(), " bytes of raw_data, expected ",
                             header.stored_bytes);
    }
    return HostTensor::FromPacked(header.dtype, header.dims, tensor.raw_data());
  }
  if (header.dtype == DType::kF32) {
    return CopyField<float>(header, tensor.float_data(), "float_data", what);
  }
  if (header.dtype == DType::kF64) {
    return CopyField<double>(header, tensor.double_data(), "double_data", what);
  }
  if (header.dtype == DType::kI64) {
    return CopyField<int64_t>(header, tensor.int64_data(), "int64_data", what);
  }
  if (header.dtype == DType::kU64) {
    return CopyField<uint64_t>(header, tensor.uint64_data(), "uint64_data", what);
  }
  if (header.dtype == DType::kU32) return CopyUint64Data(header, tensor, what);
  return CopyInt32Data(header, tensor, what);
}

onnx::TensorProto MakeTensorProto(const HostTensor& tensor, const std::string& name) {
  onnx::TensorProto out;
  out.set_name(name);
  out.set_data_type(DTypeToOnnx(tensor.dtype()));
  for (int64_t d : tensor.dims()) out.add_dims(d);
  if (DTypeBits(tensor.dtype()) < 8) {
    out.set_raw_data(tensor.Packed());
    return out;
  }
  std::string_view bytes = tensor.byte_view();
  out.set_raw_data(bytes.data(), bytes.size());
  return out;
}

}  // namespace fusion
