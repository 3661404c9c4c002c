#include "core/op/body/monoid.h"

#include <limits>

namespace fusion {
namespace {

// Without infinities the largest value stands for one.
Expr Extreme(DType type, double sign) {
  const double infinite = RoundTo(type, sign * std::numeric_limits<double>::infinity());
  if (std::isinf(infinite)) return Expr::Const(type, infinite);
  if (type == DType::kF8E8M0 && sign < 0) return Expr::Const(type, 0);  // the smallest value
  return Expr::Const(type, sign * LargestFinite(type));
}

Expr Lowest(DType type) {
  if (IsNarrowFloat(type)) return Extreme(type, -1);
  if (IsFloat(type)) return Expr::Const(type, -std::numeric_limits<double>::infinity());
  // Wrapped to the type's minimum for narrow types.
  switch (type) {
    case DType::kI8:
      return Expr::ConstInt(type, -128);
    case DType::kI16:
      return Expr::ConstInt(type, -32768);
    case DType::kI32:
      return Expr::ConstInt(type, std::numeric_limits<int32_t>::min());
    case DType::kI64:
      return Expr::ConstInt(type, std::numeric_limits<int64_t>::min());
    case DType::kI4:
      return Expr::ConstInt(type, -8);
    case DType::kI2:
      return Expr::ConstInt(type, -2);
    default:
      return Expr::ConstInt(type, 0);
  }
}

Expr Highest(DType type) {
  if (IsNarrowFloat(type)) return Extreme(type, 1);
  if (IsFloat(type)) return Expr::Const(type, std::numeric_limits<double>::infinity());
  switch (type) {
    case DType::kBool:
      return Expr::ConstInt(type, 1);
    case DType::kU8:
      return Expr::ConstInt(type, 255);
    case DType::kI8:
      return Expr::ConstInt(type, 127);
    case DType::kI16:
      return Expr::ConstInt(type, 32767);
    case DType::kI32:
      return Expr::ConstInt(type, std::numeric_limits<int32_t>::max());
    case DType::kU16:
      return Expr::ConstInt(type, std::numeric_limits<uint16_t>::max());
    case DType::kU32:
      return Expr::ConstInt(type, std::numeric_limits<uint32_t>::max());
    case DType::kU64:
      return Expr::ConstInt(type, -1);  // all bits
    case DType::kI4:
      return Expr::ConstInt(type, 7);
    case DType::kU4:
      return Expr::ConstInt(type, 15);
    case DType::kI2:
      return Expr::ConstInt(type, 1);
    case DType::kU2:
      return Expr::ConstInt(type, 3);
    default:
      return Expr::ConstInt(type, std::numeric_limits<int64_t>::max());
  }
}

}  // namespace

std::optional<Monoid> Monoid::Named(std::string_view name, DType type) {
  if (type == DType::kBool) return std::nullopt;
  Monoid m;
  m.name_ = std::string(name);
  m.type_ = type;
  Expr a = Expr::Input(0, type);
  auto scalar = [&](ScalarOp op, Expr identity) {
    m.identity_ = {std::move(identity)};
    m.lift_ = {a};
    m.merge_ = {Expr::Binary(op, a, Expr::Input(1, type))};
    m.finish_ = a;
    return m;
  };
  if (name == "sum") return scalar(ScalarOp::kAdd, Expr::Const(type, 0));
  if (name == "prod") return scalar(ScalarOp::kMul, Expr::Const(type, 1));
  if (name == "max") return scalar(ScalarOp::kMax, Lowest(type));
  if (name == "min") return scalar(ScalarOp::kMin, Highest(type));
  if (name == "argmax" || name == "argmin") {
    // State (best value, its coordinate). Ties keep the smaller coordinate, so that the merge
    // commutes.
    bool max = name == "argmax";
    Expr at = Expr::Input(1, DType::kI64);
    Expr b = Expr::Input(2, type);
    Expr b_at = Expr::Input(3, DType::kI64);
    Expr better = Expr::Binary(max ? ScalarOp::kGt : ScalarOp::kLt, b, a);
    Expr tie = Expr::Binary(ScalarOp::kAnd, Expr::Binary(ScalarOp::kEq, a, b),
                            Expr::Binary(ScalarOp::kLt, b_at, at));
    Expr take_b = Expr::Binary(ScalarOp::kOr, better, tie);
    m.identity_ = {max ? Lowest(type) : Highest(type),
                   Expr::ConstInt(DType::kI64, std::numeric_limits<int64_t>::max())};
    m.lift_ = {a, Expr::Axis(0)};
    m.merge_ = {Expr::Select(take_b, b, a), Expr::Select(take_b, b_at, at)};
    m.finish_ = at;
    return m;
  }
  if (name == "welford" && IsFloat(type)) {
    // State (mean, M2, count); merge by Chan, Golub and LeVeque (1979).
    Expr m2 = Expr::Input(1, type);
    Expr n = Expr::Input(2, type);
    Expr b = Expr::Input(3, type);
    Expr b_m2 = Expr::Input(4, type);
    Expr b_n = Expr::Input(5, type);
    Expr total = n + b_n;
    Expr safe = Expr::Binary(ScalarOp::kMax, total, Expr::Const(type, 1));
    Expr delta = b - a;
    m.identity_ = {Expr::Const(type, 0), Expr::Const(type, 0), Expr::Const(type, 0)};
    m.lift_ = {a, Expr::Const(type, 0), Expr::Const(type, 1)};
    m.merge_ = {a + delta * b_n / safe, m2 + b_m2 + delta * delta * n * b_n / safe, total};
    m.finish_ = m2;
    return m;
  }
  return std::nullopt;
}

}  // namespace fusion
