#include "core/op/body/simplify.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace fusion {
namespace {

bool IsConstant(const Expr& e) { return e.op() == ScalarOp::kConst; }

bool AllConstant(const Expr& e) {
  return !e.args().empty() && std::all_of(e.args().begin(), e.args().end(), IsConstant);
}

Expr FoldConstant(const Expr& e) {
  CompiledExpr compiled(e);
  CompiledExpr::Operand result = compiled.Evaluate(1, {}, {});
  return IsFloat(e.type()) ? Expr::Const(e.type(), result.reals[0])
                           : Expr::ConstInt(e.type(), result.integers[0]);
}

bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return std::isfinite(value) && std::fabs(std::frexp(value, &exponent)) == 0.5 &&
         exponent > -100 && exponent < 100;
}

Expr SimplifyPow(const Expr& e) {
  const Expr& x = e.arg(0);
  const Expr& y = e.arg(1);
  if (!IsConstant(y)) return e;
  if (y.IsConst(1)) return x;
  if (y.IsConst(2)) return x * x;
  if (y.IsConst(3)) return (x * x) * x;
  if (y.IsConst(-1) && IsFloat(e.type())) return Expr::Const(e.type(), 1) / x;
  return e;
}

// `e` has simplified arguments.
Expr SimplifyNode(const Expr& e) {
  if (AllConstant(e)) return FoldConstant(e);
  switch (e.op()) {
    case ScalarOp::kPow:
      return SimplifyPow(e);
    // x - 0 and x + 0 of integers; of floats the latter makes 0 of -0.
    case ScalarOp::kSub:
      return IsInteger(e.type()) && e.arg(1).IsConst(0) ? e.arg(0) : e;
    case ScalarOp::kAdd:
      if (!IsInteger(e.type())) return e;
      if (e.arg(1).IsConst(0)) return e.arg(0);
      return e.arg(0).IsConst(0) ? e.arg(1) : e;
    case ScalarOp::kMul:
      if (e.arg(1).IsConst(1)) return e.arg(0);
      if (e.arg(0).IsConst(1)) return e.arg(1);
      return e;
    case ScalarOp::kDiv:
      if (e.arg(1).IsConst(1)) return e.arg(0);
      if (IsFloat(e.type()) && IsConstant(e.arg(1)) && IsPowerOfTwo(e.arg(1).value())) {
        return e.arg(0) * Expr::Const(e.type(), 1.0 / e.arg(1).value());
      }
      return e;
    case ScalarOp::kCast:
      return Expr::Cast(e.arg(0), e.type());
    case ScalarOp::kSelect:
      if (IsConstant(e.arg(0))) return e.arg(0).integer() != 0 ? e.arg(1) : e.arg(2);
      if (e.arg(1) == e.arg(2)) return e.arg(1);
      return e;
    default:
      return e;
  }
}

}  // namespace

Expr Simplify(const Expr& expr) {
  std::unordered_map<const void*, Expr> done;
  expr.VisitOnce([&](const Expr& e) {
    Expr rebuilt = e;
    bool changed = std::any_of(e.args().begin(), e.args().end(),
                               [&](const Expr& a) { return done.at(a.id()).id() != a.id(); });
    if (changed) {
      auto arg = [&](int i) { return done.at(e.arg(i).id()); };
      if (NamesItsType(e.op())) {
        rebuilt = e.WithArgs({arg(0)});
      } else if (e.op() == ScalarOp::kSelect) {
        rebuilt = Expr::Select(arg(0), arg(1), arg(2));
      } else if (e.args().size() == 1) {
        rebuilt = Expr::Unary(e.op(), arg(0));
      } else {
        rebuilt = Expr::Binary(e.op(), arg(0), arg(1));
      }
    }
    done.emplace(e.id(), rebuilt.args().empty() ? rebuilt : SimplifyNode(rebuilt));
  });
  return done.at(expr.id());
}

}  // namespace fusion
