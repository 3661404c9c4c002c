// Guarded builds of kernels: right on what fits, and a fault that says where on what does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/codegen/backend.h"
#include "core/graph/build/text.h"
#include "core/schedule/tiles/candidates.h"
#include "core/tensor/compare.h"
#include "tests/support/dims.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/sample_graphs.h"
#include "tests/support/split_lowering.h"
#include "tests/support/stream_cases.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr bool kGuarded = true;

// The widest vectors of this machine, and the narrowest.
std::vector<std::string> Ends() {
  const std::vector<std::string> all = RunnableDevices();
  return all.size() == 1 ? all : std::vector<std::string>{all.front(), all.back()};
}

class GuardedKernels : public ::testing::TestWithParam<SampleGraph> {};

// No access of a right kernel leaves a tensor or a buffer, and checking changes no result.
TEST_P(GuardedKernels, EqualTheEvaluator) {
  auto graph = ParseGraph(GetParam().text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto whole = AsOneGroup(BuildProgram(*graph).value());
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const std::string& name : Ends()) {
    const DeviceSpec device = DeviceNamed(name);
    std::vector<Choice> choices = EnumerateChoices(whole->group, device, {.limit = 8}, nullptr);
    ASSERT_FALSE(choices.empty());
    for (const Choice* choice : {&choices.front(), &choices.back()}) {
      auto lowered = Lower(whole->group, *choice, device, false);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      auto report = CheckLowered(*whole, *lowered, device, kGuarded);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_TRUE(report->verified) << report->reason;
      if (choices.size() == 1) break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, GuardedKernels, ::testing::ValuesIn(kSampleGraphs),
                         [](const auto& param) { return param.param.name; });

// Workspace between phases.
TEST(GuardedSplitKernels, EqualTheEvaluator) {
  int made = 0;
  for (const StreamCase& c : kStreamCases) {
    if (c.kind == Streamed::kStream || ++made > 4) continue;
    auto whole = AsOneGroup(BuildProgram(ParseGraph(c.graph).value()).value());
    ASSERT_TRUE(whole.ok()) << whole.status();
    const DeviceSpec device = DeviceNamed(RunnableDevices().back(), 2);
    auto lowered = LowerSplit(*whole, DimOf(whole->group.smg, c.extent), 3, device, 0);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    auto report = CheckLowered(*whole, *lowered, device, kGuarded);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->verified) << report->reason;
  }
}

// A plan with its guarded kernels, whose threads are one.
class GuardedRuns : public ::testing::Test {
 protected:
  void Plan(const char* text) {
    auto graph = ParseGraph(text);
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto model = MakePlan(*graph, device_, {.guard = true});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = std::make_unique<PlannedModel>(*std::move(model));
    values_ = RandomPlanValues(*model_, 1);
  }
  // Of the plan as it is by now.
  absl::StatusOr<std::vector<HostTensor>> Run() {
    ASSIGN_OR_RETURN(auto executor, CompilePlan(*model_, device_, {}, kGuarded));
    RETURN_IF_ERROR(
        executor->Prepare([&](int i) { return &values_.weights[static_cast<size_t>(i)]; }));
    return executor->Run(values_.inputs);
  }

  const DeviceSpec device_ = DeviceNamed(RunnableDevices().back());
  std::unique_ptr<PlannedModel> model_;
  PlanValues values_;
};

// Seven rows of x, of which the schedule says that there are nine.
TEST_F(GuardedRuns, ATensorThatIsTooShortIsNamed) {
  Plan(R"(graph "g" {
  %0 = input "x" : f32[9,20]
  %1 = input "y" : f32[9,20]
  %2 = Add(%0, %1) : f32[9,20]  "" @ ""
  %3 = Exp(%2) : f32[9,20]  "" @ ""
  output %3
}
)");
  ASSERT_TRUE(Run().ok());
  const int x = model_->plan.inputs[0];
  PlanTensor& tensor = model_->plan.tensors[static_cast<size_t>(x)];
  tensor.dims[0] = 7;
  tensor.bytes = 7 * 20 * 4;
  values_.inputs[0] = HostTensor(DType::kF32, {7, 20});
  const absl::Status fault = Run().status();
  EXPECT_EQ(fault.code(), absl::StatusCode::kInternal);
  const PlanKernel& kernel = model_->plan.kernels[0];
  EXPECT_THAT(std::string(fault.message()),
              AllOf(HasSubstr(StrCat("kernel ", kernel.symbol, " (Add+Exp), group 0: ")),
                    HasSubstr("out of bounds of tensor 0 (p0): element"),
                    HasSubstr("of 140, computing \"add exp\"")));
  const std::optional<RunFault> place = RunFaultOf(fault);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->group, 0);
  EXPECT_EQ(place->tensor, x);
}

// A row too few of what a product reads, here by way of a copy.
TEST_F(GuardedRuns, AnOperandOfAProductThatIsTooShortIsNamed) {
  Plan(R"(graph "g" {
  %0 = input "x" : f32[6,20]
  %1 = input "y" : f32[20,64]
  %2 = MatMul(%0, %1) : f32[6,64]  "" @ ""
  output %2
}
)");
  ASSERT_TRUE(Run().ok());
  // The product itself has no way around the bounds.
  auto source =
      (*FindBackend("cpu"))->Emit(model_->kernels[0].schedule, device_, "fk_test", {.guard = true});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(source->text,
              AllOf(HasSubstr("Guarded<const typename F::B> b, Guarded<typename F::C> c"),
                    ::testing::Not(HasSubstr("* __restrict"))));
  PlanTensor& tensor = model_->plan.tensors[static_cast<size_t>(model_->plan.inputs[0])];
  tensor.dims[0] = 5;
  tensor.bytes = 5 * 20 * 4;
  values_.inputs[0] = HostTensor(DType::kF32, {5, 20});
  EXPECT_THAT(std::string(Run().status().message()),
              AllOf(HasSubstr("(MatMul), group 0: out of bounds of tensor "),
                    HasSubstr("of 100, computing \"")));
}

TEST_F(GuardedRuns, AnIndexOutOfRangeIsTheCallersFault) {
  Plan(R"(graph "g" {
  %0 = weight "table" : f32[9,33]
  %1 = input "ids" : i64[4]
  %2 = Gather(%0, %1) {axis=0} : f32[4,33]  "" @ ""
  %3 = Exp(%2) : f32[4,33]  "" @ ""
  output %3
}
)");
  for (int i = 0; i < 4; ++i) values_.inputs[0].SetInt(i, -9);  // the first from the end
  ASSERT_TRUE(Run().ok());
  values_.inputs[0].SetInt(2, 9);
  const absl::Status fault = Run().status();
  EXPECT_EQ(fault.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(fault.message()),
              AllOf(HasSubstr("(Gather+Exp), group 0: index 9 into tensor "),
                    HasSubstr("out of range; expected -9..8")));
  // Each run begins anew.
  values_.inputs[0].SetInt(2, 8);
  EXPECT_TRUE(Run().ok());
}

}  // namespace
}  // namespace fusion
