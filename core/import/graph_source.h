#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/shape_trace.h"
#include "core/onnx/inline_rule.h"

namespace fusion::v1 {
class OpGraph;
}  // namespace fusion::v1

namespace fusion {

class CustomOps;

struct ImportOptions {
  /// Values of symbolic dims, by name: an ONNX dim_param, OpGraph Symbol.name, or "x[0]" for dim 0
  /// of an input "x" that ONNX leaves without value and name. InvalidArgument if no dim has the
  /// name.
  std::map<std::string, int64_t> dim_bindings;
  /// The bindings that stand for a range of values. Messages call them dim_ranges.
  std::set<std::string> ranged_dims;
  /// Binds the leading dim of every input if it is an unbound symbol; 0: not given.
  /// InvalidArgument if all leading dims are numbers then and none is `batch_size`.
  int64_t batch_size = 0;
  /// Names of intermediate tensors that become additional outputs, in this order, behind the
  /// graph's own. Tensors that are outputs already are not repeated.
  std::vector<std::string> keep_outputs;
  /// Outputs that share memory with an input.
  std::vector<SharedNames> shared_buffers;
  /// Inputs and outputs that are not dense in memory.
  std::vector<NamedStrides> bound_strides;
  /// Custom ops of the request. May be null; must outlive the import.
  const CustomOps* custom_ops = nullptr;
  /// ONNX: initialisers that InlineRule classifies as weights under this limit become weights even
  /// if their bytes came with the model. So plan and key do not depend on how the model was sent.
  /// The maximum of int64_t makes every initialiser with bytes a constant.
  int64_t inline_limit_bytes = kInlineLimitBytes;
  /// ONNX: accept a model whose groups are nodes (core/onnx/group_calls.h) as the model that it was
  /// written from. False: such a model is InvalidArgument, "ALREADY_FUSED: ...".
  bool allow_fused = false;
  /// ONNX: a Loop or Scan always becomes a repeat, so that the graph does not depend on the number
  /// of passes. False: loops of few passes are unrolled.
  bool short_repeats = false;
  /// ONNX: receives a warning for each declared shape that differs from the inferred one. May be
  /// null.
  std::set<std::string>* warnings = nullptr;
  /// BuilderOptions::unfolded and BuilderOptions::folded.
  const std::set<std::string>* unfolded = nullptr;
  std::map<std::string, Dims>* folded = nullptr;
  /// BuilderOptions::trace.
  ShapeTrace* trace = nullptr;
};

/// The source of a graph: set exactly one field. Refers to the caller's memory. For callers that
/// must not include protobuf types; others use import.h.
struct GraphSource {
  std::string_view onnx_model;  // serialised onnx.ModelProto
  const v1::OpGraph* op_graph = nullptr;
};

/// Calls ParseModel and ImportOnnx, or ImportOpGraph; fails as these do. InvalidArgument also if
/// both fields or none are set.
absl::StatusOr<Graph> ImportGraph(const GraphSource& source, const ImportOptions& options = {});

}  // namespace fusion
