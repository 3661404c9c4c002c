// Kernels that move elements by transposition in registers, two apart, past the caches or in turns:
// for every ISA this machine runs, against the evaluator, on ragged shapes and special values.
#include <gtest/gtest.h>

#include "core/codegen/backend.h"
#include "core/device/host_isa.h"
#include "core/graph/build/text.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/kernel_harness.h"

namespace fusion {
namespace {

struct Case {
  const char* name;
  const char* graph;
  const char* source;  // what the generated code says where vectors have 16 lanes
};

constexpr Case kCases[] = {
    {"transpose", R"(graph "g" {
  %0 = input "x" : f32[3,37,53]
  %1 = Transpose(%0) {perm=[0,2,1]} : f32[3,53,37]  "" @ ""
  %2 = Tanh(%1) : f32[3,53,37]  "" @ ""
  output %2
}
)",
     "transpose_f32(turned"},
    {"transpose_of_whole_vectors", R"(graph "g" {
  %0 = input "x" : f32[64,48]
  %1 = input "y" : f32[48,64]
  %2 = Transpose(%0) {perm=[1,0]} : f32[48,64]  "" @ ""
  %3 = Mul(%2, %1) : f32[48,64]  "" @ ""
  output %3
}
)",
     "transpose_f32(turned"},
    {"two_transposed_and_one_not", R"(graph "g" {
  %0 = input "x" : f32[19,33]
  %1 = input "y" : f32[19,33]
  %2 = input "z" : f32[33,19]
  %3 = Add(%0, %1) : f32[19,33]  "" @ ""
  %4 = Transpose(%3) {perm=[1,0]} : f32[33,19]  "" @ ""
  %5 = Sub(%4, %2) : f32[33,19]  "" @ ""
  output %5
}
)",
     "transpose_f32(turned"},
    {"product_into_channels_first", R"(graph "g" {
  %0 = input "x" : f32[1,6,9,13]
  %1 = weight "w" : f32[35,6,3,3]
  %2 = weight "b" : f32[35]
  %3 = Conv(%0, %1, %2) {pads=[1,1,1,1]} : f32[1,35,9,13]  "" @ ""
  %4 = Relu(%3) : f32[1,35,9,13]  "" @ ""
  output %4
}
)",
     ""},
    {"columns_of_a_product", R"(graph "g" {
  %0 = input "q" : f32[2,29,40]
  %1 = input "k" : f32[2,45,40]
  %2 = Transpose(%1) {perm=[0,2,1]} : f32[2,40,45]  "" @ ""
  %3 = MatMul(%0, %2) : f32[2,29,45]  "" @ ""
  output %3
}
)",
     "copy_turned("},
    {"every_second", R"(graph "g" {
  %0 = input "x" : f32[2,5,21,39]
  %1 = MaxPool(%0) {kernel_shape=[3,3],pads=[1,1,1,1],strides=[2,2]} : f32[2,5,11,20]  "" @ ""
  output %1
}
)",
     "load_even_f32("},
    {"every_second_of_a_slice", R"(graph "g" {
  %0 = input "x" : f32[7,101]
  %1 = Slice(%0) {starts=[0],ends=[101],axes=[1],steps=[2]} : f32[7,51]  "" @ ""
  %2 = Exp(%1) : f32[7,51]  "" @ ""
  output %2
}
)",
     "load_even_f32("},
    {"steps_in_turns", R"(graph "g" {
  %0 = input "x" : f32[3,371]
  %1 = input "y" : f32[3,371]
  %2 = Tanh(%0) : f32[3,371]  "" @ ""
  %3 = Sigmoid(%2) : f32[3,371]  "" @ ""
  %4 = Add(%3, %1) : f32[3,371]  "" @ ""
  %5 = Exp(%4) : f32[3,371]  "" @ ""
  %6 = Erf(%5) : f32[3,371]  "" @ ""
  output %6
}
)",
     "_7 = "},
    {"steps_in_fewer_turns", R"(graph "g" {
  %0 = input "x" : f32[3,150]
  %1 = Tanh(%0) : f32[3,150]  "" @ ""
  %2 = Sigmoid(%1) : f32[3,150]  "" @ ""
  %3 = Exp(%2) : f32[3,150]  "" @ ""
  output %3
}
)",
     "_3 = "},
    {"few_long_rows_at_a_time", R"(graph "g" {
  %0 = input "x" : f32[61,700]
  %1 = weight "s" : f32[700]
  %2 = LayerNormalization(%0, %1) : f32[61,700]  "" @ ""
  output %2
}
)",
     "+= 2)"},
    {"folds_in_turns", R"(graph "g" {
  %0 = input "x" : f32[43,37]
  %1 = ReduceMax(%0) {axes=[0],keepdims=0} : f32[37]  "" @ ""
  %2 = ReduceSum(%0) {axes=[0],keepdims=0} : f32[37]  "" @ ""
  output %1
  output %2
}
)",
     "[u] = "},
    {"short_rows_together", R"(graph "g" {
  %0 = input "x" : f32[61,75]
  %1 = Softmax(%0) {axis=-1} : f32[61,75]  "" @ ""
  output %1
}
)",
     "quotient("},
    {"strided_points_of_a_convolution", R"(graph "g" {
  %0 = input "x" : f32[1,12,15,17]
  %1 = weight "w" : f32[21,12,1,1]
  %2 = Conv(%0, %1) {strides=[2,3]} : f32[1,21,8,6]  "" @ ""
  output %2
}
)",
     ""},
};

std::string SourceOf(const Schedule& schedule, const DeviceSpec& device) {
  auto source = FindBackend("cpu").value()->Emit(schedule, device, "fk_test");
  return source.ok() ? source->text : source.status().ToString();
}

class Moves : public ::testing::TestWithParam<Case> {};

TEST_P(Moves, KernelsEqualTheEvaluator) {
  auto graph = ParseGraph(GetParam().graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  auto whole = AsOneGroup(*program);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (Isa isa : kIsas) {
    if (!HostRuns(isa)) continue;
    const DeviceSpec device = DeviceNamed(StrCat("generic-", IsaName(isa)));
    std::vector<Choice> choices = EnumerateChoices(whole->group, device, {.limit = 4}, nullptr);
    ASSERT_FALSE(choices.empty());
    bool said = false;
    for (const Choice& choice : choices) {
      for (bool bitwise : {false, true}) {
        auto lowered = Lower(whole->group, choice, device, bitwise);
        ASSERT_TRUE(lowered.ok()) << lowered.status();
        said |= SourceOf(lowered->schedule, device).find(GetParam().source) != std::string::npos;
        auto report = CheckLowered(*whole, *lowered, device);
        ASSERT_TRUE(report.ok()) << IsaName(isa) << ": " << report.status();
        EXPECT_TRUE(report->verified) << IsaName(isa) << ": " << report->reason;
      }
    }
    if (isa >= Isa::kAvx512) {
      EXPECT_TRUE(said) << GetParam().source;
    }
  }
}

// With caches so small that results go past them, at addresses that are not all multiples of a
// vector.
TEST(StoresPastCaches, KernelsEqualTheEvaluator) {
  auto graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[67,333]
  %1 = input "y" : f32[333]
  %2 = Add(%0, %1) : f32[67,333]  "" @ ""
  output %2
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  auto whole = AsOneGroup(*program);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (Isa isa : kIsas) {
    if (!HostRuns(isa)) continue;
    DeviceSpec device = DeviceNamed(StrCat("generic-", IsaName(isa)));
    std::vector<Choice> choices = EnumerateChoices(whole->group, device, {}, nullptr);
    ASSERT_FALSE(choices.empty());
    auto lowered = Lower(whole->group, choices[0], device, false);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(SourceOf(lowered->schedule, device).find("sfence"), std::string::npos);
    for (MemoryLevel& level : device.levels) level.bytes = std::min<int64_t>(level.bytes, 65536);
    const std::string source = SourceOf(lowered->schedule, device);
    EXPECT_NE(source.find("store_past_f32("), std::string::npos);
    EXPECT_NE(source.find("sfence"), std::string::npos);
    auto report = CheckLowered(*whole, *lowered, device);
    ASSERT_TRUE(report.ok()) << IsaName(isa) << ": " << report.status();
    EXPECT_TRUE(report->verified) << IsaName(isa) << ": " << report->reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Moves, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace fusion
