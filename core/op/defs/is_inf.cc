#include "core/op/forms.h"

namespace fusion {

/// y = x is an infinity of a sign that is asked for
OpDef DefineIsInf() {
  OpDef def = RealFunction("IsInf", {}, [](const AttrMap& attrs, const Expr& x) {
    bool positive = attrs.Int("detect_positive", 1) != 0;
    bool negative = attrs.Int("detect_negative", 1) != 0;
    if (!positive && !negative) return Expr::ConstInt(DType::kBool, 0);
    Expr infinite = Expr::Unary(ScalarOp::kIsInf, x);
    if (positive && negative) return infinite;
    Expr sign = Expr::Binary(positive ? ScalarOp::kGt : ScalarOp::kLt, x, ConstLike(x, 0));
    return Expr::Binary(ScalarOp::kAnd, infinite, sign);
  });
  def.params = {{.name = "detect_negative", .kind = ParamSpec::kInt},
                {.name = "detect_positive", .kind = ParamSpec::kInt}};
  def.min_opset = 10;
  return def;
}

}  // namespace fusion
