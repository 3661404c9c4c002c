#pragma once

#include <functional>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/graph/program/program.h"

namespace fusion {

/// A rectangular part of a tensor: the elements with begin[d] <= i < end[d].
struct Box {
  Dims begin;
  Dims end;

  static Box Whole(const Dims& extents) { return {Dims(extents.size(), 0), extents}; }
  Dims Extents() const;
  bool operator==(const Box&) const = default;
};

struct EvaluateOptions {
  int threads = 1;
  const CancelToken* cancel = nullptr;
  /// Receives the comparisons and roundings of the evaluated expressions. May be null.
  DecisionLog* decisions = nullptr;
};

/// The reference for correctness. Interprets loop bodies in double precision and rounds every graph
/// tensor to its element type. Values inside a composite op are not rounded. Slow and simple: no
/// tiles, no vector math, no reassociation beyond summation in double. ResourceExhausted if the
/// values that are alive at a time (8 bytes per element) exceed the machine's memory.

/// Evaluates a whole graph. Returns the model's outputs, cut to the extents that the run
/// determines. `inputs[i]` is graph input i; it is checked against the declared type. `weight(id)`
/// returns the bytes of a weight tensor (of its declared type); its errors are passed on.
absl::StatusOr<std::vector<HostTensor>> Evaluate(
    const Graph& graph, const std::vector<HostTensor>& inputs,
    const std::function<absl::StatusOr<const HostTensor*>(TensorId)>& weight,
    const EvaluateOptions& options = {});

/// Evaluates parts of the outputs of a program; computes only what these parts need. `boxes[i]` is
/// the part of program.outputs[i], and result i has its extents. `value(id)` returns the bytes of
/// an input or weight value.
absl::StatusOr<std::vector<HostTensor>> EvaluateBoxes(
    const Program& program, const std::vector<Box>& boxes,
    const std::function<const HostTensor*(ValueId)>& value, const EvaluateOptions& options = {});

/// Evaluates one op on constants. inputs[i] is null where the call has no input i. `budget` may be
/// null; otherwise the cost of the call (elements of its inputs plus EvaluationPoints) is
/// subtracted from it. If it is less than the cost, nothing is evaluated: ResourceExhausted.
absl::StatusOr<std::vector<HostTensor>> EvaluateCall(const OpCall& call,
                                                     const std::vector<const HostTensor*>& inputs,
                                                     double* budget = nullptr,
                                                     const EvaluateOptions& options = {});

/// Number of iteration points of all loops that EvaluateBoxes would visit. Use it to check a budget
/// first.
double EvaluationPoints(const Program& program, const std::vector<Box>& boxes);

}  // namespace fusion
