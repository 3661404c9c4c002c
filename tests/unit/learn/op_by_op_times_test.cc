#include "core/learn/op_by_op_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text/text.h"
#include "core/cache/memory/memory_records.h"
#include "core/cache/memory/memory_store.h"
#include "core/learn/latency_book.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

std::string KeyOf(FusionMode fusion, std::string_view rules = "", int opt_level = 0) {
  FieldHasher h;
  h.Add("graph", "g").Add("device", "d").Add("fusion", static_cast<int64_t>(fusion));
  h.Add("numerics", 1).Add("rules", rules);
  if (fusion == FusionMode::kFused) h.Add("low_latency", 1).Add("frontier", 1);
  if (opt_level > 0) h.Add("opt_level", opt_level);
  if (fusion == FusionMode::kFused) h.Add("lock", "0123");
  return h.Add("tenant", "shop").bytes();
}

Plan OneLaunchEach(FusionMode fusion, const std::vector<std::vector<int>>& groups) {
  Plan plan;
  plan.target = "generic-avx2";
  plan.fusion = fusion;
  plan.nodes = 4;
  for (size_t g = 0; g < groups.size(); ++g) {
    const int at = static_cast<int>(g);
    plan.kernels.push_back({.key = Sha256(StrCat(fusion, " ", g)), .label = "Add"});
    PlanGroup group{.nodes = groups[g], .kernel = at};
    group.estimate.time_us = 10;
    group.estimate.activation_bytes = 100;
    group.op_by_op = {.kernels = 2, .activation_bytes = 250, .estimated_us = 30};
    plan.groups.push_back(group);
    plan.launches.push_back({.group = at, .kernel = at, .tensors = {}});
  }
  return plan;
}

class OpByOpTimesTest : public testing::Test {
 protected:
  Digest Store(const std::string& key, const Plan& plan, PlanOutline outline = {}) {
    auto stored = std::make_shared<StoredPlan>(MakeStoredPlan(key, plan, 1, "", outline));
    EXPECT_TRUE(store_.PutBundle({.plan = stored, .kernels = {}}).ok());
    return stored->key;
  }
  void Measure(const Digest& key, const std::vector<double>& launch_us, double run_us) {
    LatencyReport report{.plan_key = key, .run_samples_us = {run_us}, .device = "a machine"};
    for (size_t l = 0; l < launch_us.size(); ++l) {
      report.launches.push_back({.launch = static_cast<int>(l), .samples_us = {launch_us[l]}});
    }
    const auto added = book_.Add(report, "shop");
    EXPECT_TRUE(added.ok()) << added.status();
  }
  PlanReport ReportOf(const Digest& key) {
    auto reports = book_.Reports(key, 1, CancelToken());
    EXPECT_TRUE(reports.ok()) << reports.status();
    return reports->at(0);
  }

  FakeClock clock_;
  MemoryStore store_{int64_t{64} << 20, Logger::Silent()};
  MemoryMeasurements measurements_;
  MemoryTimings timings_;
  LatencyBook book_{store_, measurements_, timings_, clock_};
  const Plan fused_ = OneLaunchEach(FusionMode::kFused, {{0, 1}, {2, 3}});
  // Node 1 is a view that belongs to node 2 there, and in the fused plan to node 0.
  const Plan apart_ = OneLaunchEach(FusionMode::kOpByOp, {{0}, {2}, {3}});
  const PlanOutline outline_{.sections = {kQkvSection, kAttentionSection | kFeedForwardSection},
                             .op_by_op_peak_bytes = 1000};
};

TEST_F(OpByOpTimesTest, TheKeyIsThatOfARequestWithoutFusion) {
  const std::vector<Digest> keys = OpByOpKeysOf(KeyOf(FusionMode::kFused, "rule", 2));
  ASSERT_THAT(keys, SizeIs(2));
  EXPECT_EQ(keys[0], Sha256(KeyOf(FusionMode::kOpByOp, "", 2)));
  EXPECT_EQ(keys[1], Sha256(KeyOf(FusionMode::kOpByOp)));
  EXPECT_THAT(OpByOpKeysOf(KeyOf(FusionMode::kFused)), SizeIs(1));
  EXPECT_THAT(OpByOpKeysOf(KeyOf(FusionMode::kOpByOp)), IsEmpty());
  EXPECT_THAT(OpByOpKeysOf("no key"), IsEmpty());
  EXPECT_THAT(OpByOpKeysOf(""), IsEmpty());
}

TEST_F(OpByOpTimesTest, MeasuredTimesOfNodesStandBesideTheKernelsThatFuseThem) {
  const Digest fused = Store(KeyOf(FusionMode::kFused), fused_, outline_);
  const Digest apart = Store(KeyOf(FusionMode::kOpByOp), apart_);
  Measure(fused, {8, 9}, 20);
  PlanReport report = ReportOf(fused);
  EXPECT_EQ(report.op_by_op_plan, Digest()) << "nothing was measured of it";
  EXPECT_EQ(report.kernels[0].op_by_op_measured_us, 0);
  EXPECT_EQ(report.op_by_op_peak_bytes, 1000);
  Measure(apart, {4, 5, 6}, 40);
  report = ReportOf(fused);
  EXPECT_EQ(report.op_by_op_plan, apart);
  EXPECT_EQ(report.op_by_op_runs.median_us, 40);
  EXPECT_EQ(report.kernels[0].op_by_op_measured_us, 4);
  EXPECT_EQ(report.kernels[1].op_by_op_measured_us, 11);
  EXPECT_EQ(report.op_by_op_peak_bytes, RunBytes(apart_, 1)) << "of the plan that there is";
  EXPECT_EQ(ReportOf(apart).op_by_op_plan, Digest());
  EXPECT_EQ(ReportOf(apart).fusion, FusionMode::kOpByOp);
}

TEST_F(OpByOpTimesTest, SectionsAreSumsOfTheirLaunches) {
  const Digest fused = Store(KeyOf(FusionMode::kFused), fused_, outline_);
  Measure(fused, {8}, 20);
  PlanReport report = ReportOf(fused);
  ASSERT_THAT(report.sections, SizeIs(2));
  const SectionReport& qkv = report.sections[0];
  EXPECT_EQ(qkv.sections, kQkvSection);
  EXPECT_EQ(qkv.launches, 1);
  EXPECT_EQ(qkv.measured_us, 8);
  EXPECT_EQ(qkv.estimated_us, 10);
  EXPECT_EQ(qkv.op_by_op_kernels, 2);
  EXPECT_EQ(qkv.op_by_op_us, 30);
  EXPECT_EQ(qkv.op_by_op_activation_bytes - qkv.activation_bytes, 150);
  EXPECT_EQ(report.sections[1].measured_us, 0) << "its launch was not measured";
  EXPECT_EQ(report.kernels[1].sections, kAttentionSection | kFeedForwardSection);
}

TEST_F(OpByOpTimesTest, APlanOfAnotherTenantIsNotCompared) {
  const Digest fused = Store(KeyOf(FusionMode::kFused), fused_, outline_);
  const Digest apart = Store(KeyOf(FusionMode::kOpByOp), apart_);
  Measure(fused, {8, 9}, 20);
  Measure(apart, {4, 5, 6}, 40);
  const auto reports = book_.Reports(fused, 1, CancelToken(),
                                     [&](const StoredPlan& plan) { return plan.key != apart; });
  ASSERT_TRUE(reports.ok()) << reports.status();
  EXPECT_EQ(reports->at(0).op_by_op_plan, Digest());
}

}  // namespace
}  // namespace fusion
