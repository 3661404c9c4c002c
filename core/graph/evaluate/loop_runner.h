#pragma once

#include <optional>
#include <vector>

#include "core/base/contains.h"
#include "core/graph/evaluate/evaluate_loop.h"
#include "core/graph/evaluate/loop_address.h"

namespace fusion {

/// Evaluates part of a loop op on one thread. The arguments must outlive it.
class LoopRunner {
 public:
  LoopRunner(const LoopBody& body, const std::vector<const EvaluatedValue*>& inputs,
             const std::vector<IndexRange>& ranges, EvaluatedValue* out, DecisionLog* log)
      : body_(body), inputs_(inputs), ranges_(ranges), out_(out), log_(log), value_(body.value) {
    for (int axis : body.ReducedAxes()) {
      // A reduced axis without a monoid has extent 1 (LoopBody::Verify).
      if (body.reduce) reduced_.push_back(axis);
    }
    for (size_t a = 0; a < body.axes.size(); ++a) {
      if (!Contains(reduced_, static_cast<int>(a))) {
        written_.push_back(static_cast<int>(a));
      }
    }
    if (body.reduce) ChooseAcross();
    // Threads share out the first written axis: let it be the longest of those that are not the run
    // axis.
    for (size_t i = 1; i + 1 < written_.size(); ++i) {
      if (ranges[static_cast<size_t>(written_[i])].size() >
          ranges[static_cast<size_t>(written_[0])].size()) {
        std::swap(written_[0], written_[i]);
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      reads_.push_back(MakeAddress(body.reads[i].index, inputs[i]->box, body.axes.size()));
      buffers_.emplace_back();
    }
    write_ = MakeAddress(body.write, out->box, body.axes.size());
    at_.assign(body.axes.size(), 0);
    axis_runs_.resize(body.axes.size());
    operands_.resize(inputs.size());
    axes_.resize(body.axes.size());
    named_.assign(body.axes.size(), false);
    body.value.VisitOnce([&](const Expr& e) {
      if (e.op() == ScalarOp::kAxis || e.op() == ScalarOp::kWithin) {
        named_[static_cast<size_t>(e.index())] = true;
      }
    });
    if (body.reduce) {
      for (const Expr& e : body.reduce->merge()) merge_.emplace_back(e);
      for (const Expr& e : body.reduce->lift()) lift_.emplace_back(e);
      finish_.emplace(body.reduce->finish());
      state_.resize(static_cast<size_t>(body.reduce->width()));
      next_.resize(state_.size());
    }
    value_.Watch(log);
    for (CompiledExpr& merge : merge_) merge.Watch(log);
  }

  const std::vector<int>& written() const { return written_; }

  /// Computes the outputs whose first written axis is in [begin, end).
  absl::Status Run(int64_t begin, int64_t end);

 private:
  // Decides whether several outputs are reduced together, along the longest written axis. That axis
  // is then moved to the end. (Starting a run has a fixed cost, and windows are short.)
  void ChooseAcross();

  // True if the reduction state is one float that one operation merges.
  bool IsReal() const;

  // Moves `axes` (last fastest) to the next point; false after the last one.
  bool Next(const std::vector<int>& axes, size_t count);
  void Reset(const std::vector<int>& axes);

  int64_t Offset(const LoopAddress& address) const;

  // Elements of input i along `run_axis` (-1: none) for n points from the current one, into
  // buffers_[i].
  absl::Status Fetch(size_t i, int run_axis, int64_t n);

  // Values of the expression for n points along run_axis.
  absl::StatusOr<CompiledExpr::Operand> Values(int run_axis, int64_t n);

  absl::Status RunMap();

  // Computes one output after the other, with runs along the last reduced axis.
  absl::Status RunReductionAlong();

  // Computes runs of outputs along the last written axis. Each output merges its elements in the
  // order of RunReductionAlong, so the results are bit-identical.
  absl::Status RunReductionAcross();

  bool ReducesNothing() const;

  // Sets the states of n outputs to the identity.
  void Start(int64_t n);

  static CompiledExpr::Operand OperandOf(const ValueRun& run, DType type);

  static void Copy(const CompiledExpr::Operand& from, int64_t n, ValueRun* to);

  // Merges n elements into the state of one output. The first is at coordinate `at` of the last
  // reduced axis.
  void AccumulateAlong(const CompiledExpr::Operand& values, int64_t at, int64_t n);

  // Merges one element into each of n states, at the current point.
  void AccumulateAcross(const CompiledExpr::Operand& values, int64_t n);

  // Merges one element into each of n states. coordinates_ has the positions of the elements.
  void Merge(const CompiledExpr::Operand& values, int64_t n);

  // Writes the results of n outputs from the current point on, `step` apart.
  void Finish(int64_t n, int64_t step);

  const LoopBody& body_;
  const std::vector<const EvaluatedValue*>& inputs_;
  std::vector<IndexRange> ranges_;
  EvaluatedValue* out_;
  DecisionLog* log_;
  CompiledExpr value_;
  std::vector<CompiledExpr> merge_;
  std::vector<CompiledExpr> lift_;
  std::vector<int> reduced_;
  std::vector<int> written_;
  std::vector<LoopAddress> reads_;
  LoopAddress write_;
  std::vector<int64_t> at_;
  std::vector<ValueRun> buffers_;
  std::vector<std::vector<int64_t>> axis_runs_;
  std::vector<bool> named_;  // axes whose coordinates the expression takes
  std::vector<CompiledExpr::Operand> operands_;
  std::vector<CompiledExpr::Operand> axes_;

  // Of reductions.
  bool across_ = false;
  std::vector<ValueRun> state_;  // by component, one element for each output of a run
  std::vector<ValueRun> next_;
  std::vector<int64_t> coordinates_;
  std::vector<CompiledExpr::Operand> element_;
  std::vector<CompiledExpr::Operand> place_;
  std::vector<CompiledExpr::Operand> merged_;
  std::optional<CompiledExpr> finish_;
};

}  // namespace fusion
