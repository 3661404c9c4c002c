#include "core/learn/report_timings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Three launches of two kernels; the group of the second has no terms.
StoredPlan Stored() {
  StoredPlan stored;
  stored.model_name = "a model";
  Plan& plan = stored.plan;
  plan.target = "toy";
  plan.threads = 2;
  plan.kernels = {{.key = Sha256("first"), .isa = "avx2"},
                  {.key = Sha256("second"), .isa = "avx2"}};
  for (int g = 0; g < 3; ++g) {
    PlanGroup group{.kernel = g == 1 ? 1 : 0};
    group.bound = "memory";
    if (g != 1) {
      group.form = "product";
      group.terms = {.product_type = "f32", .product_us = 5, .launch_us = 1};
    }
    plan.groups.push_back(group);
    plan.launches.push_back({.group = g, .kernel = group.kernel, .tensors = {}});
  }
  return stored;
}

LatencyReport Report() {
  return {.launches = {{.launch = 0, .samples_us = {4, 2}},
                       {.launch = 1, .samples_us = {9}},
                       {.launch = 2, .samples_us = {8, 6}, .calls = 10}},
          .threads = 2,
          .device = "a machine"};
}

TEST(TimingsOf, AReportAreThoseOfItsKernels) {
  std::vector<KernelTimings> timings =
      TimingsOf(Report(), Stored(), "tenant", /*trusted=*/true, 77);
  ASSERT_THAT(timings, SizeIs(1)) << "there is nothing to compare the second kernel with";
  const KernelTimings& first = timings[0];
  EXPECT_EQ(first.device, (TimedDevice{"toy", "avx2", 2}));
  EXPECT_EQ(first.kernel, Sha256("first"));
  EXPECT_EQ(first.machine, "a machine");
  EXPECT_EQ(first.tenant, "tenant");
  EXPECT_TRUE(first.trusted);
  EXPECT_EQ(first.model_name, "a model");
  EXPECT_EQ(first.bound, "memory");
  EXPECT_EQ(first.form, "product");
  EXPECT_EQ(first.terms.product_us, 5);
  EXPECT_EQ(first.times.calls, 12);
  EXPECT_THAT(first.times.samples_us, ElementsAre(4, 2, 8, 6));
  EXPECT_EQ(first.last_report_unix_ms, 77);
}

TEST(TimingsOf, EachLaunchOfAKernelHasAnEqualShare) {
  LatencyReport report = Report();
  report.launches = {{.launch = 0, .samples_us = std::vector<double>(100, 1)},
                     {.launch = 2, .samples_us = std::vector<double>(100, 3)}};
  const std::vector<float> samples =
      TimingsOf(report, Stored(), "", /*trusted=*/false, 0).at(0).times.samples_us;
  ASSERT_THAT(samples, SizeIs(KernelTimings::kMaxSamples));
  EXPECT_EQ(std::count(samples.begin(), samples.end(), 1.0F), KernelTimings::kMaxSamples / 2);
}

TEST(TimingsOf, RunsWithOtherThreadsAreNone) {
  LatencyReport report = Report();
  report.threads = 1;
  EXPECT_THAT(TimingsOf(report, Stored(), "", /*trusted=*/false, 0), IsEmpty());
}

TEST(KernelTimings, KeepTheirNewestSamples) {
  KernelTimings all;
  for (int i = 0; i < 100; ++i) {
    KernelTimings more{.kernel = Sha256("k"), .form = StrCat("form ", i)};
    more.times = {.calls = INT64_MAX / 50, .samples_us = {static_cast<float>(i + 1)}};
    more.last_report_unix_ms = i == 99 ? 5 : i;
    AddTimings(more, &all);
  }
  EXPECT_EQ(all.times.calls, INT64_MAX);
  ASSERT_THAT(all.times.samples_us, SizeIs(KernelTimings::kMaxSamples));
  EXPECT_EQ(all.times.samples_us.front(), 100 - KernelTimings::kMaxSamples + 1);
  EXPECT_EQ(all.times.samples_us.back(), 100);
  EXPECT_EQ(all.form, "form 99") << "of the last report";
  EXPECT_EQ(all.last_report_unix_ms, 98);
}

TEST(KernelTimings, EveryPartOfTheKeyNamesOtherTimings) {
  const KernelTimings base{
      .device = {"toy", "avx2", 2}, .kernel = Sha256("k"), .machine = "m", .tenant = "t"};
  std::set<Digest> keys = {KeyOf(base)};
  std::vector<KernelTimings> others(6, base);
  others[0].device.target = "other";
  others[1].device.isa = "avx512";
  others[2].device.threads = 1;
  others[3].kernel = Sha256("other");
  others[4].machine = "other";
  others[5].tenant = "other";
  for (const KernelTimings& other : others) EXPECT_TRUE(keys.insert(KeyOf(other)).second);
  KernelTimings same = base;
  same.times.calls = 7;
  same.model_name = "other";
  EXPECT_EQ(KeyOf(same), KeyOf(base));
}

}  // namespace
}  // namespace fusion
