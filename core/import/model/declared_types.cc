#include "core/import/model/declared_types.h"

#include "core/onnx/open_dim.h"
#include "core/onnx/tensor_proto.h"
#include "core/tensor/onnx_dtype.h"

namespace fusion {
namespace {

using DimProto = onnx::TensorShapeProto_Dimension;

absl::StatusOr<std::optional<Dim>> ReadDim(const DimProto& dim, int axis, std::string_view what,
                                           SymbolTable* symbols) {
  if (IsUnknownDim(dim)) return std::optional<Dim>();
  if (dim.value_case() == DimProto::kDimParam) {
    return std::optional(symbols->FromText(dim.dim_param()));
  }
  if (dim.dim_value() < 0 || dim.dim_value() > kMaxExtent) {
    return InvalidArgument(what, ": dim ", axis, " is ", dim.dim_value(), ", expected 0..",
                           kMaxExtent);
  }
  return std::optional(Dim(dim.dim_value()));
}

std::string_view KindOf(const onnx::TypeProto& type) {
  switch (type.value_case()) {
    case onnx::TypeProto::kSequenceType:
      return "a sequence";
    case onnx::TypeProto::kMapType:
      return "a map";
    case onnx::TypeProto::kOptionalType:
      return "an optional";
    case onnx::TypeProto::kSparseTensorType:
      return "a sparse tensor";
    default:
      return "of an unknown kind";
  }
}

std::string DimText(const std::optional<Dim>& dim, const SymbolTable& symbols) {
  auto value = dim ? symbols.StaticValue(*dim) : std::nullopt;
  return value ? StrCat(*value) : "?";
}

}  // namespace

absl::StatusOr<DeclaredType> ReadDeclaredType(const onnx::TypeProto& type, std::string_view what,
                                              SymbolTable* symbols) {
  DeclaredType out;
  if (type.value_case() == onnx::TypeProto::VALUE_NOT_SET) return out;
  if (!type.has_tensor_type()) {
    return Unimplemented(what, ": is ", KindOf(type), ", only tensors are supported");
  }
  int32_t code = type.tensor_type().elem_type();
  if (code != onnx::TensorProto::UNDEFINED) {
    out.dtype = DTypeFromOnnx(code);
    if (!out.dtype) {
      return Unimplemented(what, ": element type ", OnnxTypeName(code),
                           " is not supported; supported: ", SupportedTypeNames());
    }
  }
  if (!type.tensor_type().has_shape()) return out;
  const onnx::TensorShapeProto& shape = type.tensor_type().shape();
  if (shape.dim_size() > kMaxTensorRank) {
    return InvalidArgument(what, ": rank ", shape.dim_size(), ", expected at most ",
                           kMaxTensorRank);
  }
  out.has_shape = true;
  for (int i = 0; i < shape.dim_size(); ++i) {
    ASSIGN_OR_RETURN(std::optional<Dim> dim, ReadDim(shape.dim(i), i, what, symbols));
    out.dims.push_back(std::move(dim));
  }
  return out;
}

absl::StatusOr<InputType> ReadInputType(const onnx::ValueInfoProto& input, SymbolTable* symbols) {
  std::string what = StrCat("input ", QuoteShort(input.name()));
  ASSIGN_OR_RETURN(DeclaredType declared, ReadDeclaredType(input.type(), what, symbols));
  if (!declared.dtype) return InvalidArgument(what, ": has no element type");
  if (!declared.has_shape) {
    return InvalidArgument(what, ": has no shape; its rank must be declared (dims may be symbols)");
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < declared.dims.size(); ++i) {
    const std::optional<Dim>& dim = declared.dims[i];
    dims.push_back(dim ? *dim : symbols->FromName(StrCat(input.name(), "[", i, "]")));
  }
  return InputType{*declared.dtype, Shape(std::move(dims))};
}

absl::Status CheckDeclaredType(const DeclaredType& declared, const TensorType& inferred,
                               int counted, const SymbolTable& symbols, std::string_view what) {
  bool fits = !declared.dtype || *declared.dtype == inferred.dtype;
  if (declared.has_shape) {
    fits &= static_cast<int>(declared.dims.size()) == inferred.shape.rank();
    for (int i = 0; fits && i < inferred.shape.rank(); ++i) {
      const std::optional<Dim>& dim = declared.dims[static_cast<size_t>(i)];
      auto value = dim ? symbols.StaticValue(*dim) : std::nullopt;
      const Dim& extent = inferred.shape.dim(i);
      fits = !value || !extent.is_static() ||
             (i == counted ? *value <= extent.value() : *value == extent.value());
    }
  }
  if (fits) return absl::OkStatus();
  std::string text = declared.dtype ? std::string(DTypeName(*declared.dtype)) : "?";
  if (declared.has_shape) {
    text += StrCat(
        "[", StrJoin(declared.dims, ",", [&](const auto& dim) { return DimText(dim, symbols); }),
        "]");
  }
  return InvalidArgument(what, " is declared ", text, ", the nodes before it give ",
                         inferred.ToString());
}

}  // namespace fusion
