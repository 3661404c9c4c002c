#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/builder.h"
#include "core/import/flatten.h"

namespace fusion {

/// Adds the nodes of a body of `node` to the graph, with `inputs` in place of the body's own, and
/// returns its outputs. `name` tells the nodes of this copy from those of others.
using AddBody = std::function<absl::StatusOr<std::vector<TensorId>>(
    const onnx::GraphProto& body, const std::vector<TensorId>& inputs, const std::string& name)>;

/// True for If, Loop and Scan.
bool IsControlFlow(const FlatNode& node);

/// Adds a control flow node as what it does: the branch that a constant condition of an If takes,
/// or both and a Where; the body of a Loop or Scan as often as it runs. What one pass hands to the
/// next fuses like everything else. Returns one id per output of the node.
///
/// Unimplemented where the number of passes, or the shape of a result, follows from values that
/// only a run knows; ResourceExhausted above kMaxPasses. Messages start with the node.
absl::StatusOr<std::vector<TensorId>> AddControlFlow(const FlatNode& node,
                                                     const std::vector<TensorId>& inputs,
                                                     const AddBody& add_body,
                                                     GraphBuilder* builder);

/// Before: with a batch dim and lengths.
inline constexpr int kFirstOpsetOfScan = 9;
/// Passes of one Loop or Scan.
inline constexpr int64_t kMaxPasses = 4096;

}  // namespace fusion
