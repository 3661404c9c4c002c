#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "core/import/model/symbols.h"

namespace fusion {

/// A type as a model declares it, gaps included. Dims are local to a SymbolTable.
struct DeclaredType {
  std::optional<DType> dtype;
  /// False: nothing is said about the shape.
  bool has_shape = false;
  /// nullopt: nothing is said about this dim.
  std::vector<std::optional<Dim>> dims;
};

/// Reads the type of a graph input, output or value_info. `what` names the tensor in messages.
/// Unimplemented for sequences, maps, optionals and element types we have none of; InvalidArgument
/// for absurd extents and ranks.
absl::StatusOr<DeclaredType> ReadDeclaredType(const onnx::TypeProto& type, std::string_view what,
                                              SymbolTable* symbols);

/// The same for a graph input: element type and rank must be given; a dim that is unknown is the
/// symbol "x[2]" of input "x".
struct InputType {
  DType dtype = DType::kF32;
  Shape shape;  // local
};
absl::StatusOr<InputType> ReadInputType(const onnx::ValueInfoProto& input, SymbolTable* symbols);

/// InvalidArgument, naming both, if `inferred` contradicts what is declared. Symbols contradict
/// nothing unless they are bound. Along `counted`, if not -1, a run decides how many elements there
/// are: any number up to the inferred one fits.
absl::Status CheckDeclaredType(const DeclaredType& declared, const TensorType& inferred,
                               int counted, const SymbolTable& symbols, std::string_view what);

}  // namespace fusion
