#include "core/base/statistics/rank_correlation.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(RankCorrelation, IsOfTheOrderAlone) {
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {1, 10, 100, 1000}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3}, {5, 5, 5}), 0);
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / sqrt(4.5 * 5).
  EXPECT_NEAR(RankCorrelation({1, 2, 2, 4}, {1, 2, 3, 4}), 0.948683, 1e-6);
}

}  // namespace
}  // namespace fusion
