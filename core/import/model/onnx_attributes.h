#pragma once

#include "core/import/model/flatten.h"
#include "core/op/attr.h"

namespace fusion {

/// The attributes of a node as values of ours, with references to attributes of the enclosing
/// function resolved (one that is not set is left out). `consumed_inputs`, which opsets before 6
/// carry without meaning, is dropped.
///
/// Unimplemented for kinds we have no use for (subgraphs, lists of strings, types, sparse tensors);
/// InvalidArgument for an attribute given twice, without value, or a tensor without bytes. Messages
/// start with 'attribute "x"'.
absl::StatusOr<AttrMap> ReadAttributes(const FlatNode& node);

/// The attribute of this name with references resolved; nullptr if it is not set.
const onnx::AttributeProto* FindAttribute(const FlatNode& node, std::string_view name);

}  // namespace fusion
