#include "core/op/body/expr.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/op/body/monoid.h"
#include "core/op/body/simplify.h"

namespace fusion {
namespace {

constexpr DType kF32 = DType::kF32;

double EvaluateAt(const Expr& e, std::vector<double> inputs) {
  CompiledExpr compiled(e);
  std::vector<CompiledExpr::Operand> operands;
  for (double& v : inputs) operands.push_back({.reals = &v});
  auto r = compiled.Evaluate(1, operands, {});
  return r.reals != nullptr ? r.reals[0] : static_cast<double>(r.integers[0]);
}

TEST(Expr, ComputedNaNsAreOneConstant) {
  const Expr computed = Expr::Const(kF32, std::copysign(std::nan("1"), -1.0));
  Lexer in(computed.ToString());
  EXPECT_EQ(*Expr::Parse(in, {}), computed);
}

TEST(Expr, TextRoundTripsForEveryScalar) {
  for (int i = 0; i < kScalarOpCount; ++i) {
    auto op = static_cast<ScalarOp>(i);
    const ScalarInfo& info = GetScalarInfo(op);
    Expr x = Expr::Input(0, kF32);
    Expr flag = Expr::Within(1, 2, 5);
    Expr e;
    switch (info.typing) {
      case ScalarTyping::kLeaf:
        e = Expr::Select(flag, x, Expr::Const(kF32, 0.1));
        break;
      case ScalarTyping::kLogic:
        e = info.arity == 1 ? Expr::Unary(op, flag) : Expr::Binary(op, flag, flag);
        break;
      case ScalarTyping::kBits:
        e = Expr::Binary(op, Expr::Axis(0), Expr::Axis(1));
        break;
      case ScalarTyping::kSelect:
        e = Expr::Select(flag, x, x);
        break;
      case ScalarTyping::kCast:
        e = Expr::Cast(Expr::Axis(0), DType::kF16);
        break;
      case ScalarTyping::kBitCast:
        e = Expr::BitCast(x, DType::kI32);
        break;
      default:
        e = info.arity == 1 ? Expr::Unary(op, x) : Expr::Binary(op, x, x);
        break;
    }
    std::string text = e.ToString();
    Lexer in(text);
    auto back = Expr::Parse(in, {kF32});
    ASSERT_TRUE(back.ok()) << text << ": " << back.status();
    EXPECT_TRUE(*back == e) << text;
    EXPECT_TRUE(in.AtEnd());
  }
}

TEST(Expr, ParserRefusesIllTypedText) {
  for (const char* bad :
       {"add(in0)", "add(in0, within(0, 1, 2))", "foo(in0)", "in1", "select(in0, in0, in0)",
        "exp(i64(3))", "cast.f99(in0)", "f32(", "not(in0)"}) {
    Lexer in(bad);
    EXPECT_FALSE(Expr::Parse(in, {kF32}).ok()) << bad;
  }
}

TEST(Expr, ParserBoundsDepthAndSize) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "neg(";
  Lexer in(deep);
  EXPECT_FALSE(Expr::Parse(in, {kF32}).ok());
}

TEST(Expr, NanRulesHold) {
  Expr x = Expr::Input(0, kF32);
  Expr y = Expr::Input(1, kF32);
  EXPECT_TRUE(std::isnan(EvaluateAt(Expr::Binary(ScalarOp::kMax, x, y), {NAN, 1})));
  EXPECT_TRUE(std::isnan(EvaluateAt(Expr::Binary(ScalarOp::kMin, x, y), {1, NAN})));
  EXPECT_EQ(EvaluateAt(Expr::Binary(ScalarOp::kLt, x, y), {NAN, 1}), 0);
  EXPECT_EQ(EvaluateAt(Expr::Binary(ScalarOp::kNe, x, y), {NAN, NAN}), 1);
  EXPECT_EQ(EvaluateAt(Expr::Cast(x, DType::kI32), {NAN}), 0);
  EXPECT_EQ(EvaluateAt(Expr::Cast(x, DType::kI8), {1e9}), 127);
}

TEST(Expr, IntegerArithmeticWrapsAndNeverTraps) {
  Expr top = Expr::ConstInt(DType::kI32, std::numeric_limits<int32_t>::max());
  Expr one = Expr::ConstInt(DType::kI32, 1);
  EXPECT_EQ(EvaluateAt(top + one, {}), std::numeric_limits<int32_t>::min());
  Expr low = Expr::ConstInt(DType::kI64, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(EvaluateInteger(ScalarOp::kDiv, DType::kI64, low.integer(), -1), low.integer());
  EXPECT_EQ(EvaluateInteger(ScalarOp::kDiv, DType::kI64, 5, 0), 0);
  EXPECT_EQ(EvaluateInteger(ScalarOp::kMod, DType::kI64, -7, 3), 2);
  EXPECT_EQ(EvaluateInteger(ScalarOp::kMod, DType::kU64, -7, 3), 0);  // 2^64 - 7
  EXPECT_EQ(EvaluateInteger(ScalarOp::kDiv, DType::kU64, -1, 2),
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(EvaluateInteger(ScalarOp::kGt, DType::kU64, -1, 1), 1);
  EXPECT_EQ(EvaluateInteger(ScalarOp::kMin, DType::kU64, -1, 1), 1);
}

TEST(Simplify, RewritesAndKeepsTheValue) {
  Expr x = Expr::Input(0, kF32);
  auto c = [](double v) { return Expr::Const(kF32, v); };
  EXPECT_EQ(Simplify(Expr::Binary(ScalarOp::kPow, x, c(2))).ToString(), "mul(in0, in0)");
  EXPECT_EQ(Simplify(x / c(8)).ToString(), "mul(in0, f32(0x1p-3))");
  EXPECT_EQ(Simplify(x / c(3)).ToString(), "div(in0, f32(0x1.8p+1))");
  EXPECT_EQ(Simplify(x * c(1) / c(1)).ToString(), "in0");
  EXPECT_EQ(Simplify(c(2) + c(3)).ToString(), "f32(0x1.4p+2)");
  Expr deep = Simplify(Expr::Binary(ScalarOp::kPow, x / c(4), c(3)));
  EXPECT_DOUBLE_EQ(EvaluateAt(deep, {2}), 0.125);
  // Not so of floats: -0 + 0 is 0.
  Expr i = Expr::Input(0, DType::kI32);
  const Expr zero = Expr::ConstInt(DType::kI32, 0);
  EXPECT_EQ(Simplify(i - zero).ToString(), "in0");
  EXPECT_EQ(Simplify(i + zero).ToString(), "in0");
  EXPECT_EQ(Simplify(zero + i).ToString(), "in0");
  EXPECT_EQ(Simplify(zero - i).ToString(), "sub(i32(0), in0)");
  EXPECT_EQ(Simplify(x + c(0)).ToString(), "add(in0, f32(0x0p+0))");
}

TEST(Monoid, TuplesMergeLikeTheirDefinition) {
  // welford over {1, 2, 4, 8}: M2 = sum (x - mean)^2.
  auto m = *Monoid::Named("welford", DType::kF64);
  std::vector<double> state = {0, 0, 0};
  for (double x : {1.0, 2.0, 4.0, 8.0}) {
    std::vector<double> both = state;
    for (const Expr& lift : m.lift()) both.push_back(EvaluateAt(lift, {x}));
    std::vector<double> merged;
    for (const Expr& merge : m.merge()) merged.push_back(EvaluateAt(merge, both));
    state = merged;
  }
  EXPECT_DOUBLE_EQ(state[1], 28.75);
  EXPECT_FALSE(Monoid::Named("nonsense", kF32).has_value());
  EXPECT_FALSE(Monoid::Named("sum", DType::kBool).has_value());
}

}  // namespace
}  // namespace fusion
