// Matrix products with operands rounded to bf16 (core/rewrite/low_precision.h): kernels for every
// ISA this machine runs, against the evaluator of the rounded program and of the graph as it is.
#include <gtest/gtest.h>

#include "core/device/host_isa.h"
#include "core/graph/build/text.h"
#include "core/graph/program/half_precision.h"
#include "core/rewrite/low_precision.h"
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
  const char* operands;  // of the largest product, as plans say it
  // What is rounded is computed in the kernel, whose last places may round it the other way.
  bool computed = false;
};

constexpr Case kCases[] = {
    {"rows_and_odd_sums", R"(graph "g" {
  %0 = input "x" : f32[37,133]
  %1 = weight "w" : f32[133,71]
  %2 = MatMul(%0, %1) : f32[37,71]  "" @ ""
  output %2
}
)",
     " of bf16"},
    {"epilogue_and_prologue", R"(graph "g" {
  %0 = input "x" : f32[2,19,96]
  %1 = weight "w" : f32[96,80]
  %2 = weight "b" : f32[80]
  %3 = Tanh(%0) : f32[2,19,96]  "" @ ""
  %4 = MatMul(%3, %1) : f32[2,19,80]  "" @ ""
  %5 = Add(%4, %2) : f32[2,19,80]  "" @ ""
  %6 = Relu(%5) : f32[2,19,80]  "" @ ""
  output %6
}
)",
     " of bf16", true},
    {"transposed_weights", R"(graph "g" {
  %0 = input "x" : f32[33,64]
  %1 = weight "w" : f32[97,64]
  %2 = weight "b" : f32[97]
  %3 = Gemm(%0, %1, %2) {transB=1} : f32[33,97]  "" @ ""
  output %3
}
)",
     " of bf16"},
    {"tiles_and_a_rest", R"(graph "g" {
  %0 = input "x" : f32[45,149]
  %1 = weight "w" : f32[149,83]
  %2 = weight "b" : f32[83]
  %3 = MatMul(%0, %1) : f32[45,83]  "" @ ""
  %4 = Add(%3, %2) : f32[45,83]  "" @ ""
  output %4
}
)",
     " of bf16"},
    {"beside_a_product_in_f32", R"(graph "g" {
  %0 = input "y" : f32[8,40]
  %1 = weight "u" : f32[40,96]
  %2 = input "x" : f32[8,64]
  %3 = weight "w" : f32[64,96]
  %4 = MatMul(%2, %3) : f32[8,96]  "" @ ""
  %5 = MatMul(%0, %1) : f32[8,96]  "" @ ""
  %6 = Add(%4, %5) : f32[8,96]  "" @ ""
  output %6
}
)",
     " of bf16"},
    {"sums_over_heads", R"(graph "g" {
  %0 = input "x" : f32[4,45,40]
  %1 = weight "w" : f32[160,96]
  %2 = Transpose(%0) {perm=[1, 0, 2]} : f32[45,4,40]  "" @ ""
  %3 = Reshape(%2) {shape=[45, 160]} : f32[45,160]  "" @ ""
  %4 = MatMul(%3, %1) : f32[45,96]  "" @ ""
  output %4
}
)",
     " of bf16"},
    {"few_rows_of_tiles", R"(graph "g" {
  %0 = input "x" : f32[2,11,96]
  %1 = weight "w" : f32[96,200]
  %2 = MatMul(%0, %1) : f32[2,11,200]  "" @ ""
  output %2
}
)",
     " of bf16"},
    {"two_in_a_row", R"(graph "g" {
  %0 = input "x" : f32[24,72]
  %1 = weight "u" : f32[72,130]
  %2 = weight "d" : f32[130,72]
  %3 = MatMul(%0, %1) : f32[24,130]  "" @ ""
  %4 = Sigmoid(%3) : f32[24,130]  "" @ ""
  %5 = MatMul(%4, %2) : f32[24,72]  "" @ ""
  %6 = Add(%5, %0) : f32[24,72]  "" @ ""
  output %6
}
)",
     " of bf16", true},
    {"batches_of_weights", R"(graph "g" {
  %0 = input "x" : f32[3,17,45]
  %1 = weight "w" : f32[3,45,34]
  %2 = MatMul(%0, %1) : f32[3,17,34]  "" @ ""
  output %2
}
)",
     " of bf16"},
    {"one_row", R"(graph "g" {
  %0 = input "x" : f32[1,133]
  %1 = weight "w" : f32[133,71]
  %2 = MatMul(%0, %1) : f32[1,71]  "" @ ""
  output %2
}
)",
     " by columns of bf16"},
    {"few_rows_and_a_chain", R"(graph "g" {
  %0 = input "x" : f32[5,128]
  %1 = weight "g" : f32[128,96]
  %2 = weight "u" : f32[128,96]
  %3 = MatMul(%0, %1) : f32[5,96]  "" @ ""
  %4 = MatMul(%0, %2) : f32[5,96]  "" @ ""
  %5 = Sigmoid(%3) : f32[5,96]  "" @ ""
  %6 = Mul(%5, %4) : f32[5,96]  "" @ ""
  output %6
}
)",
     " by columns of bf16"},
};

class LowPrecision : public ::testing::TestWithParam<Case> {};

// What the program says with its roundings, special values included: no difference beyond those
// that any order of a sum makes, and the other way of rounding what is computed. Every device gets
// both operands in bf16, those without instructions for it too, and with and without leave to use
// such instructions.
TEST_P(LowPrecision, KernelsEqualTheEvaluatorOfTheRoundedProgram) {
  auto graph = ParseGraph(GetParam().graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  RoundProducts(DeviceNamed("generic-avx512-bf16"), &*program);
  EXPECT_EQ(OutputsOfRoundedFactors(*program), std::vector<bool>{GetParam().computed});
  auto whole = AsOneGroup(*program);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const bool both = std::string_view(GetParam().operands) == " of bf16";
  std::vector<std::pair<std::string, bool>> places;
  for (const std::string& name : InTurn(EveryRunnableDevice(), GetParam().name)) {
    for (bool flushes : {false, true}) places.emplace_back(name, flushes);
  }
  for (const auto& [name, flushes] : places) {
    const DeviceSpec device = DeviceNamed(name);
    whole->group.flushes = flushes;
    std::vector<Choice> choices = EnumerateChoices(whole->group, device, {.limit = 4}, nullptr);
    ASSERT_FALSE(choices.empty());
    for (const Choice& choice : choices) {
      auto lowered = Lower(whole->group, choice, device, false);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const std::string text = ToString(lowered->schedule);
      EXPECT_NE(text.find("pack 2"), std::string::npos);
      EXPECT_EQ(text.find(" flushing") != std::string::npos, both && flushes) << text;
      for (bool guard : {false, true}) {
        auto report = CheckLowered(*whole, *lowered, device, guard);
        ASSERT_TRUE(report.ok()) << name << ": " << report.status();
        EXPECT_TRUE(report->verified) << report->reason;
      }
    }
  }
}

// Whole plans, with weights packed before the first run: as exact as bf16, and not as exact as f32.
TEST_P(LowPrecision, PlansAreAsExactAsBf16) {
  auto graph = ParseGraph(GetParam().graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const std::string& name : InTurn(EveryRunnableDevice(), GetParam().name)) {
    const DeviceSpec device = DeviceNamed(name);
    auto model = MakePlan(*graph, device, {.numerics = Numerics::kFast});
    ASSERT_TRUE(model.ok()) << model.status();
    std::string tiles;
    for (const PlanGroup& group : model->plan.groups) tiles += group.tiles + "\n";
    const bool both = std::string_view(GetParam().operands) == " of bf16";
    const bool rounds = !both || device.isa >= Isa::kAvx512Bf16;
    EXPECT_EQ(tiles.find(GetParam().operands) != std::string::npos, rounds) << name << "\n"
                                                                            << tiles;
    const PlanValues values = RandomPlanValues(*model, 1);
    auto got = CompileAndRun(*model, device, values);
    ASSERT_TRUE(got.ok()) << got.status();
    auto wanted = EvaluatePlanned(*graph, *model, values);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    const Difference d = Compare((*got)[0], (*wanted)[0], RoundedTolerance(DType::kF32));
    EXPECT_TRUE(d.ok()) << name << ": " << d.ToString();
    EXPECT_EQ(d.max_rel > 1e-5, rounds) << name << ": " << d.ToString();
    // The roundings that the program has, and no others.
    auto rounded = EvaluateProgram(*model, values);
    ASSERT_TRUE(rounded.ok()) << rounded.status();
    const Difference own = Compare(
        (*got)[0], (*rounded)[0],
        GetParam().computed ? RoundedTolerance(DType::kF32) : DefaultTolerance(DType::kF32));
    EXPECT_TRUE(own.ok()) << name << ": " << own.ToString();
  }
}

// On the interpreter of schedules as well: layouts and conversions say the same without any kernel.
TEST_P(LowPrecision, InterpretedPlansAreAsExactAsBf16) {
  auto graph = ParseGraph(GetParam().graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto model = MakePlan(*graph, DeviceNamed("generic-avx512-bf16"), {.numerics = Numerics::kFast});
  ASSERT_TRUE(model.ok()) << model.status();
  const PlanValues values = RandomPlanValues(*model, 2);
  auto got = InterpretPlan(*model, values.inputs, values.weights);
  ASSERT_TRUE(got.ok()) << got.status();
  auto wanted = EvaluatePlanned(*graph, *model, values);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  const Difference d = Compare((*got)[0], (*wanted)[0], RoundedTolerance(DType::kF32));
  EXPECT_TRUE(d.ok()) << d.ToString();
  EXPECT_GT(d.max_rel, 1e-6);
  auto rounded = EvaluateProgram(*model, values);
  ASSERT_TRUE(rounded.ok()) << rounded.status();
  const Difference own =
      Compare((*got)[0], (*rounded)[0],
              GetParam().computed ? RoundedTolerance(DType::kF32) : DefaultTolerance(DType::kF32));
  EXPECT_TRUE(own.ok()) << own.ToString();
}

INSTANTIATE_TEST_SUITE_P(Cases, LowPrecision, ::testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

constexpr Case kNarrowCases[] = {
    {"i8_with_a_scale_a_column", R"(graph "g" {
  %0 = input "x" : f32[1,133]
  %1 = weight "w" : i8[133,71]
  %2 = weight "s" : f32[71]
  %3 = DequantizeLinear(%1, %2) {axis=1} : f32[133,71]  "" @ ""
  %4 = MatMul(%0, %3) : f32[1,71]  "" @ ""
  %5 = Relu(%4) : f32[1,71]  "" @ ""
  output %5
}
)",
     " by columns of i8"},
    {"i8_transposed_with_one_scale", R"(graph "g" {
  %0 = input "x" : f32[3,64]
  %1 = weight "w" : i8[97,64]
  %2 = const "s" : f32[] {0.0625}
  %3 = weight "b" : f32[97]
  %4 = DequantizeLinear(%1, %2) : f32[97,64]  "" @ ""
  %5 = Gemm(%0, %4, %3) {transB=1} : f32[3,97]  "" @ ""
  output %5
}
)",
     " by columns of i8"},
    {"bf16_cast_by_the_model", R"(graph "g" {
  %0 = input "x" : f32[5,96]
  %1 = weight "w" : bf16[96,77]
  %2 = Cast(%1) {to="f32"} : f32[96,77]  "" @ ""
  %3 = MatMul(%0, %2) : f32[5,77]  "" @ ""
  output %3
}
)",
     " by columns of bf16"},
    {"i8_around_a_zero_point_of_zero", R"(graph "g" {
  %0 = input "x" : f32[1,80]
  %1 = weight "w" : i8[80,64]
  %2 = weight "s" : f32[64]
  %3 = const "z" : i8[] {0}
  %4 = DequantizeLinear(%1, %2, %3) {axis=1} : f32[80,64]  "" @ ""
  %5 = MatMul(%0, %4) : f32[1,64]  "" @ ""
  output %5
}
)",
     " by columns of i8"},
    {"i8_transposed_of_one_row", R"(graph "g" {
  %0 = input "x" : f32[1,81]
  %1 = weight "w" : i8[67,81]
  %2 = const "s" : f32[] {0.0625}
  %3 = weight "b" : f32[67]
  %4 = DequantizeLinear(%1, %2) : f32[67,81]  "" @ ""
  %5 = Gemm(%0, %4, %3) {transB=1} : f32[1,67]  "" @ ""
  output %5
}
)",
     " by columns of i8"},
    {"bf16_transposed_of_one_row", R"(graph "g" {
  %0 = input "x" : f32[1,81]
  %1 = weight "w" : bf16[67,81]
  %2 = weight "b" : f32[67]
  %3 = Cast(%1) {to="f32"} : f32[67,81]  "" @ ""
  %4 = Gemm(%0, %3, %2) {transB=1} : f32[1,67]  "" @ ""
  output %4
}
)",
     " by columns of bf16"},
    {"i8_with_a_scale_a_row_stays", R"(graph "g" {
  %0 = input "x" : f32[1,80]
  %1 = weight "w" : i8[80,64]
  %2 = weight "s" : f32[80]
  %3 = DequantizeLinear(%1, %2) {axis=0} : f32[80,64]  "" @ ""
  %4 = MatMul(%0, %3) : f32[1,64]  "" @ ""
  output %4
}
)",
     ""},
    {"i8_with_many_rows_stays", R"(graph "g" {
  %0 = input "x" : f32[8,80]
  %1 = weight "w" : i8[80,64]
  %2 = weight "s" : f32[64]
  %3 = DequantizeLinear(%1, %2) {axis=1} : f32[80,64]  "" @ ""
  %4 = MatMul(%0, %3) : f32[8,64]  "" @ ""
  output %4
}
)",
     ""},
};

class NarrowWeights : public ::testing::TestWithParam<Case> {};

// Default numerics: as exact as with weights in f32.
TEST_P(NarrowWeights, PlansEqualTheEvaluator) {
  auto graph = ParseGraph(GetParam().graph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const std::string& name : InTurn(EveryRunnableDevice(), GetParam().name)) {
    const DeviceSpec device = DeviceNamed(name);
    auto model = MakePlan(*graph, device, {});
    ASSERT_TRUE(model.ok()) << model.status();
    std::string tiles;
    for (const PlanGroup& group : model->plan.groups) tiles += group.tiles + "\n";
    const std::string_view operands = GetParam().operands;
    EXPECT_EQ(tiles.find(" by columns of") != std::string::npos, !operands.empty()) << tiles;
    EXPECT_NE(tiles.find(operands), std::string::npos) << tiles;
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

INSTANTIATE_TEST_SUITE_P(Cases, NarrowWeights, ::testing::ValuesIn(kNarrowCases),
                         [](const auto& param) { return std::string(param.param.name); });

// Products that a custom op states, of factors that no pass has looked at.
struct Stated {
  const char* name;
  const char* inputs;
  const char* loop;
  bool pairs;  // of bf16: what fast plans may multiply with flushed denormals
};

constexpr Stated kStated[] = {
    // A vector of narrow elements has no columns, and none of its type go beside it.
    {"matrix_by_i8_vector", "f32[133,71] i8[133]",
     "f32[71] = for m:71 k:133 [m] = sum(%0[k, m], %1[k]) : mul(in0, cast.f32(in1))", false},
    {"i8_vector_by_matrix", "i8[133] f32[133,71]",
     "f32[71] = for m:71 k:133 [m] = sum(%0[k], %1[k, m]) : mul(cast.f32(in0), in1)", false},
    {"matrix_by_bf16_vector", "f32[133,71] bf16[133]",
     "f32[71] = for m:71 k:133 [m] = sum(%0[k, m], %1[k]) : mul(in0, cast.f32(in1))", false},
    {"bf16_vector_by_matrix", "bf16[133] f32[133,71]",
     "f32[71] = for m:71 k:133 [m] = sum(%0[k], %1[k, m]) : mul(cast.f32(in0), in1)", false},
    {"bf16_by_bf16", "bf16[13,64] bf16[64,37]",
     "f32[13,37] = for m:13 n:37 k:64 [m, n] = sum(%0[m, k], %1[k, n]) : mul(cast.f32(in0), "
     "cast.f32(in1))",
     true},
};

class StatedProducts : public ::testing::TestWithParam<Stated> {};

TEST_P(StatedProducts, HaveKernelsThatEqualTheEvaluator) {
  const std::vector<std::string_view> types = StrSplit(GetParam().inputs, ' ');
  auto program =
      ParseProgram(StrCat("program {\n  %0 = input 0 : ", types[0], "\n  %1 = input 1 : ", types[1],
                          "\n  %2 = Custom @0 : ", GetParam().loop, "\n  output %2\n}\n"));
  ASSERT_TRUE(program.ok()) << program.status();
  auto whole = AsOneGroup(*program);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const std::string& name : InTurn(EveryRunnableDevice(), GetParam().name)) {
    for (bool flushes : {false, true}) {
      whole->group.flushes = flushes;
      const DeviceSpec device = DeviceNamed(name);
      std::vector<Choice> choices = EnumerateChoices(whole->group, device, {.limit = 4}, nullptr);
      ASSERT_FALSE(choices.empty());
      for (const Choice& choice : choices) {
        auto lowered = Lower(whole->group, choice, device, false);
        ASSERT_TRUE(lowered.ok()) << name << ": " << lowered.status();
        const std::string text = ToString(lowered->schedule);
        EXPECT_EQ(text.find(" flushing") != std::string::npos, GetParam().pairs && flushes) << text;
        auto report = CheckLowered(*whole, *lowered, device, /*guard=*/false);
        ASSERT_TRUE(report.ok()) << name << ": " << report.status();
        EXPECT_TRUE(report->verified) << report->reason;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, StatedProducts, ::testing::ValuesIn(kStated),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace fusion
