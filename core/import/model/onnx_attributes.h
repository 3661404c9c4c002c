#pragma once

#include "core/import/model/flatten.h"
#include "core/op/attr.h"

namespace fusion {

/// The attributes of a node as an AttrMap. References to attributes of the enclosing function are
/// resolved; a reference to an unset attribute is left out. `consumed_inputs`, which is meaningless
/// and only in opsets before 6, is dropped.
///
/// Unimplemented for unsupported kinds (subgraphs, lists of strings, types, sparse tensors).
/// InvalidArgument for an attribute that occurs twice or has no value, or a tensor without bytes.
/// Messages start with 'attribute "x"'.
absl::StatusOr<AttrMap> ReadAttributes(const FlatNode& node);

/// The attribute of this name, with references resolved; nullptr if it is not set.
const onnx::AttributeProto* FindAttribute(const FlatNode& node, std::string_view name);

}  // namespace fusion
