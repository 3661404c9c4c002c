// Generated CPU kernels against the evaluator: the sample graphs on every ISA this machine runs,
// special values.
#include <gtest/gtest.h>

#include "core/graph/text.h"
#include "core/schedule/candidates.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/sample_graphs.h"

namespace fusion {
namespace {

class Kernels : public ::testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(Kernels, EqualTheEvaluator) {
  auto [index, device_name] = GetParam();
  auto graph = ParseGraph(kSampleGraphs[index].text);
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

INSTANTIATE_TEST_SUITE_P(
    All, Kernels,
    ::testing::Combine(::testing::Range(0, static_cast<int>(std::size(kSampleGraphs))),
                       ::testing::ValuesIn(RunnableDevices())),
    [](const auto& param) {
      std::string device = std::get<1>(param.param);
      std::replace(device.begin(), device.end(), '-', '_');
      return StrCat(kSampleGraphs[std::get<0>(param.param)].name, "_", device);
    });

}  // namespace
}  // namespace fusion
