#pragma once

#include <onnx/onnx_pb.h>

#include "core/import/graph_source.h"
#include "fusion/v1/op_graph.pb.h"

namespace fusion {

/// Imports an untrusted ONNX model. It is only read; no file is opened.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, ParseModel(request_bytes));
///   ASSIGN_OR_RETURN(Graph graph, ImportOnnx(model, {.dim_bindings = {{"seq", 128}}}));
///
/// - Nodes may be in any order; only those that outputs need are imported. Functions of the model
///   are inlined. An empty name is an absent input.
/// - Attributes of older and newer opsets, and parameters that are inputs in some opsets, become
///   the attributes of OpDef. Constant nodes become constants, Dropout becomes Identity.
/// - A model whose groups are nodes (core/onnx/group_calls.h) is refused, or with allow_fused
///   expanded.
/// - An initialiser whose bytes are in the model and that InlineRule keeps inline is a constant;
///   every other one is a weight. An initialiser that is also a graph input is not an input.
/// - Values that depend on constants and shapes alone are computed; they leave no node.
/// - Unbound symbols remain symbols; an op that does not support one is Unimplemented.
/// - Declared types are checked against the inferred ones. If the declared shape of a node's result
///   differs (in models whose inputs were widened by hand), that is a warning, because nothing
///   depends on it. Other contradictions are errors.
///
/// Pure, any thread. InvalidArgument for a malformed model; Unimplemented for a well-formed model
/// with unsupported features; ResourceExhausted above kMaxImportedNodes, kMaxGraphLoopOps or
/// kMaxGraphStepConstantBytes (graph.h). Messages name node, tensor or dim.
absl::StatusOr<Graph> ImportOnnx(const onnx::ModelProto& model, const ImportOptions& options = {});

/// Imports an untrusted v1::OpGraph; same options and error codes. Checks what the .proto demands:
/// unique ids, topological order, kinds, types, sizes of data, known ops.
absl::StatusOr<Graph> ImportOpGraph(const v1::OpGraph& graph, const ImportOptions& options = {});

/// Maximum number of nodes of one graph after functions are inlined. The largest real graph seen
/// has 3,836.
inline constexpr int kMaxImportedNodes = 1 << 16;

}  // namespace fusion
