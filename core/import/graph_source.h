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
  /// Values for symbolic dims, by name: ONNX dim_param, OpGraph Symbol.name, or "x[0]" for dim 0 of
  /// an input "x" that ONNX leaves without value and name. A name that no dim has is an error.
  std::map<std::string, int64_t> dim_bindings;
  /// Which of these stand for a range of values: messages call them dim_ranges.
  std::set<std::string> ranged_dims;
  /// Binds the leading dim of every input whose leading dim is (still) a symbol; 0: not given. An
  /// error if no input then leads with it.
  int64_t batch_size = 0;
  /// Names of tensors between inputs and outputs that become outputs too, behind the graph's own,
  /// in this order. One that is an output already is not added again.
  std::vector<std::string> keep_outputs;
  /// Outputs that lie in the memory of an input.
  std::vector<SharedNames> shared_buffers;
  /// Inputs and outputs that do not lie dense in memory.
  std::vector<NamedStrides> bound_strides;
  /// Of the request; refers to the caller's object, which lives as long as the import. May be null.
  const CustomOps* custom_ops = nullptr;
  /// ONNX: initialisers that InlineRule calls weights under this limit become weights even if their
  /// bytes came with the model, so that plan and key do not depend on how it was sent. The maximum
  /// of int64_t makes every initialiser with bytes a constant.
  int64_t inline_limit_bytes = kInlineLimitBytes;
  /// ONNX: a model whose groups are nodes (core/onnx/group_calls.h) is taken for the one that it
  /// was written from. False: it is InvalidArgument, "ALREADY_FUSED: ...".
  bool allow_fused = false;
  /// ONNX: a Loop or Scan is a repeat however few its passes are, so that the graph is the same
  /// where there are more. False: few of them are written out.
  bool short_repeats = false;
  /// ONNX: what the model declares of shapes that its nodes do not give; may be null.
  std::set<std::string>* warnings = nullptr;
  /// As BuilderOptions::unfolded and BuilderOptions::folded.
  const std::set<std::string>* unfolded = nullptr;
  std::map<std::string, Dims>* folded = nullptr;
  /// As BuilderOptions::trace.
  ShapeTrace* trace = nullptr;
};

/// Where a graph comes from, as bytes or message of somebody else: exactly one of both. Refers to
/// the caller's memory. For those who must not know protobuf types; see import.h.
struct GraphSource {
  std::string_view onnx_model;  // serialised onnx.ModelProto
  const v1::OpGraph* op_graph = nullptr;
};

/// ParseModel and ImportOnnx, or ImportOpGraph. InvalidArgument also if both or none are given.
absl::StatusOr<Graph> ImportGraph(const GraphSource& source, const ImportOptions& options = {});

}  // namespace fusion
