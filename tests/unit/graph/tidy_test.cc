#include "core/graph/program/tidy.h"

#include <gtest/gtest.h>

#include "core/graph/build/text.h"

namespace fusion {
namespace {

Program ProgramOf(const char* text) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto program = BuildProgram(*graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  return *std::move(program);
}

constexpr const char* kGraph = R"(graph "g" {
  %0 = input "x" : f32[4]
  %1 = input "unread" : f32[4]
  %2 = weight "w" : f32[4]
  %3 = Exp(%0) : f32[4]  "" @ ""
  %4 = Mul(%3, %2) : f32[4]  "" @ ""
  %5 = Neg(%4) : f32[4]  "" @ ""
  output %5
}
)";

TEST(Tidy, LeavesATidyProgramAsItIs) {
  Program program = ProgramOf(kGraph);
  const size_t values = program.values.size();
  Tidy(&program);
  EXPECT_EQ(program.values.size(), values);
  EXPECT_EQ(program.ops.size(), 3U);
  EXPECT_EQ(program.inputs.size(), 2U);
  auto again = ParseProgram(ToString(program));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToString(*again), ToString(program));
}

// A pass puts an op in front of others, with a value behind all, and leads a reader past another.
TEST(Tidy, OrdersValuesAndLeavesOutWhatNobodyReads) {
  Program program = ProgramOf(kGraph);
  const ValueId exp = program.ops[0].output;
  const ValueId x = program.ops[0].inputs[0];
  LoopOp abs = program.ops[0];
  abs.label = "Abs";
  abs.body.value = Expr::Unary(ScalarOp::kAbs, Expr::Input(0, DType::kF32));
  abs.output = static_cast<ValueId>(program.values.size());
  program.values.push_back(program.value(exp));
  program.ops[1].inputs[0] = abs.output;
  program.ops.insert(program.ops.begin(), std::move(abs));
  Tidy(&program);
  ASSERT_EQ(program.ops.size(), 3U);
  EXPECT_EQ(program.ops[0].label, "Abs");
  EXPECT_EQ(program.value(program.ops[0].inputs[0]).kind, TensorKind::kInput);
  EXPECT_EQ(program.inputs[0], program.ops[0].inputs[0]);
  EXPECT_EQ(x, program.inputs[0]);
  for (LoopId l = 0; l < 3; ++l) EXPECT_EQ(program.value(program.op(l).output).producer, l);
  auto again = ParseProgram(ToString(program));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToString(*again), ToString(program));
}

// A repeat writes all that it gives: a place for it stays, read or not.
TEST(Tidy, KeepsEveryResultOfARepeat) {
  Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f32[3,2]
  %1 = input "h" : f32[2]
  %2, %3 = Repeat(%0, %1) {body=repeat 3 {element f32[2], carried f32[2], %2 = Add(%0, %1), out %2, out %2}} : f32[2], f32[3,2]  "", "" @ ""
  %4 = Neg(%3) : f32[3,2]  "" @ ""
  output %4
}
)");
  ASSERT_TRUE(Verify(program).ok()) << Verify(program);
  const std::string before = ToString(program);
  Tidy(&program);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_EQ(ToString(program), before);
}

// A repeat that nothing reads is left out with all its results.
TEST(Tidy, LeavesOutARepeatThatNobodyReads) {
  Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f32[3,2]
  %1 = input "h" : f32[2]
  %2, %3 = Repeat(%0, %1) {body=repeat 3 {element f32[2], carried f32[2], %2 = Add(%0, %1), out %2, out %2}} : f32[2], f32[3,2]  "", "" @ ""
  %4 = Neg(%0) : f32[3,2]  "" @ ""
  output %4
}
)");
  Tidy(&program);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_EQ(program.ops.size(), 1U);
}

// Rows come right before the value that they lie in, whatever else gets its number late.
TEST(Tidy, KeepsRowsBesideWhatTheyLieIn) {
  Program program = ProgramOf(R"(graph "g" {
  %0 = input "past" : f32[2,5,3]
  %1 = input "x" : f32[2,2,3]
  %2 = Exp(%1) : f32[2,2,3]  "new" @ "exp"
  %3 = Concat(%0, %2) {axis=1} : f32[2,7,3]  "present" @ "cat"
  output %3
  share input 0 output 0 dim 1 capacity 9
}
)");
  Tidy(&program);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program) << ToString(program);
  auto again = ParseProgram(ToString(program));
  ASSERT_TRUE(again.ok()) << again.status() << ToString(program);
}

}  // namespace
}  // namespace fusion
