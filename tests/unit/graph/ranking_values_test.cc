// Values of the ops that rank, pool and count, where ONNX's own tests do not look.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/graph/build/builder.h"
#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

using Ints = std::vector<int64_t>;

std::vector<HostTensor> OutputsOf(std::string_view op, const HostTensor& x, AttrMap attrs,
                                  size_t outputs = 1) {
  GraphBuilder b;
  TensorId in = b.AddInput("x", {x.dtype(), Shape(x.dims())});
  auto ids =
      b.AddMultiNode(*FindOp(op), {in}, std::move(attrs), "", std::vector<std::string>(outputs));
  EXPECT_TRUE(ids.ok()) << ids.status();
  if (!ids.ok()) return {};
  for (TensorId id : *ids) b.MarkOutput(id);
  auto graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  auto none = [](TensorId) -> absl::StatusOr<const HostTensor*> { return NotFound("no weights"); };
  auto out = Evaluate(*graph, {x}, none);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : std::vector<HostTensor>();
}

std::vector<double> ValuesOf(std::string_view op, const HostTensor& x, AttrMap attrs,
                             size_t output = 0) {
  std::vector<double> values;
  std::vector<HostTensor> outputs = OutputsOf(op, x, std::move(attrs), output + 1);
  for (int64_t i = 0; !outputs.empty() && i < outputs[output].elements(); ++i) {
    values.push_back(outputs[output].GetDouble(i));
  }
  return values;
}

struct Ranked {
  std::string name;
  int64_t extent;
  int64_t k;
};

class TopKValues : public ::testing::TestWithParam<Ranked> {};

// Infinities, zeros of both signs and NaN, and everything several times.
TEST_P(TopKValues, AreThoseOfAStableSort) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> some = {1.5, HUGE_VAL, -2, kNan, 0.0, -HUGE_VAL, -0.0, kNan, 1.5, 7};
  const auto [name, extent, k] = GetParam();
  HostTensor x(DType::kF32, {extent});
  for (int64_t i = 0; i < extent; ++i) {
    x.SetDouble(i, some[static_cast<size_t>(i * i * 7 + i / 3) % some.size()]);
  }
  for (int64_t largest : {0, 1}) {
    Ints order(static_cast<size_t>(extent));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      if (largest == 1) std::swap(a, b);
      if (std::isnan(x.GetDouble(a))) return false;
      return std::isnan(x.GetDouble(b)) || x.GetDouble(a) < x.GetDouble(b);
    });
    std::vector<HostTensor> top = OutputsOf("TopK", x, {{"k", k}, {"largest", largest}}, 2);
    ASSERT_EQ(top.size(), 2U);
    ASSERT_EQ(top[1].elements(), k);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = order[static_cast<size_t>(i)];
      EXPECT_EQ(top[1].GetInt(i), at) << "largest " << largest << ", rank " << i;
      const double value = top[0].GetDouble(i);
      if (std::isnan(x.GetDouble(at))) {
        EXPECT_TRUE(std::isnan(value)) << value;
      } else {
        EXPECT_EQ(value, x.GetDouble(at));
        EXPECT_EQ(std::signbit(value), std::signbit(x.GetDouble(at)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TopKValues,
                         ::testing::Values(Ranked{"in_steps", 50, 12}, Ranked{"by_rank", 40, 40},
                                           Ranked{"in_blocks", 1203, 18},
                                           Ranked{"in_whole_blocks", 576, 36}),
                         [](const auto& param) { return param.param.name; });

TEST(TopKValues, OfLargeIntegersAreExact) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  HostTensor x(DType::kI64, {2, 8});
  const Ints row = {kHigh - 1, kLow, kHigh, 3, kLow + 1, kHigh, kLow, 4};
  for (size_t i = 0; i < 16; ++i) x.SetInt(static_cast<int64_t>(i), row[i % 8]);
  for (int64_t k : {2, 5}) {
    for (int64_t largest : {0, 1}) {
      auto top = OutputsOf("TopK", x, {{"k", k}, {"largest", largest}}, 2);
      ASSERT_EQ(top.size(), 2U);
      const Ints order = largest == 1 ? Ints{2, 5, 0, 7, 3} : Ints{1, 6, 4, 3, 7};
      for (int64_t i = 0; i < 2 * k; ++i) {
        const auto at = static_cast<size_t>(order[static_cast<size_t>(i % k)]);
        EXPECT_EQ(top[1].GetInt(i), static_cast<int64_t>(at));
        EXPECT_EQ(top[0].GetInt(i), row[at]);
      }
    }
  }
}

TEST(PoolValues, PositionsAreThoseOfTheWholeInput) {
  // Two channels of 2 by 3. The padding, which is as low as a number can be, never wins.
  const HostTensor x = HostTensor::FromValues(
      DType::kF32, {1, 2, 2, 3},
      {1.0, 5.0, 5.0, 2.0, 0.0, 3.0, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL, 4.0, -HUGE_VAL, -HUGE_VAL});
  AttrMap attrs = {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 0}}};
  EXPECT_EQ(ValuesOf("MaxPool", x, attrs, 1), (std::vector<double>{1, 1, 1, 1, 6, 7, 9, 7}));
  attrs.Set("storage_order", int64_t{1});
  EXPECT_EQ(ValuesOf("MaxPool", x, attrs, 1), (std::vector<double>{2, 2, 2, 2, 6, 8, 7, 8}));
}

TEST(PoolValues, OfNorms) {
  const HostTensor x = HostTensor::FromValues(DType::kF64, {1, 1, 4}, {3.0, -4.0, 0.0, -2.0});
  AttrMap attrs = {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 0}}};
  EXPECT_EQ(ValuesOf("LpPool", x, attrs), (std::vector<double>{3, 5, 4, 2}));
  attrs.Set("p", int64_t{1});
  EXPECT_EQ(ValuesOf("LpPool", x, attrs), (std::vector<double>{3, 7, 4, 2}));
  attrs.Set("p", int64_t{3});
  std::vector<double> cubes = ValuesOf("LpPool", x, attrs);
  ASSERT_EQ(cubes.size(), 4U);
  EXPECT_NEAR(cubes[1], std::cbrt(27 + 64), 1e-12);
  EXPECT_EQ(ValuesOf("GlobalLpPool", x, {{"p", int64_t{1}}}), std::vector<double>{9});
}

TEST(Values, DeterminantsOfSingularMatricesAreZero) {
  const HostTensor x = HostTensor::FromValues(
      DType::kF64, {3, 3, 3}, {0.0, 2.0, 1.0, 0.0, 5.0, 7.0, 0.0, 1.0, 1.0,    // a column of zeros
                               0.0, 0.0, 2.0, 3.0, 0.0, 0.0, 0.0, 4.0, 0.0,    // rows turned
                               1.0, 2.0, 0.0, 2.0, 4.0, 0.0, 0.0, 0.0, 1.0});  // one twice another
  EXPECT_EQ(ValuesOf("Det", x, {}), (std::vector<double>{0, 24, 0}));
}

TEST(Values, HalfOfATransformAndItsInverse) {
  const HostTensor x = HostTensor::FromValues(DType::kF64, {1, 3, 1}, {1.0, 2.0, 4.0});
  // With a zero behind.
  const std::vector<double> half =
      ValuesOf("DFT", x, {{"dft_length", int64_t{4}}, {"onesided", int64_t{1}}});
  const std::vector<double> expected = {7, 0, -3, -2, 3, 0};
  ASSERT_EQ(half.size(), expected.size());
  for (size_t i = 0; i < half.size(); ++i) EXPECT_NEAR(half[i], expected[i], 1e-12) << i;
  const HostTensor y =
      HostTensor::FromValues(DType::kF64, {1, 4, 2}, {7.0, 0.0, -3.0, -2.0, 3.0, 0.0, -3.0, 2.0});
  const std::vector<double> back = ValuesOf("DFT", y, {{"inverse", int64_t{1}}});
  const std::vector<double> signal = {1, 0, 2, 0, 4, 0, 0, 0};
  ASSERT_EQ(back.size(), signal.size());
  for (size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], signal[i], 1e-12) << i;
}

TEST(Values, NgramsAreCountedAndWeighed) {
  // Pairs 5,6 and 6,7 next to each other or one apart, and 5 alone.
  AttrMap attrs = {{"min_gram_length", int64_t{1}},  {"max_gram_length", int64_t{2}},
                   {"max_skip_count", int64_t{1}},   {"ngram_counts", Ints{0, 1}},
                   {"ngram_indexes", Ints{2, 0, 1}}, {"pool_int64s", Ints{5, 5, 6, 6, 7}},
                   {"mode", std::string("TF")}};
  const HostTensor x = HostTensor::FromValues(DType::kI64, {2, 5}, {5, 5, 6, 6, 7, 1, 7, 6, 5, 1});
  EXPECT_EQ(ValuesOf("TfIdfVectorizer", x, attrs), (std::vector<double>{3, 2, 2, 0, 0, 1}));
  attrs.Set("weights", std::vector<double>{0.5, 10, -1});
  attrs.Set("mode", std::string("IDF"));
  EXPECT_EQ(ValuesOf("TfIdfVectorizer", x, attrs), (std::vector<double>{0.5, 10, -1, 0, 0, -1}));
  attrs.Set("mode", std::string("TFIDF"));
  EXPECT_EQ(ValuesOf("TfIdfVectorizer", x, attrs), (std::vector<double>{1.5, 20, -2, 0, 0, -1}));
  // All at one coordinate.
  attrs.Set("ngram_indexes", Ints{0, 0, 0});
  attrs.Set("mode", std::string("TF"));
  EXPECT_EQ(ValuesOf("TfIdfVectorizer", x, attrs), (std::vector<double>{7, 1}));
}

}  // namespace
}  // namespace fusion
