#include "core/plan/assemble/cached_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

// Launches by the tensors that they read and write.
Plan PlanOf(std::vector<PlanTensor> tensors, std::vector<std::vector<int>> launches) {
  Plan plan;
  plan.tensors = std::move(tensors);
  for (std::vector<int>& of : launches) plan.launches.push_back({.tensors = std::move(of)});
  return plan;
}
PlanTensor Arena(int64_t offset, int64_t bytes) { return {.offset = offset, .bytes = bytes}; }
PlanTensor Weight(int index, int64_t elements) {
  return {.dims = {elements}, .space = Space::kWeight, .index = index};
}

TEST(CachedShares, ATensorIsHeldIfWhatWasTouchedSinceFits) {
  // 100 bytes are written, then read; between these 40, or 400.
  const Plan near = PlanOf({Arena(0, 100), Weight(0, 10)}, {{0}, {1}, {0}});
  EXPECT_THAT(CachedShares(near, 200), ElementsAre(1, 1, 1));
  const Plan far = PlanOf({Arena(0, 100), Weight(0, 100)}, {{0}, {1}, {0}});
  EXPECT_THAT(CachedShares(far, 200), ElementsAre(1, 0.25, 0))
      << "the second run finds the first tensor, which the first run touched last";
}

TEST(CachedShares, WhatFitsInPartIsHeldInPart) {
  const Plan plan = PlanOf({Arena(0, 100), Weight(0, 25)}, {{0}, {1}, {0}});
  EXPECT_THAT(CachedShares(plan, 150), ElementsAre(1, DoubleEq(0.5), DoubleEq(0.5)));
}

TEST(CachedShares, ALaunchIsTheSumOfItsTensorsByTheirBytes) {
  const Plan plan = PlanOf({Arena(0, 30), Weight(0, 1000)}, {{0, 1, 0}});
  EXPECT_THAT(CachedShares(plan, 1000), ElementsAre(DoubleEq((30.0 + 970) / 4060)))
      << "a part of the weight's 4000 bytes, and the 30 before it; the weight evicts these";
}

TEST(CachedShares, TensorsAtOnePlaceOfTheArenaAreTheSameMemory) {
  const Plan plan = PlanOf({Arena(64, 50), Arena(64, 100), Arena(512, 100)}, {{0}, {1}, {2}});
  EXPECT_THAT(CachedShares(plan, 1000), ElementsAre(1, 0.5, 1))
      << "half of the second lies where the first was";
}

TEST(CachedShares, NothingIsHeldByNoCacheAndPlansMayBeEmpty) {
  EXPECT_THAT(CachedShares(PlanOf({Arena(0, 100)}, {{0}, {0}}), 0), ElementsAre(0, 0));
  EXPECT_THAT(CachedShares(Plan(), 100), ElementsAre());
  EXPECT_THAT(CachedShares(PlanOf({Weight(0, 0)}, {{0}}), 100), ElementsAre(0));
}

}  // namespace
}  // namespace fusion
