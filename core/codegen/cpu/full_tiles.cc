#include "core/codegen/cpu/full_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "core/base/contains.h"

namespace fusion {
namespace {

// Sums of coordinates stay below this in every step: f32 and wider types and i32 represent all
// integers up to it.
constexpr int64_t kMostExact = int64_t{1} << 24;

bool CountsExactly(DType type) {
  return type == DType::kF32 || type == DType::kF64 || type == DType::kI32 || type == DType::kI64;
}

class FullTileFinder {
 public:
  FullTileFinder(const EachStmt& each, const std::vector<ScheduleDim>& dims)
      : each_(each), dims_(dims) {}

  FullTiles Run() {
    for (const ElementOp& op : each_.ops) {
      if (op.kind != ElementOp::kLoad && op.kind != ElementOp::kCompute) continue;
      defining_[op.result] = &op;
      if (op.kind != ElementOp::kCompute) continue;
      if (std::optional<IndexExpr> sum = SumOf(op)) sums_[op.result] = *std::move(sum);
      if (op.type == DType::kBool) conditions_[op.result] = ConditionOf(op);
      if (op.op == ScalarOp::kSelect) Consider(op);
    }
    return std::move(out_);
  }

 private:
  const ElementOp& Defining(int value) const { return *defining_.at(value); }

  // What a value is as a sum of coordinates.
  std::optional<IndexExpr> SumOf(const ElementOp& op) const {
    if (!CountsExactly(op.type)) return std::nullopt;
    std::optional<IndexExpr> sum;
    if (op.op == ScalarOp::kAxis) {
      sum = IndexExpr::Axis(op.axis);
    } else if (op.op == ScalarOp::kConst) {
      double value = IsFloat(op.type) ? op.real : static_cast<double>(op.integer);
      bool whole = std::fabs(value) < static_cast<double>(kMostExact) && value == std::trunc(value);
      if (whole) sum = IndexExpr(static_cast<int64_t>(value));
    } else {
      sum = Combined(op);
    }
    return sum.has_value() && Largest(*sum) < kMostExact ? sum : std::nullopt;
  }

  std::optional<IndexExpr> Combined(const ElementOp& op) const {
    std::vector<IndexExpr> args;
    for (int v : op.args) {
      auto known = sums_.find(v);
      if (known == sums_.end()) return std::nullopt;
      args.push_back(known->second);
    }
    switch (op.op) {
      case ScalarOp::kCast:
        return args[0];
      case ScalarOp::kNeg:
        return args[0] * -1;
      case ScalarOp::kAdd:
        return args[0] + args[1];
      case ScalarOp::kSub:
        return args[0] + args[1] * -1;
      case ScalarOp::kMul:
        if (args[1].IsConstant()) return args[0] * args[1].constant();
        if (args[0].IsConstant()) return args[1] * args[0].constant();
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  // No value of the sum is farther from 0; kMostExact: it may be.
  int64_t Largest(const IndexExpr& sum) const {
    double largest = std::fabs(static_cast<double>(sum.constant()));
    for (const IndexExpr::Term& t : sum.terms()) {
      largest += std::fabs(static_cast<double>(t.coefficient)) *
                 static_cast<double>(dims_[static_cast<size_t>(t.axis)].extent);
    }
    return largest < static_cast<double>(kMostExact) ? static_cast<int64_t>(largest) : kMostExact;
  }

  // Sums that are all at least 0 only if a condition is true; none: nothing is known.
  struct Condition {
    std::vector<IndexExpr> if_true;
    std::vector<IndexExpr> if_false;
  };

  // The condition that `sum` is at least 0.
  static Condition AtLeastZero(const IndexExpr& sum) {
    if (sum.IsConstant()) return {};
    return {.if_true = {sum}, .if_false = {sum * -1 + -1}};
  }

  static std::vector<IndexExpr> Both(std::vector<IndexExpr> a, const std::vector<IndexExpr>& b) {
    if (a.empty() || b.empty()) return {};
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  Condition ConditionOf(const ElementOp& op) const {
    auto condition = [&](size_t i) {
      auto known = conditions_.find(op.args[i]);
      return known == conditions_.end() ? Condition() : known->second;
    };
    if (op.op == ScalarOp::kNot) return {condition(0).if_false, condition(0).if_true};
    if (op.args.size() != 2) return {};
    if (op.op == ScalarOp::kAnd) {
      return {.if_true = Both(condition(0).if_true, condition(1).if_true), .if_false = {}};
    }
    if (op.op == ScalarOp::kOr) {
      return {.if_true = {}, .if_false = Both(condition(0).if_false, condition(1).if_false)};
    }
    auto a = sums_.find(op.args[0]);
    auto b = sums_.find(op.args[1]);
    if (a == sums_.end() || b == sums_.end()) return {};
    const IndexExpr difference = a->second + b->second * -1;
    switch (op.op) {
      case ScalarOp::kGe:
        return AtLeastZero(difference);
      case ScalarOp::kGt:
        return AtLeastZero(difference + -1);
      case ScalarOp::kLe:
        return AtLeastZero(difference * -1);
      case ScalarOp::kLt:
        return AtLeastZero(difference * -1 + -1);
      default:
        return {};
    }
  }

  void Consider(const ElementOp& select) {
    auto condition = conditions_.find(select.args[0]);
    if (condition == conditions_.end()) return;
    const int kept = KeptOf(select);
    const std::vector<IndexExpr>& sums =
        kept == 1 ? condition->second.if_true : condition->second.if_false;
    if (sums.empty()) return;
    out_.kept[select.result] = kept;
    for (const IndexExpr& sum : sums) {
      if (!Contains(out_.everywhere, sum)) out_.everywhere.push_back(sum);
    }
  }

  int KeptOf(const ElementOp& select) const {
    const ElementOp& first = Defining(select.args[1]);
    const ElementOp& second = Defining(select.args[2]);
    auto constant = [](const ElementOp& op) {
      return op.kind == ElementOp::kCompute && op.op == ScalarOp::kConst;
    };
    auto value = [](const ElementOp& op) {
      return IsFloat(op.type) ? op.real : static_cast<double>(op.integer);
    };
    if (!constant(first)) return 1;
    if (!constant(second)) return 2;
    return value(first) >= value(second) ? 1 : 2;
  }

  const EachStmt& each_;
  const std::vector<ScheduleDim>& dims_;
  std::map<int, const ElementOp*> defining_;  // by value
  std::map<int, IndexExpr> sums_;             // by value
  std::map<int, Condition> conditions_;       // by value
  FullTiles out_;
};

}  // namespace

FullTiles FindFullTiles(const EachStmt& each, const std::vector<ScheduleDim>& dims) {
  return FullTileFinder(each, dims).Run();
}

}  // namespace fusion
