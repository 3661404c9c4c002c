#include "core/graph/evaluate/test_values.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/build/text.h"

namespace fusion {
namespace {

int64_t LargestOf(const HostTensor& t) {
  int64_t largest = 0;
  for (int64_t i = 0; i < t.elements(); ++i) largest = std::max(largest, t.GetInt(i));
  return largest;
}

std::vector<HostTensor> InputsOf(const std::string& text, bool adversarial) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  auto program = BuildProgram(*graph);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? RandomInputs(*program, 1, adversarial) : std::vector<HostTensor>();
}

TEST(RandomInputs, IntegersOfAnImageAreNotOnlyZeroAndOne) {
  std::string text = R"(graph "g" {
  %0 = input "image" : u8[1,3,8,8]
  %1 = Cast(%0) {to="f32"} : f32[1,3,8,8]  "" @ ""
  %2 = const "" : f32[] {0x1p-8}
  %3 = Mul(%1, %2) : f32[1,3,8,8]  "" @ ""
  %4 = ReduceMean(%3) {axes=[2, 3]} : f32[1,3,1,1]  "" @ ""
  output %4
}
)";
  for (bool adversarial : {false, true}) {
    auto inputs = InputsOf(text, adversarial);
    ASSERT_EQ(inputs.size(), 1U);
    EXPECT_GT(LargestOf(inputs[0]), 1) << adversarial;
  }
}

TEST(RandomInputs, PaddingMasksAreZeroAndOneWhateverElseReadsThem) {
  std::string text = R"(graph "g" {
  %0 = input "scores" : f32[4,64]
  %1 = input "mask" : i64[1,64]
  %2 = const "" : f32[] {0x1p+0}
  %3 = const "" : f32[] {-10000}
  %4 = Cast(%1) {to="f32"} : f32[1,64]  "" @ ""
  %5 = Sub(%2, %4) : f32[1,64]  "" @ ""
  %6 = Mul(%5, %3) : f32[1,64]  "" @ ""
  %7 = Add(%0, %6) : f32[4,64]  "" @ ""
  %8 = ReduceSum(%1) {axes=[1]} : i64[1,1]  "" @ ""
  output %7
  output %8
}
)";
  for (bool adversarial : {false, true}) {
    auto inputs = InputsOf(text, adversarial);
    ASSERT_EQ(inputs.size(), 2U);
    EXPECT_EQ(LargestOf(inputs[1]), 1) << adversarial;
  }
}

}  // namespace
}  // namespace fusion
