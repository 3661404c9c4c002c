// Passes that break programs or plans are left out, and said to be.
#include "core/rewrite/program_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_cases.h"
#include "tests/support/plan_interpreter.h"

namespace fusion {
namespace {

using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A product behind a loop whose state nobody reads.
constexpr const char* kGraph = R"(graph "g" {
  %0 = input "x" : f32[3,2]
  %1 = input "h" : f32[2]
  %2 = weight "w" : f32[2,4]
  %3, %4 = Repeat(%0, %1) {body=repeat 3 {element f32[2], carried f32[2], %2 = Add(%0, %1), %3 = Tanh(%2), out %3, out %3}} : f32[2], f32[3,2]  "", "" @ ""
  %5 = MatMul(%4, %2) : f32[3,4]  "" @ ""
  output %5
}
)";

bool Always(Numerics /*numerics*/) { return true; }

ProgramPass Pass(std::string name, std::function<void(Program*)> run) {
  return {
      std::move(name), Always,
      [run = std::move(run)](const DeviceSpec&, Numerics, const LeaveProduct&, Program* program) {
        run(program);
        return true;
      }};
}

ProgramPass Nothing(std::string name) {
  return Pass(std::move(name), [](Program*) {});
}

// Leaves ids that are no values any more.
ProgramPass Dangling() {
  return Pass("dangling", [](Program* program) { program->outputs[0] = kNoValue; });
}

// A sound program that no sound plan can be made of: its output does not fit the caller's memory.
ProgramPass Strided(std::string name) {
  return Pass(std::move(name), [](Program* program) {
    for (const LoopOp& op : program->ops) {
      if (op.kind != LoopOp::kRepeat) continue;
      program->values[static_cast<size_t>(program->outputs[0])].strides = {100, 1};
    }
  });
}

absl::StatusOr<PlannedModel> PlanWith(const std::vector<ProgramPass>& passes,
                                      Numerics numerics = Numerics::kFp32Accumulate) {
  return MakePlan(GraphOf(kGraph), DeviceNamed("generic-avx2", 2), {.numerics = numerics}, nullptr,
                  {}, {}, nullptr, passes);
}

void ExpectRight(const PlannedModel& model) {
  const PlanValues values = RandomPlanValues(model, 3);
  auto got = InterpretPlan(model, values.inputs, values.weights);
  auto wanted = EvaluatePlanned(GraphOf(kGraph), model, values);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  for (int64_t e = 0; e < (*wanted)[0].elements(); ++e) {
    EXPECT_NEAR((*got)[0].GetDouble(e), (*wanted)[0].GetDouble(e), 1e-5);
  }
}

TEST(ProgramPasses, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const ProgramPass& pass : ProgramPasses()) names.insert(pass.name);
  EXPECT_EQ(names.size(), ProgramPasses().size());
  auto model = PlanWith(ProgramPasses());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->plan.skipped_passes, IsEmpty());
}

TEST(ProgramPasses, OneThatBreaksTheProgramIsUndoneAndNamed) {
  auto model = PlanWith({Nothing("first"), Dangling(), Nothing("last")});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->plan.skipped_passes.size(), 1U) << "once, though the body had it too";
  EXPECT_EQ(model->plan.skipped_passes[0].pass, "dangling");
  EXPECT_THAT(model->plan.skipped_passes[0].reason, HasSubstr("output %-1"));
  ExpectRight(*model);
}

TEST(ProgramPasses, OneThatBreaksABodyAloneIsNamed) {
  auto body_only = Pass("body-only", [](Program* program) {
    for (const LoopOp& op : program->ops) {
      if (op.kind == LoopOp::kRepeat) return;
    }
    program->ops.clear();
  });
  auto model = PlanWith({body_only});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->plan.skipped_passes.size(), 1U);
  EXPECT_THAT(model->plan.skipped_passes[0].reason, HasSubstr("is made by no op"));
  ExpectRight(*model);
}

TEST(ProgramPasses, OneThatBreaksThePlanIsFoundAndNamed) {
  auto model = PlanWith({Nothing("first"), Strided("strided"), Nothing("last")});
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->plan.skipped_passes.size(), 1U);
  EXPECT_EQ(model->plan.skipped_passes[0].pass, "strided");
  EXPECT_THAT(model->plan.skipped_passes[0].reason, HasSubstr("inconsistent plan"));
  ExpectRight(*model);
}

TEST(ProgramPasses, WhereSeveralBreakThePlanItGoesWithoutAll) {
  auto model = PlanWith({Strided("one"), Strided("two"), Dangling()});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(
      model->plan.skipped_passes,
      UnorderedElementsAre(Field(&SkippedPass::pass, "one"), Field(&SkippedPass::pass, "two"),
                           Field(&SkippedPass::pass, "dangling")));
  ExpectRight(*model);
}

// What the caller did wrong is told at once, without looking for a pass that did it.
TEST(ProgramPasses, ErrorsOfTheRequestAreNoFaultOfAPass) {
  int runs = 0;
  const ProgramPass counted = Pass("counted", [&runs](Program*) { ++runs; });
  PlanOptions options;
  options.lock = std::make_shared<const PlanLock>();
  auto model = MakePlan(GraphOf(kGraph), DeviceNamed("generic-avx2", 2), options, nullptr, {}, {},
                        nullptr, {counted});
  EXPECT_FALSE(model.ok());
  EXPECT_FALSE(absl::IsInternal(model.status())) << model.status();
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace fusion
