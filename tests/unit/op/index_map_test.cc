// Sums of index expressions.
#include "core/op/body/index_map.h"

#include <gtest/gtest.h>

#include <random>

namespace fusion {
namespace {

std::string Text(const IndexExpr& e) {
  return e.ToString([](int axis) { return StrCat("a", axis); });
}

TEST(IndexExpr, SumsAreSortedAndHaveNoZeroes) {
  IndexExpr e = IndexExpr::Axis(3, 2) + IndexExpr(5);
  e += IndexExpr::Axis(1);
  EXPECT_EQ(Text(e), "a1 + 2*a3 + 5");
  e += IndexExpr::Axis(7, -1) + IndexExpr::Axis(2, 4);
  EXPECT_EQ(Text(e), "a1 + 4*a2 + 2*a3 + -1*a7 + 5");
  e += IndexExpr::Axis(3, -2) + IndexExpr::Axis(1, -1) + IndexExpr(-5);
  EXPECT_EQ(Text(e), "4*a2 + -1*a7");
  e += IndexExpr::Indirect(1);
  EXPECT_EQ(e.indirect(), 1);
  EXPECT_EQ((IndexExpr::Axis(0) + IndexExpr::Axis(0, -1)), IndexExpr(0));
}

TEST(IndexExpr, MayBeAddedToItself) {
  IndexExpr e = IndexExpr::Axis(0) + IndexExpr::Axis(1, -3) + IndexExpr::Axis(4, 2) + IndexExpr(7);
  e += e;
  EXPECT_EQ(Text(e), "2*a0 + -6*a1 + 4*a4 + 14");
}

TEST(IndexExpr, SubstitutionIsThatOfThePoints) {
  std::mt19937 random(3);
  auto number = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  auto any = [&] {
    IndexExpr e(number(-3, 3));
    for (int i = number(0, 4); i > 0; --i) e += IndexExpr::Axis(number(0, 3), number(-2, 2));
    return e;
  };
  for (int i = 0; i < 500; ++i) {
    const IndexExpr outer = any();
    const std::vector<IndexExpr> axes = {any(), any(), any(), any()};
    const IndexExpr inner =
        outer.Substitute([&](int axis) { return axes[static_cast<size_t>(axis)]; });
    const std::vector<int64_t> point = {number(-9, 9), number(-9, 9), number(-9, 9), number(-9, 9)};
    std::vector<int64_t> moved;
    for (const IndexExpr& e : axes) moved.push_back(e.At(point));
    EXPECT_EQ(inner.At(point), outer.At(moved)) << Text(outer);
    for (size_t t = 0; t < inner.terms().size(); ++t) {
      EXPECT_NE(inner.terms()[t].coefficient, 0);
      EXPECT_TRUE(t == 0 || inner.terms()[t - 1].axis < inner.terms()[t].axis) << Text(inner);
    }
  }
}

}  // namespace
}  // namespace fusion
