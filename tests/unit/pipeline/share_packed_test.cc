#include "core/pipeline/kernels/share_packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/bundle/plan_variants.h"

namespace fusion {
namespace {

using testing::ElementsAre;

// A plan that packs weights: each is 64 elements, packed by the kernel of that name to an offset.
struct Packing {
  int weight = 0;
  const char* kernel = "";
  int64_t offset = 0;
};

Plan PlanOf(const std::vector<Packing>& packings, int64_t prepared_bytes) {
  Plan plan;
  plan.prepared_bytes = prepared_bytes;
  for (const Packing& packing : packings) {
    const auto tensor = static_cast<int>(plan.tensors.size());
    PlanTensor weight{.dims = {64}, .strides = {1}, .space = Space::kWeight, .bytes = 256};
    weight.index = packing.weight;
    PlanTensor packed{.dims = {64}, .strides = {1}, .space = Space::kPrepared, .bytes = 256};
    packed.offset = packing.offset;
    plan.tensors.push_back(weight);
    plan.tensors.push_back(packed);
    plan.prepare.push_back({.group = 0,
                            .kernel = static_cast<int>(plan.kernels.size()),
                            .tensors = {tensor, tensor + 1}});
    plan.kernels.push_back({});
    plan.kernels.back().key = Sha256(packing.kernel);
  }
  return plan;
}

std::vector<int64_t> Offsets(const Plan& plan) {
  std::vector<int64_t> out;
  for (const PlanTensor& t : plan.tensors) {
    if (t.space == Space::kPrepared) out.push_back(t.offset);
  }
  return out;
}

TEST(SharePacked, WhatBothPackAlikeLiesWhereItIs) {
  const Plan plan = PlanOf({{0, "a", 0}, {1, "a", 256}, {2, "b", 512}}, 768);
  // Weight 1 as in the plan; 0 by another kernel; 2 by the same one; 3 is new.
  Plan variant = PlanOf({{1, "a", 0}, {0, "b", 256}, {2, "b", 512}, {3, "b", 768}}, 1024);
  SharePacked(plan, &variant);
  EXPECT_THAT(Offsets(variant), ElementsAre(256, 768, 512, 1024));
  EXPECT_EQ(variant.prepared_bytes, 1280);
}

TEST(SharePacked, APanelOfSeveralMovesAsAWholeOrNotAtAll) {
  const Plan plan = PlanOf({{0, "a", 0}, {1, "a", 256}, {2, "a", 512}}, 768);
  auto with_panel = [](std::vector<Packing> packings) {
    Plan variant = PlanOf(packings, 512);
    // Read by runs as one.
    variant.tensors.push_back(
        {.dims = {128}, .strides = {1}, .space = Space::kPrepared, .bytes = 512});
    return variant;
  };
  Plan same = with_panel({{1, "a", 0}, {2, "a", 256}});
  SharePacked(plan, &same);
  EXPECT_THAT(Offsets(same), ElementsAre(256, 512, 256));
  EXPECT_EQ(same.prepared_bytes, 768);
  Plan apart = with_panel({{0, "a", 0}, {2, "a", 256}});
  SharePacked(plan, &apart);
  EXPECT_THAT(Offsets(apart), ElementsAre(768, 1024, 768)) << "they are no neighbours there";
  EXPECT_EQ(apart.prepared_bytes, 1280);
}

TEST(SharePacked, WhatThePlanWritesOverIsNotShared) {
  Plan plan = PlanOf({{0, "a", 0}, {1, "a", 0}}, 256);
  Plan variant = PlanOf({{0, "a", 0}, {1, "b", 256}}, 512);
  SharePacked(plan, &variant);
  EXPECT_THAT(Offsets(variant), ElementsAre(256, 512));
}

TEST(SharePacked, OddSizesKeepTheAlignment) {
  const Plan plan = PlanOf({{0, "a", 0}}, 250);
  Plan variant = PlanOf({{1, "a", 0}}, 256);
  SharePacked(plan, &variant);
  EXPECT_THAT(Offsets(variant), ElementsAre(256));
  EXPECT_EQ(variant.prepared_bytes, 512);
}

TEST(PackAlike, LooksAtKernelsAndWhatTheyRead) {
  const Plan a = PlanOf({{0, "a", 0}, {0, "b", 256}, {1, "a", 512}}, 768);
  EXPECT_TRUE(PackAlike(a, a.prepare[0], a, a.prepare[0]));
  EXPECT_FALSE(PackAlike(a, a.prepare[0], a, a.prepare[1]));
  EXPECT_FALSE(PackAlike(a, a.prepare[0], a, a.prepare[2]));
  Plan longer = a;
  longer.tensors[0].dims = {32};
  EXPECT_FALSE(PackAlike(a, a.prepare[0], longer, longer.prepare[0]));
  // Of what another launch has prepared it is not known where that comes from.
  Plan chained = a;
  chained.tensors[0].space = Space::kPrepared;
  EXPECT_EQ(PackedBy(chained, chained.prepare[0]), -1);
  EXPECT_FALSE(PackAlike(chained, chained.prepare[0], chained, chained.prepare[0]));
}

}  // namespace
}  // namespace fusion
