// Kernels that cast to and from floats of at most 8 bits and integers of less, against the
// evaluator: every code, every half, on every ISA this machine runs; and graphs of ops that draw
// numbers, look at bits or read at places that a run decides.
#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/build/text.h"
#include "core/tensor/compare.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/plan_interpreter.h"

namespace fusion {
namespace {

constexpr const char* kTypes[] = {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz",
                                  "f8e8m0",   "f6e2m3",     "f6e3m2", "f4e2m1",
                                  "i4",       "u4",         "i2",     "u2"};

// Outputs of kernels and evaluator for the same inputs.
void ExpectSame(const std::string& text, const std::vector<HostTensor>& inputs, bool exact) {
  auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  for (const std::string& name : RunnableDevices()) {
    const DeviceSpec device = DeviceNamed(name);
    auto model = MakePlan(*graph, device, {});
    ASSERT_TRUE(model.ok()) << model.status();
    PlanValues values = RandomPlanValues(*model, 1);
    if (!inputs.empty()) values.inputs = inputs;
    auto got = CompileAndRun(*model, device, values);
    ASSERT_TRUE(got.ok()) << got.status();
    auto wanted = EvaluatePlanned(*graph, *model, values);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    for (size_t o = 0; o < got->size(); ++o) {
      const HostTensor& a = (*got)[o];
      const HostTensor& b = (*wanted)[o];
      ASSERT_EQ(a.dtype(), b.dtype());
      ASSERT_EQ(a.elements(), b.elements());
      if (!exact) {
        const Difference d = Compare(a, b);
        EXPECT_TRUE(d.ok()) << name << ", output " << o << ": " << d.ToString();
        continue;
      }
      int wrong = 0;
      for (int64_t i = 0; i < a.elements(); ++i) {
        const double x = a.GetDouble(i);
        const double y = b.GetDouble(i);
        const bool same =
            (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
        if (same || wrong++ > 0) continue;
        ADD_FAILURE() << name << ", output " << o << ", element " << i << " is " << x << ", not "
                      << y;
      }
      EXPECT_EQ(wrong, 0) << name << ", output " << o;
    }
  }
}

TEST(NarrowKernels, EveryHalfIsCastAsTheEvaluatorCastsIt) {
  for (const char* from : {"f16", "f64"}) {
    HostTensor x(*ParseDType(from), {65536});
    for (int64_t i = 0; i < x.elements(); ++i) {
      // In f64: just beside the halves and the middles between them.
      const double nudge = from[1] == '1' || i % 3 == 0 ? 1 : i % 3 == 1 ? 1 + 1e-12 : 1 - 1e-12;
      x.SetDouble(i, HalfToDouble(static_cast<uint16_t>(i)) * nudge);
    }
    std::string text = StrCat("graph \"g\" {\n  %0 = input \"x\" : ", from, "[65536]\n");
    std::string outputs;
    int next = 1;
    for (const char* type : kTypes) {
      for (int saturate : {0, 1}) {
        StrAppend(&text, StrCat("  %", next, " = Cast(%0) {saturate=", saturate, ", to=\"", type,
                                "\"} : ", type, "[65536]  \"\" @ \"\"\n"));
        StrAppend(&outputs, StrCat("  output %", next, "\n"));
        ++next;
      }
    }
    ExpectSame(StrCat(text, outputs, "}\n"), {x}, /*exact=*/true);
  }
}

TEST(NarrowKernels, EveryCodeIsReadAsTheEvaluatorReadsIt) {
  std::string text = "graph \"g\" {\n";
  std::string nodes;
  std::string outputs;
  std::vector<HostTensor> inputs;
  const int count = std::size(kTypes);
  for (int t = 0; t < count; ++t) {
    // Bits that do not count among them.
    HostTensor codes(*ParseDType(kTypes[t]), {256});
    for (size_t i = 0; i < 256; ++i) codes.data<uint8_t>()[i] = static_cast<uint8_t>(i);
    inputs.push_back(std::move(codes));
    StrAppend(&text, StrCat("  %", t, " = input \"x", t, "\" : ", kTypes[t], "[256]\n"));
    StrAppend(&nodes, StrCat("  %", count + t, " = Cast(%", t,
                             ") {to=\"f32\"} : f32[256]  \"\" @ "
                             "\"\"\n"));
    StrAppend(&outputs, StrCat("  output %", count + t, "\n"));
  }
  ExpectSame(StrCat(text, nodes, outputs, "}\n"), inputs, /*exact=*/true);
}

struct NarrowCase {
  const char* name;
  const char* text;
  bool exact;
};
constexpr NarrowCase kNarrowGraphs[] = {
    {"moved_and_gathered", R"(graph "g" {
  %0 = input "x" : f32[7,19]
  %1 = Cast(%0) {to="f8e5m2"} : f8e5m2[7,19]  "" @ ""
  %2 = Transpose(%1) {perm=[1, 0]} : f8e5m2[19,7]  "" @ ""
  %3 = const "" : i64[3] {0, 18, 4}
  %4 = Gather(%2, %3) : f8e5m2[3,7]  "" @ ""
  %5 = Cast(%4) {to="bf16"} : bf16[3,7]  "" @ ""
  %6 = Cast(%0) {to="i4"} : i4[7,19]  "" @ ""
  %7 = Slice(%6) {axes=[1], ends=[18], starts=[1], steps=[2]} : i4[7,9]  "" @ ""
  output %2
  output %5
  output %7
}
)",
     true},
    {"rounded_to_and_back", R"(graph "g" {
  %0 = input "x" : f32[5,40]
  %1 = const "" : f32[] {0.03125}
  %2 = const "" : f8e4m3fn[] {0.0}
  %3 = QuantizeLinear(%0, %1, %2) : f8e4m3fn[5,40]  "" @ ""
  %4 = DequantizeLinear(%3, %1, %2) : f32[5,40]  "" @ ""
  output %4
}
)",
     true},
    {"blocks_of_i4", R"(graph "g" {
  %0 = input "x" : f32[9,24]
  %1 = weight "w" : i4[24,10]
  %2 = weight "s" : f32[3,10]
  %3 = weight "z" : i4[3,10]
  %4 = DequantizeLinear(%1, %2, %3) {axis=0, block_size=8} : f32[24,10]  "" @ ""
  %5 = MatMul(%0, %4) : f32[9,10]  "" @ ""
  output %5
}
)",
     false},
    {"bits", R"(graph "g" {
  %0 = input "x" : f32[3,37]
  %1 = input "y" : f64[3,37]
  %2 = input "h" : bf16[3,37]
  %3 = BitCast(%0) {to=6} : i32[3,37]  "" @ ""
  %4 = BitCast(%3) {to=1} : f32[3,37]  "" @ ""
  %5 = BitCast(%0) {to=12} : u32[3,37]  "" @ ""
  %6 = BitCast(%1) {to=13} : u64[3,37]  "" @ ""
  %7 = BitCast(%6) {to=11} : f64[3,37]  "" @ ""
  %8 = BitCast(%2) {to=5} : i16[3,37]  "" @ ""
  %9 = BitCast(%8) {to=16} : bf16[3,37]  "" @ ""
  output %3
  output %4
  output %5
  output %6
  output %7
  output %8
  output %9
}
)",
     true},
    {"random_numbers", R"(graph "g" {
  %0 = input "x" : f32[13,70]
  %1 = RandomUniformLike(%0) {seed=f(0x1.8p+1)} : f32[13,70]  "" @ ""
  %2 = Add(%0, %1) : f32[13,70]  "" @ ""
  %3 = RandomNormalLike(%0) {seed=f(0x1p+1)} : f32[13,70]  "" @ ""
  %4 = Bernoulli(%1) {seed=f(0x1p+0)} : f32[13,70]  "" @ ""
  output %2
  output %3
  output %4
}
)",
     false},
    {"padded_with_an_input", R"(graph "g" {
  %0 = input "x" : f32[5,19]
  %1 = input "v" : f32[1]
  %2 = Pad(%0, %1) {pads=[1, 0, -2, 3]} : f32[4,22]  "" @ ""
  output %2
}
)",
     true},
    {"crop", R"(graph "g" {
  %0 = input "x" : f32[9,11]
  %1 = const "" : f32[4] {0.25, -0.125, 0.75, 1.0}
  %2 = const "" : f32[4] {0.0, 0.0, 0.0, 0.0}
  %3 = input "shift" : f32[4]
  %4 = Mul(%3, %2) : f32[4]  "" @ ""
  %5 = Add(%4, %1) : f32[4]  "" @ ""
  %6 = Resize(%0, %5) {coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=f(0x1.4p+3), mode="linear", sizes=[5, 6]} : f32[5,6]  "" @ ""
  %7 = Resize(%0, %5) {coordinate_transformation_mode="tf_crop_and_resize", mode="nearest", sizes=[4, 7]} : f32[4,7]  "" @ ""
  output %6
  output %7
}
)",
     false},
    {"regions_with_as_many_samples_as_they_have_elements", R"(graph "g" {
  %0 = input "x" : f32[1,3,10,12]
  %1 = const "" : f32[3,4] {0.0, 0.0, 9.0, 9.0, 1.0, 2.0, 4.5, 8.25, 5.0, 5.0, 5.0, 5.0}
  %2 = const "" : i64[3] {0, 0, 0}
  %3 = RoiAlign(%0, %1, %2) {output_height=3, output_width=2} : f32[3,3,3,2]  "" @ ""
  output %3
}
)",
     false},
    {"regions_larger_than_the_image", R"(graph "g" {
  %0 = input "x" : f32[2,3,6,5]
  %1 = input "rois" : f32[7,4]
  %2 = const "" : i64[7] {0, 1, 1, 0, 0, 1, 0}
  %3 = RoiAlign(%0, %1, %2) {mode="max", output_height=2, output_width=3, spatial_scale=f(16)} : f32[7,3,2,3]  "" @ ""
  output %3
}
)",
     false},
    {"linear_attention_step_by_step", R"(graph "g" {
  %0 = input "q" : f32[2,20,12]
  %1 = input "k" : f32[2,20,6]
  %2 = input "v" : f32[2,20,10]
  %3 = input "s" : f32[2,2,3,5]
  %4 = input "d" : f32[2,20,2]
  %5 = input "b" : f32[2,20,2]
  %6 = Neg(%4) : f32[2,20,2]  "" @ ""
  %7 = Abs(%6) : f32[2,20,2]  "" @ ""
  %8 = Neg(%7) : f32[2,20,2]  "" @ ""
  %9 = Sigmoid(%5) : f32[2,20,2]  "" @ ""
  %10, %11 = LinearAttention(%0, %1, %2, %3, %8, %9) {kv_num_heads=2, q_num_heads=4} : f32[2,20,20], f32[2,2,3,5]  "", "" @ ""
  output %10
  output %11
}
)",
     false},
};

class NarrowGraphs : public ::testing::TestWithParam<NarrowCase> {};

TEST_P(NarrowGraphs, EqualTheEvaluator) { ExpectSame(GetParam().text, {}, GetParam().exact); }

INSTANTIATE_TEST_SUITE_P(Graphs, NarrowGraphs, ::testing::ValuesIn(kNarrowGraphs),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace fusion
