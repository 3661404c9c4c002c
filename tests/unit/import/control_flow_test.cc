// If, Loop and Scan.
#include "core/import/bodies/control_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "core/graph/build/canonical.h"
#include "tests/support/imported.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

HostTensor Bool(bool value) {
  HostTensor out(DType::kBool, {});
  out.SetInt(0, value ? 1 : 0);
  return out;
}

HostTensor Int(int64_t value) {
  HostTensor out(DType::kI64, {});
  out.SetInt(0, value);
  return out;
}

TestModel Branch(const std::string& op) {
  TestModel body;
  body.Node(op, {"x"}, {op + "_x"}, op).Output(op + "_x");
  return body;
}

TEST(If, TakesTheBranchOfAConstantCondition) {
  for (bool taken : {true, false}) {
    TestModel m;
    m.Input("x", {3}).Initializer("c", Bool(taken));
    m.Node("If", {"c"}, {"y"}, "if");
    m.AttrGraph("then_branch", Branch("Neg")).AttrGraph("else_branch", Branch("Exp")).Output("y");
    EXPECT_EQ(ImportNamed(m), taken ? "if/then/Neg=Neg if=Identity y:f32[3]"
                                    : "if/else/Exp=Exp if=Identity y:f32[3]");
  }
}

TEST(If, ChoosesBetweenBothWhereARunDecides) {
  TestModel m;
  m.Input("x", {2}).Input("c", {}, DType::kBool).Node("If", {"c"}, {"y"}, "if");
  m.AttrGraph("then_branch", Branch("Neg")).AttrGraph("else_branch", Branch("Exp")).Output("y");
  EXPECT_THAT(ResultOf(m, {F({2}, {1, 2}), Bool(true)}), ElementsAre(-1, -2));
  EXPECT_THAT(ResultOf(m, {F({2}, {0, 0}), Bool(false)}), ElementsAre(1, 1));
}

TEST(If, RefusesShapesThatARunDecides) {
  TestModel m;
  TestModel shorter;
  shorter.Node("ReduceSum", {"x"}, {"s"}, "sum").Output("s");
  m.Input("x", {2}).Input("c", {}, DType::kBool).Node("If", {"c"}, {"y"}, "if");
  m.AttrGraph("then_branch", Branch("Neg")).AttrGraph("else_branch", shorter).Output("y");
  EXPECT_EQ(Import(m),
            "UNIMPLEMENTED: node \"if\" (If): the branches give f32[2] or f32[1], as values of a "
            "run decide; only "
            "results of one type are supported");
}

// A branch that does not fit may be one that is never taken.
TEST(If, SaysWhichInputsMayDecide) {
  TestModel wrong;
  wrong.Node("Transpose", {"x"}, {"t"}, "turn")
      .Attr("perm", std::vector<int64_t>{0, 1})
      .Output("t");
  TestModel m;
  m.Input("x", {2}).Input("rate", {}, DType::kI64).Initializer("wide", Int(16000));
  m.Node("Equal", {"rate", "wide"}, {"c"}, "is").Node("If", {"c"}, {"y"}, "if");
  m.AttrGraph("then_branch", Branch("Neg")).AttrGraph("else_branch", wrong).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("; whether a run takes this branch is not known: if input "
                                   "\"rate\" decides it, make that a constant (fusionctl: --fix "
                                   "NAME=VALUE)"));
}

TEST(If, NeedsBothBranches) {
  TestModel m;
  m.Input("x", {2}).Initializer("c", Bool(true)).Node("If", {"c"}, {"y"}, "if");
  m.AttrGraph("then_branch", Branch("Neg")).Output("y");
  EXPECT_EQ(Import(m), "INVALID_ARGUMENT: node \"if\" (If): attribute \"else_branch\" is missing");
}

// (i, going, v) -> (going, v * w + i, v): w is captured.
TestModel Accumulate() {
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
  body.Node("Mul", {"v", "w"}, {"scaled"}, "scale").Node("Cast", {"i"}, {"at"}, "cast");
  body.Attr("to", int64_t{onnx::TensorProto::FLOAT});
  body.Node("Add", {"scaled", "at"}, {"next"}, "add").Node("Identity", {"going"}, {"goes"});
  body.Node("Identity", {"v"}, {"seen"}).Output("goes").Output("next").Output("seen");
  return body;
}

TEST(Loop, IsWrittenOutWithWhatItCaptures) {
  TestModel m;
  m.Input("x", {2}).Input("w", {2}).Initializer("n", Int(3));
  m.Node("Loop", {"n", "", "x"}, {"last", "all"}, "loop").AttrGraph("body", Accumulate());
  m.Output("last").Output("all");
  EXPECT_THAT(ResultOf(m, {F({2}, {1, 2}), F({2}, {2, 3})}), ElementsAre(12, 59));
  m.graph()->mutable_output()->DeleteSubrange(0, 1);
  EXPECT_THAT(ResultOf(m, {F({2}, {1, 2}), F({2}, {2, 3})}), ElementsAre(1, 2, 2, 6, 5, 19));
  EXPECT_THAT(ImportNamed(m), AllOf(HasSubstr("loop/0/scale=Mul"), HasSubstr("loop/1/scale=Mul")));
}

TEST(Loop, EndsWhereItsConditionSaysSo) {
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
  body.Ints("one", {1}).Node("Less", {"i", "one"}, {"goes"}, "less");
  body.Node("Add", {"v", "v"}, {"next"}, "twice").Output("goes").Output("next");
  TestModel m;
  m.Input("x", {2}).Initializer("c", Bool(true));
  m.Node("Loop", {"", "c", "x"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  EXPECT_THAT(ResultOf(m, {F({2}, {1, 2})}), ElementsAre(4, 8));
}

// As a while loop of TensorFlow over a sequence: a counter is carried beside what is computed.
TEST(Loop, EndsWhereACarriedCounterMeetsItsLimit) {
  for (const int64_t limit : {3, 40}) {
    TestModel body;
    body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool);
    body.Input("at", {}, DType::kI64).Input("v", {1}).Input("end", {}, DType::kI64);
    body.Initializer("one", Int(1)).Initializer("step", F({1}, {1}));
    body.Node("Add", {"at", "one"}, {"later"}, "count").Node("Add", {"v", "step"}, {"next"}, "add");
    body.Node("Less", {"later", "end"}, {"goes"}, "less").Node("Identity", {"end"}, {"same"});
    body.Node("Identity", {"v"}, {"was"});
    body.Output("goes").Output("later").Output("next").Output("same").Output("was");
    TestModel m;
    m.Input("x", {1}).Initializer("c", Bool(true)).Initializer("zero", Int(0));
    m.Initializer("limit", Int(limit)).Initializer("many", Int(int64_t{1} << 62));
    m.Node("Loop", {"many", "c", "zero", "x", "limit"}, {"n", "y", "e", "all"}, "loop");
    m.AttrGraph("body", body).Output("y");
    EXPECT_THAT(ResultOf(m, {F({1}, {2})}), ElementsAre(2 + static_cast<double>(limit)));
    m.graph()->mutable_output(0)->set_name("all");
    EXPECT_THAT(Import(m), HasSubstr(StrCat("all:f32[", limit, ",1]")));
  }
}

TEST(Loop, KeepsWhatItHasWhereARunEndsIt) {
  // v doubles until it is more than 5, at most 6 times.
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {1});
  body.Initializer("five", F({1}, {5})).Node("Add", {"v", "v"}, {"next"}, "twice");
  body.Node("LessOrEqual", {"next", "five"}, {"goes"}, "less").Output("goes").Output("next");
  TestModel m;
  m.Input("x", {1}).Initializer("n", Int(6)).Initializer("c", Bool(true));
  m.Node("Loop", {"n", "c", "x"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  EXPECT_THAT(ResultOf(m, {F({1}, {1})}), ElementsAre(8));
  EXPECT_THAT(ResultOf(m, {F({1}, {0.03125})}), ElementsAre(2));
  EXPECT_THAT(ResultOf(m, {F({1}, {7})}), ElementsAre(14));
}

// Loop of Accumulate over x and w, `n` times.
TestModel Accumulated(const std::string& n) {
  TestModel m;
  m.Input("x", {2}).Input("w", {2});
  if (n.empty()) m.Input("n", {}, DType::kI64);
  if (!n.empty()) m.Initializer("n", Int(std::stoll(n)));
  m.Node("Loop", {"n", "", "x"}, {"last", "all"}, "loop").AttrGraph("body", Accumulate());
  return m;
}

TEST(Loop, OfManyPassesRepeatsItsBody) {
  TestModel m = Accumulated("40");
  m.Output("last").Output("all");
  EXPECT_EQ(ImportNamed(m),
            "loop=Repeat{body=repeat 40 {pass i64[], carried f32[2], whole f32[2], %3 = Mul(%1, "
            "%2), %4 = Cast(%0) {to=\"f32\"}, %5 = Add(%3, %4), %6 = Identity(%1), out %5, out "
            "%6}} loop=Identity loop=Identity last:f32[2] all:f32[40,2]");
  double last = 1;
  for (int i = 0; i < 40; ++i) last = last * 0.5 + i;
  const std::vector<double> out = ResultOf(m, {F({2}, {1, 2}), F({2}, {0.5, 1})});
  ASSERT_EQ(out.size(), 2U);
  EXPECT_NEAR(out[0], last, 1e-4);
  EXPECT_EQ(out[1], 2 + 39 * 20);
}

TEST(Loop, ARunMayDecideHowOften) {
  TestModel m = Accumulated("");
  m.Output("last").Output("all");
  EXPECT_THAT(Import(m), AllOf(HasSubstr("body=repeat 4096 must_end counted {pass i64[]"),
                               HasSubstr("last:f32[2] all:f32[4096,2] :i64[]")))
      << "as much room as there is for what is kept, and how much of it counts";
  for (int64_t n : {0, 1, 3}) {
    const auto out = ResultOf(m, {F({2}, {1, 2}), F({2}, {2, 3}), Int(n)});
    if (n == 0) {
      EXPECT_THAT(out, ElementsAre(1, 2));
    } else if (n == 1) {
      EXPECT_THAT(out, ElementsAre(2, 6));
    } else {
      EXPECT_THAT(out, ElementsAre(12, 59));
    }
  }
  m.graph()->mutable_output()->DeleteSubrange(0, 1);
  EXPECT_THAT(ResultOf(m, {F({2}, {1, 2}), F({2}, {2, 3}), Int(2)}), ElementsAre(1, 2, 2, 6));
}

TEST(Loop, ThatMakesNoPassKeepsWhatItHas) {
  for (const char* n : {"0", "-3"}) {
    TestModel m = Accumulated(n);
    m.Output("last").Output("all");
    EXPECT_THAT(Import(m), HasSubstr("last:f32[2] all:f32[0,2]"));
    EXPECT_THAT(ResultOf(m, {F({2}, {1, 2}), F({2}, {2, 3})}), ElementsAre(1, 2));
  }
}

TEST(Loop, KeepsWhatPassesGaveBeforeARunEndedIt) {
  // v doubles until it is more than 5; what it was is kept.
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {1});
  body.Initializer("five", F({1}, {5})).Node("Add", {"v", "v"}, {"next"}, "twice");
  body.Node("LessOrEqual", {"next", "five"}, {"goes"}, "less").Node("Identity", {"v"}, {"was"});
  body.Output("goes").Output("next").Output("was");
  for (const bool bounded : {false, true}) {
    TestModel m;
    m.Input("x", {1}).Input("c", {}, DType::kBool).Initializer("n", Int(6));
    m.Node("Loop", {bounded ? "n" : "", "c", "x"}, {"y", "all"}, "loop").AttrGraph("body", body);
    m.Output("all");
    EXPECT_THAT(ResultOf(m, {F({1}, {1}), Bool(true)}), ElementsAre(1, 2, 4));
    EXPECT_THAT(ResultOf(m, {F({1}, {9}), Bool(true)}), ElementsAre(9));
    EXPECT_THAT(ResultOf(m, {F({1}, {1}), Bool(false)}), ElementsAre());
  }
}

TEST(Loop, WhatChangesItsTypeIsWrittenOut) {
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {});
  body.Node("Concat", {"v", "x"}, {"next"}, "grow").Attr("axis", 0);
  body.Output("going").Output("next");
  TestModel m;
  m.Input("x", {2}).Initializer("n", Int(20));
  m.Node("Loop", {"n", "", "x"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("y:f32[42]"));
  *m.graph()->mutable_initializer(0)->mutable_raw_data() = std::string(Int(5000).byte_view());
  EXPECT_THAT(Import(m), HasSubstr("more than 4096 passes that carry what does not keep its type"));
}

TEST(Loop, WhoseBodyNeedsTheNumberOfThePassIsWrittenOut) {
  // Pads by as much as the number of the pass says, and sums that up.
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {});
  body.Ints("one", {1}).Node("Reshape", {"i", "one"}, {"shape"}, "shape");
  body.Node("Expand", {"x", "shape"}, {"many"}, "many");
  body.Node("ReduceSum", {"many"}, {"sum"}, "sum").Attr("keepdims", 0);
  body.Node("Add", {"v", "sum"}, {"next"}, "add").Output("going").Output("next");
  TestModel m(12);
  m.Input("x", {1}).Input("v", {}).Initializer("n", Int(18));
  m.Node("Loop", {"n", "", "v"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  EXPECT_THAT(ResultOf(m, {F({1}, {1}), F({}, {0})}), ElementsAre(17 * 18 / 2));
}

TEST(Loop, NodesOfABodyAreRounded) {
  // 10 * 0.7 is 7 as an f32; the product of the two is less.
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {1});
  body.Node("Mul", {"ten", "part"}, {"seven"}).Node("Floor", {"seven"}, {"whole"});
  body.Node("Add", {"v", "whole"}, {"next"}).Output("going").Output("next");
  for (const int64_t n : {3, 40}) {
    TestModel m;
    m.Input("v", {1}).Input("ten", {1}).Input("part", {1}).Initializer("n", Int(n));
    m.Node("Loop", {"n", "", "v"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
    EXPECT_THAT(ResultOf(m, {F({1}, {0}), F({1}, {10}), F({1}, {0.7F})}), ElementsAre(7 * n));
  }
}

TEST(Loop, WeightsThatABodyReadsAreNoPartOfTheKey) {
  std::set<std::string> keys;
  for (const float value : {1.F, 2.F}) {
    TestModel m;
    m.Input("x", {2}).Initializer("w", F({2}, {value, 5})).Initializer("n", Int(40));
    m.Node("Loop", {"n", "", "x"}, {"last", "all"}, "loop").AttrGraph("body", Accumulate());
    m.Output("last");
    auto graph = ImportOnnx(m.proto());
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto canonical = Canonicalise(*graph);
    ASSERT_TRUE(canonical.ok()) << canonical.status();
    EXPECT_EQ(canonical->weight_names, std::vector<std::string>{"w"});
    keys.insert(canonical->key_text);
  }
  EXPECT_EQ(keys.size(), 1U);
}

TEST(Loop, ThatEndsInTimeMayBeAskedForMore) {
  // v doubles until it is more than 5.
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {1});
  body.Initializer("five", F({1}, {5})).Node("Add", {"v", "v"}, {"next"}, "twice");
  body.Node("LessOrEqual", {"next", "five"}, {"goes"}, "less").Node("Identity", {"v"}, {"was"});
  body.Output("goes").Output("next").Output("was");
  TestModel m;
  m.Input("x", {1}).Input("n", {}, DType::kI64).Initializer("c", Bool(true));
  m.Node("Loop", {"n", "c", "x"}, {"y", "all"}, "loop").AttrGraph("body", body).Output("all");
  EXPECT_THAT(ResultOf(m, {F({1}, {1}), Int(1000000)}), ElementsAre(1, 2, 4));
}

TEST(Loop, IsNotMadeForEver) {
  TestModel m = Accumulated(StrCat(int64_t{1} << 40));
  m.Output("last");
  EXPECT_THAT(Import(m), HasSubstr("node \"loop\" (Loop): more than 2147483648 passes"));
  TestModel never;
  never.Input("x", {2}).Input("w", {2});
  never.Node("Loop", {"", "", "x"}, {"last", "all"}, "loop").AttrGraph("body", Accumulate());
  never.Output("last");
  EXPECT_THAT(Import(never), HasSubstr("neither a number of passes nor a condition"));
  never.Initializer("c", Bool(true));
  never.graph()->mutable_node(0)->set_input(1, "c");
  EXPECT_THAT(Import(never), HasSubstr("its condition always holds: it never ends"));
}

TEST(Loop, ReadsWhatARunGivesFromOutside) {
  // Loops within loops, each of which reads the state of the other and w.
  TestModel inner;
  inner.Input("j", {}, DType::kI64).Input("on", {}, DType::kBool).Input("u", {2});
  inner.Node("Mul", {"u", "w"}, {"scaled"}).Node("Add", {"scaled", "v"}, {"more"});
  inner.Output("on").Output("more");
  TestModel outer;
  outer.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
  outer.Node("Loop", {"n", "", "v"}, {"next"}, "inner").AttrGraph("body", inner);
  outer.Output("going").Output("next");
  TestModel m;
  m.Input("x", {2}).Input("w", {2}).Input("n", {}, DType::kI64);
  m.Node("Loop", {"n", "", "x"}, {"y"}, "loop").AttrGraph("body", outer).Output("y");
  // v -> v w w + v w + v, twice.
  EXPECT_THAT(ResultOf(m, {F({2}, {1, 2}), F({2}, {1, 2}), Int(2)}), ElementsAre(9, 98));
}

// A pass without nodes is not free: bodies within bodies would multiply.
TEST(Loop, CountsPassesWithoutNodes) {
  TestModel inner;
  inner.Input("j", {}, DType::kI64).Input("on", {}, DType::kBool).Input("u", {2});
  inner.Output("on").Output("u");
  TestModel outer;
  outer.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
  outer.Node("Loop", {"n", "", "v"}, {"w"}, "inner").AttrGraph("body", inner);
  outer.Output("going").Output("w");
  for (int depth = 0; depth < 3; ++depth) {
    TestModel next;
    next.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
    next.Node("Loop", {"n", "", "v"}, {"w"}, "inner").AttrGraph("body", outer);
    next.Output("going").Output("w");
    outer = next;
  }
  TestModel m;
  m.Input("x", {2}).Initializer("n", Int(16));
  m.Node("Loop", {"n", "", "x"}, {"y"}, "loop").AttrGraph("body", outer).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("more than 65536 nodes after its loops are written out"));
}

TEST(Loop, DoesNotMultiplyLongNames) {
  const std::string name(1 << 24, 'n');
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
  body.Node("Neg", {"v"}, {name}, "neg").Output("going").Output(name);
  TestModel m;
  m.Input("x", {2}).Initializer("n", Int(16));
  m.Node("Loop", {"n", "", "x"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("names have more than 134217728 bytes after loops"));
}

TEST(Loop, HasTheSameConstantsInEveryPass) {
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
  body.Node("Constant", {}, {"c"}, "two").AttrTensor("value", F({2}, {2, 2}));
  body.Initializer("d", F({2}, {1, 1})).Node("Mul", {"v", "c"}, {"scaled"}, "scale");
  body.Node("Add", {"scaled", "d"}, {"next"}, "add").Output("going").Output("next");
  TestModel m;
  m.Input("x", {2}).Initializer("n", Int(3));
  m.Node("Loop", {"n", "", "x"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  EXPECT_THAT(ResultOf(m, {F({2}, {1, 2})}), ElementsAre(15, 23));
  auto graph = ImportOnnx(m.proto());
  ASSERT_TRUE(graph.ok()) << graph.status();
  int constants = 0;
  for (const Tensor& t : graph->tensors())
    constants += t.type == TensorType{DType::kF32, Shape({2})} && t.value ? 1 : 0;
  EXPECT_EQ(constants, 2);
}

TEST(If, DoesNotFollowAFunctionThatCallsItselfFromABranch) {
  TestModel branch;
  branch.Node("Self", {"a"}, {"again"}, "call").Domain("d").Output("again");
  TestModel m;
  m.Input("x", {2}).Node("Self", {"x"}, {"y"}, "self").Domain("d").Output("y");
  m.Function("d", "Self", {"a"}, {"b"});
  m.Node("Constant", {}, {"c"}, "true").AttrTensor("value", Bool(true));
  m.Node("If", {"c"}, {"b"}, "if").AttrGraph("then_branch", branch);
  m.AttrGraph("else_branch", branch).End();
  m.proto().mutable_functions(0)->add_opset_import()->set_domain("d");
  m.proto().mutable_functions(0)->mutable_opset_import()->rbegin()->set_version(1);
  EXPECT_THAT(Import(m), HasSubstr("bodies are nested deeper than 64, or a function calls itself"));
}

TEST(Loop, NeedsItsCarriedValues) {
  TestModel m;
  m.Input("x", {2}).Input("w", {2}).Initializer("n", Int(2));
  m.Node("Loop", {"n", "", ""}, {"last", "all"}, "loop").AttrGraph("body", Accumulate());
  m.Output("last");
  EXPECT_EQ(Import(m),
            "INVALID_ARGUMENT: node \"loop\" (Loop): input 2 (a carried value) is absent but "
            "required");
}

TEST(Loop, SaysWhatABodyLacks) {
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Input("v", {2});
  body.Node("Add", {"v", "nowhere"}, {"next"}, "add").Output("going").Output("next");
  TestModel m;
  m.Input("x", {2}).Initializer("n", Int(2));
  m.Node("Loop", {"n", "", "x"}, {"y"}, "loop").AttrGraph("body", body).Output("y");
  EXPECT_EQ(Import(m),
            "INVALID_ARGUMENT: node \"loop\" (Loop): input 3 \"nowhere\" is given by no node, "
            "input or initializer");
  TestModel fewer;
  fewer.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Output("going");
  *m.graph()->mutable_node(0)->mutable_attribute(0)->mutable_g() = *fewer.graph();
  EXPECT_THAT(Import(m), HasSubstr("the body has 2 inputs and 1 outputs for 1 carried values"));
}

// Running sums of the columns of x, the last column first.
TEST(Scan, GoesAlongAnyAxisEitherWay) {
  TestModel body;
  body.Input("sum", {2}).Input("column", {2}).Node("Add", {"sum", "column"}, {"next"}, "add");
  body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
  TestModel m;
  m.Input("zero", {2}).Input("x", {2, 3}).Node("Scan", {"zero", "x"}, {"last", "all"}, "scan");
  m.AttrGraph("body", body).Attr("num_scan_inputs", 1);
  m.Attr("scan_input_axes", std::vector<int64_t>{-1});
  m.Attr("scan_input_directions", std::vector<int64_t>{1});
  m.Attr("scan_output_axes", std::vector<int64_t>{1}).Output("all");
  EXPECT_THAT(ResultOf(m, {F({2}, {0, 0}), F({2, 3}, {1, 2, 3, 4, 5, 6})}),
              ElementsAre(3, 5, 6, 6, 11, 15));
}

TEST(Scan, OfManyPassesRepeatsItsBody) {
  TestModel body;
  body.Input("sum", {2}).Input("column", {2}).Node("Add", {"sum", "column"}, {"next"}, "add");
  body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
  for (const int64_t backwards : {0, 1}) {
    TestModel m;
    m.Input("zero", {2}).Input("x", {2, 20}).Node("Scan", {"zero", "x"}, {"last", "all"}, "scan");
    m.AttrGraph("body", body).Attr("num_scan_inputs", 1);
    m.Attr("scan_input_axes", std::vector<int64_t>{-1});
    m.Attr("scan_input_directions", std::vector<int64_t>{backwards});
    m.Attr("scan_output_directions", std::vector<int64_t>{backwards});
    m.Attr("scan_output_axes", std::vector<int64_t>{-1}).Output("all").Output("last");
    EXPECT_THAT(Import(m), HasSubstr(backwards != 0 ? "repeat 20 {carried f32[2], element_from_end"
                                                    : "repeat 20 {carried f32[2], element f32"));
    HostTensor x(DType::kF32, {2, 20});
    for (int64_t i = 0; i < 40; ++i) x.SetDouble(i, static_cast<double>(i));
    const std::vector<double> sums = ResultOf(m, {F({2}, {100, 200}), x});
    ASSERT_EQ(sums.size(), 40U);
    EXPECT_EQ(sums[0], backwards != 0 ? 100 + 190 : 100);
    EXPECT_EQ(sums[19], backwards != 0 ? 100 + 19 : 100 + 190);
    EXPECT_EQ(sums[20], backwards != 0 ? 200 + 590 : 200 + 20);
  }
}

TEST(Scan, OfNothingKeepsItsState) {
  TestModel body;
  body.Input("sum", {2}).Input("row", {2}).Node("Add", {"sum", "row"}, {"next"}, "add");
  body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
  TestModel m;
  m.Input("zero", {2}).Input("x", {0, 2}).Node("Scan", {"zero", "x"}, {"last", "all"}, "scan");
  m.AttrGraph("body", body).Attr("num_scan_inputs", 1).Output("last").Output("all");
  EXPECT_THAT(Import(m), HasSubstr("last:f32[2] all:f32[0,2]"));
  EXPECT_THAT(ResultOf(m, {F({2}, {4, 5}), F({0, 2}, {})}), ElementsAre(4, 5));
}

TEST(Scan, NestsInAnIf) {
  TestModel body;
  body.Input("sum", {2}).Input("row", {2}).Node("Mul", {"row", "w"}, {"scaled"}, "mul");
  body.Node("Add", {"sum", "scaled"}, {"next"}, "add").Output("next");
  TestModel branch;
  branch.Node("Scan", {"zero", "x"}, {"last"}, "scan").AttrGraph("body", body);
  branch.Attr("num_scan_inputs", 1).Output("last");
  TestModel other;
  other.Node("Neg", {"zero"}, {"n"}).Output("n");
  TestModel m;
  m.Input("zero", {2}).Input("x", {2, 2}).Input("w", {2}).Initializer("c", Bool(true));
  m.Node("If", {"c"}, {"y"}, "if").AttrGraph("then_branch", branch);
  m.AttrGraph("else_branch", other).Output("y");
  EXPECT_THAT(ResultOf(m, {F({2}, {0, 0}), F({2, 2}, {1, 2, 3, 4}), F({2}, {10, 100})}),
              ElementsAre(40, 600));
  EXPECT_THAT(ImportNamed(m), HasSubstr("if/then/scan/1/mul=Mul"));
}

// A condition that is carried and costs nothing to follow is not followed for ever.
TEST(Loop, AConditionThatNeverEndsIsNotFollowed) {
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool);
  body.Input("flag", {}, DType::kBool).Input("sum", {2});
  body.Node("Add", {"sum", "x"}, {"next"}, "add");
  body.Node("Identity", {"flag"}, {"kept"}).Output("flag").Output("kept").Output("next");
  TestModel m;
  m.Input("x", {2}).Input("zero", {2}).Initializer("most", Int(int64_t{1} << 62));
  m.Initializer("yes", Bool(true));
  m.Node("Loop", {"most", "yes", "yes", "zero"}, {"last", "y"}, "loop").AttrGraph("body", body);
  m.Output("y");
  EXPECT_THAT(Import(m), HasSubstr("repeat"));
}

TEST(Loop, OfNoPassKeepsNothingWhateverItsCondition) {
  TestModel body;
  body.Input("i", {}, DType::kI64).Input("going", {}, DType::kBool).Initializer("five", Int(5));
  body.Node("Less", {"i", "five"}, {"goes"}).Node("Cast", {"i"}, {"seen"}).Attr("to", 1);
  body.Output("goes").Output("seen");
  TestModel m;
  m.Initializer("most", Int(0)).Initializer("yes", Bool(true));
  m.Node("Loop", {"most", "yes"}, {"all"}, "loop").AttrGraph("body", body).Output("all");
  EXPECT_THAT(Import(m), HasSubstr("all:f32[0]"));
}

// Opset 8: running sums of two batches, short ones written out, long ones repeated.
TEST(Scan, OfABatchIsOneForEach) {
  TestModel body(8);
  body.Input("sum", {2}).Input("row", {2}).Node("Add", {"sum", "row"}, {"next"}, "add");
  body.Node("Identity", {"next"}, {"seen"}).Output("next").Output("seen");
  for (const int64_t length : {2, 20}) {
    TestModel m(8);
    m.Input("zero", {2, 2}).Input("x", {2, length, 2});
    m.Node("Scan", {"", "zero", "x"}, {"last", "all"}, "scan").AttrGraph("body", body);
    m.Attr("num_scan_inputs", 1).Attr("directions", std::vector<int64_t>{1});
    m.Output("last").Output("all");
    EXPECT_THAT(Import(m), HasSubstr(StrCat("last:f32[2,2] all:f32[2,", length, ",2]")));
    HostTensor x(DType::kF32, {2, length, 2});
    for (int64_t i = 0; i < x.elements(); ++i) x.SetDouble(i, static_cast<double>(i));
    const double sum = static_cast<double>(length * (length - 1));  // of every other one
    const auto n = static_cast<double>(length);
    EXPECT_THAT(
        ResultOf(m, {F({2, 2}, {100, 200, 300, 400}), x}),
        ElementsAre(100 + sum, 200 + sum + n, 300 + sum + 2 * n * n, 400 + sum + n + 2 * n * n))
        << length;
  }
}

TEST(Scan, OfABatchHasOneSizeAndNoLengths) {
  TestModel body(8);
  body.Input("sum", {2}).Input("row", {2}).Node("Add", {"sum", "row"}, {"next"}).Output("next");
  auto with = [&](const std::string& lengths, int64_t batch) {
    TestModel m(8);
    m.Input("lengths", {2}, DType::kI64).Input("zero", {batch, 2}).Input("x", {2, 4, 2});
    m.Node("Scan", {lengths, "zero", "x"}, {"last"}, "scan").AttrGraph("body", body);
    m.Attr("num_scan_inputs", 1).Output("last");
    return Import(m);
  };
  EXPECT_THAT(with("lengths", 2), HasSubstr("node \"scan\" (Scan): input 0 (lengths of the"));
  EXPECT_THAT(with("", 3), HasSubstr("input 2 is f32[2,4,2], expected a batch of known size"));
}

// What goes wrong is said in the words of opset 8, which has no axes.
TEST(Scan, OfABatchHasASequence) {
  TestModel body(8);
  body.Input("sum", {}).Input("row", {}).Node("Add", {"sum", "row"}, {"next"}).Output("next");
  auto with = [&](int64_t scans) {
    TestModel m(8);
    m.Input("zero", {2}).Input("x", {2});
    m.Node("Scan", {"", "zero", "x"}, {"last"}, "scan").AttrGraph("body", body);
    m.Attr("num_scan_inputs", scans).Output("last");
    return Import(m);
  };
  EXPECT_THAT(with(1), HasSubstr("input 2 (scanned) is f32[2], expected [batch, sequence, ..]"));
  EXPECT_THAT(with(9), HasSubstr("attribute \"num_scan_inputs\" is 9 for 3 inputs, the first of"));
}

TEST(Scan, NeedsWhatItScans) {
  TestModel body;
  body.Input("sum", {2}).Input("row", {2}).Node("Add", {"sum", "row"}, {"next"}).Output("next");
  TestModel m;
  m.Input("zero", {2}).Node("Scan", {"zero", ""}, {"y"}, "scan").AttrGraph("body", body);
  m.Attr("num_scan_inputs", 1).Output("y");
  EXPECT_EQ(Import(m),
            "INVALID_ARGUMENT: node \"scan\" (Scan): input 1 (scanned) is absent but required");
}

TEST(Scan, ChecksItsAttributes) {
  for (int64_t scans : {int64_t{2}, int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max()}) {
    TestModel m;
    m.Input("x", {2, 3}).Node("Scan", {"x"}, {"y"}, "scan").AttrGraph("body", Branch("Neg"));
    m.Attr("num_scan_inputs", scans).Output("y");
    EXPECT_THAT(Import(m),
                HasSubstr(StrCat("attribute \"num_scan_inputs\" is ", scans, " for 1 inputs")));
  }
}

}  // namespace
}  // namespace fusion
