#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "core/import/model/symbols.h"

namespace fusion {

/// A type as a model declares it; parts may be missing. Dims are in the local form of a
/// SymbolTable.
struct DeclaredType {
  std::optional<DType> dtype;
  /// False: the model declares no shape.
  bool has_shape = false;
  /// nullopt: the model does not declare this dim.
  std::vector<std::optional<Dim>> dims;
};

/// Reads the type of a graph input, output or value_info. `what` names the tensor in messages.
/// Unimplemented for sequences, maps, optionals and element types that DType lacks; InvalidArgument
/// for extents and ranks beyond the limits.
absl::StatusOr<DeclaredType> ReadDeclaredType(const onnx::TypeProto& type, std::string_view what,
                                              SymbolTable* symbols);

/// The type of a graph input. Element type and rank are required. An unknown dim becomes the symbol
/// "x[2]" of input "x".
struct InputType {
  DType dtype = DType::kF32;
  Shape shape;  // local form
};
absl::StatusOr<InputType> ReadInputType(const onnx::ValueInfoProto& input, SymbolTable* symbols);

/// InvalidArgument, naming both types, if `inferred` contradicts the declaration. Unbound symbols
/// contradict nothing. `counted`: a dim whose number of elements only a run determines (-1: none);
/// there any declared extent up to the inferred one fits.
absl::Status CheckDeclaredType(const DeclaredType& declared, const TensorType& inferred,
                               int counted, const SymbolTable& symbols, std::string_view what);

}  // namespace fusion
