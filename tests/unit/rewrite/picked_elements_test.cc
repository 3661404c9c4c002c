#include "core/rewrite/picked_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/plan_cases.h"
#include "tests/support/plan_interpreter.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Loss {
  int64_t rows = 37;
  int64_t width = 8;
  int64_t classes = 70;
  bool bias = true;
  const char* picks = "GatherElements";
  bool returns_probabilities = false;
};

// The mean log-probability of one class of each row, of logits that a product makes.
std::string LossText(const Loss& of) {
  const std::string logits = StrCat("f32[", of.rows, ",", of.classes, "]  \"\" @ \"\"\n");
  std::string text = StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[", of.rows, ",", of.width,
                            "]\n  %1 = weight \"w\" : f32[", of.width, ",", of.classes,
                            "]\n  %2 = weight \"b\" : f32[", of.classes, "]\n");
  const bool column = std::string_view(of.picks) == "Gather";
  StrAppend(&text, StrCat("  %3 = input \"t\" : i64[", column ? "" : StrCat(of.rows, ",1"), "]\n"));
  StrAppend(&text, StrCat("  %4 = MatMul(%0, %1) : ", logits));
  StrAppend(&text, StrCat("  %5 = ", of.bias ? "Add(%4, %2)" : "Neg(%4)", " : ", logits));
  StrAppend(&text, StrCat("  %6 = LogSoftmax(%5) {axis=1} : ", logits));
  StrAppend(&text, StrCat("  %7 = ", of.picks, "(%6, %3) {axis=1} : f32[", of.rows,
                          column ? "" : ",1", "]  \"\" @ \"\"\n"));
  StrAppend(&text, "  %8 = ReduceMean(%7) {keepdims=0} : f32[]  \"\" @ \"\"\n  output %8\n");
  if (of.returns_probabilities) StrAppend(&text, "  output %6\n");
  return text + "}\n";
}

Program ProgramOf(const std::string& text) {
  auto program = BuildProgram(GraphOf(text));
  FUSION_CHECK(program.ok(), Message(program.status()));
  return *std::move(program);
}

bool Picks(Program* program) {
  const bool changed = PickBeforeStoring(program);
  EXPECT_TRUE(Verify(*program).ok()) << Verify(*program) << "\n" << ToString(*program);
  auto again = ParseProgram(ToString(*program));
  EXPECT_TRUE(again.ok()) << again.status();
  if (again.ok()) {
    EXPECT_EQ(ToString(*again), ToString(*program));
  }
  return changed;
}

bool ReadsAtIndices(const Program& program, ValueId v) {
  for (const LoopOp& op : program.ops) {
    for (size_t r = 0; r < op.inputs.size(); ++r) {
      if (op.kind != LoopOp::kLoop || op.inputs[r] != v) continue;
      for (const IndexExpr& e : op.body.reads[r].index) {
        if (e.indirect() >= 0) return true;
      }
    }
  }
  return false;
}

TEST(PickedElements, LogitsArePickedByAReduction) {
  for (const char* picks : {"GatherElements", "Gather"}) {
    for (const bool bias : {true, false}) {
      Program program = ProgramOf(LossText({.bias = bias, .picks = picks}));
      ASSERT_TRUE(Picks(&program));
      const std::string text = ToString(program);
      EXPECT_THAT(text, HasSubstr("Pick @"));
      for (size_t v = 0; v < program.values.size(); ++v) {
        if (program.values[v].producer == kNoLoop) continue;
        EXPECT_FALSE(ReadsAtIndices(program, static_cast<ValueId>(v))) << text;
      }
    }
  }
}

TEST(PickedElements, InputsAreReadAtThePlaces) {
  Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f32[37,150]
  %1 = input "t" : i64[37,1]
  %2 = LogSoftmax(%0) {axis=1} : f32[37,150]  "" @ ""
  %3 = GatherElements(%2, %1) {axis=1} : f32[37,1]  "" @ ""
  output %3
}
)");
  ASSERT_TRUE(Picks(&program));
  EXPECT_TRUE(ReadsAtIndices(program, program.inputs[0]));
  EXPECT_THAT(ToString(program), Not(HasSubstr("Pick @")));
}

TEST(PickedElements, WhatIsReturnedIsReadWhereItLies) {
  Program program = ProgramOf(LossText({.returns_probabilities = true}));
  EXPECT_FALSE(Picks(&program));
}

TEST(PickedElements, ManyPicksStay) {
  Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f32[10,8]
  %1 = input "i" : i64[40]
  %2 = Tanh(%0) : f32[10,8]  "" @ ""
  %3 = Gather(%2, %1) {axis=0} : f32[40,8]  "" @ ""
  output %3
}
)");
  EXPECT_FALSE(Picks(&program));
}

// Nothing else reduces the product along the rows that are picked.
TEST(PickedElements, AProductThatNothingElseReducesStays) {
  Program program = ProgramOf(R"(graph "g" {
  %0 = input "x" : f32[40,8]
  %1 = weight "w" : f32[8,16]
  %2 = input "i" : i64[2]
  %3 = MatMul(%0, %1) : f32[40,16]  "" @ ""
  %4 = Gather(%3, %2) {axis=0} : f32[2,16]  "" @ ""
  output %4
}
)");
  EXPECT_FALSE(Picks(&program));
}

// ---- plans ----

// Indices from both ends; rows with NaN, with logits that are infinite, and without any finite one.
void ExpectEqualsEvaluator(const std::string& text, Numerics numerics) {
  const Graph graph = GraphOf(text);
  auto model = MakePlan(graph, DeviceNamed("generic-avx512"), {.numerics = numerics});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->plan.skipped_passes.empty());
  PlanValues values = RandomPlanValues(*model, 3);
  for (HostTensor& input : values.inputs) {
    if (IsFloat(input.dtype())) continue;
    for (int64_t e = 0; e < input.elements(); ++e) input.SetInt(e, (e * 37) % 140 - 70);
  }
  const double inf = std::numeric_limits<double>::infinity();
  for (const double special : {0.0, inf, -inf, std::numeric_limits<double>::quiet_NaN()}) {
    values.inputs[0].SetDouble(5, special);
    auto got = InterpretPlan(*model, values.inputs, values.weights);
    auto wanted = EvaluatePlanned(graph, *model, values);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    for (size_t o = 0; o < wanted->size(); ++o) {
      for (int64_t e = 0; e < (*wanted)[o].elements(); ++e) {
        const double w = (*wanted)[o].GetDouble(e);
        const double g = (*got)[o].GetDouble(e);
        ASSERT_EQ(std::isnan(g), std::isnan(w)) << special << ", " << e;
        if (std::isfinite(w)) {
          ASSERT_NEAR(g, w, 2e-5 + 2e-4 * std::abs(w)) << special << ", " << e;
        }
      }
    }
  }
}

TEST(PickedElements, PlansEqualTheEvaluator) {
  for (const Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kBitwise}) {
    for (const char* picks : {"GatherElements", "Gather"}) {
      ExpectEqualsEvaluator(LossText({.picks = picks}), numerics);
      ExpectEqualsEvaluator(LossText({.bias = false, .picks = picks}), numerics);
    }
  }
}

// So many classes that a block streams them.
TEST(PickedElements, StreamedClassesEqualTheEvaluator) {
  ExpectEqualsEvaluator(LossText({.rows = 30, .width = 2, .classes = 2000}),
                        Numerics::kFp32Accumulate);
}

TEST(PickedElements, LogitsOfALossNeedNoMemory) {
  for (const char* picks : {"GatherElements", "Gather"}) {
    const Loss loss{.rows = 512, .width = 512, .classes = 16384, .picks = picks};
    auto model = MakePlan(GraphOf(LossText(loss)), DeviceNamed("amd-zen4", 1), {});
    ASSERT_TRUE(model.ok()) << model.status();
    const int64_t logits = loss.rows * loss.classes * 4;
    EXPECT_LT(RunBytes(model->plan, 1), logits / 4) << testing::PrintToString(Labels(*model));
  }
}

}  // namespace
}  // namespace fusion
