// Products of 8-bit integers as they are stored (core/rewrite/integer_products.h): kernels for
// every ISA this machine runs, against the evaluator of the graph as it is.
#include <gtest/gtest.h>

#include "core/device/host_isa.h"
#include "core/graph/build/text.h"
#include "core/rewrite/integer_products.h"
#include "core/schedule/tiles/candidates.h"
#include "core/tensor/compare.h"
#include "tests/support/dims.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"

namespace fusion {
namespace {

struct Case {
  const char* name;
  const char* graph;
  // Sums that the model has in f32: only where a unit multiplies bytes.
  bool real = false;
};

constexpr Case kCases[] = {
    {"zero_points_and_a_scale_a_column", R"(graph "g" {
  %0 = input "x" : u8[37,133]
  %1 = weight "w" : i8[133,71]
  %2 = const "sx" : f32[] {0.0078125}
  %3 = const "zx" : u8[] {117}
  %4 = weight "sw" : f32[71]
  %5 = DequantizeLinear(%0, %2, %3) : f32[37,133]  "" @ ""
  %6 = DequantizeLinear(%1, %4) {axis=1} : f32[133,71]  "" @ ""
  %7 = MatMul(%5, %6) : f32[37,71]  "" @ ""
  output %7
}
)",
     true},
    {"beside_a_product_in_f32", R"(graph "g" {
  %0 = input "x" : u8[8,64]
  %1 = weight "w" : i8[64,96]
  %2 = const "sx" : f32[] {0.0078125}
  %3 = const "zx" : u8[] {117}
  %4 = weight "sw" : f32[96]
  %5 = DequantizeLinear(%0, %2, %3) : f32[8,64]  "" @ ""
  %6 = DequantizeLinear(%1, %4) {axis=1} : f32[64,96]  "" @ ""
  %7 = MatMul(%5, %6) : f32[8,96]  "" @ ""
  %8 = input "y" : f32[8,40]
  %9 = weight "u" : f32[40,96]
  %10 = MatMul(%8, %9) : f32[8,96]  "" @ ""
  %11 = Add(%7, %10) : f32[8,96]  "" @ ""
  output %11
}
)",
     true},
    {"sums_over_heads_with_both_zero_points", R"(graph "g" {
  %0 = input "x" : u8[4,21,40]
  %1 = weight "w" : u8[160,71]
  %2 = const "sx" : f32[] {0.0078125}
  %3 = const "zx" : u8[] {117}
  %4 = const "sw" : f32[] {0.015625}
  %5 = const "zw" : u8[] {121}
  %6 = DequantizeLinear(%0, %2, %3) : f32[4,21,40]  "" @ ""
  %7 = Transpose(%6) {perm=[1, 0, 2]} : f32[21,4,40]  "" @ ""
  %8 = Reshape(%7) {shape=[21, 160]} : f32[21,160]  "" @ ""
  %9 = DequantizeLinear(%1, %4, %5) : f32[160,71]  "" @ ""
  %10 = MatMul(%8, %9) : f32[21,71]  "" @ ""
  output %10
}
)",
     true},
    {"sums_over_heads", R"(graph "g" {
  %0 = input "x" : u8[4,21,40]
  %1 = weight "w" : i8[160,71]
  %2 = const "sx" : f32[] {0.0078125}
  %3 = const "zx" : u8[] {117}
  %4 = weight "sw" : f32[71]
  %5 = DequantizeLinear(%0, %2, %3) : f32[4,21,40]  "" @ ""
  %6 = Transpose(%5) {perm=[1, 0, 2]} : f32[21,4,40]  "" @ ""
  %7 = Reshape(%6) {shape=[21, 160]} : f32[21,160]  "" @ ""
  %8 = DequantizeLinear(%1, %4) {axis=1} : f32[160,71]  "" @ ""
  %9 = MatMul(%7, %8) : f32[21,71]  "" @ ""
  output %9
}
)",
     true},
    {"both_zero_points_and_transposed_weights", R"(graph "g" {
  %0 = input "x" : i8[19,66]
  %1 = weight "w" : u8[97,66]
  %2 = const "s" : f32[] {0.0625}
  %3 = const "zx" : i8[] {-3}
  %4 = const "zw" : u8[] {121}
  %5 = weight "b" : f32[97]
  %6 = DequantizeLinear(%0, %2, %3) : f32[19,66]  "" @ ""
  %7 = DequantizeLinear(%1, %2, %4) : f32[97,66]  "" @ ""
  %8 = Gemm(%6, %7, %5) {transB=1} : f32[19,97]  "" @ ""
  %9 = Relu(%8) : f32[19,97]  "" @ ""
  output %9
}
)",
     true},
    {"quantised_in_the_kernel", R"(graph "g" {
  %0 = input "x" : f32[2,19,96]
  %1 = weight "w" : i8[96,80]
  %2 = const "sx" : f32[] {0.03125}
  %3 = const "zx" : u8[] {128}
  %4 = const "sw" : f32[] {0.0078125}
  %5 = QuantizeLinear(%0, %2, %3) : u8[2,19,96]  "" @ ""
  %6 = DequantizeLinear(%5, %2, %3) : f32[2,19,96]  "" @ ""
  %7 = DequantizeLinear(%1, %4) : f32[96,80]  "" @ ""
  %8 = MatMul(%6, %7) : f32[2,19,80]  "" @ ""
  %9 = Sigmoid(%8) : f32[2,19,80]  "" @ ""
  output %9
}
)",
     true},
    {"one_row", R"(graph "g" {
  %0 = input "x" : u8[1,131]
  %1 = weight "w" : i8[131,71]
  %2 = const "s" : f32[] {0.0078125}
  %3 = DequantizeLinear(%0, %2) : f32[1,131]  "" @ ""
  %4 = DequantizeLinear(%1, %2) : f32[131,71]  "" @ ""
  %5 = MatMul(%3, %4) : f32[1,71]  "" @ ""
  output %5
}
)",
     true},
    {"batches_of_weights", R"(graph "g" {
  %0 = input "x" : u8[3,17,45]
  %1 = weight "w" : i8[3,45,34]
  %2 = const "s" : f32[] {0.0078125}
  %3 = const "z" : u8[] {7}
  %4 = DequantizeLinear(%0, %2, %3) : f32[3,17,45]  "" @ ""
  %5 = DequantizeLinear(%1, %2) : f32[3,45,34]  "" @ ""
  %6 = MatMul(%4, %5) : f32[3,17,34]  "" @ ""
  output %6
}
)",
     true},
    {"matmul_integer_of_a_run", R"(graph "g" {
  %0 = input "x" : u8[33,70]
  %1 = input "w" : u8[70,45]
  %2 = input "zx" : u8[]
  %3 = input "zw" : u8[45]
  %4 = MatMulInteger(%0, %1, %2, %3) : i32[33,45]  "" @ ""
  output %4
}
)"},
    {"matmul_integer_without_zero_points", R"(graph "g" {
  %0 = input "x" : u8[5,64]
  %1 = weight "w" : i8[64,96]
  %2 = MatMulInteger(%0, %1) : i32[5,96]  "" @ ""
  output %2
}
)"},
    {"matmul_integer_of_signed_rows_with_zero_points_each", R"(graph "g" {
  %0 = input "x" : i8[2,9,23]
  %1 = weight "w" : i8[23,40]
  %2 = input "zx" : i8[9]
  %3 = weight "zw" : i8[40]
  %4 = MatMulInteger(%0, %1, %2, %3) : i32[2,9,40]  "" @ ""
  output %4
}
)"},
    {"quantised_by_what_a_run_finds", R"(graph "g" {
  %0 = input "x" : f32[21,64]
  %1 = weight "w" : i8[64,48]
  %2 = weight "sw" : f32[48]
  %3, %4, %5 = DynamicQuantizeLinear(%0) : u8[21,64], f32[], u8[]  "", "", "" @ ""
  %6 = MatMulInteger(%3, %1, %5) : i32[21,48]  "" @ ""
  %7 = Cast(%6) {to="f32"} : f32[21,48]  "" @ ""
  %8 = Mul(%4, %2) : f32[48]  "" @ ""
  %9 = Mul(%7, %8) : f32[21,48]  "" @ ""
  output %9
}
)"},
    {"windows_with_zero_points_around_them", R"(graph "g" {
  %0 = input "x" : u8[2,24,9,11]
  %1 = weight "w" : i8[40,24,3,3]
  %2 = const "sx" : f32[] {0.0078125}
  %3 = const "zx" : u8[] {117}
  %4 = weight "sw" : f32[40]
  %5 = weight "b" : f32[40]
  %6 = DequantizeLinear(%0, %2, %3) : f32[2,24,9,11]  "" @ ""
  %7 = DequantizeLinear(%1, %4) {axis=0} : f32[40,24,3,3]  "" @ ""
  %8 = Conv(%6, %7, %5) {pads=[1, 0, 1, 2]} : f32[2,40,9,11]  "" @ ""
  %9 = Relu(%8) : f32[2,40,9,11]  "" @ ""
  output %9
}
)",
     true},
    {"images_quantised_between_convolutions", R"(graph "g" {
  %0 = input "x" : f32[1,16,10,7]
  %1 = weight "v" : i8[32,16,3,3]
  %2 = weight "w" : i8[24,32,1,1]
  %3 = const "s" : f32[] {0.03125}
  %4 = const "z" : i8[] {-5}
  %5 = const "t" : f32[] {0.0078125}
  %6 = QuantizeLinear(%0, %3, %4) : i8[1,16,10,7]  "" @ ""
  %7 = DequantizeLinear(%6, %3, %4) : f32[1,16,10,7]  "" @ ""
  %8 = DequantizeLinear(%1, %5) : f32[32,16,3,3]  "" @ ""
  %9 = Conv(%7, %8) {pads=[1, 1, 1, 1], strides=[2, 2]} : f32[1,32,5,4]  "" @ ""
  %10 = QuantizeLinear(%9, %3, %4) : i8[1,32,5,4]  "" @ ""
  %11 = DequantizeLinear(%10, %3, %4) : f32[1,32,5,4]  "" @ ""
  %12 = DequantizeLinear(%2, %5) : f32[24,32,1,1]  "" @ ""
  %13 = Conv(%11, %12) : f32[1,24,5,4]  "" @ ""
  output %13
}
)",
     true},
    {"points_apart_with_both_zero_points", R"(graph "g" {
  %0 = input "x" : i8[1,19,12,9]
  %1 = weight "w" : u8[33,19,1,1]
  %2 = const "s" : f32[] {0.0625}
  %3 = const "zx" : i8[] {-3}
  %4 = const "zw" : u8[] {121}
  %5 = DequantizeLinear(%0, %2, %3) : f32[1,19,12,9]  "" @ ""
  %6 = DequantizeLinear(%1, %2, %4) : f32[33,19,1,1]  "" @ ""
  %7 = Conv(%5, %6) {strides=[2, 2]} : f32[1,33,6,5]  "" @ ""
  output %7
}
)",
     true},
    {"conv_integer_of_a_run", R"(graph "g" {
  %0 = input "x" : i8[1,8,7,6]
  %1 = input "w" : i8[21,8,3,2]
  %2 = input "zx" : i8[]
  %3 = input "zw" : i8[21]
  %4 = ConvInteger(%0, %1, %2, %3) {pads=[1, 1, 1, 0], dilations=[1, 2]} : i32[1,21,7,5]  "" @ ""
  output %4
}
)"},
};

std::string TilesOf(const PlannedModel& model) {
  std::string tiles;
  for (const PlanGroup& group : model.plan.groups) tiles += group.tiles + "\n";
  return tiles;
}

constexpr std::string_view kOperands = " of u8 by columns of i8";

class IntegerProducts : public ::testing::TestWithParam<Case> {};

// Whole plans, weights packed before the first run, guarded ones too: integers to the bit, what is
// made of them as exact as f32.
TEST_P(IntegerProducts, PlansEqualTheEvaluator) {
  auto graph = ParseGraph(GetParam().graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const std::string& name : InTurn(EveryRunnableDevice(), GetParam().name)) {
    const DeviceSpec device = DeviceNamed(name);
    for (Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kBitwise}) {
      auto model = MakePlan(*graph, device, {.numerics = numerics});
      ASSERT_TRUE(model.ok()) << model.status();
      const bool done = !GetParam().real ||
                        (device.other_types.contains(DType::kI8) && numerics != Numerics::kBitwise);
      EXPECT_EQ(TilesOf(*model).find(kOperands) != std::string::npos, done) << name << "\n"
                                                                            << TilesOf(*model);
      for (bool guard : {false, true}) {
        const PlanValues values = RandomPlanValues(*model, 1);
        auto got = CompileAndRun(*model, device, values, guard);
        ASSERT_TRUE(got.ok()) << got.status();
        auto wanted = EvaluatePlanned(*graph, *model, values);
        ASSERT_TRUE(wanted.ok()) << wanted.status();
        const Difference d = Compare((*got)[0], (*wanted)[0]);
        EXPECT_TRUE(d.ok()) << name << ": " << d.ToString();
      }
    }
  }
}

// On the interpreter of schedules as well: packs and sums say the same without any kernel.
TEST_P(IntegerProducts, InterpretedPlansEqualTheEvaluator) {
  auto graph = ParseGraph(GetParam().graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto model = MakePlan(*graph, DeviceNamed("generic-avx512-vnni"), {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_NE(TilesOf(*model).find(kOperands), std::string::npos) << TilesOf(*model);
  const PlanValues values = RandomPlanValues(*model, 2);
  auto got = InterpretPlan(*model, values.inputs, values.weights);
  ASSERT_TRUE(got.ok()) << got.status();
  auto wanted = EvaluatePlanned(*graph, *model, values);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  const Difference d = Compare((*got)[0], (*wanted)[0]);
  EXPECT_TRUE(d.ok()) << d.ToString();
}

INSTANTIATE_TEST_SUITE_P(Cases, IntegerProducts, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

// Whatever blocks and slices a choice has.
TEST(IntegerProductChoices, EveryChoiceOfOneKernelEqualsTheEvaluator) {
  auto graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : u8[45,203]
  %1 = weight "w" : i8[203,90]
  %2 = const "z" : u8[] {99}
  %3 = MatMulInteger(%0, %1, %2) : i32[45,90]  "" @ ""
  output %3
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  MultiplyIntegers(DeviceNamed("generic-avx2"), false, &*program);
  auto whole = AsOneGroup(*program);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const std::string& name : EveryRunnableDevice()) {
    const DeviceSpec device = DeviceNamed(name);
    std::vector<Choice> choices = EnumerateChoices(whole->group, device, {.limit = 6}, nullptr);
    ASSERT_GT(choices.size(), 1U);
    for (const Choice& choice : choices) {
      auto lowered = Lower(whole->group, choice, device, false);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      EXPECT_NE(ToString(lowered->schedule).find("pack 4"), std::string::npos);
      for (bool guard : {false, true}) {
        auto report = CheckLowered(*whole, *lowered, device, guard);
        ASSERT_TRUE(report.ok()) << name << ": " << report.status();
        EXPECT_TRUE(report->verified) << report->reason;
      }
    }
  }
}

// The largest and least products there are: what adds pairs in 16 bits saturates here.
TEST(IntegerProductExtremes, NothingSaturates) {
  auto graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : u8[8,515]
  %1 = weight "w" : i8[515,64]
  %2 = MatMulInteger(%0, %1) : i32[8,64]  "" @ ""
  output %2
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const std::string& name : EveryRunnableDevice()) {
    const DeviceSpec device = DeviceNamed(name);
    auto model = MakePlan(*graph, device, {});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_NE(TilesOf(*model).find(kOperands), std::string::npos) << TilesOf(*model);
    for (int weight : {-128, 127}) {
      PlanValues values = RandomPlanValues(*model, 1);
      std::ranges::fill(values.inputs[0].data<uint8_t>(), 255);
      std::ranges::fill(values.weights[0].data<int8_t>(), static_cast<int8_t>(weight));
      auto got = CompileAndRun(*model, device, values);
      ASSERT_TRUE(got.ok()) << got.status();
      for (int32_t y : (*got)[0].data<int32_t>()) ASSERT_EQ(y, 515 * 255 * weight) << name;
    }
  }
}

}  // namespace
}  // namespace fusion
