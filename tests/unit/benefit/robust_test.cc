#include "core/benefit/calibrate/robust.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fusion {
namespace {

TEST(WeightedMedian, IsWhereHalfOfTheWeightIsBelow) {
  EXPECT_EQ(WeightedMedian({{5, 1}}), 5);
  EXPECT_EQ(WeightedMedian({{3, 1}, {1, 1}, {2, 1}}), 2);
  EXPECT_EQ(WeightedMedian({{1, 1}, {3, 1}}), 2) << "two halves: the middle of both";
  EXPECT_EQ(WeightedMedian({{1, 1}, {2, 1}, {9, 3}}), 9);
  EXPECT_EQ(WeightedMedian({{1, 0.1}, {2, 0.1}, {3, 0.2}, {4, 0.4}}), 3.5);
}

TEST(HodgesLehmann, IsTheMedianOfTheMeansOfPairs) {
  EXPECT_EQ(HodgesLehmann({4}), 4);
  // Means: 0, 1, 5, 2, 6, 10.
  EXPECT_EQ(HodgesLehmann({0, 2, 10}), 3.5);
}

TEST(HodgesLehmann, IsNotMovedByAQuarterOfBadValues) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0.2, 0.05);
  std::vector<double> values;
  for (int i = 0; i < 300; ++i) values.push_back(noise(random));
  const double clean = HodgesLehmann(values);
  EXPECT_NEAR(clean, 0.2, 0.01);
  for (int i = 0; i < 75; ++i) values[static_cast<size_t>(i)] = 1000;
  EXPECT_NEAR(HodgesLehmann(values), clean, 0.05);
}

TEST(HodgesLehmann, OfManyValuesPairsOrderStatistics) {
  std::vector<double> values;
  for (int i = 0; i < 100'000; ++i) values.push_back(std::cbrt(i - 50'000));
  EXPECT_NEAR(HodgesLehmann(values), 0, 0.05);
}

// ln(measured / expected) of reports with noise of +-30 %.
class NoisyDevice {
 public:
  double Next(double offset) { return std::log(1 + noise_(random_)) + offset; }

 private:
  std::mt19937 random_{11};
  std::uniform_real_distribution<double> noise_{-0.3, 0.3};
};

TEST(PageHinkley, DoesNotAlarmForAConstantDevice) {
  NoisyDevice device;
  PageHinkley detector = DriftDetector();
  for (int i = 0; i < 100'000; ++i) EXPECT_FALSE(detector.Add(device.Next(0))) << i;
  EXPECT_NEAR(detector.mean(), 0, 0.02);
}

TEST(PageHinkley, NoticesADriftWithin300Reports) {
  for (double sign : {1.0, -1.0}) {
    NoisyDevice device;
    PageHinkley detector = DriftDetector();
    for (int i = 0; i < 1000; ++i) ASSERT_FALSE(detector.Add(device.Next(0)));
    int alarm = -1;
    for (int i = 0; i < 300 && alarm < 0; ++i) {
      const double offset = sign * 0.25 * i / 300;  // slower by a quarter over 300 reports
      if (detector.Add(device.Next(offset))) alarm = i;
    }
    EXPECT_GE(alarm, 0) << "never noticed";
    EXPECT_EQ(detector.count(), 0) << "it starts again";
  }
}

TEST(PageHinkley, ASingleValueRaisesNoAlarmWhereverItComes) {
  for (int at = 0; at < 60; ++at) {
    PageHinkley detector = DriftDetector();
    for (int i = 0; i < 1000; ++i) ASSERT_FALSE(detector.Add(i == at ? 1e9 : 0)) << at << " " << i;
  }
}

TEST(PageHinkley, NoticesAShiftByATenthWithinAboutAHundredReports) {
  NoisyDevice device;
  PageHinkley detector = DriftDetector();
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(detector.Add(device.Next(0)));
  int after = 0;
  while (after < 150 && !detector.Add(device.Next(0.1))) ++after;
  EXPECT_LT(after, 150);
}

}  // namespace
}  // namespace fusion
