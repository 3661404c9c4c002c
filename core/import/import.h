#pragma once

#include <onnx/onnx_pb.h>

#include "core/import/graph_source.h"
#include "fusion/v1/op_graph.pb.h"

namespace fusion {

/// ONNX model -> Graph. The model comes from a stranger; it is only read, no file is opened.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, ParseModel(request_bytes));
///   ASSIGN_OR_RETURN(Graph graph, ImportOnnx(model, {.dim_bindings = {{"seq", 128}}}));
///
/// - Nodes in any order; only those that outputs need are looked at. Functions of the model are
///   inlined. Empty names are absent inputs.
/// - Attributes of older and newer opsets, and parameters that are inputs in some opset, become the
///   attributes of our ops (OpDef). Constant nodes become constants, Dropout becomes Identity.
/// - A model whose groups are nodes (core/onnx/group_calls.h) is refused, or opened: allow_fused.
/// - An initialiser is a weight if its bytes are elsewhere or InlineRule says so, else a constant.
///   One that is also a graph input is no input.
/// - Whatever depends on constants and shapes alone is computed and leaves no node.
/// - Symbols left unbound stay symbols where every op can carry them.
/// - Types the model declares for tensors are checked against the inferred ones. A shape of what a
///   node gives that is not the inferred one, as of a model whose inputs were widened by hand, is a
///   warning: nothing depends on it. All else that does not fit is an error.
///
/// Pure, any thread. InvalidArgument for a malformed model, Unimplemented for what is well-formed
/// and not supported, ResourceExhausted above kMaxImportedNodes, or kMaxGraphLoopOps or
/// kMaxGraphStepConstantBytes (graph.h). Messages name node, tensor or dim.
absl::StatusOr<Graph> ImportOnnx(const onnx::ModelProto& model, const ImportOptions& options = {});

/// Our own message -> Graph; same options, same error codes. Checks what the message promises: ids
/// unique, topological order, kinds, types, sizes of data, known ops.
absl::StatusOr<Graph> ImportOpGraph(const v1::OpGraph& graph, const ImportOptions& options = {});

/// Nodes of one graph after functions are inlined. The largest real graph seen has 3,836.
inline constexpr int kMaxImportedNodes = 1 << 16;

}  // namespace fusion
