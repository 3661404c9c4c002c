#include "core/pipeline/kernels/isolate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/cord.h"
#include "core/base/threads/job.h"
#include "tests/support/capturing_logger.h"

namespace fusion {
namespace {

using testing::HasSubstr;

PlanKernel KernelCalled(const std::string& label) {
  PlanKernel kernel;
  kernel.key = Sha256(label);
  kernel.symbol = "fk_" + label;
  kernel.label = label;
  return kernel;
}

PlanGroup GroupOf(std::vector<int> nodes, int kernel, const std::string& label) {
  PlanGroup group;
  group.nodes = std::move(nodes);
  group.kernel = kernel;
  group.label = label;
  return group;
}

// Nodes 0 and 1 as "pair", 2 alone; where there are few elements all are "whole".
Plan PlanWithVariant() {
  Plan plan;
  plan.nodes = 3;
  plan.kernels = {KernelCalled("pair"), KernelCalled("single"), KernelCalled("whole")};
  plan.groups = {GroupOf({0, 1}, 0, "pair"), GroupOf({2}, 1, "single")};
  Plan few;
  few.nodes = 3;
  few.kernels = {KernelCalled("whole"), KernelCalled("pair")};
  few.groups = {GroupOf({0, 1, 2}, 0, "whole")};
  plan.variants = {{.measure = {}, .most = 4, .plan = std::make_shared<const Plan>(few)}};
  return plan;
}

TEST(IsolateFailures, TakesApartWhatThePlanRuns) {
  CapturingLogger logger;
  UnfusedNodes unfused_nodes;
  const absl::Status wrong = Unimplemented("it is wrong");
  ASSERT_TRUE(IsolateFailures(PlanWithVariant(), {wrong, {}, {}}, logger, &unfused_nodes).ok());
  EXPECT_EQ(unfused_nodes.size(), 2U);
  EXPECT_THAT(unfused_nodes[0], HasSubstr("not fused: a kernel of pair failed"));
  EXPECT_TRUE(unfused_nodes.contains(1));
}

TEST(IsolateFailures, AKernelOfTheVariantAloneCostsTheVariantAlone) {
  CapturingLogger logger;
  UnfusedNodes unfused_nodes;
  const Plan plan = PlanWithVariant();
  const absl::Status wrong = Unimplemented("it is wrong");
  ASSERT_TRUE(IsolateFailures(plan, {{}, {}, wrong}, logger, &unfused_nodes).ok());
  EXPECT_EQ(unfused_nodes.size(), 1U);
  EXPECT_THAT(unfused_nodes[kNoVariant],
              HasSubstr("no variant for few elements: a kernel of it, whole"));
  // A node by itself cannot be taken apart, and names the node.
  const absl::Status single = IsolateFailures(plan, {{}, wrong, {}}, logger, &unfused_nodes);
  EXPECT_THAT(Message(single), HasSubstr("(single): it is wrong"));
  const absl::Status ours =
      IsolateFailures(plan, {{}, Internal("it is broken"), {}}, logger, &unfused_nodes);
  EXPECT_TRUE(absl::IsInternal(ours));
  EXPECT_EQ(Message(ours), "node \"\" (single): kernel fk_single (single): it is broken");
  EXPECT_EQ(ours.GetPayload(kFailedNode), absl::Cord("2"));
}

TEST(UnfusedNodesOf, HasWhatAPlanWasToldOfItsVariants) {
  Plan plan;
  plan.fallbacks = {{.node = 2, .reason = "one"},
                    {.node = kNoVariant, .reason = "two"},
                    {.node = 0, .reason = "three", .registered = "gelu"}};
  EXPECT_EQ(UnfusedNodesOf(plan), (UnfusedNodes{{2, "one"}, {kNoVariant, "two"}}));
  EXPECT_EQ(UnusedOf(plan), (std::map<std::string, std::string>{{"gelu", "three"}}));
}

}  // namespace
}  // namespace fusion
