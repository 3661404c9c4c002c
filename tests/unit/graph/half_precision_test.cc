#include "core/graph/program/half_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/text.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;

Program ProgramOf(std::string_view text, const ProgramOptions& options = {}) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return BuildProgram(*graph, options).value();
}

std::vector<std::string> Values(const Program& program) {
  std::vector<std::string> out;
  for (const LoopOp& op : program.ops) out.push_back(op.body.value.ToString());
  return out;
}

constexpr std::string_view kLinear = R"(graph "g" {
  %0 = input "x" : f16[3,4]
  %1 = input "w" : f16[4,5]
  %2 = MatMul(%0, %1) : f16[3,5]  "" @ ""
  %3 = Tanh(%2) : f16[3,5]  "" @ ""
  output %3
})";

TEST(HalfPrecision, AreComputedInSingle) {
  const Program program = ProgramOf(kLinear);
  EXPECT_THAT(Values(program), ElementsAre("cast.f32(in0)", "cast.f32(in0)", "mul(in0, in1)",
                                           "cast.f16(in0)", "cast.f16(tanh(cast.f32(in0)))"));
  EXPECT_EQ(program.op(2).body.reduce->type(), DType::kF32);
  EXPECT_EQ(program.value(program.outputs[0]).type.ToString(), "f16[3,5]");
}

TEST(HalfPrecision, AreComputedAsTheModelSaysForTheEvaluator) {
  const Program program = ProgramOf(kLinear, {.widen_halves = false});
  EXPECT_THAT(Values(program), ElementsAre("mul(in0, in1)", "tanh(in0)"));
}

TEST(HalfPrecision, AreCastOnceForAllProducts) {
  const Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f16[3,4]
  %1 = input "w" : f16[4,5]
  %2 = input "v" : f16[4,5]
  %3 = MatMul(%0, %1) : f16[3,5]  "" @ ""
  %4 = MatMul(%0, %2) : f16[3,5]  "" @ ""
  output %3
  output %4
})");
  EXPECT_EQ(program.ops.size(), 7U);  // three casts, two products, two roundings
}

TEST(HalfPrecision, AreRoundedOnceWhereTheyAreCast) {
  const Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f64[3]
  %1 = Cast(%0) {to="f16"} : f16[3]  "" @ ""
  %2 = Cast(%1) {to="i32"} : i32[3]  "" @ ""
  output %1
  output %2
})");
  EXPECT_THAT(Values(program), ElementsAre("cast.f16(in0)", "cast.i32(cast.f32(in0))"));
}

TEST(HalfPrecision, ThatAreMovedOnlyStayWhatTheyAre) {
  const Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : bf16[9,5]
  %1 = input "i" : i64[4]
  %2 = Gather(%0, %1) {axis=0} : bf16[4,5]  "" @ ""
  output %2
})");
  EXPECT_THAT(Values(program), ElementsAre("in0"));
}

TEST(KeepWide, LeavesOutRoundingsThatNobodySees) {
  Program program = ProgramOf(kLinear);
  std::vector<bool> outside(program.values.size(), false);
  outside[static_cast<size_t>(program.outputs[0])] = true;
  EXPECT_THAT(KeepWide(outside, &program), ElementsAre(0, 1, 2, 4));
  EXPECT_EQ(program.op(4).body.value.ToString(), "cast.f16(tanh(in0))");
  EXPECT_EQ(program.op(4).inputs[0], program.op(2).output);
}

TEST(KeepWide, RoundsWhatOthersSee) {
  Program program = ProgramOf(kLinear);
  const std::vector<bool> outside(program.values.size(), true);
  const std::vector<std::string> before = Values(program);
  EXPECT_THAT(KeepWide(outside, &program), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(Values(program), before);
}

Program KeptWide(std::string_view text) {
  Program program = ProgramOf(text);
  std::vector<bool> outside(program.values.size(), false);
  for (ValueId v : program.outputs) outside[static_cast<size_t>(v)] = true;
  KeepWide(outside, &program);
  return program;
}

TEST(KeepWide, RoundsWhereTheModelCasts) {
  EXPECT_THAT(Values(KeptWide(R"(graph "g" {
  %0 = input "x" : f32[9]
  %1 = Cast(%0) {to="f16"} : f16[9]  "" @ ""
  %2 = Cast(%1) {to="f32"} : f32[9]  "" @ ""
  output %2
})")),
              ElementsAre("cast.f16(in0)", "cast.f32(in0)"));
}

// Those of a mean's own definition are not asked for by the model.
TEST(KeepWide, DoesNotRoundBetweenTheStepsOfANode) {
  const Program program = KeptWide(R"(graph "g" {
  %0 = input "x" : f16[3,9]
  %1 = ReduceMean(%0) {axes=[1], keepdims=1} : f16[3,1]  "" @ ""
  %2 = Sub(%0, %1) : f16[3,9]  "" @ ""
  output %2
})");
  EXPECT_EQ(Values(program).back(), "cast.f16(sub(cast.f32(in0), in1))");
}

// A rounding may decide which way they go.
TEST(KeepWide, RoundsBeforeComparisonsAndIntegers) {
  EXPECT_THAT(Values(KeptWide(R"(graph "g" {
  %0 = input "x" : f16[9]
  %1 = Tanh(%0) : f16[9]  "" @ ""
  %2 = Less(%0, %1) : bool[9]  "" @ ""
  output %2
})")),
              ElementsAre("cast.f16(tanh(cast.f32(in0)))", "lt(cast.f32(in0), cast.f32(in1))"));
  EXPECT_THAT(Values(KeptWide(R"(graph "g" {
  %0 = input "x" : f16[9]
  %1 = Tanh(%0) : f16[9]  "" @ ""
  %2 = ArgMax(%1) {axis=0, keepdims=0} : i64[]  "" @ ""
  output %2
})"))[0],
              "cast.f16(tanh(cast.f32(in0)))");
}

TEST(CostWithoutRoundings, LeavesOutCastsOfHalvesOnly) {
  const Expr x = Expr::Input(0, DType::kF16);
  const Expr wide = Expr::Cast(x, DType::kF32);
  const double sum = (wide + wide).Cost() - wide.Cost();
  EXPECT_EQ(CostWithoutRoundings(Expr::Cast(wide + wide, DType::kF16)), sum);
  const Expr integer = Expr::Cast(wide, DType::kI32);
  EXPECT_EQ(CostWithoutRoundings(integer), integer.Cost() - wide.Cost());
}

TEST(KeepWide, RoundsWhatIsMovedAsItIs) {
  Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f16[9,5]
  %1 = input "i" : i64[4]
  %2 = Tanh(%0) : f16[9,5]  "" @ ""
  %3 = Gather(%2, %1) {axis=0} : f16[4,5]  "" @ ""
  output %3
})");
  std::vector<bool> outside(program.values.size(), false);
  outside[static_cast<size_t>(program.outputs[0])] = true;
  KeepWide(outside, &program);
  EXPECT_THAT(Values(program), ElementsAre("cast.f16(tanh(cast.f32(in0)))", "in0"));
}

std::vector<bool> OfRounded(std::string_view ops, std::string_view outputs) {
  auto program = ParseProgram(StrCat(R"(program {
  %0 = input 0 : f32[8,16]
  %1 = input 1 : bf16[16,4]
  %2 = Tanh @0 : f32[8,16] = for d0:8 d1:16 [d0, d1] = map(%0[d0, d1]) : tanh(in0)
)",
                                     ops, outputs, "}\n"));
  FUSION_CHECK(program.ok(), Message(program.status()));
  return OutputsOfRoundedFactors(*program);
}

// A last place decides which way something computed is rounded; an input is rounded as it is.
TEST(HalfPrecision, OutputsFollowFromRoundingsOfWhatIsComputed) {
  auto cast = [](int from, int to) {
    return StrCat("  %", to, " = Cast @1 : bf16[8,16] = for d0:8 d1:16 [d0, d1] = map(%", from,
                  "[d0, d1]) : cast.bf16(in0)\n");
  };
  auto product = [](int rows, int to) {
    return StrCat("  %", to, " = MatMul @2 : f32[8,4] = for m:8 n:4 k:16 [m, n] = sum(%", rows,
                  "[m, k], %1[k, n]) : mul(cast.f32(in0), cast.f32(in1))\n");
  };
  const std::string relu =
      "  %5 = Relu @3 : f32[8,4] = for d0:8 d1:4 [d0, d1] = map(%4[d0, d1]) : max(in0, "
      "f32(0x0p+0))\n";
  EXPECT_THAT(OfRounded(StrCat(cast(0, 3), product(3, 4)), "  output %4\n"), ElementsAre(false));
  EXPECT_THAT(OfRounded(StrCat(cast(2, 3), product(3, 4)), "  output %4\n"), ElementsAre(true));
  // And of outputs only those that follow from it.
  EXPECT_THAT(OfRounded(StrCat(cast(2, 3), product(3, 4), relu), "  output %5\n  output %2\n"),
              ElementsAre(true, false));
}

// Likewise to integers, which products are of or of what is made from them.
TEST(HalfPrecision, OutputsFollowFromIntegersOfWhatIsComputed) {
  auto quantised = [](int from) {
    return StrCat("  %3 = Cast @1 : i8[8,16] = for d0:8 d1:16 [d0, d1] = map(%", from,
                  "[d0, d1]) : cast.i8(in0)\n  %4 = Mul @2 : f32[8,16] = for d0:8 d1:16 [d0, d1] = "
                  "map(%3[d0, d1]) : mul(cast.f32(in0), f32(0x1p-5))\n");
  };
  const std::string product =
      "  %5 = MatMul @3 : f32[8,4] = for m:8 n:4 k:16 [m, n] = sum(%4[m, k], %1[k, n]) : mul(in0, "
      "cast.f32(in1))\n";
  EXPECT_THAT(OfRounded(StrCat(quantised(0), product), "  output %5\n"), ElementsAre(false));
  EXPECT_THAT(OfRounded(StrCat(quantised(2), product), "  output %5\n  output %4\n"),
              ElementsAre(true, false));
}

// QuantizeLinear of an input: a quotient in f64 and whole numbers are what they are everywhere,
// sums in f32 are not.
TEST(HalfPrecision, WhatIsTheSameEverywhereIsNotComputed) {
  auto op = [](int to, const char* type, const char* expr) {
    return StrCat("  %", to, " = Op @1 : ", type, "[8,16] = for d0:8 d1:16 [d0, d1] = map(%",
                  to == 3 ? 0 : to - 1, "[d0, d1]) : ", expr, "\n");
  };
  const std::string rounded =
      StrCat(op(4, "f64", "cast.f64(in0)"), op(5, "f64", "mul(in0, f64(0x1p+5))"),
             op(6, "f32", "cast.f32(in0)"), op(7, "f32", "round(in0)"));
  const std::string stored = StrCat(op(9, "u8", "cast.u8(in0)"), op(10, "f32", "cast.f32(in0)"),
                                    "  %11 = MatMul @2 : f32[8,4] = for m:8 n:4 k:16 [m, n] = "
                                    "sum(%10[m, k], %1[k, n]) : mul(in0, cast.f32(in1))\n");
  auto with = [&](const char* first, const char* zero) {
    return OfRounded(StrCat(op(3, "f32", first), rounded, op(8, "f32", zero), stored),
                     "  output %11\n");
  };
  EXPECT_THAT(with("max(in0, f32(0x0p+0))", "add(in0, f32(0x1p+7))"), ElementsAre(false));
  EXPECT_THAT(with("add(add(in0, f32(0x1p+9)), in0)", "add(in0, f32(0x1p+7))"), ElementsAre(true));
  EXPECT_THAT(with("mul(in0, f32(0x1.8p+0))", "add(in0, f32(0x1p+7))"), ElementsAre(true));
  // Half of a number is not whole.
  EXPECT_THAT(with("max(in0, f32(0x0p+0))", "add(in0, f32(0x1p-1))"), ElementsAre(true));
}

}  // namespace
}  // namespace fusion
