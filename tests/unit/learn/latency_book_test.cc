#include "core/learn/latency_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/cache/memory/memory_records.h"
#include "core/cache/memory/memory_store.h"
#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two kernels, three launches: the first kernel runs twice.
Plan TwoKernels(int64_t nodes = 3) {
  Plan plan;
  plan.target = "generic-avx2";
  plan.threads = 4;
  plan.nodes = static_cast<int>(nodes);
  plan.kernels = {{.key = Sha256("first"), .label = "MatMul+Add"},
                  {.key = Sha256("second"), .label = "Softmax"}};
  for (int g = 0; g < 3; ++g) {
    PlanGroup group{.nodes = {2 * g, 2 * g + 1}, .kernel = g == 1 ? 1 : 0};
    group.estimate.time_us = 10 * (g + 1);
    group.estimate.activation_bytes = 100;
    group.estimate.recompute_bytes = 5;
    group.op_by_op.estimated_us = 20 * (g + 1);
    group.op_by_op.activation_bytes = 300;
    plan.groups.push_back(group);
    plan.launches.push_back({.group = g, .kernel = group.kernel, .tensors = {}});
  }
  plan.totals.estimated_us = 60;
  plan.op_by_op.estimated_us = 120;
  return plan;
}

class LatencyBookTest : public testing::Test {
 protected:
  Digest Store(const std::string& graph, Plan plan = TwoKernels()) {
    auto stored = std::make_shared<StoredPlan>(MakeStoredPlan(graph, plan, 1));
    EXPECT_TRUE(store_.PutBundle({.plan = stored, .kernels = {}}).ok());
    return stored->key;
  }
  static LatencyReport ReportOn(const Digest& key) {
    return {.plan_key = key,
            .launches = {{.launch = 0, .samples_us = {4, 2}},
                         {.launch = 2, .samples_us = {8, 6}, .calls = 10}},
            .run_samples_us = {100},
            .runs = 5,
            .threads = 4,
            .device = "a machine"};
  }
  std::vector<PlanReport> Reports(std::optional<Digest> plan = std::nullopt, int limit = 100) {
    absl::StatusOr<std::vector<PlanReport>> reports = book_.Reports(plan, limit, CancelToken());
    EXPECT_TRUE(reports.ok()) << reports.status();
    return reports.ok() ? *std::move(reports) : std::vector<PlanReport>();
  }

  FakeClock clock_;
  MemoryStore store_{int64_t{64} << 20, Logger::Silent()};
  MemoryMeasurements measurements_;
  MemoryTimings timings_;
  LatencyBook book_{store_, measurements_, timings_, clock_};
};

TEST_F(LatencyBookTest, AReportIsShownBesideWhatWasEstimated) {
  Digest key = Store("graph");
  absl::StatusOr<int64_t> added = book_.Add(ReportOn(key), "a tenant");
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(*added, 5);
  std::vector<PlanReport> reports = Reports();
  ASSERT_THAT(reports, SizeIs(1));
  const PlanReport& report = reports[0];
  EXPECT_EQ(report.plan_key, key);
  EXPECT_EQ(report.target, "generic-avx2");
  EXPECT_EQ(report.threads, 4);
  EXPECT_THAT(report.devices, ElementsAre("a machine"));
  EXPECT_EQ(report.runs.calls, 5);
  EXPECT_EQ(report.runs.samples, 1);
  EXPECT_EQ(report.runs.median_us, 100);
  EXPECT_EQ(report.totals.estimated_us, 60);
  EXPECT_EQ(report.op_by_op.estimated_us, 120);
  ASSERT_THAT(report.kernels, SizeIs(2));
  const KernelReport& first = report.kernels[0];
  EXPECT_EQ(first.kernel_key, Sha256("first"));
  EXPECT_EQ(first.label, "MatMul+Add");
  EXPECT_EQ(first.launches, 2);
  EXPECT_EQ(first.nodes, 2);
  EXPECT_EQ(first.measured.calls, 12) << "two of launch 0, ten of launch 2";
  EXPECT_EQ(first.measured.samples, 4);
  EXPECT_EQ(first.measured.median_us, 5);
  EXPECT_EQ(first.measured.min_us, 2);
  EXPECT_EQ(first.measured.p90_us, 7.4) << "between 6 and 8";
  EXPECT_EQ(first.estimated_us, 20) << "of one launch: groups 0 and 2";
  EXPECT_EQ(first.op_by_op_us, 40);
  EXPECT_EQ(first.activation_bytes, 210) << "of both, what is read again included";
  EXPECT_EQ(first.op_by_op_activation_bytes, 600);
  const KernelReport& second = report.kernels[1];
  EXPECT_EQ(second.launches, 1);
  EXPECT_EQ(second.measured.samples, 0);
  EXPECT_EQ(second.measured.median_us, 0);
}

TEST_F(LatencyBookTest, AReportWithAnIdCountsOnceForItsTenant) {
  const LatencyReport report = ReportOn(Store("graph"));
  const ReportOrigin origin{.id = "one"};
  absl::StatusOr<AddedReport> first = book_.Add(report, origin, "a");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->samples, 5);
  EXPECT_FALSE(first->duplicate);
  const AddedReport again = book_.Add(report, origin, "a").value();
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.samples, 0);
  EXPECT_EQ(Reports().at(0).runs.calls, 5);
  EXPECT_FALSE(book_.Add(report, origin, "b").value().duplicate);
  EXPECT_FALSE(book_.Add(report, {.id = "two"}, "a").value().duplicate);
  EXPECT_FALSE(book_.Add(report, ReportOrigin(), "a").value().duplicate);
  EXPECT_FALSE(book_.Add(report, ReportOrigin(), "a").value().duplicate) << "without an id";
  EXPECT_EQ(Reports().at(0).runs.calls, 25);
}

TEST_F(LatencyBookTest, TheIdOfARefusedReportMayBeSentAgain) {
  LatencyReport report = ReportOn(Sha256("not planned yet"));
  EXPECT_TRUE(absl::IsNotFound(book_.Add(report, {.id = "one"}, "a").status()));
  report.plan_key = Store("graph");
  EXPECT_FALSE(book_.Add(report, {.id = "one"}, "a").value().duplicate);
}

TEST_F(LatencyBookTest, EqualReportsAtOnceCountOnce) {
  const LatencyReport report = ReportOn(Store("graph"));
  std::atomic<int> stored{0};
  std::vector<std::thread> senders;
  for (int i = 0; i < 8; ++i) {
    senders.emplace_back([&] {
      for (int id = 0; id < 50; ++id) {
        stored += book_.Add(report, {.id = StrCat(id)}, "a").value().duplicate ? 0 : 1;
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(stored, 50);
  EXPECT_EQ(Reports().at(0).runs.calls, 250);
}

TEST_F(LatencyBookTest, UnderBackgroundLoadCallsAreCountedOnly) {
  const LatencyReport report = ReportOn(Store("graph"));
  EXPECT_EQ(book_.Add(report, {.background_load = kMaxBackgroundLoad}, "a")->samples, 5);
  EXPECT_EQ(book_.Add(report, {.background_load = 0.6}, "a")->samples, 0);
  const PlanReport seen = Reports().at(0);
  EXPECT_EQ(seen.runs.calls, 10);
  EXPECT_EQ(seen.runs.samples, 1);
  EXPECT_EQ(seen.kernels[0].measured.calls, 24);
  EXPECT_EQ(seen.kernels[0].measured.samples, 4);
}

TEST_F(LatencyBookTest, TheClockIsKeptWithTheTimesOfKernels) {
  Plan plan = TwoKernels();
  plan.groups[0].form = "product";
  const LatencyReport report = ReportOn(Store("graph", plan));
  ASSERT_TRUE(book_.Add(report, {.clock_ghz = 3.5}, "a").ok());
  ASSERT_TRUE(book_.Add(report, ReportOrigin(), "a").ok());
  ASSERT_THAT(timings_.Keys(), SizeIs(1));
  EXPECT_EQ(timings_.Get(timings_.Keys()[0])->clock_ghz, 3.5) << "unknown replaces no known one";
  ASSERT_TRUE(book_.Add(report, {.clock_ghz = 2.5}, "a").ok());
  EXPECT_EQ(timings_.Get(timings_.Keys()[0])->clock_ghz, 2.5);
}

TEST_F(LatencyBookTest, AReportIsKeptThoughThereIsNoRoomForTimesOfKernels) {
  Plan plan = TwoKernels();
  for (PlanGroup& group : plan.groups) group.form = "product";
  const Digest key = Store("graph", plan);
  MemoryTimings full(0);
  LatencyBook book(store_, measurements_, full, clock_);
  EXPECT_EQ(*book.Add(ReportOn(key), "a tenant"), 5);
  EXPECT_THAT(Reports(), SizeIs(1));
  EXPECT_EQ(full.Stats().records, 0);
  EXPECT_EQ(*book_.Add(ReportOn(key), "a tenant"), 5);
  EXPECT_EQ(timings_.Stats().records, 1) << "of the kernel that was measured";
}

TEST_F(LatencyBookTest, WhatDoesNotFitThePlanLeavesNothing) {
  Digest key = Store("graph");
  LatencyReport report = ReportOn(key);
  report.launches.push_back({.launch = 3, .samples_us = {1}});
  absl::Status status = book_.Add(report, "a tenant").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(Message(status), "launches[2].launch: 3; the plan has launches 0..2");
  report = ReportOn(key);
  report.kernels = Sha256("others");
  status = book_.Add(report, "a tenant").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("other kernels by now"));
  status = book_.Add(ReportOn(Sha256("nobody's")), "a tenant").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr("PlanFusion makes it again"));
  EXPECT_THAT(Reports(), IsEmpty());
  EXPECT_EQ(measurements_.Stats().records, 0);
  report = ReportOn(key);
  report.kernels = LaunchedKernels(TwoKernels());
  EXPECT_TRUE(book_.Add(report, "a tenant").ok());
}

TEST_F(LatencyBookTest, PlansOfOpenDimsAreNotReportedOn) {
  Plan plan = TwoKernels();
  plan.symbols = {{.least = 1, .most = 512}};
  absl::Status added = book_.Add(ReportOn(Store("open", plan)), "a tenant").status();
  EXPECT_TRUE(absl::IsInvalidArgument(added)) << added;
  EXPECT_THAT(added.message(), HasSubstr("leaves dims open"));
  EXPECT_THAT(Reports(), IsEmpty());
}

TEST_F(LatencyBookTest, OnlyTheNewestSamplesAreKeptButEveryCallCounts) {
  Digest key = Store("graph");
  LatencyReport report{
      .plan_key = key, .launches = {{.launch = 1, .samples_us = {}}}, .threads = 4};
  report.launches[0].samples_us.assign(200, 7);
  EXPECT_TRUE(book_.Add(report, "a tenant").ok());
  report.launches[0].samples_us.assign(200, 3);
  EXPECT_TRUE(book_.Add(report, "a tenant").ok());
  LatencySummary measured = Reports()[0].kernels[1].measured;
  EXPECT_EQ(measured.calls, 400);
  EXPECT_EQ(measured.samples, 256);
  EXPECT_EQ(measured.median_us, 3);
  EXPECT_EQ(measured.p90_us, 7) << "56 of the first report are left";
}

TEST_F(LatencyBookTest, CallsDoNotOverflow) {
  Digest key = Store("graph");
  LatencyReport report{.plan_key = key, .run_samples_us = {1}, .runs = INT64_MAX - 1};
  EXPECT_TRUE(book_.Add(report, "a tenant").ok());
  EXPECT_TRUE(book_.Add(report, "a tenant").ok());
  EXPECT_EQ(Reports()[0].runs.calls, INT64_MAX);
}

TEST_F(LatencyBookTest, TheLatestReportComesFirst) {
  std::vector<Digest> keys;
  for (const char* graph : {"a", "b", "c"}) {
    keys.push_back(Store(graph));
    clock_.Advance(std::chrono::seconds(1));
    EXPECT_TRUE(book_.Add(ReportOn(keys.back()), "a tenant").ok());
  }
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(book_.Add(ReportOn(keys[1]), "a tenant").ok());
  auto order = [](const std::vector<PlanReport>& reports) {
    std::vector<Digest> out;
    for (const PlanReport& report : reports) out.push_back(report.plan_key);
    return out;
  };
  EXPECT_THAT(order(Reports()), ElementsAre(keys[1], keys[2], keys[0]));
  EXPECT_THAT(order(Reports(std::nullopt, 2)), ElementsAre(keys[1], keys[2]));
  EXPECT_THAT(order(Reports(keys[0])), ElementsAre(keys[0]));
}

TEST_F(LatencyBookTest, APlanThatIsGoneIsLeftOutAndOneWithoutReportsHasNone) {
  EXPECT_TRUE(absl::IsNotFound(book_.Reports(Sha256("nobody's"), 1, CancelToken()).status()));
  EXPECT_THAT(Reports(Store("quiet")), IsEmpty());
  PlanMeasurements orphan{.last_report_unix_ms = 1};
  EXPECT_TRUE(measurements_.Put(Sha256("gone"), orphan).ok());
  EXPECT_THAT(Reports(), IsEmpty());
  EXPECT_EQ(measurements_.Stats().records, 0) << "and is not looked for again";
}

TEST_F(LatencyBookTest, APlanWithOtherKernelsStartsAnew) {
  Digest key = Store("graph");
  EXPECT_TRUE(book_.Add(ReportOn(key), "a tenant").ok());
  Plan apart = TwoKernels();
  apart.kernels[0].key = Sha256("third");
  ASSERT_EQ(Store("graph", apart), key);
  EXPECT_THAT(Reports(), IsEmpty()) << "those were of another kernel";
  EXPECT_EQ(measurements_.Stats().records, 0);
  EXPECT_TRUE(book_.Add(ReportOn(key), "a tenant").ok());
  EXPECT_EQ(Reports()[0].kernels[0].measured.calls, 12);
}

TEST_F(LatencyBookTest, ReportsStayBelowTheirLimit) {
  Plan wide;
  constexpr int kKernels = 50'000;
  for (int k = 0; k < kKernels; ++k) {
    wide.kernels.push_back({.key = Sha256(StrCat(k)), .label = std::string(100, 'x')});
    wide.groups.push_back({.kernel = k});
    wide.launches.push_back({.group = k, .kernel = k, .tensors = {}});
  }
  for (const char* graph : {"a", "b"}) {
    EXPECT_TRUE(
        book_.Add({.plan_key = Store(graph, wide), .run_samples_us = {1}}, "a tenant").ok());
  }
  EXPECT_THAT(Reports(), SizeIs(1)) << "two of 13 MB are too much";
}

TEST_F(LatencyBookTest, NoMorePlansAreReadThanMayBe) {
  Plan large = TwoKernels();
  large.decisions.push_back(
      {.reason = std::string(LatencyBook::kMaxReadBytes / 9, 'x'), .places = {{}}});
  for (const char* graph : {"a", "b", "c", "d"}) {
    EXPECT_TRUE(book_.Add(ReportOn(Store(graph, large)), "a tenant").ok());
  }
  EXPECT_THAT(Reports(), SizeIs(3)) << "each is charged a third";
}

TEST_F(LatencyBookTest, SamplesOfOtherThreadsAreCountedButNotMixedIn) {
  Digest key = Store("graph");
  EXPECT_EQ(*book_.Add(ReportOn(key), "a tenant"), 5);
  LatencyReport alone = ReportOn(key);
  alone.threads = 1;
  alone.run_samples_us = {900};
  for (LaunchLatency& launch : alone.launches) launch.samples_us = {500, 700};
  EXPECT_EQ(*book_.Add(alone, "a tenant"), 0);
  PlanReport report = Reports()[0];
  EXPECT_EQ(report.runs.calls, 10);
  EXPECT_EQ(report.runs.samples, 1);
  EXPECT_EQ(report.runs.median_us, 100);
  EXPECT_EQ(report.kernels[0].measured.calls, 24);
  EXPECT_EQ(report.kernels[0].measured.samples, 4);
  EXPECT_EQ(report.kernels[0].measured.median_us, 5);
}

TEST_F(LatencyBookTest, WhoLooksAtReportsUsesNoPlan) {
  Digest first = Store("first");
  EXPECT_TRUE(book_.Add(ReportOn(first), "a tenant").ok());
  int64_t bytes = store_.Stats()[0].bytes;
  MemoryStore two(2 * bytes, Logger::Silent());
  LatencyBook book(two, measurements_, timings_, clock_);
  auto put = [&](const char* graph) {
    auto stored = std::make_shared<StoredPlan>(MakeStoredPlan(graph, TwoKernels(), 1));
    EXPECT_TRUE(two.PutBundle({.plan = stored, .kernels = {}}).ok());
  };
  put("first");
  put("other");
  EXPECT_THAT(book.Reports(std::nullopt, 10, CancelToken()).value(), SizeIs(1));
  put("third");
  EXPECT_FALSE(two.HasPlan(first)) << "it was the one that was used longest ago";
}

TEST_F(LatencyBookTest, NobodyWaitsForReportsOnceCancelled) {
  EXPECT_TRUE(book_.Add(ReportOn(Store("graph")), "a tenant").ok());
  CancelToken cancel;
  cancel.Cancel();
  EXPECT_TRUE(absl::IsCancelled(book_.Reports(std::nullopt, 10, cancel).status()));
}

TEST_F(LatencyBookTest, OfReportsAtOnceNoneIsLost) {
  Digest key = Store("graph");
  constexpr int kThreads = 8;
  constexpr int kReports = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kReports; ++i) {
        LatencyReport report{.plan_key = key,
                             .launches = {{.launch = t % 3, .samples_us = {1.5}, .calls = 3}},
                             .threads = 4,
                             .device = StrCat("machine ", t)};
        EXPECT_TRUE(book_.Add(report, "a tenant").ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  PlanReport report = Reports()[0];
  EXPECT_EQ(report.kernels[0].measured.calls + report.kernels[1].measured.calls,
            3 * kThreads * kReports);
  EXPECT_THAT(report.devices, SizeIs(kThreads));
}

}  // namespace
}  // namespace fusion
