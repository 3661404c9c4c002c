// What expressions are taken to be equal, and what is known of their values.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/algebra/leaves.h"
#include "core/algebra/separate.h"
#include "core/algebra/support.h"

namespace fusion {
namespace {

constexpr int64_t kExtent = 12;

// Leaves over one dim that is walked: x varies along it, m is the running maximum of x.
class Algebra : public ::testing::TestWithParam<DType> {
 protected:
  Expr Number(double value) const { return Expr::Const(GetParam(), value); }

  Leaves leaves_{{kExtent}, 0, {}};
  Expr x_ = leaves_.Add({.kind = Leaf::kSlice, .element = {}, .monoid = ""}, GetParam());
  Expr m_ = leaves_.Add({.kind = Leaf::kState, .element = x_, .monoid = "max"}, GetParam());
  Expr c_ = leaves_.Add({.kind = Leaf::kSlice, .element = {}, .monoid = ""}, DType::kBool);
};

INSTANTIATE_TEST_SUITE_P(Types, Algebra, ::testing::Values(DType::kF32, DType::kF64),
                         [](const auto& param) { return std::string(DTypeName(param.param)); });

// Numbers next to 1 that no rounding of a result explains: the last bits of f32, and in f64 far
// fewer than those.
std::vector<double> NearlyOne(DType type) {
  if (type == DType::kF32) return {0x1.000002p0, 0x1.fffffep-1, 1.0000004, 1.000004};
  return {0x1.000002p0, 1.0000004, 1 + 1e-9, 1 - 1e-12, 1 + 0x1p-48};
}

TEST_P(Algebra, NearlyEqualIsNotEqual) {
  for (double k : NearlyOne(GetParam())) {
    SCOPED_TRACE(k);
    EXPECT_FALSE(leaves_.AreEqual(x_, x_ * Number(k)));
    EXPECT_FALSE(leaves_.AreEqual(m_ - m_ * Number(k), Number(0)));
    EXPECT_FALSE(leaves_.AreEqual(Expr::Unary(ScalarOp::kTanh, m_),
                                  Expr::Unary(ScalarOp::kTanh, m_ * Number(k))));
  }
  EXPECT_TRUE(leaves_.AreEqual(x_, x_ * Number(1)));
}

// A tile's exponent would be off by m * (k - 1) if the two were taken for one.
TEST_P(Algebra, NearlyEqualAddendsAreNotShared) {
  auto separated = [&](double k) {
    Separator separator(&leaves_);
    return separator.SeparateSum(Expr::Select(c_, x_ - m_, x_ - m_ * Number(k)));
  };
  EXPECT_FALSE(separated(1).mixed);
  for (double k : NearlyOne(GetParam())) EXPECT_TRUE(separated(k).mixed) << k;
}

TEST_P(Algebra, NearlyEqualFactorsAreNotShared) {
  auto terms = [&](double k) {
    Separator separator(&leaves_);
    Expr other = Expr::Unary(ScalarOp::kTanh, m_ * Number(k));
    return separator
        .Separate(Expr::Select(c_, x_ * Expr::Unary(ScalarOp::kTanh, m_), x_ * x_ * other))
        .size();
  };
  EXPECT_EQ(terms(1), 1u);
  for (double k : NearlyOne(GetParam())) EXPECT_EQ(terms(k), 2u) << k;
}

// What is nearly the maximum is no bound.
TEST_P(Algebra, NearlyTheMaximumBoundsNothing) {
  EXPECT_TRUE(leaves_.IsBoundedAbove(x_ - m_));
  for (double k : NearlyOne(GetParam())) {
    EXPECT_FALSE(leaves_.IsBoundedAbove(x_ - m_ * Number(k))) << k;
  }
}

// The order in which numbers were multiplied does not show.
TEST_P(Algebra, RoundingOfItsOwnIsNone) {
  Expr tenth = Number(0.1);
  Expr seventh = Number(1.0 / 7);
  Expr third = Number(1.0 / 3);
  EXPECT_TRUE(leaves_.AreEqual((x_ * tenth) * (seventh * third), x_ * (tenth * seventh) * third));
  EXPECT_TRUE(leaves_.AreEqual(x_ * tenth + x_ * seventh + x_ * third,
                               x_ * third + x_ * seventh + x_ * tenth));
  EXPECT_TRUE(leaves_.AreEqual(x_ / third / tenth * third * tenth, x_));
}

// Powers of which no integer type holds half.
TEST_P(Algebra, EvenPowersAreNotNegative) {
  auto power = [&](double n) {
    return leaves_.IsNonNegative(Expr::Binary(ScalarOp::kPow, x_, Number(n)));
  };
  EXPECT_TRUE(power(2));
  EXPECT_TRUE(power(-4));
  EXPECT_TRUE(power(1e30));
  EXPECT_FALSE(power(3));
  EXPECT_FALSE(power(0.5));
  EXPECT_FALSE(power(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(power(std::numeric_limits<double>::quiet_NaN()));
}

// Where a causal mask leaves something, its positions counted in `type`.
Region CausalRegion(DType type, int64_t extent) {
  Leaves leaves({extent, extent}, 1, {});
  Expr x = leaves.Add({.kind = Leaf::kSlice, .element = {}, .monoid = ""}, DType::kF32);
  Expr row = Expr::Cast(Expr::Axis(0), type);
  Expr column = Expr::Cast(Expr::Axis(1), type);
  Expr seen = Expr::Binary(ScalarOp::kLe, column, row);
  return RegionOfNonZero(Expr::Select(seen, x, Expr::Const(DType::kF32, 0)), leaves);
}

// Beyond that two positions are one number, and a tile that counts would be left out.
TEST(Regions, AreOfPositionsThatTheirTypeTellsApart) {
  for (auto [type, places] : {std::pair{DType::kF32, int64_t{1} << 24},
                              {DType::kI32, int64_t{1} << 31},
                              {DType::kF64, int64_t{1} << 53}}) {
    SCOPED_TRACE(DTypeName(type));
    EXPECT_EQ(CausalRegion(type, places).size(), 1u);
    EXPECT_TRUE(CausalRegion(type, places + 4).empty());
  }
  EXPECT_TRUE(CausalRegion(DType::kF16, 8).empty());
}

// Steps count, too: the numbers that are compared must be whole ones of the type.
TEST(Regions, AreOfScaledPositionsThatTheirTypeTellsApart) {
  Leaves leaves({int64_t{1} << 20}, 0, {});
  Expr x = leaves.Add({.kind = Leaf::kSlice, .element = {}, .monoid = ""}, DType::kF32);
  for (double step : {16.0, 32.0}) {
    Expr at = Expr::Cast(Expr::Axis(0), DType::kF32) * Expr::Const(DType::kF32, step);
    Expr seen = Expr::Binary(ScalarOp::kLe, at, Expr::Const(DType::kF32, 999));
    Region region = RegionOfNonZero(Expr::Select(seen, x, Expr::Const(DType::kF32, 0)), leaves);
    EXPECT_EQ(region.size(), step == 16 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace fusion
