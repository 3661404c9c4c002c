#include "client/reports/latency_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace fusion {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::ElementsAre;

LatencySamples Samples(int64_t runs, std::vector<double> run_us) {
  return {.runs = runs, .run_us = run_us, .launch_us = {run_us, run_us}};
}

// A service and an executor that a test makes up.
struct Fake {
  LatencyReporter::Callbacks callbacks() {
    return {.take =
                [this] {
                  ++taken;
                  return samples;
                },
            .send =
                [this](const LatencyReport& report, const ReportOrigin& origin,
                       const CancelToken& until) {
                  MutexLock lock(&mutex);
                  reports.push_back(report);
                  origins.push_back(origin);
                  absl::Status status = answer(until);
                  ++sent;
                  return status;
                },
            .stopped = [this] { stopped = true; }};
  }

  // Longer than any machine takes to get there.
  template <typename Condition>
  static bool Await(const Condition& condition) {
    Nanoseconds end = Clock::Real().Now() + std::chrono::minutes(1);
    while (!condition()) {
      if (Clock::Real().Now() > end) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }

  LatencySamples samples = Samples(9, {10, 20});
  std::function<absl::Status(const CancelToken&)> answer = [](const CancelToken&) {
    return absl::OkStatus();
  };
  Mutex mutex;
  std::vector<LatencyReport> reports;
  std::vector<ReportOrigin> origins;
  std::atomic<int> taken{0};
  std::atomic<int> sent{0};
  std::atomic<bool> stopped{false};
};

LatencyReport Header() { return {.plan_key = Sha256("plan"), .threads = 3, .device = "a CPU"}; }

TEST(MakeReport, HoldsTheHeaderAndTheSamples) {
  std::optional<LatencyReport> report =
      MakeReport(Header(), {.runs = 9, .run_us = {30, 40}, .launch_us = {{10, 20}, {20, 20}}});
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->plan_key, Sha256("plan"));
  EXPECT_EQ(report->threads, 3);
  EXPECT_EQ(report->device, "a CPU");
  EXPECT_EQ(report->runs, 9);
  EXPECT_THAT(report->run_samples_us, ElementsAre(30, 40));
  ASSERT_EQ(report->launches.size(), 2u);
  EXPECT_EQ(report->launches[1].launch, 1);
  EXPECT_EQ(report->launches[1].calls, 9);
  EXPECT_THAT(report->launches[0].samples_us, ElementsAre(10, 20));
}

TEST(MakeReport, IsNothingWithoutRuns) {
  EXPECT_FALSE(MakeReport(Header(), {}).has_value());
  EXPECT_FALSE(MakeReport(Header(), {.runs = 0, .run_us = {}, .launch_us = {{}}}).has_value());
}

TEST(MakeReport, RunsThatWereNotTimedCount) {
  std::optional<LatencyReport> report =
      MakeReport(Header(), {.runs = 7, .run_us = {}, .launch_us = {{}}});
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->runs, 7);
  EXPECT_TRUE(report->launches.empty());
  EXPECT_TRUE(report->run_samples_us.empty());
}

TEST(MakeReport, StaysWithinWhatServersAccept) {
  std::vector<double> many(3000, 5);
  many.front() = 1;
  many[many.size() - 2] = 0;
  many.back() = 1e12;
  std::optional<LatencyReport> report = MakeReport(Header(), Samples(2, many));
  ASSERT_TRUE(report.has_value());
  for (const std::vector<double>& samples :
       {report->run_samples_us, report->launches[0].samples_us}) {
    ASSERT_EQ(samples.size(), static_cast<size_t>(kMaxReportSamples));
    EXPECT_EQ(samples.front(), 5);  // the newest
    EXPECT_GT(samples[samples.size() - 2], 0);
    EXPECT_EQ(samples.back(), kMaxLatencyUs);
  }
  EXPECT_EQ(report->runs, kMaxReportSamples);
}

TEST(LatencyReporter, SendsAgainAndAgain) {
  Fake fake;
  LatencyReporter reporter(Header(), fake.callbacks(), {.every = milliseconds(1)});
  EXPECT_TRUE(Fake::Await([&] { return fake.sent >= 3; }));
  MutexLock lock(&fake.mutex);
  EXPECT_EQ(fake.reports[0].device, "a CPU");
  EXPECT_EQ(fake.reports[0].runs, 9);
}

TEST(LatencyReporter, SendsTheRestWhenItIsDestroyed) {
  Fake fake;
  {
    LatencyReporter reporter(Header(), fake.callbacks(),
                             {.every = hours(1), .last_timeout = hours(1)});
  }
  EXPECT_EQ(fake.taken, 1);
  EXPECT_EQ(fake.sent, 1);
  EXPECT_FALSE(fake.stopped);
}

TEST(LatencyReporter, SendsNothingWhereNothingRan) {
  Fake fake;
  fake.samples = {};
  {
    LatencyReporter reporter(Header(), fake.callbacks(), {.every = milliseconds(1)});
    EXPECT_TRUE(Fake::Await([&] { return fake.taken >= 3; }));
  }
  EXPECT_EQ(fake.sent, 0);
}

TEST(LatencyReporter, RunsThatWereNotTimedAreToldWithTheNextThatIs) {
  Fake fake;
  LatencyReporter::Callbacks callbacks = fake.callbacks();
  callbacks.take = [&fake] {
    switch (fake.taken++) {
      case 0:
        return LatencySamples{.runs = 7, .run_us = {}, .launch_us = {{}, {}}};
      case 1:
        return LatencySamples{.runs = 5, .run_us = {}, .launch_us = {{}, {}}};
      case 2:
        return Samples(9, {10, 20});
      case 3:
        return LatencySamples{.runs = 4, .run_us = {}, .launch_us = {{}, {}}};
      default:
        return LatencySamples();
    }
  };
  {
    LatencyReporter reporter(Header(), callbacks,
                             {.every = Nanoseconds(-1), .last_timeout = hours(1)});
    EXPECT_TRUE(Fake::Await([&] { return fake.taken >= 4; }));
  }
  ASSERT_EQ(fake.reports.size(), 2u);
  EXPECT_EQ(fake.reports[0].runs, 21);
  EXPECT_EQ(fake.reports[0].launches[0].calls, 21);
  EXPECT_EQ(fake.reports[1].runs, 4) << "nothing is left behind at the end";
  EXPECT_TRUE(fake.reports[1].launches.empty());
}

TEST(LatencyReporter, AServiceThatIsAwayMayComeBack) {
  Fake fake;
  fake.answer = [&fake](const CancelToken&) {
    return fake.sent < 3 ? Unavailable("away") : absl::OkStatus();
  };
  {
    LatencyReporter reporter(Header(), fake.callbacks(),
                             {.every = milliseconds(1), .last_timeout = hours(1)});
    EXPECT_TRUE(Fake::Await([&] { return fake.sent >= 5; }));
  }
  // The first report fails, again, and is dropped; the second fails and is sent again.
  EXPECT_EQ(fake.taken + 2, fake.sent);
  EXPECT_FALSE(fake.stopped);
  ASSERT_GE(fake.origins.size(), 5u);
  const std::vector<ReportOrigin>& sent = fake.origins;
  EXPECT_EQ(sent[0].id, sent[1].id);
  EXPECT_NE(sent[1].id, sent[2].id);
  EXPECT_EQ(sent[2].id, sent[3].id) << "the same report has the same id";
  EXPECT_NE(sent[3].id, sent[4].id);
  for (const ReportOrigin& origin : sent) {
    EXPECT_EQ(origin.id.size(), 16u);
    EXPECT_GE(origin.background_load, 0);
    EXPECT_LE(origin.background_load, 1);
  }
}

TEST(LatencyReporter, StopsOnceThePlanIsGone) {
  Fake fake;
  fake.answer = [](const CancelToken&) { return NotFound("no such plan"); };
  {
    LatencyReporter reporter(Header(), fake.callbacks(), {.every = milliseconds(1)});
    EXPECT_TRUE(Fake::Await([&] { return fake.stopped.load(); }));
  }
  EXPECT_EQ(fake.sent, 1);
  EXPECT_EQ(fake.taken, 1);
}

TEST(LatencyReporter, ItsEndCutsOffAReportUnderWay) {
  Fake fake;
  std::atomic<bool> waiting{false};
  std::atomic<bool> cut_off{false};
  std::atomic<int> calls{0};
  fake.answer = [&](const CancelToken& until) {
    if (++calls > 1) return absl::OkStatus();  // the last one
    waiting = true;
    cut_off = Fake::Await([&] { return absl::IsCancelled(until.Check()); });
    return until.Check();
  };
  {
    LatencyReporter reporter(Header(), fake.callbacks(),
                             {.every = milliseconds(1), .timeout = hours(1)});
    EXPECT_TRUE(Fake::Await([&] { return waiting.load(); }));
  }
  EXPECT_TRUE(cut_off);
}

TEST(LatencyReporter, TheLastReportHasAnEndToo) {
  Fake fake;
  std::atomic<bool> ended{false};
  fake.answer = [&](const CancelToken& until) {
    ended = Fake::Await([&] { return absl::IsDeadlineExceeded(until.Check()); });
    return until.Check();
  };
  {
    LatencyReporter reporter(Header(), fake.callbacks(),
                             {.every = hours(1), .last_timeout = milliseconds(20)});
  }
  EXPECT_TRUE(ended || fake.sent == 0);  // on a busy machine the time may pass before it is sent
}

}  // namespace
}  // namespace fusion
