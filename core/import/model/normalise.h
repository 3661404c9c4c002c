#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/custom/custom_ops.h"
#include "core/graph/build/builder.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// An ONNX node converted to an op of core/op.
struct NormalNode {
  const OpDef* def = nullptr;
  std::vector<TensorId> inputs;
  AttrMap attrs;
};

/// Converts a node of any supported opset to OpDef's form. Finds the op, checks that domain and
/// opset match the definition, and reads the attributes. Inputs that are parameters
/// (ParamSpec::onnx_input) become attributes and leave the inputs; OpDef::normalise rewrites the
/// rest. `inputs` are the node's inputs in `builder`; values of constants are read. Unknown ops are
/// looked up in `custom_ops` (may be null) by domain and name.
///
/// Unimplemented, saying what is supported, for an unknown op, domain or opset and for parameters
/// that are computed at run time; InvalidArgument for malformed ones. Messages start with the node.
absl::StatusOr<NormalNode> NormaliseNode(const FlatNode& node, std::vector<TensorId> inputs,
                                         const GraphBuilder& builder, const CustomOps* custom_ops);

/// InvalidArgument for a node with more outputs than its op has in ONNX.
absl::Status CheckNamedOutputs(const OpDef& def, size_t outputs);

/// Limit for the bodies of all custom nodes of a graph, in bytes of their text form.
inline constexpr int64_t kMaxCustomBytes = int64_t{1} << 23;

/// Converts a node of a custom op. Messages do not name the node.
absl::StatusOr<NormalNode> CustomNode(const CustomOpSyntax& op, const std::vector<TensorId>& inputs,
                                      const AttrMap& attrs, const GraphBuilder& builder);

/// Turns a CastLike into the Cast to the type of its second input. Only that type is used, so the
/// value may be unknown until run time. Other nodes stay as they are.
void CastByType(const GraphBuilder& builder, NormalNode* node);

/// Unimplemented for a node that computes on integers or floats of less than 8 bits, or on 8-bit
/// floats. Ops that move elements, cast, quantise or dequantise accept them.
absl::Status CheckNarrowTypes(const NormalNode& node, const GraphBuilder& builder);

/// The error for input `number`, called `name` by its op, that must be a constant but is none:
/// Unimplemented, or InvalidArgument if the request left its bytes out. Messages name the input,
/// not the node.
absl::Status NotConstant(int number, const Tensor& tensor, std::string_view name);

/// The Unimplemented error for a node with an unknown op.
absl::Status UnsupportedOp(const FlatNode& node);

}  // namespace fusion
