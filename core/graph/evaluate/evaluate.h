#pragma once

#include <functional>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/graph/program/program.h"

namespace fusion {

/// A rectangular part of a tensor: begin[d] <= i < end[d].
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
  /// Gets what the expressions decide; null: nobody asks.
  DecisionLog* decisions = nullptr;
};

/// The judge of correctness. Interprets loop bodies in double precision and rounds every graph
/// tensor to its element type; values inside a composite op are not rounded. Slow but honest: no
/// tiles, no vector math, no reassociation beyond summation in double. ResourceExhausted for more
/// values at a time, at 8 bytes an element, than the machine has memory.

/// Whole graph: the outputs of the model, with the extents that the run decides. `inputs` by graph
/// input; `weight(id)` gives the bytes of a weight tensor (of its declared type) and may fail.
/// Inputs are checked against the declared types.
absl::StatusOr<std::vector<HostTensor>> Evaluate(
    const Graph& graph, const std::vector<HostTensor>& inputs,
    const std::function<absl::StatusOr<const HostTensor*>(TensorId)>& weight,
    const EvaluateOptions& options = {});

/// Parts of outputs of a program: computes only what those boxes need. `value(id)` gives the bytes
/// of an input or weight value. `boxes[i]` belongs to program.outputs[i]; the result has the boxes'
/// extents.
absl::StatusOr<std::vector<HostTensor>> EvaluateBoxes(
    const Program& program, const std::vector<Box>& boxes,
    const std::function<const HostTensor*(ValueId)>& value, const EvaluateOptions& options = {});

/// One op on constants; inputs[i] is null where the call has no input i. With a `budget`, what the
/// call costs (elements of its inputs plus EvaluationPoints) is taken off it; ResourceExhausted,
/// and nothing is evaluated, if it is less.
absl::StatusOr<std::vector<HostTensor>> EvaluateCall(const OpCall& call,
                                                     const std::vector<const HostTensor*>& inputs,
                                                     double* budget = nullptr,
                                                     const EvaluateOptions& options = {});

/// Elements that EvaluateBoxes would touch (iteration points of every loop), to budget a check
/// before running it.
double EvaluationPoints(const Program& program, const std::vector<Box>& boxes);

}  // namespace fusion
