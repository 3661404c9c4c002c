#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/graph/graph.h"
#include "core/op/repeat.h"

namespace fusion {

/// What output 0 of a body says of whether there is a next pass.
enum class Condition : uint8_t {
  kNone,     // nothing: it is an output like the others
  kIgnored,  // nobody asks
  kAsked,
};

/// A body of a Loop or Scan that is not written out.
struct RepeatBody {
  /// Its inputs, all of them whole: those it was asked for, then `captured`; its steps; its
  /// outputs.
  Repeat repeat;
  std::vector<TensorId> captured;  // tensors of the graph around it
  std::vector<TensorType> outputs;
  /// The condition, where it is known or ignored (true). It is none of `outputs` then.
  std::optional<bool> goes_on;
};

/// The nodes of a graph as the steps of a body, its inputs as whole ones. Behind them come, as
/// captured ones, those of its constants that are weights, so that no plan depends on their values;
/// `held` says which constants of the graph around they are. Unimplemented if a run decides extents
/// of its outputs.
absl::StatusOr<RepeatBody> StepsOf(const Graph& graph, const std::map<TensorId, TensorId>& held);

}  // namespace fusion
