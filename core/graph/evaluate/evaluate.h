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
  /// Checked between ops; its error ends the evaluation. May be null.
  const CancelToken* cancel = nullptr;
  /// Receives the comparisons and roundings of the evaluated expressions. May be null; otherwise
  /// only one thread is used.
  DecisionLog* decisions = nullptr;
};

/// The reference for correctness. Interprets loop bodies in double precision and rounds every graph
/// tensor to its element type. Values inside a composite op are not rounded. Slow and simple: no
/// tiles, no vector math, no reassociation beyond summation in double. ResourceExhausted if the
/// values that are alive at a time (8 bytes per element) exceed the machine's memory, or if a loop
/// needs more passes than it has room for (Repeat::must_end). InvalidArgument for an index out of
/// range.

/// Evaluates a whole graph of static shapes. Returns the model's outputs, cut to the extents that
/// the run determines. `inputs[i]` is graph input i. `weight(id)` returns a weight tensor, not null
/// and valid until Evaluate returns; its errors are passed on. InvalidArgument if the number or
/// type of inputs, or the type of a weight, differs from the graph's; else as BuildProgram.
absl::StatusOr<std::vector<HostTensor>> Evaluate(
    const Graph& graph, const std::vector<HostTensor>& inputs,
    const std::function<absl::StatusOr<const HostTensor*>(TensorId)>& weight,
    const EvaluateOptions& options = {});

/// Evaluates parts of the outputs of a program; computes only what these parts need. `boxes` has
/// one box for each output: boxes[i] is the part of program.outputs[i], and result i has its
/// extents. `value(id)` returns an input or weight; InvalidArgument if a needed one is null or of
/// another type.
absl::StatusOr<std::vector<HostTensor>> EvaluateBoxes(
    const Program& program, const std::vector<Box>& boxes,
    const std::function<const HostTensor*(ValueId)>& value, const EvaluateOptions& options = {});

/// Evaluates one op on constants. inputs[i] is null if the call has no input i. `budget` may be
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
