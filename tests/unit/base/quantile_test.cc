#include "core/base/statistics/quantile.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(Quantile, LiesBetweenNeighbours) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_EQ(Quantile({0, 10}, 0.1), 1);
  EXPECT_EQ(Quantile({5}, 0.9), 5);
  EXPECT_EQ(Quantile({1, 2, 3}, 1), 3);
  EXPECT_EQ(Quantile({1, 2, 3}, 0), 1);
}

TEST(Quantile, OfSortedFloats) {
  EXPECT_EQ(QuantileOfSorted(std::vector<float>{1, 2, 3, 4}, 0.5), 2.5);
  EXPECT_EQ(QuantileOfSorted(std::vector<float>{1, 2}, 0.75), 1.75);
}

}  // namespace
}  // namespace fusion
