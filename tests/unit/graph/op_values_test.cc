// Values of ops where a plausible formula gives another one.
#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/build/builder.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

std::vector<double> ValuesOf(const Graph& graph, const std::vector<HostTensor>& inputs,
                             size_t output = 0) {
  auto none = [](TensorId) -> absl::StatusOr<const HostTensor*> { return NotFound("no weights"); };
  auto out = Evaluate(graph, inputs, none);
  EXPECT_TRUE(out.ok()) << out.status();
  std::vector<double> values;
  for (int64_t i = 0; out.ok() && i < (*out)[output].elements(); ++i) {
    values.push_back((*out)[output].GetDouble(i));
  }
  return values;
}

std::vector<double> ValuesOf(const std::string& text, const std::vector<HostTensor>& inputs,
                             size_t output = 0) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? ValuesOf(*graph, inputs, output) : std::vector<double>();
}

// op(x) for each x, as f64.
std::vector<double> Apply(const std::string& op, std::initializer_list<double> x) {
  auto n = static_cast<int64_t>(x.size());
  return ValuesOf(StrCat("graph \"g\" {\n  %0 = input \"x\" : f64[", n, "]\n  %1 = ", op,
                         "(%0) : f64[", n, "]  \"\" @ \"\"\n  output %1\n}\n"),
                  {HostTensor::FromValues(DType::kF64, {n}, x)});
}

void ExpectClose(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], 1e-14 * std::fabs(expected[i])) << i;
  }
}

TEST(Values, DifferencesOfExponentialsDoNotCancel) {
  ExpectClose(Apply("Sinh", {1e-20, -1e-8, 0.3, -5}),
              {1e-20, std::sinh(-1e-8), std::sinh(0.3), std::sinh(-5.0)});
  for (const char* op : {"Elu", "Celu"}) {
    ExpectClose(Apply(op, {-1e-20, -1e-8, -0.3, -50, 2}),
                {-1e-20, std::expm1(-1e-8), std::expm1(-0.3), std::expm1(-50.0), 2});
  }
  double scale = 1.67326319217681884765625 * 1.05070102214813232421875;
  ExpectClose(Apply("Selu", {-1e-20, -1e-8}), {scale * -1e-20, scale * std::expm1(-1e-8)});
}

TEST(Values, HyperbolicFunctionsAreFiniteAsFarAsTheyCanBe) {
  // e^710 is infinite, half of it is not; far out the rounding of x / 2 shows in the result.
  std::vector<double> sinh = Apply("Sinh", {710.2, -710.2, HUGE_VAL, -HUGE_VAL, 1000});
  EXPECT_NEAR(sinh[0] / std::sinh(710.2), 1, 1e-12);
  EXPECT_NEAR(sinh[1] / std::sinh(-710.2), 1, 1e-12);
  EXPECT_EQ(sinh[2], HUGE_VAL);
  EXPECT_EQ(sinh[3], -HUGE_VAL);
  EXPECT_EQ(sinh[4], HUGE_VAL);
  std::vector<double> cosh = Apply("Cosh", {-710.2, 0, -HUGE_VAL, 0.5});
  EXPECT_NEAR(cosh[0] / std::cosh(710.2), 1, 1e-12);
  EXPECT_EQ(cosh[1], 1);
  EXPECT_EQ(cosh[2], HUGE_VAL);
  EXPECT_NEAR(cosh[3], std::cosh(0.5), 1e-15);
}

TEST(Values, MeanVarianceNormalizationAddsToTheDeviation) {
  // Deviation 1e-9: with 1e-9 more, half of it; 1e-9 more variance would leave 3e-5.
  std::vector<double> y =
      ValuesOf(R"(graph "g" {
  %0 = input "x" : f32[1,1,1,2]
  %1 = MeanVarianceNormalization(%0) : f32[1,1,1,2]  "" @ ""
  output %1
}
)",
               {HostTensor::FromValues(DType::kF32, {1, 1, 1, 2}, {-1e-9F, 1e-9F})});
  ASSERT_EQ(y.size(), 2U);
  EXPECT_NEAR(y[0], -0.5, 1e-6);
  EXPECT_NEAR(y[1], 0.5, 1e-6);
}

TEST(Values, NormsOfNothingLeaveZeros) {
  for (const char* p : {"1", "2"}) {
    EXPECT_EQ(ValuesOf(StrCat(R"(graph "g" {
  %0 = input "x" : f32[2,2]
  %1 = LpNormalization(%0) {axis=1, p=)",
                              p, R"(} : f32[2,2]  "" @ ""
  output %1
}
)"),
                       {HostTensor::FromValues(DType::kF32, {2, 2}, {0.0F, -0.0F, 0.0F, -2.0F})}),
              (std::vector<double>{0, 0, 0, -1}));
  }
}

TEST(Values, SamplesHalfwayAreTheEvenElementsInAnyNumberOfDims) {
  // Along the last dim at -0.5, 0.5, 1.5 and 2.5.
  EXPECT_EQ(ValuesOf(R"(graph "g" {
  %0 = input "x" : f32[1,1,1,1,3]
  %1 = input "grid" : f32[1,1,1,4,3]
  %2 = GridSample(%0, %1) {mode="nearest"} : f32[1,1,1,1,4]  "" @ ""
  output %2
}
)",
                     {HostTensor::FromValues(DType::kF32, {1, 1, 1, 1, 3}, {1.0F, 2.0F, 3.0F}),
                      HostTensor::FromValues(DType::kF32, {1, 1, 1, 4, 3},
                                             {-1.0F, 0.0F, 0.0F, -1.0F / 3, 0.0F, 0.0F, 1.0F / 3,
                                              0.0F, 0.0F, 1.0F, 0.0F, 0.0F})}),
            (std::vector<double>{1, 1, 3, 3}));
}

TEST(Values, AveragesOfOnesAreOne) {
  using Sizes = std::vector<int64_t>;
  HostTensor ones(DType::kF32, {1, 1, 9, 6});
  for (float& x : ones.data<float>()) x = 1;
  for (int64_t stride : {1, 2, 5}) {
    for (int64_t dilation : {1, 2, 3}) {
      for (int64_t ceil_mode : {0, 1}) {
        GraphBuilder b;
        TensorId x = b.AddInput("x", {DType::kF32, {1, 1, 9, 6}});
        b.MarkOutput(b.AddNode("AveragePool", {x},
                               {{"ceil_mode", ceil_mode},
                                {"dilations", Sizes{dilation, 1}},
                                {"kernel_shape", Sizes{3, 2}},
                                {"pads", Sizes{2, 1, 1, 0}},
                                {"strides", Sizes{stride, 2}}})
                         .value());
        std::vector<double> y = ValuesOf(*b.Build(), {ones});
        EXPECT_FALSE(y.empty());
        for (double v : y) EXPECT_NEAR(v, 1, 1e-6) << stride << dilation << ceil_mode;
      }
    }
  }
}

TEST(Values, ClipOfAnLstmLeavesTheCellState) {
  // x, h' and all weights but the biases (20, far beyond the clip) are 0; the cell state is 5. The
  // expected values are those of onnxruntime 1.31; with h(c) clipped to 1 the first were 0.5568.
  std::string text = R"(graph "g" {
  %0 = input "x" : f32[1,1,1]
  %1 = input "w" : f32[1,4,1]
  %2 = input "b" : f32[1,8]
  %3 = input "c" : f32[1,1,1]
  %4, %5, %6 = LSTM(%0, %1, %1, %2, -, %3) {clip=f(1)} : f32[1,1,1,1], f32[1,1,1], f32[1,1,1]  "", "", "" @ ""
  output %5
  output %6
}
)";
  std::vector<HostTensor> inputs = {
      HostTensor(DType::kF32, {1, 1, 1}), HostTensor(DType::kF32, {1, 4, 1}),
      HostTensor::FromValues(DType::kF32, {1, 8},
                             {20.0F, 20.0F, 20.0F, 20.0F, 0.0F, 0.0F, 0.0F, 0.0F}),
      HostTensor::FromValues(DType::kF32, {1, 1, 1}, {5.0F})};
  std::vector<double> hidden = ValuesOf(text, inputs, 0);
  std::vector<double> cell = ValuesOf(text, inputs, 1);
  ASSERT_EQ(hidden.size(), 1U);
  ASSERT_EQ(cell.size(), 1U);
  EXPECT_NEAR(hidden[0], 0.7307377, 1e-6);
  EXPECT_NEAR(cell[0], 4.2120628, 1e-6);
}

// Sums along two sequences of ones, of which the second has two: of few steps and of a Repeat, with
// lengths that are known and that a run gives.
TEST(Values, SequencesMayEndBeforeTheOthers) {
  for (const int64_t steps : {4, 20}) {
    for (const bool known : {true, false}) {
      const std::string text =
          StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[", steps, ",2,1]\n",
                 "  %1 = input \"w\" : f32[2,1,1]\n  %2 = input \"lengths\" : i32[2]\n",
                 "  %3, %4 = RNN(%0, %1, %1", known ? "" : ", -, -, %2",
                 ") {activations=\"Relu,Relu\", direction=\"bidirectional\"",
                 known ? StrCat(", sequence_lens=[", steps, ", 2]") : "", "} : f32[", steps,
                 ",2,2,1], f32[2,2,1]  \"\", \"\" @ \"\"\n  output %3\n  output %4\n}\n");
      HostTensor ones(DType::kF32, {steps, 2, 1});
      for (int64_t i = 0; i < ones.elements(); ++i) ones.SetDouble(i, 1);
      HostTensor lengths(DType::kI32, {2});
      lengths.SetInt(0, steps);
      lengths.SetInt(1, 2);
      const std::vector<HostTensor> inputs = {
          ones, HostTensor::FromValues(DType::kF32, {2, 1, 1}, {1.0F, 1.0F}), lengths};
      std::vector<double> all;
      for (int64_t t = 0; t < steps; ++t) {
        const auto done = static_cast<double>(t);
        all.insert(all.end(), {done + 1, t < 2 ? done + 1 : 0});                        // forward
        all.insert(all.end(), {static_cast<double>(steps - t), t < 2 ? 2 - done : 0});  // backwards
      }
      EXPECT_EQ(ValuesOf(text, inputs, 0), all) << steps << known;
      const auto whole = static_cast<double>(steps);
      EXPECT_EQ(ValuesOf(text, inputs, 1), (std::vector<double>{whole, 2, whole, 2}));
    }
  }
}

}  // namespace
}  // namespace fusion
