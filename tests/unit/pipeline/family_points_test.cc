#include "core/pipeline/families/family_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Units = std::vector<int64_t>;

const std::vector<DimRange> kBatchAndSeq = {{.least = 1, .most = 8}, {.least = 1, .most = 512}};

TEST(SamplePoints, LieOnTheWayFromTheSmallestToTheLargest) {
  EXPECT_THAT(SamplePoints(kBatchAndSeq), ElementsAre(ElementsAre(2, 2), ElementsAre(2, 8),
                                                      ElementsAre(4, 32), ElementsAre(8, 512)));
  // In units of the multiples, and never below the least.
  EXPECT_THAT(SamplePoints({{.least = 64, .most = 512, .multiple = 8, .likely = 128}}),
              ElementsAre(ElementsAre(8), ElementsAre(13), ElementsAre(16), ElementsAre(22)));
  EXPECT_THAT(SamplePoints({{.least = 0, .most = 2}}), ElementsAre(ElementsAre(2)));
}

TEST(MemberPoints, AreDifferentPrimes) {
  const std::vector<std::vector<int64_t>> points = MemberPoints(kBatchAndSeq, {false, false});
  std::set<int64_t> taken;
  for (const std::vector<int64_t>& point : points) {
    ASSERT_EQ(point.size(), 2U);
    EXPECT_GT(point[0], 8);
    EXPECT_LT(point[1], 512);
    for (int64_t n : point) {
      EXPECT_TRUE(taken.insert(n).second) << n;
      for (int64_t d = 2; d < n; ++d) EXPECT_NE(n % d, 0) << n;
    }
  }
  for (const std::vector<int64_t>& point : MemberPoints(kBatchAndSeq, {true, true})) {
    EXPECT_LE(point[0], 8);
  }
}

// What follows from which of two dims is the longer one must not be the same everywhere, unless it
// is so in all of the ranges.
TEST(MemberPoints, TakeBothOrdersThatRangesAllow) {
  using Ranges = std::vector<DimRange>;
  const std::vector<Ranges> both = {
      {{.least = 1, .most = 9}, {.least = 1, .most = 9}},
      {{.least = 1, .most = 9}, {.least = 2, .most = 20}},
      {{.least = 1, .most = 512}, {.least = 1, .most = 512}},
  };
  for (const Ranges& ranges : both) {
    std::set<bool> orders;
    for (const Units& point : MemberPoints(ranges, {false, false})) {
      orders.insert(point[0] < point[1]);
    }
    EXPECT_EQ(orders.size(), 2U) << ranges[0].most << " and " << ranges[1].most;
  }
  for (const Units& point :
       MemberPoints({{.least = 5, .most = 9}, {.least = 1, .most = 5}}, {false, false})) {
    EXPECT_GT(point[0], point[1]) << "the first one is never shorter";
  }
}

TEST(MemberPoints, WithinAShortRangeKeepToIt) {
  const std::vector<DimRange> ranges = {{.least = 5, .most = 9}, {.least = 1, .most = 2}};
  for (const Units& point : MemberPoints(ranges, {true, false})) {
    EXPECT_THAT(point[0], testing::AllOf(testing::Ge(5), testing::Le(9)));
    EXPECT_GT(point[1], 2) << "two values tell nothing apart";
  }
  EXPECT_THAT(MemberPlaces(ranges), ElementsAre(Inside{false, false}, Inside{true, false},
                                                Inside{false, true}, Inside{true, true}));
}

TEST(CheckPoints, AreAllValuesWhereThereAreFew) {
  const CheckPointList few =
      CheckPoints({{.least = 1, .most = 2}, {.least = 4, .most = 16, .multiple = 4}});
  EXPECT_TRUE(few.exhaustive);
  EXPECT_THAT(few.units,
              testing::UnorderedElementsAre(Units{1, 1}, Units{2, 1}, Units{1, 2}, Units{2, 2},
                                            Units{1, 3}, Units{2, 3}, Units{1, 4}, Units{2, 4}));
}

TEST(CheckPoints, HoldTheEndsTheirNeighboursAndSomeBetween) {
  const CheckPointList one = CheckPoints({{.least = 3, .most = 500}});
  EXPECT_FALSE(one.exhaustive);
  EXPECT_THAT(one.units, testing::IsSupersetOf({Units{3}, Units{4}, Units{499}, Units{500}}));
  EXPECT_GE(one.units.size(), 12U);
  const CheckPointList two = CheckPoints(kBatchAndSeq);
  EXPECT_FALSE(two.exhaustive);
  for (int64_t end : {1, 2, 511, 512}) {
    std::set<int64_t> beside;
    for (const Units& units : two.units) {
      if (units[1] == end) beside.insert(units[0]);
    }
    EXPECT_GE(beside.size(), 2U) << end << " is met with one value of the other symbol only";
  }
}

TEST(FewRanges, EndInTheMiddleWhereTheyAreLong) {
  const std::vector<DimRange> few = FewRanges(kBatchAndSeq);
  ASSERT_EQ(few.size(), 2U);
  EXPECT_EQ(few[0].most, 8) << "eight times the least is not long";
  EXPECT_EQ(few[1].most, 32);
  EXPECT_EQ(few[1].least, 1);
  const std::vector<DimRange> steps =
      FewRanges({{.least = 8, .most = 4096, .multiple = 8, .likely = 2048}});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].most % 8, 0);
  EXPECT_EQ(steps[0].likely, 0) << "it is for no value beyond";
  EXPECT_TRUE(CheckRange(steps[0]).ok());
  EXPECT_THAT(FewRanges({{.least = 1, .most = 8}}), IsEmpty()) << "not many more";
  EXPECT_THAT(FewRanges({{.least = 256, .most = 512}}), IsEmpty());
}

}  // namespace
}  // namespace fusion
