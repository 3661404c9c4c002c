// The language of custom ops: text to loop bodies, and errors with their places.
#include "core/custom/custom_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/op/body/loop_body_text.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorType Type(DType dtype, const Dims& dims) { return {dtype, Shape(dims)}; }

absl::StatusOr<CustomCall> Make(std::string_view text, const std::vector<TensorType>& types,
                                const AttrMap& attrs = {}) {
  ASSIGN_OR_RETURN(CustomOps ops, CustomOps::Parse(text));
  const CustomOpSyntax* op = ops.Find("acme", "Op");
  FUSION_CHECK(op != nullptr, "the text defines acme.Op");
  return Instantiate(*op, {types.begin(), types.end()}, attrs);
}

// The body, or the error.
std::string Body(std::string_view text, const std::vector<TensorType>& types,
                 const AttrMap& attrs = {}) {
  auto call = Make(text, types, attrs);
  if (!call.ok()) return std::string(Message(call.status()));
  return LoopBodyToString(call->body, [&](size_t i) { return StrCat("#", call->inputs[i]); });
}

TEST(CustomOps, ApplyAnExpressionToElementsThatBroadcast) {
  EXPECT_EQ(Body("op acme.Op(x, s) {a: float = 0.5} = let t = tanh(x * s); x > 0 ? t : a * t",
                 {Type(DType::kF32, {3, 4}), Type(DType::kF32, {4})}),
            "for d0:3 d1:4 [d0, d1] = map(#0[d0, d1], #1[d1]) : select(gt(in0, f32(0x0p+0)), "
            "tanh(mul(in0, in1)), mul(f32(0x1p-1), tanh(mul(in0, in1))))");
}

TEST(CustomOps, TakeAttributesOfTheNode) {
  constexpr std::string_view kText = "op acme.Op(x) {a: float = 2, n: int} = a * x + n";
  EXPECT_THAT(Body(kText, {Type(DType::kF32, {2})}, {{"a", 3.0}, {"n", int64_t{4}}}),
              HasSubstr("add(mul(f32(0x1.8p+1), in0), f32(0x1p+2))"));
  EXPECT_THAT(Body(kText, {Type(DType::kF32, {2})}),
              HasSubstr("custom op acme.Op: attribute \"n\" is missing"));
  EXPECT_THAT(Body(kText, {Type(DType::kF32, {2})}, {{"n", 1.5}}),
              HasSubstr("attribute \"n\" is no integer"));
  EXPECT_THAT(Body(kText, {Type(DType::kF32, {2})}, {{"n", int64_t{1}}, {"b", 1.5}}),
              HasSubstr("unknown attribute \"b\""));
}

TEST(CustomOps, BindWeakerOperatorsLater) {
  EXPECT_THAT(Body("op acme.Op(x) = x - 1 - 2 * -x % 3 / 4", {Type(DType::kF32, {2})}),
              HasSubstr("sub(sub(in0, f32(0x1p+0)), div(mod(mul(f32(0x1p+1), neg(in0)), "
                        "f32(0x1.8p+1)), f32(0x1p+2)))"));
  EXPECT_THAT(Body("op acme.Op(x) = x < 1 && !(x < 0) || x == 5 ? 1 : x", {Type(DType::kI32, {2})}),
              HasSubstr("select(or(and(lt(in0, i32(1)), not(lt(in0, i32(0)))), eq(in0, i32(5))), "
                        "i32(1), in0)"));
}

TEST(CustomOps, ReduceOverNamedDims) {
  EXPECT_EQ(Body("op acme.Op(x[m, k], y[n, k]) -> [m, n] = sum[k] abs(x[m, k] - y[n, k])",
                 {Type(DType::kF32, {3, 7}), Type(DType::kF32, {5, 7})}),
            "for d0:3 d1:5 d2:7 [d0, d1] = sum(#0[d0, d2], #1[d1, d2]) : abs(sub(in0, in1))");
}

TEST(CustomOps, KeepIntegersApart) {
  EXPECT_THAT(
      Body("op acme.Op(x) {p: int = -3, q: int = 2} = x * (p % q)", {Type(DType::kI32, {2})}),
      HasSubstr("mul(in0, i32(1))"));
  EXPECT_THAT(
      Body("op acme.Op(x[m]) -> [m, t] for t: 2 # the next\n = x[m]", {Type(DType::kF32, {3})}),
      HasSubstr("for d0:3 d1:2"));
  EXPECT_THAT(
      Body("op acme.Op(x, y) = x < 0 == y < 1", {Type(DType::kF32, {2}), Type(DType::kI8, {2})}),
      HasSubstr("eq(lt(in0, f32(0x0p+0)), lt(in1, i8(1)))"));
}

TEST(CustomOps, ReadAtSumsOfAxes) {
  EXPECT_EQ(Body("op acme.Op(x[n, w]) {s: int = 2} -> [n, v] for v: (w - 3) / s + 1, t: 3 =\n"
                 "  max[t] x[n, s * v + t] - x[n, 0]",
                 {Type(DType::kF32, {2, 9})}),
            "for d0:2 d1:4 d2:3 [d0, d1] = max(#0[d0, 2*d1 + d2], #0[d0, 0]) : sub(in0, in1)");
  EXPECT_THAT(Body("op acme.Op(x[n]) -> [n] = x[n] * f32(n)", {Type(DType::kF32, {2})}),
              HasSubstr("mul(in0, cast.f32(axis(0)))"));
}

TEST(CustomOps, SayWhereTheTextIsWrong) {
  EXPECT_EQ(Body("op acme.Op(x) =\n\tx + tan(x)", {}),
            "line 2, column 6: unknown function \"tan\"\n   x + tan(x)\n       ^");
  EXPECT_EQ(Body("op acme.Op(x) = x +", {}),
            "line 1, column 20: expected a value\n  op acme.Op(x) = x +\n                     ^");
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"op Op(x) = x", "column 4: op \"Op\" has no domain, expected domain.name"},
      {"op ai.onnx.Relu(x) = x", "ai.onnx.Relu is not for requests to define"},
      {"op com.microsoft.Attention(x) = x", "Attention is not for requests to define"},
      {"op acme.Op(x) {a: int, a: float} = x", "column 24: \"a\" has a meaning already"},
      {"op acme.Op(x) = let x = 1; x", "column 21: \"x\" has a meaning already"},
      {"op acme.Op(x[m]) -> [m] = sum[] x[m]", "expected the axes of the reduction"},
      {"op acme.Op(x) = x * +2", "column 21: expected a value"},
      {"op acme.Op(x, x) = x", "column 15: input x is named twice"},
      {"op acme.Op(x) = x op acme.Op(y) = y", "column 22: acme.Op is defined twice"},
      {"op acme.Op(let) = 1", "column 12: \"let\" cannot be the name of an input"},
      {"op acme.Op(x) {a: bool} = x", "column 19: expected 'int' or 'float'"},
      {"op acme.Op(x) {a: int = 0.5} = x", "column 25: expected an integer of at most 1e15"},
      {"op acme.Op(x[m]) = x", "input x has dims, but the result has none: expected \"->\""},
      {"op acme.Op(x) = sum[k] x", "a reduction needs named dims"},
      {"op acme.Op(x) = max(x)", "column 17: max takes 2 arguments, got 1"},
      {"op acme.Op(x) = let y = x y", "expected ';'"},
      {"op acme.Op(x) = axis(x)", "unknown function \"axis\""},
      {"op acme.Op(x) = x ? x", "expected ':'"},
      {"junk", "column 1: expected 'op'"}};
  for (const auto& [text, error] : kCases) EXPECT_THAT(Body(text, {}), HasSubstr(error)) << text;
}

TEST(CustomOps, SayWhereTypesAndDimsDoNotFit) {
  const TensorType x = Type(DType::kF32, {3, 4});
  const TensorType i = Type(DType::kI64, {3, 4});
  struct Case {
    std::string_view text;
    std::vector<TensorType> types;
    std::string_view error;
  };
  const Case kCases[] = {
      {"op acme.Op(x, y) = x * y",
       {x, i},
       "column 22: mul(f32, i64): expected equal numeric types"},
      {"op acme.Op(x) = sin(x)", {i}, "column 17: sin(i64): expected a float type"},
      {"op acme.Op(x) = x * 1.5", {i}, "column 21: 1.5 is no i64"},
      {"op acme.Op(x) = u8(300)", {x}, "column 17: 300 is no u8"},
      {"op acme.Op(x) = 1 + 2", {x}, "the value is a bare number"},
      {"op acme.Op(x) = f32(1)", {x}, "column 4: reads no input"},
      {"op acme.Op(x) = x + y", {x}, "column 21: unknown name \"y\"; known: x"},
      {"op acme.Op(x) = x", {x, x}, "has 2 inputs, acme.Op is defined with 1"},
      {"op acme.Op(x[m]) -> [m] = x[m]", {x}, "input x has 1 dims here, the node gives f32[3,4]"},
      {"op acme.Op(x[m, m]) -> [m] = x[m, m]", {x}, "dim m is 3 and, of input x, 4"},
      {"op acme.Op(x[m, k]) -> [m] = x[m, k]",
       {x},
       "column 35: k is a dim of an input but no axis"},
      {"op acme.Op(x[m, k]) -> [m] = sum[k] x[m]", {x}, "input x has 2 dims, got 1 indices"},
      {"op acme.Op(x[m, k]) -> [m] = sum[k] x", {x}, "is read without indices"},
      {"op acme.Op(x[m, k]) -> [m] = sum[k] x[m, k + 1]", {x}, "column 44: reads 1..4 of dim 1"},
      {"op acme.Op(x[m, k]) -> [m] = sum[k] x[m, m * k]", {x}, "an axis times an axis"},
      {"op acme.Op(x[m, k]) -> [m, n] = x[m, n]", {x}, "nothing says the extent of n"},
      {"op acme.Op(x[m, k]) -> [m, m] = x[m, m]", {x}, "m is named twice by result and reduction"},
      {"op acme.Op(x[m, k]) -> [v] for v: m - 5 = x[0, 0]", {x}, "axis v gets the extent -2"},
      {"op acme.Op(x[m, k]) -> [m] = sum[k] x[m, k] > 0", {x}, "sum is not defined on bool"},
  };
  for (const Case& c : kCases) EXPECT_THAT(Body(c.text, c.types), HasSubstr(c.error)) << c.text;
}

TEST(CustomOps, AreBounded) {
  std::string doubling = "op acme.Op(x) = let a0 = x * x; ";
  for (int i = 1; i < 30; ++i) {
    doubling += StrCat("let a", i, " = a", i - 1, " * a", i - 1, "; ");
  }
  EXPECT_THAT(Body(doubling + "a29", {Type(DType::kF32, {2})}), HasSubstr("more than 4096 steps"));
  const std::string open(4000, '(');
  const std::string minus(4000, '-');
  EXPECT_THAT(Body(open, {}), HasSubstr("expected 'op'"));
  EXPECT_THAT(Body(StrCat("op acme.Op(x) = ", open), {}), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(Body(StrCat("op acme.Op(x) = ", minus, "x"), {}), HasSubstr("nested deeper than 64"));
  std::string indices = "op acme.Op(x[m]) -> [m] = ";
  std::string chain = "op acme.Op(x) = x";
  std::string index_chain = "op acme.Op(x[m]) -> [m] = x[m";
  std::string lets = "op acme.Op(x) = let a0 = x + 1; ";
  for (int i = 0; i < 20000; ++i) {
    indices += "x[";
    chain += "+x";
    index_chain += "+0";
    if (i > 0 && i < 200) lets += StrCat("let a", i, " = a", i - 1, " + 1; ");
  }
  EXPECT_THAT(Body(indices, {}), HasSubstr("nested deeper than 64"));
  for (const std::string& text : {chain, StrCat(index_chain, "]"), StrCat(lets, "a199")}) {
    EXPECT_THAT(Body(text, {}), HasSubstr("operators nest deeper than 128"));
  }
  EXPECT_THAT(Body(std::string(70000, ' '), {}), HasSubstr("at most 65536"));
  EXPECT_THAT(Body("op acme.Op(x[n]) -> [n] for t: 1099511627776, u: 1099511627776 = "
                   "sum[t, u] x[n]",
                   {Type(DType::kF32, {2})}),
              HasSubstr("too many points"));
  EXPECT_THAT(Body("op acme.Op(x[n]) -> [n] for t: 1099511627776 = "
                   "sum[t] x[t * 1099511627776 * 1099511627776]",
                   {Type(DType::kF32, {2})}),
              HasSubstr("an index beyond"));
}

TEST(LoopBodies, ReadTheirOwnText) {
  for (std::string_view text :
       {"op acme.Op(x[n, w]) -> [n, v] for v: w - 2, t: 3 = sum[t] x[n, v + t] / 3",
        "op acme.Op(x[n, w]) -> [w, n] = x[n, w]"}) {
    auto call = Make(text, {Type(DType::kF32, {2, 9})});
    ASSERT_TRUE(call.ok()) << call.status();
    const std::string written = LoopBodyToString(call->body, [](size_t) { return "in"; });
    Lexer in(written);
    auto read = ParseLoopBody(in, [](Lexer& t) -> absl::StatusOr<DType> {
      RETURN_IF_ERROR(t.Expect("in"));
      return DType::kF32;
    });
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, call->body) << written;
  }
}

}  // namespace
}  // namespace fusion
