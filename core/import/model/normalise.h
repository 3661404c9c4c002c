#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/custom/custom_ops.h"
#include "core/graph/build/builder.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// A node of an ONNX model as a node of ours.
struct NormalNode {
  const OpDef* def = nullptr;
  std::vector<TensorId> inputs;
  AttrMap attrs;
};

/// The opset normaliser: finds the op, checks that our definition of it is meant (domain, opset),
/// and turns what this opset writes into OpDef's attributes: attributes are read, inputs that are
/// parameters (ParamSpec::onnx_input) become attributes and leave the inputs, OpDef::normalise
/// rewrites the rest. `inputs` are the node's inputs in `builder`; their values are looked at.
///
/// Messages start with the node. Unimplemented, saying what is supported, for an op, domain or
/// opset we do not have and for parameters computed at run time; InvalidArgument for malformed
/// ones.
///
/// Ops that we do not have are looked for among `custom_ops` (null: none), by domain and name.
absl::StatusOr<NormalNode> NormaliseNode(const FlatNode& node, std::vector<TensorId> inputs,
                                         const GraphBuilder& builder, const CustomOps* custom_ops);

/// InvalidArgument for a node that names more outputs than its op has for models.
absl::Status CheckNamedOutputs(const OpDef& def, size_t outputs);

/// Bytes of the bodies of all custom nodes of a graph, in their text form.
inline constexpr int64_t kMaxCustomBytes = int64_t{1} << 23;

/// A node of a custom op. Messages do not name the node.
absl::StatusOr<NormalNode> CustomNode(const CustomOpSyntax& op, const std::vector<TensorId>& inputs,
                                      const AttrMap& attrs, const GraphBuilder& builder);

/// A CastLike as the Cast to the type of its second input, of which nothing else counts: it may be
/// known to no one but a run. Other nodes stay as they are.
void CastByType(const GraphBuilder& builder, NormalNode* node);

/// Unimplemented for a node that computes on integers or floats of less than 8 bits, or on floats
/// of 8: ops that move elements, cast and (de)quantise take them.
absl::Status CheckNarrowTypes(const NormalNode& node, const GraphBuilder& builder);

/// Refuses a node whose input `number`, called `name` by its op, would have to be a constant and is
/// none: Unimplemented, or InvalidArgument if the request left its bytes out. Messages name the
/// input, not the node.
absl::Status NotConstant(int number, const Tensor& tensor, std::string_view name);

/// Unimplemented for a node whose op we do not have.
absl::Status UnsupportedOp(const FlatNode& node);

}  // namespace fusion
