#include "core/check/forgiving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

HostTensor Row(DType type, const std::vector<double>& values) {
  HostTensor out(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) out.SetDouble(static_cast<int64_t>(i), values[i]);
  return out;
}

// Its first output with each float input filled with the number of the same place.
std::vector<double> Result(const Program& program, const std::vector<HostTensor>& inputs) {
  std::vector<Box> whole = {Box::Whole(program.value(program.outputs[0]).type.shape.ToDims())};
  auto out = EvaluateBoxes(program, whole, [&](ValueId v) -> const HostTensor* {
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.inputs[i] == v) return &inputs[i];
    }
    return nullptr;
  });
  FUSION_CHECK(out.ok(), Message(out.status()));
  std::vector<double> values;
  for (int64_t i = 0; i < (*out)[0].elements(); ++i) values.push_back((*out)[0].GetDouble(i));
  return values;
}

Program ProgramOf(std::string_view text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  return BuildProgram(*graph).value();
}

TEST(Forgiving, UnlikeInfinitiesAreForgivenOnlyAmongInfinitiesThatMove) {
  const HostTensor wanted = Row(DType::kF32, {-kInf, -kInf, kNaN, 1, kInf});
  const HostTensor got = Row(DType::kF32, {kInf, kNaN, -kInf, kInf, 1});
  const HostTensor moved = Row(DType::kF32, {kInf, -kInf, kInf, kInf, -kInf});
  const HostTensor out = ForgivingUnlikeInfinities(wanted, got, wanted, moved);
  EXPECT_EQ(out.GetDouble(0), kInf);   // rounding decides
  EXPECT_EQ(out.GetDouble(1), -kInf);  // it does not: wrong
  EXPECT_EQ(out.GetDouble(2), -kInf);
  EXPECT_EQ(out.GetDouble(3), 1);     // a number is wanted
  EXPECT_EQ(out.GetDouble(4), kInf);  // a number is no answer
}

// What is left of a row minus its mean, if nothing is, is the last place of its sum.
TEST(Forgiving, MovedSumsTurnInfinitiesMadeOfTheirLastPlaces) {
  const Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f32[1,4]
  %1 = input "w" : f32[1]
  %2 = ReduceMean(%0) {axes=[1], keepdims=1} : f32[1,1]  "" @ ""
  %3 = Sub(%0, %2) : f32[1,4]  "" @ ""
  %4 = Mul(%3, %1) : f32[1,4]  "" @ ""
  output %4
})");
  HostTensor x(DType::kF32, {1, 4});
  for (int64_t i = 0; i < 4; ++i) x.SetDouble(i, i < 3 ? 1 : 9);
  const std::vector<HostTensor> inputs = {x, Row(DType::kF32, {kInf})};
  const std::vector<double> wanted = {-kInf, -kInf, -kInf, kInf};
  EXPECT_EQ(Result(program, inputs), wanted);
  EXPECT_EQ(Result(WithSumsMoved(program, 4), inputs), wanted);
  EXPECT_EQ(Result(WithSumsMoved(program, -4), inputs), wanted);

  for (int64_t i = 0; i < 4; ++i) x.SetDouble(i, 1);
  const std::vector<HostTensor> equal = {x, inputs[1]};
  for (double v : Result(program, equal)) EXPECT_TRUE(std::isnan(v)) << v;
  EXPECT_THAT(Result(WithSumsMoved(program, 4), equal), ::testing::Each(-kInf));
  EXPECT_THAT(Result(WithSumsMoved(program, -4), equal), ::testing::Each(kInf));
}

TEST(Forgiving, ASumMovesByUnitsInTheLastPlaceOfItsType) {
  for (auto [type, unit] :
       {std::pair(DType::kF32, std::ldexp(1, -23)), std::pair(DType::kF64, std::ldexp(1, -52))}) {
    const Program program = ProgramOf(StrCat(R"(graph "g" {
  %0 = input "x" : )",
                                             DTypeName(type), R"([2]
  %1 = ReduceSum(%0) {axes=[0], keepdims=1} : )",
                                             DTypeName(type), R"([1]  "" @ ""
  %2 = Neg(%1) : )",
                                             DTypeName(type), R"([1]  "" @ ""
  output %2
})"));
    EXPECT_THAT(Result(WithSumsMoved(program, 3), {Row(type, {0.25, 0.75})}),
                ::testing::ElementsAre(-1 - 3 * unit));
  }
}

// Inside of an operator -212 sigmoid(-212) is a number to the evaluator and 0 to a kernel in f32:
// times an infinity, NaN.
TEST(Forgiving, UnderflowMakesNanOfInfinities) {
  const Program program = ProgramOf(R"(graph "g" {
  %0 = input "a" : f32[3]
  %1 = input "b" : f32[3]
  %2 = SwiGLU(%0, %1) : f32[3]  "" @ ""
  output %2
})");
  const std::vector<HostTensor> inputs = {Row(DType::kF32, {-212, -80, 0}),
                                          Row(DType::kF32, {-kInf, -kInf, 2})};
  EXPECT_THAT(Result(program, inputs), ::testing::ElementsAre(kInf, kInf, 0));
  EXPECT_THAT(Result(WithUnderflowAsZero(program), inputs),
              ::testing::ElementsAre(::testing::IsNan(), kInf, 0));
}

TEST(Forgiving, WhatAnInfiniteSumMakesIsUnknown) {
  const Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f32[2]
  %1 = ReduceSum(%0) {axes=[0], keepdims=1} : f32[1]  "" @ ""
  %2 = Tanh(%1) : f32[1]  "" @ ""
  output %2
})");
  EXPECT_EQ(Result(program, {Row(DType::kF32, {1, kInf})}), std::vector<double>{1});
  const std::vector<double> unknown =
      Result(WithInfiniteSumsUnknown(program), {Row(DType::kF32, {1, kInf})});
  EXPECT_TRUE(std::isnan(unknown[0]));
  EXPECT_EQ(Result(WithInfiniteSumsUnknown(program), {Row(DType::kF32, {1, 2})}),
            Result(program, {Row(DType::kF32, {1, 2})}));
}

}  // namespace
}  // namespace fusion
