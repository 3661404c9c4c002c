#include "core/plan/cost/cost_bound.h"

#include <algorithm>

#include "core/graph/program/half_precision.h"
#include "core/op/body/indexed_reduction.h"
#include "core/tensor/dtype.h"

namespace fusion {
namespace {

// A value that several ops of a kernel compute from the same operands is computed once.
constexpr double kSharedPart = 0.9;

// A sum of products of two values: what a product unit does.
bool IsContraction(const LoopOp& op) {
  return op.kind == LoopOp::kLoop && op.body.reduce && op.inputs.size() > 1 &&
         op.body.value.op() == ScalarOp::kMul;
}

}  // namespace

CostBound::CostBound(const Program& program, const DeviceSpec& device)
    : program_(program), device_(device) {
  for (const auto& [of, factor] : device.class_factors) {
    least_class_ = std::min(least_class_, factor);
  }
  readers_.resize(program.values.size());
  returned_.assign(program.values.size(), false);
  seen_.assign(program.values.size(), 0);
  in_.assign(program.ops.size(), 0);
  for (ValueId v : program.outputs) returned_[static_cast<size_t>(v)] = true;
  for (const Value& value : program.values) {
    auto bytes = static_cast<double>(DTypeBytes(value.type.dtype));
    for (int64_t d : value.type.shape.ToDims()) bytes *= static_cast<double>(d);
    bytes_.push_back(bytes);
  }
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const LoopOp& op = program.ops[i];
    double points = 1;
    for (const LoopAxis& axis : op.body.axes) points *= static_cast<double>(axis.extent.value());
    for (size_t r = 0; r < op.inputs.size(); ++r) {
      auto v = static_cast<size_t>(op.inputs[r]);
      readers_[v].push_back(static_cast<LoopId>(i));
      if (op.kind != LoopOp::kLoop) continue;
      // How much is read of what is read in part only is not known here.
      double element = static_cast<double>(DTypeBytes(program.values[v].type.dtype));
      if (!op.body.reads[r].guards.empty() || bytes_[v] > points * element) bytes_[v] = 0;
    }
    double us = 0;
    if (op.kind == LoopOp::kLoop) {
      TypeRates rates = device.Rates(program.value(op.output).type.dtype);
      Expr value = op.body.value;
      // What goes to places that are read is computed once for all of them.
      if (const std::optional<IndexedReduction> indexed = IndexedReductionOf(op.body)) {
        value = indexed->value;
        for (const IndexExpr::Term& t : indexed->at.terms()) {
          const int64_t extent = op.body.axes[static_cast<size_t>(t.axis)].extent.value();
          points /= static_cast<double>(std::max<int64_t>(extent, 1));
        }
      }
      double seconds =
          IsContraction(op)
              ? 2 * points / (rates.flops_per_s * device.product_efficiency)
              : kSharedPart * points * CostWithoutRoundings(value) / rates.scalar_ops_per_s;
      us = seconds / device.threads * 1e6;
    }
    compute_us_.push_back(us);
  }
}

double CostBound::Of(const std::vector<LoopId>& loops) const {
  ++call_;
  for (LoopId l : loops) in_[static_cast<size_t>(l)] = call_;
  double compute = 0;
  double bytes = 0;
  double weights = 0;
  auto inside = [this](LoopId l) { return in_[static_cast<size_t>(l)] == call_; };
  for (LoopId l : loops) {
    const LoopOp& op = program_.op(l);
    compute += compute_us_[static_cast<size_t>(l)];
    for (ValueId v : op.inputs) {
      auto i = static_cast<size_t>(v);
      if (seen_[i] == call_) continue;
      seen_[i] = call_;
      LoopId producer = program_.value(v).producer;
      if (producer != kNoLoop && inside(producer)) continue;
      (producer == kNoLoop && program_.value(v).kind == TensorKind::kWeight ? weights : bytes) +=
          bytes_[i];
    }
    auto out = static_cast<size_t>(op.output);
    const std::vector<LoopId>& readers = readers_[out];
    bool needed = returned_[out] || !std::all_of(readers.begin(), readers.end(), inside);
    if (needed) bytes += bytes_[out];
  }
  // Any part of it may come from a private cache, or from the last level, which measurements may
  // have found to be faster than the spec says.
  const double near = device_.SharedLevel().total_bytes_per_s;
  const double fastest =
      std::max(near / std::min(1.0, device_.local_part), device_.levels.back().total_bytes_per_s);
  double memory = (bytes + weights) / fastest * 1e6;
  return least_class_ *
             (std::max(compute, memory) + (1 - device_.overlap) * std::min(compute, memory)) +
         (device_.launch_s + device_.task_s) * 1e6;
}

}  // namespace fusion
