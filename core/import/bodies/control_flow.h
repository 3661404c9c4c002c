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

/// Adds the nodes of a body of `node` to the graph, with `inputs` in place of the body's own, and
/// returns its outputs. `name` tells the nodes of this copy from those of others.
using AddBody = std::function<absl::StatusOr<std::vector<Item>>(
    const onnx::GraphProto& body, const std::vector<Item>& inputs, const std::string& name)>;
/// The same of a body that takes and gives tensors only; InvalidArgument if it gives others.
absl::StatusOr<std::vector<TensorId>> AddTensorBody(const AddBody& add,
                                                    const onnx::GraphProto& body,
                                                    const std::vector<TensorId>& inputs,
                                                    const std::string& name);

/// An input of a body that is made: of this type, or known.
using BodyInput = std::variant<TensorType, HostTensor>;
/// Makes a body of `node` for a loop that is not written out.
using MakeBody = std::function<absl::StatusOr<RepeatBody>(
    const onnx::GraphProto& body, const std::vector<BodyInput>& inputs, Condition condition)>;

/// How the importer adds what a control flow node runs.
struct Bodies {
  AddBody add;
  MakeBody make;
  /// Called for every node that is added beside those of bodies and a few for each pass; may refuse
  /// it.
  std::function<absl::Status()> count;
  /// Passes of one Loop or Scan that are written out.
  int64_t most_written_out = 0;
  /// What is left of the points that following conditions may cost, all Loops together; see
  /// FollowedPasses.
  double* follow_points = nullptr;
};

/// True for If, Loop and Scan.
bool IsControlFlow(const FlatNode& node);

/// Adds a control flow node as what it does: the branch that a constant condition of an If takes,
/// or both and a Where; a Loop or Scan as a Repeat of its body. One of at most
/// `most_written_out` passes, known here, is written out, so that what one pass hands to the
/// next fuses like everything else; so is one of at most kMaxPassesWrittenOut whose body carries
/// what does not keep its type. Passes are known here if their number is, or if the condition
/// follows from constants that are carried. A Loop that carries a sequence or an optional is always
/// written out, pass by pass, as long as its condition is known. Returns one item per output of the
/// node.
///
/// Unimplemented where the shape of a result, or the length of a sequence, follows from values that
/// only a run knows, but for how many elements are kept of all passes; ResourceExhausted above
/// kMaxPassesWrittenOut that would be written out. Messages start with the node.
absl::StatusOr<std::vector<Item>> AddControlFlow(const FlatNode& node,
                                                 const std::vector<Item>& inputs,
                                                 const Bodies& bodies, GraphBuilder* builder);

inline constexpr int kFirstOpsetOfScan = 8;
/// Before: with a batch dim, and lengths of its sequences.
inline constexpr int kFirstOpsetOfPlainScan = 9;
/// Passes of one Loop or Scan that are written out, unless ImportOptions::short_repeats.
inline constexpr int64_t kMostPassesWrittenOut = 16;
/// The same where there is no other way.
inline constexpr int64_t kMaxPassesWrittenOut = 4096;

}  // namespace fusion
