#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/graph/graph.h"
#include "core/op/repeat.h"

namespace fusion {

/// Meaning of output 0 of a body.
enum class Condition : uint8_t {
  kNone,     // an ordinary output
  kIgnored,  // a condition that is not used
  kAsked,    // whether there is a next pass
};

/// The body of a Loop or Scan that is not unrolled.
struct RepeatBody {
  /// Inputs (all of Port::kWhole): the requested ones, then `captured`; steps; outputs.
  Repeat repeat;
  std::vector<TensorId> captured;  // tensors of the enclosing graph
  std::vector<TensorType> outputs;
  /// The condition if it is known, or true if it is ignored. Then it is not among `outputs`.
  std::optional<bool> goes_on;
};

/// Converts a graph to a body: its nodes become steps, its inputs inputs of Port::kWhole. `held`
/// maps constants of `graph` to tensors of the enclosing graph. Those that the client holds
/// (Tensor::client_has_bytes) and that have more than one element become captured inputs, so that
/// no plan depends on their values. Unimplemented if extents of outputs are known only at run time.
absl::StatusOr<RepeatBody> StepsOf(const Graph& graph, const std::map<TensorId, TensorId>& held);

}  // namespace fusion
