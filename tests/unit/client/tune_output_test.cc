#include "client/fusionctl/output/tune_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

TriedTiling Timed(double estimated_us, double median_us) {
  return {.choice = {},
          .tiles = "m:8",
          .estimated_us = estimated_us,
          .runs = 9,
          .median_us = median_us,
          .low_us = median_us,
          .high_us = median_us};
}

// Kernel 1, that of group 1, is launched `launches` times.
Plan Searched(std::vector<TunedKernel> kernels, int launches = 1) {
  Plan plan = SamplePlan();
  plan.launches.assign(static_cast<size_t>(launches), plan.launches[0]);
  plan.search = {.level = 1,
                 .state = TileSearchState::kDone,
                 .measured = 4,
                 .changed = 1,
                 .kernels = std::move(kernels)};
  return plan;
}

TEST(Tune, GainsComeFromThePairsAndCountEachLaunch) {
  const TunedKernel kernel{.ops = {0},
                           .group = 1,
                           .tried = {Timed(10, 20), Timed(11, 15)},
                           .chosen = 1,
                           .rival = 1,
                           .pairs = 11,
                           .ratio = 0.8,
                           .ratio_low = 0.7,
                           .ratio_high = 0.9};
  const TuningGain gain = GainOf(Searched({kernel}, 3));
  ASSERT_EQ(gain.kernels.size(), 1U);
  EXPECT_EQ(gain.kernels[0].launches, 3);
  EXPECT_DOUBLE_EQ(gain.kernels[0].chosen_us, 16) << "not the median of other runs, 15";
  EXPECT_DOUBLE_EQ(gain.pick_us, 60);
  EXPECT_DOUBLE_EQ(gain.chosen_us, 48);
  EXPECT_FALSE(gain.correlation.has_value()) << "of two cuts";
  const std::string text = TuneText(Searched({kernel}, 3), "m.onnx", true);
  EXPECT_THAT(text, HasSubstr("60.0 us -> 48.0 us"));
  EXPECT_THAT(text, HasSubstr("1.25 times as fast"));
  EXPECT_THAT(text, HasSubstr("0.8 (0.7 .. 0.9)"));
  EXPECT_THAT(text, HasSubstr("--opt-level 1"));
  EXPECT_THAT(text, Not(HasSubstr("order:")));
  EXPECT_THAT(text, Not(HasSubstr("goes on")));
  Plan cut_short = Searched({kernel});
  cut_short.search.state = TileSearchState::kCutShort;
  EXPECT_THAT(TuneText(cut_short, "m.onnx", true), HasSubstr("the same command goes on"));
  EXPECT_THAT(TuneText(Searched({kernel}), "m.onnx", false), HasSubstr("--store DIR"));
}

TEST(Tune, ARivalThatDidNotWinGainsNothing) {
  const TunedKernel kernel{.ops = {0},
                           .group = 1,
                           .tried = {Timed(10, 20), Timed(11, 15), Timed(12, 30)},
                           .rival = 1,
                           .pairs = 11,
                           .ratio = 0.99};
  const TuningGain gain = GainOf(Searched({kernel}));
  EXPECT_DOUBLE_EQ(gain.chosen_us, gain.pick_us);
  ASSERT_TRUE(gain.correlation.has_value());
  EXPECT_DOUBLE_EQ(*gain.correlation, 0.5) << "of 1, 2, 3 and 2, 1, 3";
  EXPECT_EQ(TuneJson(Searched({kernel}), "m", true)["kernels"][0]["rank_correlation"], 0.5);
}

TEST(Tune, WhatWasNotTimedIsNotCounted) {
  const TunedKernel alone{.ops = {0}, .group = 1, .tried = {Timed(10, 20)}};
  TunedKernel untimed{.ops = {0}, .group = 1, .tried = {Timed(10, 20), Timed(11, 15)}};
  untimed.tried[1].runs = 0;
  const Plan plan = Searched({alone, untimed});
  EXPECT_EQ(GainOf(plan).kernels.size(), 0U);
  EXPECT_THAT(TuneText(plan, "m.onnx", true), Not(HasSubstr("gained:")));
  EXPECT_EQ(TuneJson(plan, "m.onnx", true)["kernels"].size(), 0U);
}

TEST(Tune, AServiceThatTimesNothingSaysSo) {
  Plan plan = SamplePlan();
  plan.search = {};
  EXPECT_THAT(TuneText(plan, "m.onnx", true), HasSubstr("this service times none"));
  EXPECT_TRUE(TuneJson(plan, "m.onnx", true)["search"].is_null());
}

// A kernel in a loop runs once for each pass.
TEST(Tune, PassesOfALoopCount) {
  const TunedKernel kernel{.ops = {0}, .group = 1, .tried = {Timed(10, 20), Timed(11, 15)}};
  Plan plan = Searched({kernel}, 3);
  plan.loops = {{.first = 1, .launches = 1, .most = 7}};
  EXPECT_EQ(GainOf(plan).kernels.at(0).launches, 9);
  plan.launches.resize(1);
  plan.loops = {{.first = 0, .launches = 1, .most = 0}};
  EXPECT_EQ(GainOf(plan).kernels.size(), 0U) << "none of its time is a run's";
}

TEST(Tune, EqualTimesHaveNoOrder) {
  const TunedKernel kernel{
      .ops = {0}, .group = 1, .tried = {Timed(10, 20), Timed(11, 20), Timed(12, 20)}};
  EXPECT_FALSE(GainOf(Searched({kernel})).correlation.has_value());
}

}  // namespace
}  // namespace fusion
