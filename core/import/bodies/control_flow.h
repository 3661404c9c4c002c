#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/build/builder.h"
#include "core/import/bodies/repeat_body.h"
#include "core/import/bodies/sequences.h"
#include "core/import/model/flatten.h"

namespace fusion {

/// Adds a copy of the nodes of a body to the graph, with `inputs` in place of the body's own, and
/// returns its outputs. `name` distinguishes the nodes of this copy from those of other copies.
using AddBody = std::function<absl::StatusOr<std::vector<Item>>(
    const onnx::GraphProto& body, const std::vector<Item>& inputs, const std::string& name)>;
/// The same for a body whose inputs and outputs are tensors; InvalidArgument if an output is not.
absl::StatusOr<std::vector<TensorId>> AddTensorBody(const AddBody& add,
                                                    const onnx::GraphProto& body,
                                                    const std::vector<TensorId>& inputs,
                                                    const std::string& name);

/// An input of a RepeatBody: only its type is known, or its value.
using BodyInput = std::variant<TensorType, HostTensor>;
/// Converts a body to a RepeatBody, for a loop that is not unrolled.
using MakeBody = std::function<absl::StatusOr<RepeatBody>(
    const onnx::GraphProto& body, const std::vector<BodyInput>& inputs, Condition condition)>;

/// Callbacks of the importer for the bodies of a control flow node.
struct Bodies {
  AddBody add;
  MakeBody make;
  /// Called for every node that is added outside of bodies, and a few times per pass. An error
  /// stops the import.
  std::function<absl::Status()> count;
  /// Maximum number of passes of one Loop or Scan that are unrolled.
  int64_t most_written_out = 0;
  /// Remaining budget, in iteration points, for following loop conditions; shared by all Loops. See
  /// FollowedPasses.
  double* follow_points = nullptr;
};

/// True for If, Loop and Scan.
bool IsControlFlow(const FlatNode& node);

/// Adds a control flow node. An If with a constant condition becomes the branch taken; other Ifs
/// become both branches and a Where. A Loop or Scan becomes a Repeat of its body. It is unrolled
/// instead if
/// - it has at most `most_written_out` passes, known at import, so that passes fuse with each other
///   (not if it has both a condition and stacked outputs); or
/// - it has at most kMaxPassesWrittenOut passes, known at import, and its body cannot be a repeat
///   (a carried value changes its type); or
/// - it carries a sequence or an optional. Then its condition must be known for every pass.
///
/// The number of passes is known if the trip count is, or if the condition follows from carried
/// constants. Returns one item per output of the node.
///
/// Unimplemented if the shape of a result or the length of a sequence depends on values that are
/// known only at run time; the number of stacked elements may depend on them. ResourceExhausted if
/// more than kMaxPassesWrittenOut passes would be unrolled. Messages start with the node.
absl::StatusOr<std::vector<Item>> AddControlFlow(const FlatNode& node,
                                                 const std::vector<Item>& inputs,
                                                 const Bodies& bodies, GraphBuilder* builder);

inline constexpr int kFirstOpsetOfScan = 8;
/// Earlier opsets have a batch dim and sequence lengths.
inline constexpr int kFirstOpsetOfPlainScan = 9;
/// Maximum number of passes of one Loop or Scan that are unrolled, unless
/// ImportOptions::short_repeats.
inline constexpr int64_t kMostPassesWrittenOut = 16;
/// The maximum where unrolling is the only way.
inline constexpr int64_t kMaxPassesWrittenOut = 4096;

}  // namespace fusion
