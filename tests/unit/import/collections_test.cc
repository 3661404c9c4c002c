// Sequences and optionals that leave no trace, narrow types, random numbers and FlexAttention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/imported.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TestModel WithX(int opset = 20) {
  TestModel m(opset);
  m.Input("x", {3, 2});
  return m;
}

const HostTensor kX = F({3, 2}, {1, 2, 3, 4, 5, 6});

TestModel& Number(TestModel& m, const std::string& name, int64_t value) {
  HostTensor t(DType::kI64, {});
  t.SetInt(0, value);
  return m.Initializer(name, t);
}

// torch.unbind, as exporters write it.
TEST(Sequences, UnboundTensorsAreSlices) {
  TestModel m = WithX();
  m.Node("SplitToSequence", {"x"}, {"s"}, "unbind").Attr("axis", 0).Attr("keepdims", 0);
  Number(m, "one", 1);
  Number(m, "last", -1);
  m.Node("SequenceAt", {"s", "one"}, {"a"}).Node("SequenceAt", {"s", "last"}, {"b"});
  m.Node("Sub", {"b", "a"}, {"y"}).Output("y");
  EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(2, 2));
  EXPECT_THAT(Import(m), AllOf(HasSubstr("y:f32[2]"), Not(HasSubstr("Sequence"))));
}

TEST(Sequences, AreBuiltChangedAndJoined) {
  TestModel m = WithX();
  Number(m, "zero", 0);
  Number(m, "one", 1);
  m.Node("Neg", {"x"}, {"n"}).Node("SequenceConstruct", {"x", "n"}, {"s0"});
  m.Node("Abs", {"n"}, {"a"}).Node("SequenceInsert", {"s0", "a", "one"}, {"s1"});
  m.Node("SequenceErase", {"s1", "zero"}, {"s2"}).Node("Identity", {"s2"}, {"s3"});
  m.Node("ConcatFromSequence", {"s3"}, {"y"}).Attr("axis", 0).Attr("new_axis", 1).Output("y");
  EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6));
  EXPECT_THAT(Import(m), HasSubstr("y:f32[2,3,2]"));
}

TEST(Sequences, LengthsAreConstants) {
  TestModel m = WithX();
  m.Ints("sizes", {1, 2}).Node("SplitToSequence", {"x", "sizes"}, {"s"}).Attr("axis", 0);
  m.Node("SequenceEmpty", {}, {"e"}).Node("SequenceInsert", {"e", "x"}, {"f"});
  m.Node("SequenceLength", {"s"}, {"n"}).Node("SequenceLength", {"f"}, {"k"});
  m.Node("Mul", {"n", "n"}, {"nn"}).Node("Add", {"nn", "k"}, {"y"}).Output("y");
  EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(5));
}

TEST(Sequences, PiecesOfOneSizeLeaveARest) {
  TestModel m = WithX();
  Number(m, "two", 2);
  Number(m, "one", 1);
  m.Node("SplitToSequence", {"x", "two"}, {"s"}).Node("SequenceAt", {"s", "one"}, {"y"});
  m.Output("y");
  EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(5, 6));
  EXPECT_THAT(Import(m), HasSubstr("y:f32[1,2]"));
}

TEST(Sequences, MapsRunTheirBodyForEachElement) {
  TestModel body(20);
  body.Input("e", {2}).Input("t", {2}).Node("Add", {"e", "t"}, {"r"}).Output("r");
  TestModel m = WithX();
  m.Input("w", {2}).Node("SplitToSequence", {"x"}, {"s"}).Attr("keepdims", 0);
  m.Node("SequenceMap", {"s", "w"}, {"r"}, "map").AttrGraph("body", body);
  m.Node("ConcatFromSequence", {"r"}, {"y"}).Attr("axis", 0).Output("y");
  EXPECT_THAT(ResultOf(m, {kX, F({2}, {10, 20})}), ElementsAre(11, 22, 13, 24, 15, 26));
}

TEST(Optionals, ElementsAreWhatTheyHold) {
  TestModel m = WithX();
  m.Node("Optional", {"x"}, {"o"}).Node("OptionalHasElement", {"o"}, {"has"});
  m.Node("OptionalGetElement", {"o"}, {"g"}).Node("Optional", {}, {"none"});
  m.Node("OptionalHasElement", {"none"}, {"hasnt"}).Node("Or", {"has", "hasnt"}, {"c"});
  m.Node("Cast", {"c"}, {"f"}).Attr("to", 1).Node("Mul", {"g", "f"}, {"y"}).Output("y");
  EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Sequences, WhatDoesNotVanishIsRefused) {
  TestModel out = WithX();
  out.Node("SequenceConstruct", {"x"}, {"y"}, "make").Output("y");
  EXPECT_THAT(Import(out), HasSubstr("UNIMPLEMENTED: output \"y\" is a sequence; only tensors"));
  TestModel op = WithX();
  op.Node("SequenceConstruct", {"x"}, {"s"}).Node("Relu", {"s"}, {"y"}, "relu").Output("y");
  EXPECT_THAT(Import(op), HasSubstr("UNIMPLEMENTED: node \"relu\" (Relu): input 0 \"s\" is a "
                                    "sequence, which this op does not take"));
  TestModel at = WithX();
  at.Input("i", {}, DType::kI64).Node("SequenceConstruct", {"x"}, {"s"});
  at.Node("SequenceAt", {"s", "i"}, {"y"}, "at").Output("y");
  EXPECT_THAT(Import(at), HasSubstr("UNIMPLEMENTED: node \"at\" (SequenceAt): input 1 \"i\" "
                                    "(position) is known to a run only"));
  TestModel far = WithX();
  Number(far, "two", 2);
  far.Node("SequenceConstruct", {"x", "x"}, {"s"});
  far.Node("SequenceAt", {"s", "two"}, {"y"}, "at").Output("y");
  EXPECT_THAT(Import(far),
              HasSubstr("INVALID_ARGUMENT: node \"at\" (SequenceAt): position 2 of a sequence, "
                        "expected -2..1"));
  TestModel none = WithX();
  none.Node("Optional", {}, {"o"}).Node("OptionalGetElement", {"o"}, {"y"}, "get").Output("y");
  EXPECT_THAT(Import(none), HasSubstr("(OptionalGetElement): input 0 has no element"));
  TestModel kinds = WithX();
  kinds.Node("Cast", {"x"}, {"i"}).Attr("to", 7);
  kinds.Node("SequenceConstruct", {"x", "i"}, {"y"}, "make").Output("y");
  EXPECT_THAT(Import(kinds), HasSubstr("an element is i64, others are f32"));
  TestModel tensor = WithX();
  tensor.Node("SequenceLength", {"x"}, {"y"}, "n").Output("y");
  EXPECT_THAT(Import(tensor), HasSubstr("input 0 is a tensor, expected a sequence"));
}

HostTensor Truth(bool value) {
  HostTensor out(DType::kBool, {});
  out.SetInt(0, value ? 1 : 0);
  return out;
}

TEST(Sequences, PassBranchesOfAnIf) {
  TestModel yes(20);
  yes.Node("SequenceInsert", {"s", "x"}, {"longer"}).Output("longer");
  TestModel no(20);
  no.Node("SequenceConstruct", {"x"}, {"short"}).Output("short");
  for (bool taken : {true, false}) {
    TestModel m = WithX();
    m.Initializer("c", Truth(taken)).Node("Neg", {"x"}, {"n"});
    m.Node("SequenceConstruct", {"n"}, {"s"}).Node("If", {"c"}, {"r"}, "if");
    m.AttrGraph("then_branch", yes).AttrGraph("else_branch", no);
    m.Node("SequenceLength", {"r"}, {"y"}).Output("y");
    EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(taken ? 2 : 1));
  }
  TestModel run = WithX();
  run.Input("c", {}, DType::kBool).Node("Neg", {"x"}, {"n"});
  run.Node("SequenceConstruct", {"n"}, {"s"}).Node("If", {"c"}, {"r"}, "if");
  run.AttrGraph("then_branch", yes).AttrGraph("else_branch", no);
  run.Node("SequenceLength", {"r"}, {"y"}).Output("y");
  EXPECT_THAT(Import(run),
              HasSubstr("UNIMPLEMENTED: node \"if\" (If): the branches give a sequence "
                        "of 2 or a sequence of 1, as values of a run decide"));
}

// Both branches give as many: each element is chosen.
TEST(Sequences, OfOneLengthAreChosenElementByElement) {
  TestModel yes(20);
  yes.Node("SequenceConstruct", {"x", "n"}, {"a"}).Output("a");
  TestModel no(20);
  no.Node("SequenceConstruct", {"n", "x"}, {"b"}).Output("b");
  TestModel m = WithX();
  Number(m, "zero", 0);
  m.Input("c", {}, DType::kBool).Node("Neg", {"x"}, {"n"}).Node("If", {"c"}, {"r"}, "if");
  m.AttrGraph("then_branch", yes).AttrGraph("else_branch", no);
  m.Node("SequenceAt", {"r", "zero"}, {"y"}).Output("y");
  EXPECT_THAT(ResultOf(m, {kX, Truth(true)}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ResultOf(m, {kX, Truth(false)}), ElementsAre(-1, -2, -3, -4, -5, -6));
}

// What torch.jit writes for `for row in x: out.append(row * i)`.
TestModel Appends() {
  TestModel body(20);
  body.Input("i", {}, DType::kI64).Input("go", {}, DType::kBool).Input("s", {});
  body.Node("SequenceAt", {"rows", "i"}, {"row"}).Node("Cast", {"i"}, {"f"}).Attr("to", 1);
  body.Node("Mul", {"row", "f"}, {"e"}).Node("SequenceInsert", {"s", "e"}, {"t"});
  return body.Output("go").Output("t");
}

TEST(Sequences, GrowInLoops) {
  TestModel m = WithX();
  Number(m, "three", 3);
  m.Node("SplitToSequence", {"x"}, {"rows"}).Node("SequenceEmpty", {}, {"none"});
  m.Node("Loop", {"three", "", "none"}, {"all"}, "loop").AttrGraph("body", Appends());
  m.Node("ConcatFromSequence", {"all"}, {"y"}).Attr("axis", 0).Output("y");
  EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(0, 0, 3, 4, 10, 12));
  // Nothing else limits it: position 3 of 3 rows.
  TestModel far = WithX();
  Number(far, "four", 4);
  far.Node("SplitToSequence", {"x"}, {"rows"}).Node("SequenceEmpty", {}, {"none"});
  far.Node("Loop", {"four", "", "none"}, {"all"}, "loop").AttrGraph("body", Appends());
  far.Node("ConcatFromSequence", {"all"}, {"y"}).Attr("axis", 0).Output("y");
  EXPECT_THAT(
      Import(far),
      HasSubstr("node \"loop/3/row\" (SequenceAt): position 3 of a sequence, expected -3..2"));
  TestModel run = WithX();
  run.Input("n", {}, DType::kI64).Node("SplitToSequence", {"x"}, {"rows"});
  run.Node("SequenceEmpty", {}, {"none"});
  run.Node("Loop", {"n", "", "none"}, {"all"}, "loop").AttrGraph("body", Appends());
  run.Node("ConcatFromSequence", {"all"}, {"y"}).Attr("axis", 0).Output("y");
  EXPECT_THAT(Import(run), AllOf(HasSubstr("UNIMPLEMENTED: node \"loop\" (Loop): it carries a "
                                           "sequence or an optional, and input 0 "),
                                 HasSubstr("--fix")));
}

// while len(s) < 5: s.append(s[-1] + 1)
TEST(Sequences, GrowAsLongAsAConditionOfTheirLengthHolds) {
  TestModel body(20);
  body.Input("i", {}, DType::kI64).Input("go", {}, DType::kBool).Input("s", {});
  Number(body, "last", -1);
  Number(body, "five", 5);
  body.Initializer("one", F({}, {1})).Node("SequenceAt", {"s", "last"}, {"l"});
  body.Node("Add", {"l", "one"}, {"e"}).Node("SequenceInsert", {"s", "e"}, {"t"});
  body.Node("SequenceLength", {"t"}, {"n"}).Node("Less", {"n", "five"}, {"more"});
  body.Output("more").Output("t");
  TestModel m(20);
  m.Input("x", {1}).Initializer("c", Truth(true)).Node("SequenceConstruct", {"x"}, {"s"});
  m.Node("Loop", {"", "c", "s"}, {"all"}, "loop").AttrGraph("body", body);
  m.Node("ConcatFromSequence", {"all"}, {"y"}).Attr("axis", 0).Output("y");
  EXPECT_THAT(ResultOf(m, {F({1}, {7})}), ElementsAre(7, 8, 9, 10, 11));
  TestModel endless = m;
  TestModel never(20);
  never.Input("i", {}, DType::kI64).Input("go", {}, DType::kBool).Input("s", {});
  never.Output("go").Output("s");
  endless.proto().mutable_graph()->mutable_node(1)->mutable_attribute(0)->mutable_g()->CopyFrom(
      *never.graph());
  EXPECT_THAT(Import(endless), HasSubstr("RESOURCE_EXHAUSTED: node \"loop\" (Loop): more than "));
  TestModel asks(20);
  asks.Input("x", {1}).Input("c", {}, DType::kBool).Node("SequenceConstruct", {"x"}, {"s"});
  asks.Node("Loop", {"", "c", "s"}, {"all"}, "loop").AttrGraph("body", body);
  asks.Node("ConcatFromSequence", {"all"}, {"y"}).Attr("axis", 0).Output("y");
  EXPECT_THAT(Import(asks), HasSubstr("whether there is a pass 0 is known to a run only"));
}

// A body that reads a sequence from outside at a known place stays a loop.
TEST(Sequences, AreReadInLoopsThatStayLoops) {
  TestModel body(20);
  body.Input("i", {}, DType::kI64).Input("go", {}, DType::kBool).Input("c", {2});
  Number(body, "one", 1);
  body.Node("SequenceAt", {"rows", "one"}, {"row"}).Node("Add", {"c", "row"}, {"d"});
  body.Output("go").Output("d");
  TestModel m = WithX();
  Number(m, "many", 40);
  m.Input("c", {2}).Node("SplitToSequence", {"x"}, {"rows"}).Attr("keepdims", 0);
  m.Node("Loop", {"many", "", "c"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  EXPECT_THAT(ResultOf(m, {kX, F({2}, {0, 1})}), ElementsAre(120, 161));
  EXPECT_THAT(Import(m), HasSubstr("Repeat"));
}

TEST(Sequences, AreNoNumberOfPassesAndNoCondition) {
  TestModel body(20);
  body.Input("i", {}, DType::kI64).Input("go", {}, DType::kBool).Input("c", {3, 2});
  body.Node("Add", {"c", "c"}, {"d"}).Output("go").Output("d");
  for (const bool count : {true, false}) {
    TestModel m = WithX();
    Number(m, "two", 2);
    m.Node("SequenceConstruct", {"x"}, {"s"});
    m.Node("Loop", {count ? "s" : "two", count ? "" : "s", "x"}, {"y"}, "loop");
    m.AttrGraph("body", body).Output("y");
    EXPECT_THAT(Import(m),
                HasSubstr(StrCat("INVALID_ARGUMENT: node \"loop\" (Loop): input ", count ? 0 : 1,
                                 count ? " (the number of passes)" : " (the condition)",
                                 " is a sequence, expected a tensor")));
  }
}

TEST(Sequences, OutputsOfBodiesThatMustBeTensorsAreNumberedAsTheBodyHasThem) {
  TestModel body(20);
  body.Input("i", {}, DType::kI64).Input("go", {}, DType::kBool).Input("c", {3, 2});
  body.Node("SequenceConstruct", {"c"}, {"s"}).Output("go").Output("c").Output("s");
  TestModel m = WithX();
  Number(m, "two", 2);
  m.Node("Loop", {"two", "", "x"}, {"last", "all"}, "loop").AttrGraph("body", body);
  m.Output("last").Output("all");
  EXPECT_THAT(Import(m), HasSubstr("output 2 of the body is a sequence, expected a tensor"));
}

TEST(Sequences, MapsGiveAsManyOutputsAsTheirBody) {
  TestModel body(20);
  body.Input("e", {2}).Node("Neg", {"e"}, {"r"}).Output("r");
  TestModel m = WithX();
  m.Node("SplitToSequence", {"x"}, {"s"}).Attr("keepdims", 0);
  m.Node("SequenceMap", {"s"}, {"r", "none"}, "map").AttrGraph("body", body);
  m.Node("SequenceLength", {"none"}, {"y"}).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("node \"map\" (SequenceMap): has no output 1"));
}

// Every element of the sequence changes in every pass that a run may make or not.
TEST(Sequences, ChoicesBetweenManyElementsAreCounted) {
  TestModel body(20);
  body.Input("i", {}, DType::kI64).Input("go", {}, DType::kBool).Input("s", {});
  Number(body, "zero", 0);
  body.Node("SequenceAt", {"s", "zero"}, {"first"}).Node("SequenceErase", {"s", "zero"}, {"t"});
  body.Node("SequenceInsert", {"t", "first"}, {"u"}).Output("go").Output("u");
  TestModel m(20);
  Number(m, "many", 4000);
  m.Input("x", {5000}).Input("c", {}, DType::kBool);
  m.Node("SplitToSequence", {"x"}, {"s"}).Node("Loop", {"many", "c", "s"}, {"r"}, "loop");
  m.AttrGraph("body", body).Node("SequenceLength", {"r"}, {"y"}).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("nodes after its loops are written out"));
}

TEST(Sequences, MapsReadWhatStandsOutside) {
  TestModel body(20);
  Number(body, "last", -1);
  body.Input("e", {2}).Node("SequenceAt", {"s", "last"}, {"l"}).Node("Sub", {"e", "l"}, {"r"});
  body.Output("r");
  TestModel m = WithX();
  m.Node("SplitToSequence", {"x"}, {"s"}).Attr("keepdims", 0);
  m.Node("SequenceMap", {"s"}, {"r"}, "map").AttrGraph("body", body);
  m.Node("ConcatFromSequence", {"r"}, {"y"}).Attr("axis", 0).Output("y");
  EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(-4, -4, -2, -2, 0, 0));
}

TEST(Optionals, AreCarriedByLoops) {
  TestModel body(20);
  body.Input("i", {}, DType::kI64).Input("go", {}, DType::kBool).Input("o", {});
  TestModel has(20);
  has.Node("OptionalGetElement", {"o"}, {"v"}).Node("Add", {"v", "x"}, {"a"}).Output("a");
  TestModel first(20);
  first.Node("Identity", {"x"}, {"b"}).Output("b");
  body.Node("OptionalHasElement", {"o"}, {"h"}).Node("If", {"h"}, {"r"}, "choose");
  body.AttrGraph("then_branch", has).AttrGraph("else_branch", first);
  body.Node("Optional", {"r"}, {"p"}).Output("go").Output("p");
  TestModel m = WithX();
  Number(m, "three", 3);
  m.Node("Optional", {}, {"none"}).Node("Loop", {"three", "", "none"}, {"all"}, "loop");
  m.AttrGraph("body", body).Node("OptionalGetElement", {"all"}, {"y"}).Output("y");
  EXPECT_THAT(ResultOf(m, {kX}), ElementsAre(3, 6, 9, 12, 15, 18));
}

TEST(Sequences, TooManyPiecesAreRefused) {
  TestModel m(20);
  m.Input("x", {1 << 20}).Node("SplitToSequence", {"x"}, {"s"}, "all");
  m.Node("ConcatFromSequence", {"s"}, {"y"}).Attr("axis", 0).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("RESOURCE_EXHAUSTED: node \"all\" (SplitToSequence): gives "
                                   "1048576 pieces"));
}

TEST(NarrowTypes, AreCastMovedAndNotComputedOn) {
  TestModel m = WithX(24);
  m.Node("Cast", {"x"}, {"n"}).Attr("to", 17).Node("Transpose", {"n"}, {"t"}).Output("t");
  EXPECT_THAT(Import(m), HasSubstr("t:f8e4m3fn[2,3]"));
  m.Node("Add", {"t", "t"}, {"y"}, "sum").Output("y");
  EXPECT_THAT(Import(m), HasSubstr("UNIMPLEMENTED: node \"sum\" (Add): input 0 \"t\" is f8e4m3fn, "
                                   "which this op does not compute on; cast it before"));
}

TEST(NarrowTypes, PackedInitialisersAreRead) {
  TestModel m(24);
  HostTensor w(DType::kI4, {3});
  for (int64_t i = 0; i < 3; ++i) w.SetInt(i, i * 3 - 4);
  m.Initializer("w", w).Input("s", {}).Node("DequantizeLinear", {"w", "s"}, {"y"}).Output("y");
  EXPECT_EQ(m.graph()->initializer(0).raw_data().size(), 2U);
  EXPECT_THAT(ResultOf(m, {F({}, {0.5})}), ElementsAre(-2, -0.5, 1));
}

// Floats saturate, integers are the low bits of 1000.
TEST(NarrowTypes, ValuesOfCastsAreThoseOfTheirType) {
  for (auto [type, wanted] : {std::pair{17, 448.0},
                              {18, 240.0},
                              {19, 1024.0},
                              {23, 6.0},
                              {22, -8.0},
                              {21, 8.0},
                              {26, 0.0},
                              {25, 0.0}}) {
    TestModel m(25);
    m.Input("x", {1}).Node("Cast", {"x"}, {"n"}).Attr("to", type);
    m.Node("Cast", {"n"}, {"y"}).Attr("to", 1).Output("y");
    EXPECT_THAT(ResultOf(m, {F({1}, {1000})}), ElementsAre(wanted)) << type;
  }
}

TEST(CastLike, IsACastWhoeverTheSecondInputIs) {
  TestModel m = WithX();
  m.Input("like", {}, DType::kI64).Ints("dims", {2, 3}).Node("CastLike", {"dims", "like"}, {"d"});
  m.Node("Reshape", {"x", "d"}, {"y"}).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("y:f32[2,3]"));
}

TEST(BitCast, SwapsBits) {
  TestModel m(26);
  m.Input("x", {2}).Node("BitCast", {"x"}, {"y"}).Attr("to", 6).Output("y");
  EXPECT_THAT(ResultOf(m, {F({2}, {1, -2})}), ElementsAre(0x3f800000, -1073741824));
  TestModel wide(26);
  wide.Input("x", {2}).Node("BitCast", {"x"}, {"y"}, "b").Attr("to", 7).Output("y");
  EXPECT_THAT(Import(wide), HasSubstr("node \"b\" (BitCast): attribute \"to\" is i64, input 0 is "
                                      "f32; expected types of one width"));
}

TEST(RandomNumbers, FollowFromSeedAndPlace) {
  auto uniform = [](float seed) {
    TestModel m(22);
    m.Input("x", {100, 20}).Node("RandomUniformLike", {"x"}, {"y"}).AttrFloat("seed", seed);
    m.AttrFloat("low", -1).AttrFloat("high", 3).Output("y");
    return ResultOf(m, {HostTensor(DType::kF32, {100, 20})});
  };
  const std::vector<double> numbers = uniform(1);
  EXPECT_EQ(numbers, uniform(1));
  EXPECT_NE(numbers, uniform(2));
  EXPECT_THAT(numbers, Each(AllOf(::testing::Ge(-1), ::testing::Lt(3))));
  EXPECT_GT(std::set<double>(numbers.begin(), numbers.end()).size(), 1990U);
  double mean = 0;
  for (double x : numbers) mean += x / 2000;
  EXPECT_NEAR(mean, 1, 0.1);
}

TEST(RandomNumbers, NormalOnesHaveMeanAndDeviation) {
  TestModel m(22);
  m.Node("RandomNormal", {}, {"y"}).Attr("shape", std::vector<int64_t>{4000});
  m.AttrFloat("seed", 7).AttrFloat("mean", 5).AttrFloat("scale", 2).Output("y");
  const std::vector<double> numbers = ResultOf(m, {});
  ASSERT_EQ(numbers.size(), 4000U);
  double mean = 0;
  double square = 0;
  for (double x : numbers) {
    mean += x / 4000;
    square += (x - 5) * (x - 5) / 4000;
  }
  EXPECT_NEAR(mean, 5, 0.15);
  EXPECT_NEAR(square, 4, 0.4);
}

TEST(RandomNumbers, BernoulliDrawsWithTheGivenProbability) {
  TestModel m(22);
  m.Input("p", {3000}).Node("Bernoulli", {"p"}, {"y"}).AttrFloat("seed", 3).Output("y");
  HostTensor p(DType::kF32, {3000});
  for (float& x : p.data<float>()) x = 0.25F;
  double ones = 0;
  for (double y : ResultOf(m, {p})) ones += y;
  EXPECT_NEAR(ones / 3000, 0.25, 0.03);
}

TEST(RandomNumbers, NodesWithoutASeedWarnAndDiffer) {
  TestModel m(22);
  m.Input("x", {64}).Node("RandomUniformLike", {"x"}, {"a"}, "noise");
  m.Node("RandomUniformLike", {"x"}, {"b"}).Node("Sub", {"a", "b"}, {"y"}).Output("y");
  std::set<std::string> warnings;
  EXPECT_THAT(Import(m, {.warnings = &warnings}), HasSubstr("y:f32[64]"));
  ASSERT_FALSE(warnings.empty());
  EXPECT_THAT(*warnings.rbegin(), HasSubstr("node \"noise\" (RandomUniformLike): has no seed"));
  EXPECT_THAT(ResultOf(m, {HostTensor(DType::kF32, {64})}), ::testing::Contains(Not(0)));
}

TEST(FlexAttention, RunsItsBodies) {
  TestModel body(26);
  body.Input("s", {1, 1, 2, 2}).Node("Tanh", {"s"}, {"t"}).Output("t");
  TestModel m(26);
  auto* preview = m.proto().add_opset_import();
  preview->set_domain("ai.onnx.preview");
  preview->set_version(1);
  for (const char* name : {"q", "k", "v"}) m.Input(name, {1, 1, 2, 1});
  m.Node("FlexAttention", {"q", "k", "v"}, {"y"}, "flex").Domain("ai.onnx.preview");
  m.AttrGraph("score_mod", body).Output("y");
  const HostTensor q = F({1, 1, 2, 1}, {1, 2});
  const HostTensor v = F({1, 1, 2, 1}, {10, 20});
  std::vector<double> wanted;
  for (double a : {1.0, 2.0}) {
    const double first = std::exp(std::tanh(a));
    const double second = std::exp(std::tanh(2 * a));
    wanted.push_back((10 * first + 20 * second) / (first + second));
  }
  const std::vector<double> got = ResultOf(m, {q, q, v});
  ASSERT_EQ(got.size(), 2U);
  EXPECT_NEAR(got[0], wanted[0], 1e-4);
  EXPECT_NEAR(got[1], wanted[1], 1e-4);
  TestModel wrong(26);
  *wrong.proto().add_opset_import() = *preview;
  wrong.Input("q", {1, 3, 2, 1}).Input("k", {1, 2, 2, 1}).Input("v", {1, 2, 2, 1});
  wrong.Node("FlexAttention", {"q", "k", "v"}, {"y"}, "flex").Domain("ai.onnx.preview");
  wrong.Output("y");
  EXPECT_THAT(Import(wrong), HasSubstr("INVALID_ARGUMENT: node \"flex\" (FlexAttention): inputs "));
}

TEST(Trees, RowsGoToTheirLeaves) {
  TestModel m(22);
  auto* ml = m.proto().add_opset_import();
  ml->set_domain("ai.onnx.ml");
  ml->set_version(5);
  HostTensor modes(DType::kU8, {2});
  modes.SetInt(1, 2);  // <=, then >=
  m.Input("x", {4, 2}).Node("TreeEnsemble", {"x"}, {"y"}, "trees").Domain("ai.onnx.ml");
  m.Attr("nodes_featureids", std::vector<int64_t>{0, 1}).AttrTensor("nodes_modes", modes);
  m.AttrTensor("nodes_splits", F({2}, {1, 5}));
  m.Attr("nodes_truenodeids", std::vector<int64_t>{0, 1});
  m.Attr("nodes_trueleafs", std::vector<int64_t>{1, 1});
  m.Attr("nodes_falsenodeids", std::vector<int64_t>{1, 2});
  m.Attr("nodes_falseleafs", std::vector<int64_t>{0, 1});
  m.Attr("nodes_missing_value_tracks_true", std::vector<int64_t>{1, 0});
  m.Attr("leaf_targetids", std::vector<int64_t>{0, 1, 0});
  m.AttrTensor("leaf_weights", F({3}, {10, 20, 30}));
  m.Attr("tree_roots", std::vector<int64_t>{0, 1}).Attr("n_targets", 2).Output("y");
  // Tree 0 begins at node 0, tree 1 at node 1.
  const float nan = std::nanf("");
  EXPECT_THAT(ResultOf(m, {F({4, 2}, {0, 9, 2, 9, 2, 0, nan, 0})}),
              ElementsAre(10, 20, 0, 40, 60, 0, 40, 0));
  m.last()->mutable_attribute(3)->set_ints(0, 7);
  EXPECT_THAT(Import(m), HasSubstr("attribute \"nodes_truenodeids\" has the entry 7 of 3 leaves"));
}

TEST(Trees, RegressorsNameNodesByTree) {
  TestModel m(17);
  auto* ml = m.proto().add_opset_import();
  ml->set_domain("ai.onnx.ml");
  ml->set_version(3);
  m.Input("x", {2, 1}).Node("TreeEnsembleRegressor", {"x"}, {"y"}, "t").Domain("ai.onnx.ml");
  auto ints = [&](const char* name, std::vector<int64_t> values) { m.Attr(name, values); };
  // The nodes of a tree need not stand together.
  ints("nodes_treeids", {0, 1, 0, 0});
  ints("nodes_nodeids", {0, 0, 1, 2});
  ints("nodes_featureids", {0, 0, 0, 0});
  ints("nodes_truenodeids", {1, 0, 0, 0});
  ints("nodes_falsenodeids", {2, 0, 0, 0});
  auto floats = [&](const char* name, std::initializer_list<float> values) {
    onnx::AttributeProto* a = m.last()->add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::FLOATS);
    for (float v : values) a->add_floats(v);
  };
  floats("nodes_values", {0.5, 0, 0, 0});
  onnx::AttributeProto* modes = m.last()->add_attribute();
  modes->set_name("nodes_modes");
  modes->set_type(onnx::AttributeProto::STRINGS);
  for (const char* mode : {"BRANCH_LT", "LEAF", "LEAF", "LEAF"}) modes->add_strings(mode);
  ints("target_ids", {0, 0, 0});
  ints("target_nodeids", {1, 2, 0});
  ints("target_treeids", {0, 0, 1});
  floats("target_weights", {1, 2, 100});
  floats("base_values", {0.25});
  m.Attr("n_targets", 1).Output("y");
  EXPECT_THAT(ResultOf(m, {F({2, 1}, {0, 1})}), ElementsAre(101.25, 102.25));
}

// One tree that gives a class of two its probability.
TEST(Trees, ClassifiersNameTheClassOfARow) {
  TestModel m(17);
  auto* ml = m.proto().add_opset_import();
  ml->set_domain("ai.onnx.ml");
  ml->set_version(3);
  m.Input("x", {2, 1}).Node("TreeEnsembleClassifier", {"x"}, {"l", "s"}, "t");
  m.Domain("ai.onnx.ml");
  auto ints = [&](const char* name, const std::vector<int64_t>& values) { m.Attr(name, values); };
  ints("nodes_treeids", {0, 0, 0});
  ints("nodes_nodeids", {0, 1, 2});
  ints("nodes_featureids", {0, 0, 0});
  ints("nodes_truenodeids", {1, 0, 0});
  ints("nodes_falsenodeids", {2, 0, 0});
  onnx::AttributeProto* modes = m.last()->add_attribute();
  modes->set_name("nodes_modes");
  modes->set_type(onnx::AttributeProto::STRINGS);
  for (const char* mode : {"BRANCH_LEQ", "LEAF", "LEAF"}) modes->add_strings(mode);
  m.AttrTensor("nodes_values_as_tensor", F({3}, {0.5, 0, 0}));
  ints("class_ids", {0, 0});
  ints("class_nodeids", {1, 2});
  ints("class_treeids", {0, 0});
  m.AttrTensor("class_weights_as_tensor", F({2}, {0.25, 0.875}));
  ints("classlabels_int64s", {-3, 8});
  TestModel scores = m;
  m.Output("l");
  EXPECT_THAT(ResultOf(m, {F({2, 1}, {0, 1})}), ElementsAre(-3, 8));
  scores.Output("s");
  EXPECT_THAT(ResultOf(scores, {F({2, 1}, {0, 1})}), ElementsAre(0.75, 0.25, 0.125, 0.875));
  m.AttrString("classlabels_strings", "a");
  EXPECT_THAT(Import(m), HasSubstr("names classes by strings; supported: classlabels_int64s"));
}

TEST(Pad, TakesAValueOfARun) {
  TestModel m(21);
  m.Input("x", {2}).Input("v", {}).Ints("pads", {1, 2}).Node("Pad", {"x", "pads", "v"}, {"y"});
  m.Output("y");
  EXPECT_THAT(ResultOf(m, {F({2}, {1, 2}), F({}, {9})}), ElementsAre(9, 1, 2, 9, 9));
  TestModel wrong(21);
  wrong.Input("x", {2}).Input("v", {2}).Ints("pads", {1, 2});
  wrong.Node("Pad", {"x", "pads", "v"}, {"y"}, "pad").Output("y");
  EXPECT_THAT(Import(wrong), HasSubstr("constant_value is f32[2], expected one element"));
}

TEST(Resize, OfOpset10WantsScalesThatAreKnown) {
  TestModel m(10);
  m.Input("x", {1, 1, 2, 2}).Input("s", {4}).Node("Resize", {"x", "s"}, {"y"}, "r").Output("y");
  EXPECT_THAT(Import(m),
              HasSubstr("UNIMPLEMENTED: node \"r\" (Resize): input 1 \"s\" (scales) is a "
                        "graph input; only constants are supported here (fusionctl: "
                        "--fix NAME=VALUE gives an input its value)"));
  TestModel computed(10);
  computed.Input("x", {1, 1, 2, 2}).Input("s", {4}).Node("Abs", {"s"}, {"abs"});
  computed.Node("Resize", {"x", "abs"}, {"y"}, "r").Output("y");
  EXPECT_THAT(Import(computed), HasSubstr("input 1 \"abs\" (scales) is computed at run time"));
  TestModel known(10);
  known.Input("x", {1, 1, 2, 2}).Initializer("s", F({4}, {1, 1, 1, 2}));
  known.Node("Resize", {"x", "s"}, {"y"}).Output("y");
  EXPECT_THAT(Import(known), HasSubstr("y:f32[1,1,2,4]"));
}

TEST(Resize, CropsWhatARunSays) {
  TestModel m(19);
  HostTensor sizes(DType::kI64, {1});
  sizes.SetInt(0, 3);
  m.Input("x", {5}).Input("roi", {2}).Initializer("sizes", sizes);
  m.Node("Resize", {"x", "roi", "", "sizes"}, {"y"});
  m.AttrString("coordinate_transformation_mode", "tf_crop_and_resize").AttrString("mode", "linear");
  m.AttrFloat("extrapolation_value", -1).Output("y");
  const HostTensor x = F({5}, {0, 10, 20, 30, 40});
  EXPECT_THAT(ResultOf(m, {x, F({2}, {0.25, 0.75})}), ElementsAre(10, 20, 30));
  EXPECT_THAT(ResultOf(m, {x, F({2}, {0.5, 1.5})}), ElementsAre(20, 40, -1));
}

}  // namespace
}  // namespace fusion
