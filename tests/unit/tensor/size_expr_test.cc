#include "core/tensor/size_expr.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace fusion {
namespace {

const std::vector<std::vector<int64_t>> kPoints = {{11, 509}, {13, 503}, {17, 499}, {19, 491},
                                                   {23, 487}, {29, 479}, {31, 467}};

std::optional<SizeExpr> FitOf(const std::function<int64_t(int64_t, int64_t)>& size) {
  std::vector<int64_t> values;
  for (const auto& p : kPoints) values.push_back(size(p[0], p[1]));
  return FitSize(kPoints, values);
}

TEST(SizeExpr, EqualTermsAreAddedUpAndZerosGo) {
  SizeExpr size = SizeExpr::Sum({{2, {1, 0}}, {3, {}}, {-2, {0, 1}}, {5, {1}}});
  EXPECT_EQ(size.ToString(), "s1*5 + 3");
  EXPECT_EQ((size - size).ToString(), "0");
  EXPECT_TRUE((size - SizeExpr::Sum({{5, {1}}})).is_static());
  EXPECT_EQ(SizeExpr::Sum({{1, {1}}}).AsSymbol(), 1);
  EXPECT_EQ(size.AsSymbol(), -1);
  EXPECT_EQ(size.symbols(), 2);
}

TEST(SizeExpr, TextNamesSymbols) {
  SizeExpr size = SizeExpr::Sum({{64, {0, 1}}, {-1, {0}}, {-3, {}}});
  EXPECT_EQ(size.ToString({"batch", "seq"}), "batch*seq*64 - batch - 3");
}

TEST(SizeExpr, EvaluatesAndSaysWhatIsTooLarge) {
  SizeExpr size = SizeExpr::Sum({{64, {0, 1}}, {-1, {}}});
  EXPECT_EQ(size.Evaluate({3, 5}), 959);
  EXPECT_EQ(SizeExpr(7).Evaluate({}), 7);
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(size.Evaluate({huge, huge}), std::nullopt);
}

// Neighbours in a sorted list of points have all but one symbol in common.
TEST(FitSize, PointsMayComeInAnyOrder) {
  std::vector<std::vector<int64_t>> points;
  std::vector<int64_t> values;
  for (int64_t a = 1; a <= 5; ++a) {
    for (int64_t b = 1; b <= 5; ++b) {
      points.push_back({a, b});
      values.push_back(1000 - a - 3 * b);
    }
  }
  const std::optional<SizeExpr> fit = FitSize(points, values);
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->ToString(), "-s0 - s1*3 + 1000");
}

// 70 products of four symbols up to degree four: all sets of four are tried.
TEST(FitSize, OfFourSymbolsIsSoonDone) {
  std::vector<std::vector<int64_t>> points;
  std::vector<int64_t> values;
  std::vector<int64_t> none;
  for (int64_t i = 0; i < 24; ++i) {
    const std::vector<int64_t> p = {11 + i * i % 7, 13 + i * 5 % 11, 17 + i * 3 % 13, 2 + i % 5};
    points.push_back(p);
    values.push_back(p[0] * p[1] * p[2] * p[3] - 7 * p[1] * p[2] + 5 * p[3] - 9);
    none.push_back(p[0] % 3 + p[1] / 2);
  }
  const std::optional<SizeExpr> fit = FitSize(points, values);
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->ToString(), "s0*s1*s2*s3 - s1*s2*7 + s3*5 - 9");
  EXPECT_FALSE(FitSize(points, none).has_value());
}

// (a - 2) * (b - 1): rows and columns of a window of 3 x 2 that stays inside.
TEST(SizeExpr, LowerBoundsOfWindowsAreExact) {
  const SizeExpr places = SizeExpr::Sum({{1, {0, 1}}, {-1, {0}}, {-2, {1}}, {2, {}}});
  EXPECT_EQ(places.LowerBound({3, 3}, {11, 11}), 2);
  EXPECT_EQ((SizeExpr(9 * 10) - places).LowerBound({3, 3}, {11, 11}), 0);
}

TEST(SizeExpr, LowerBoundsLookAtTheEndThatIsSmaller) {
  SizeExpr room = SizeExpr::Sum({{1, {0}}}) - SizeExpr::Sum({{2, {1}}});
  EXPECT_EQ(room.LowerBound({4, 1}, {10, 3}), 4 - 6);
  EXPECT_EQ(room.LowerBound({6, 1}, {10, 3}), 0);
}

TEST(FitSize, FindsWhatShapesAreMadeOf) {
  EXPECT_EQ(FitOf([](int64_t, int64_t) { return 768; })->ToString(), "768");
  EXPECT_EQ(FitOf([](int64_t, int64_t) { return 0; })->ToString(), "0");
  EXPECT_EQ(FitOf([](int64_t b, int64_t s) { return b * s * 64; })->ToString(), "s0*s1*64");
  EXPECT_EQ(FitOf([](int64_t b, int64_t s) { return (b + s) * 12 - 1; })->ToString(),
            "s0*12 + s1*12 - 1");
  EXPECT_EQ(FitOf([](int64_t b, int64_t s) { return (b + s) * (b + s); })->ToString(),
            "s0*s0 + s0*s1*2 + s1*s1");
}

TEST(FitSize, GivesUpOnWhatIsNoPolynomialOfFewTerms) {
  EXPECT_FALSE(FitOf([](int64_t, int64_t s) { return (s + 1) / 2 + s % 3; }).has_value());
  EXPECT_FALSE(FitOf([](int64_t b, int64_t s) { return b > 20 ? s : b; }).has_value());
  EXPECT_FALSE(FitSize({}, {}).has_value());
}

// Of plans from elsewhere.
TEST(SizeExpr, SumsBeyondSixtyFourBitsAreNoSizes) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const SizeExpr low = SizeExpr(kLeast) - SizeExpr::Sum({{255, {}}});
  EXPECT_EQ(low.Evaluate({}), std::nullopt);
  EXPECT_EQ((SizeExpr(0) - SizeExpr(kLeast)).Evaluate({}), std::nullopt);
  EXPECT_EQ(SizeExpr::Sum({{kLeast, {0}}, {kLeast, {0}}}).Evaluate({1}), std::nullopt);
}

}  // namespace
}  // namespace fusion
