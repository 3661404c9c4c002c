#include "core/runtime/latency_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fusion {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// The boundaries of a run whose launches take the same time each.
std::vector<Nanoseconds> Even(size_t launches, Nanoseconds run, Nanoseconds begin = {}) {
  std::vector<Nanoseconds> out;
  for (size_t i = 0; i <= launches; ++i) {
    out.push_back(begin + run * static_cast<int64_t>(i) / static_cast<int64_t>(launches));
  }
  return out;
}

struct Machine {
  Nanoseconds clock_read;
  Nanoseconds bookkeeping;
  Nanoseconds run;
};

// Part of the time of `runs` runs that timing some of them takes.
double CostShare(const Machine& machine, size_t launches, int64_t runs) {
  LatencySampler sampler(launches, machine.clock_read);
  std::vector<Nanoseconds> run = Even(launches, machine.run);
  Nanoseconds cost{0};
  for (int64_t i = 0; i < runs; ++i) {
    if (sampler.Begin()) {
      sampler.Add(run);
      sampler.Charge(machine.bookkeeping);
      cost += machine.clock_read * static_cast<int64_t>(launches + 2) + machine.bookkeeping;
    }
  }
  EXPECT_GT(cost.count(), 0);
  return static_cast<double>(cost.count()) / static_cast<double>((machine.run * runs).count());
}

TEST(LatencySampler, CostsLessThanHalfAPercentHoweverShortRunsAre) {
  for (Nanoseconds run : {nanoseconds(800), nanoseconds(5000), nanoseconds(400'000)}) {
    for (Nanoseconds clock : {nanoseconds(20), nanoseconds(600)}) {
      Machine machine{.clock_read = clock, .bookkeeping = nanoseconds(150), .run = run};
      EXPECT_LT(CostShare(machine, 8, 2'000'000), 0.005) << run.count() << " " << clock.count();
      EXPECT_LT(CostShare(machine, 50, 2'000'000), 0.005) << run.count() << " " << clock.count();
    }
  }
}

TEST(LatencySampler, TimesEveryRunThatIsLongEnough) {
  LatencySampler sampler(8, nanoseconds(25));
  for (int i = 0; i < 100; ++i) {
    if (!sampler.Begin()) continue;
    sampler.Add(Even(8, microseconds(8000)));
    sampler.Charge(nanoseconds(100));
  }
  EXPECT_EQ(sampler.interval(), 1);
  EXPECT_GT(ByLaunch(sampler.Take({})).run_us.size(), 80u);
}

TEST(LatencySampler, GivesWhatItWasGivenOnce) {
  LatencySampler sampler(2, nanoseconds(1));
  sampler.CountRun();
  sampler.CountRun();
  sampler.Add({microseconds(5), microseconds(8), microseconds(15)});
  sampler.Add({microseconds(20), microseconds(24), microseconds(30)});
  LatencySamples taken = ByLaunch(sampler.Take({}));
  EXPECT_EQ(taken.runs, 2);
  EXPECT_EQ(taken.run_us, (std::vector<double>{10, 10}));
  EXPECT_EQ(taken.launch_us, (std::vector<std::vector<double>>{{3, 4}, {7, 6}}));
  taken = ByLaunch(sampler.Take({}));
  EXPECT_EQ(taken.runs, 0);
  EXPECT_TRUE(taken.run_us.empty());
  EXPECT_EQ(taken.launch_us, (std::vector<std::vector<double>>{{}, {}}));
}

TEST(LatencySampler, KeepsABoundedNumberSpreadOverAllRuns) {
  constexpr int64_t kRuns = 300'000;
  for (size_t launches : {1, 8, 100'000}) {
    int64_t runs = launches > 1000 ? 300 : kRuns;
    LatencySampler sampler(launches, nanoseconds(0));
    // Run i takes i milliseconds, so that a sample tells when it was taken.
    for (int64_t i = 1; i <= runs; ++i) {
      sampler.CountRun();
      if (!sampler.Begin()) continue;
      std::vector<Nanoseconds> run(launches + 1, std::chrono::milliseconds(i));
      run[0] = Nanoseconds(0);
      sampler.Add(run);
      sampler.Charge(nanoseconds(1));
    }
    LatencySamples taken = ByLaunch(sampler.Take({}));
    EXPECT_EQ(taken.runs, runs);
    ASSERT_GE(taken.run_us.size(), 8u);
    EXPECT_LE(taken.run_us.size(), 256u);
    double widest = taken.run_us.front();
    for (size_t i = 1; i < taken.run_us.size(); ++i) {
      widest = std::max(widest, taken.run_us[i] - taken.run_us[i - 1]);
    }
    widest = std::max(widest, static_cast<double>(runs) * 1e3 - taken.run_us.back());
    EXPECT_LT(widest, static_cast<double>(runs) * 1e3 / 5) << launches << " launches";
  }
}

TEST(LatencySampler, TakesMoreAgainAfterItWasEmptied) {
  LatencySampler sampler(1, nanoseconds(0));
  auto run_many = [&] {
    for (int i = 0; i < 10'000; ++i) {
      if (!sampler.Begin()) continue;
      sampler.Add(Even(1, microseconds(10)));
      sampler.Charge(nanoseconds(1));
    }
  };
  run_many();
  EXPECT_GT(sampler.interval(), 16);
  sampler.Take({});
  EXPECT_EQ(sampler.interval(), 1);
}

TEST(LatencySampler, StopsForGood) {
  LatencySampler sampler(1, nanoseconds(0));
  sampler.Stop();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(sampler.Begin());
  sampler.Take({});
  EXPECT_FALSE(sampler.Begin());
}

}  // namespace
}  // namespace fusion
