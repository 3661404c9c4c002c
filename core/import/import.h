#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/onnx/inline_rule.h"
#include "fusion/v1/op_graph.pb.h"

namespace fusion {

struct ImportOptions {
  /// Values for symbolic dims, by name: ONNX dim_param, OpGraph Symbol.name, or "x[0]" for dim 0 of
  /// an input "x" that ONNX leaves without value and name. A name that no dim has is an error.
  std::map<std::string, int64_t> dim_bindings;
  /// Binds the leading dim of every input whose leading dim is (still) a symbol; 0: not given. An
  /// error if no input then leads with it.
  int64_t batch_size = 0;
  /// Names of tensors between inputs and outputs that become outputs too, behind the graph's own,
  /// in this order. One that is an output already is not added again.
  std::vector<std::string> keep_outputs;
  /// ONNX: initialisers that InlineRule calls weights under this limit become weights even if their
  /// bytes came with the model, so that plan and key do not depend on how it was sent. The maximum
  /// of int64_t makes every initialiser with bytes a constant.
  int64_t inline_limit_bytes = kInlineLimitBytes;
};

/// ONNX model -> Graph. The model comes from a stranger; it is only read, no file is opened.
///
///   ASSIGN_OR_RETURN(onnx::ModelProto model, ParseModel(request_bytes));
///   ASSIGN_OR_RETURN(Graph graph, ImportOnnx(model, {.dim_bindings = {{"seq", 128}}}));
///
/// - Nodes in any order; only those that outputs need are looked at. Functions of the model are
///   inlined. Empty names are absent inputs.
/// - Attributes of older and newer opsets, and parameters that are inputs in some opset, become the
///   attributes of our ops (OpDef). Constant nodes become constants, Dropout becomes Identity.
/// - An initialiser is a weight if its bytes are elsewhere or InlineRule says so, else a constant.
///   One that is also a graph input is no input.
/// - Whatever depends on constants and shapes alone is computed and leaves no node.
/// - Symbols left unbound stay symbols where every op can carry them.
/// - Types the model declares for tensors are checked against the inferred ones.
///
/// Pure, any thread. InvalidArgument for a malformed model, Unimplemented for what is well-formed
/// and not supported, ResourceExhausted above kMaxImportedNodes. Messages name node, tensor or dim.
absl::StatusOr<Graph> ImportOnnx(const onnx::ModelProto& model, const ImportOptions& options = {});

/// Our own message -> Graph; same options, same error codes. Checks what the message promises: ids
/// unique, topological order, kinds, types, sizes of data, known ops.
absl::StatusOr<Graph> ImportOpGraph(const v1::OpGraph& graph, const ImportOptions& options = {});

/// Nodes of one graph after functions are inlined. The largest real graph seen has 3,836.
inline constexpr int kMaxImportedNodes = 1 << 16;

}  // namespace fusion
