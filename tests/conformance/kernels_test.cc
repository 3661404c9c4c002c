// Generated CPU kernels against the evaluator: the sample graphs on every ISA this machine runs,
// special values.
#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "core/schedule/tiles/candidates.h"
#include "core/tensor/compare.h"
#include "tests/support/dims.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/sample_plans.h"
#include "tests/support/split_lowering.h"
#include "tests/support/stream_cases.h"
#include "tests/support/window_cuts.h"

namespace fusion {
namespace {

// Every case with each of the devices that it is tested on in this run.
template <typename Case>
std::vector<std::tuple<Case, std::string>> OnDevices(const std::vector<Case>& cases) {
  std::vector<std::tuple<Case, std::string>> out;
  for (const Case& c : cases) {
    for (std::string& device : InTurn(RunnableDevices(), c.name)) {
      out.emplace_back(c, std::move(device));
    }
  }
  return out;
}

class Kernels : public ::testing::TestWithParam<std::tuple<SampleGraph, std::string>> {};

TEST_P(Kernels, EqualTheEvaluator) {
  auto [sample, device_name] = GetParam();
  auto graph = ParseGraph(sample.text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  auto whole = AsOneGroup(*program);
  ASSERT_TRUE(whole.ok()) << whole.status();
  DeviceSpec device = DeviceNamed(device_name);
  std::vector<Choice> choices = EnumerateChoices(whole->group, device, {.limit = 8}, nullptr);
  ASSERT_FALSE(choices.empty());
  for (const Choice& choice : choices) {
    auto lowered = Lower(whole->group, choice, device, false);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    auto report = CheckLowered(*whole, *lowered, device);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->verified) << report->reason;
  }
}

void ExpectEqualsTheEvaluator(const WholeProgram& whole, const Lowered& lowered,
                              const DeviceSpec& device) {
  auto report = CheckLowered(whole, lowered, device);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->verified) << report->reason;
}

class Plans : public ::testing::TestWithParam<std::tuple<SampleGraph, Numerics>> {};

TEST_P(Plans, EqualTheEvaluator) {
  const auto& [sample, numerics] = GetParam();
  auto graph = ParseGraph(sample.text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const std::string& name : InTurn(RunnableDevices(), sample.name)) {
    const DeviceSpec device = DeviceNamed(name);
    auto model = MakePlan(*graph, device, {.numerics = numerics});
    ASSERT_TRUE(model.ok()) << model.status();
    const PlanValues values = RandomPlanValues(*model, 1);
    auto got = CompileAndRun(*model, device, values);
    ASSERT_TRUE(got.ok()) << got.status();
    auto wanted = EvaluatePlanned(*graph, *model, values);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    for (size_t o = 0; o < got->size(); ++o) {
      Difference d = Compare((*got)[o], (*wanted)[o]);
      EXPECT_TRUE(d.ok()) << name << ", output " << o << ": " << d.ToString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, Plans,
                         ::testing::Combine(::testing::ValuesIn(kSamplePlans),
                                            ::testing::Values(Numerics::kFp32Accumulate,
                                                              Numerics::kBitwise)),
                         [](const auto& param) {
                           const bool bitwise = std::get<1>(param.param) == Numerics::kBitwise;
                           return StrCat(std::get<0>(param.param).name, bitwise ? "_bitwise" : "");
                         });

class StreamedKernels : public ::testing::TestWithParam<std::tuple<StreamCase, std::string>> {};

// Partial results that are corrected from tile to tile, also where values are NaN or infinite.
TEST_P(StreamedKernels, EqualTheEvaluator) {
  auto [c, device_name] = GetParam();
  auto graph = ParseGraph(c.graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto whole = AsOneGroup(BuildProgram(*graph).value());
  ASSERT_TRUE(whole.ok()) << whole.status();
  DeviceSpec device = DeviceNamed(device_name);
  std::vector<Choice> choices = EnumerateChoices(whole->group, device, {.limit = 1}, nullptr);
  ASSERT_FALSE(choices.empty());
  DimId dim = DimOf(whole->group.smg, c.extent);
  std::erase_if(choices[0].grid, [&](const GridDim& g) { return g.dim == dim; });
  std::shared_ptr<const StreamedGroup> form = StreamGroup(whole->group, dim);
  ASSERT_NE(form, nullptr);
  auto lowered = Lower(whole->group, choices[0].Streaming(form, 5), device, false);
  if (!lowered.ok()) {  // packed columns are read panel by panel
    lowered = Lower(whole->group, choices[0].Streaming(form, c.extent), device, false);
  }
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  ExpectEqualsTheEvaluator(*whole, *lowered, device);
}

class SplitKernels : public ::testing::TestWithParam<std::tuple<StreamCase, std::string>> {};

// Partial results of parts in workspace and their merge in a second phase.
TEST_P(SplitKernels, EqualTheEvaluator) {
  auto [c, device_name] = GetParam();
  if (c.kind == Streamed::kStream) GTEST_SKIP() << "nothing is reduced";
  auto graph = ParseGraph(c.graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto whole = AsOneGroup(BuildProgram(*graph).value());
  ASSERT_TRUE(whole.ok()) << whole.status();
  DeviceSpec device = DeviceNamed(device_name, 2);
  DimId dim = DimOf(whole->group.smg, c.extent);
  auto lowered = LowerSplit(*whole, dim, 3, device, 0);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  ExpectEqualsTheEvaluator(*whole, *lowered, device);
}

class WindowKernels : public ::testing::TestWithParam<std::tuple<WindowCase, std::string>> {};

// Blocks that compute their halos, also of padding and where values are NaN or infinite.
TEST_P(WindowKernels, EqualTheEvaluator) {
  auto [c, device_name] = GetParam();
  WholeProgram whole = WholeOf(c);
  DeviceSpec device = DeviceNamed(device_name, 2);
  std::vector<Choice> choices = WindowTilings(whole.group, device);
  ASSERT_FALSE(choices.empty());
  // The last ones cut every dim, read windows in place and gather them.
  constexpr size_t kMostChoices = 3;
  if (choices.size() > kMostChoices) {
    choices.erase(choices.begin(), choices.end() - kMostChoices);
  }
  for (const Choice& choice : choices) {
    auto lowered = Lower(whole.group, choice, device, false);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    auto report = CheckLowered(whole, *lowered, device);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->verified) << report->reason;
  }
}

std::vector<StreamCase> StreamedCases() {
  std::vector<StreamCase> cases;
  for (const StreamCase& c : kStreamCases) {
    if (c.kind != Streamed::kRefused) cases.push_back(c);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, StreamedKernels, ::testing::ValuesIn(OnDevices(StreamedCases())),
                         [](const auto& param) {
                           std::string device = std::get<1>(param.param);
                           std::replace(device.begin(), device.end(), '-', '_');
                           return StrCat(std::get<0>(param.param).name, "_", device);
                         });

INSTANTIATE_TEST_SUITE_P(All, WindowKernels,
                         ::testing::Combine(::testing::ValuesIn(kWindowCases),
                                            ::testing::Values(RunnableDevices().back())),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param).name);
                         });

INSTANTIATE_TEST_SUITE_P(All, SplitKernels,
                         ::testing::Combine(::testing::ValuesIn(StreamedCases()),
                                            ::testing::Values(RunnableDevices().back())),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param).name);
                         });

INSTANTIATE_TEST_SUITE_P(All, Kernels,
                         ::testing::ValuesIn(OnDevices<SampleGraph>({std::begin(kSampleGraphs),
                                                                     std::end(kSampleGraphs)})),
                         [](const auto& param) {
                           std::string device = std::get<1>(param.param);
                           std::replace(device.begin(), device.end(), '-', '_');
                           return StrCat(std::get<0>(param.param).name, "_", device);
                         });

}  // namespace
}  // namespace fusion
