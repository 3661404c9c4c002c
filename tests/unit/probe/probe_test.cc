#include "core/probe/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text/text.h"
#include "core/device/host_isa.h"
#include "core/probe/arithmetic.h"
#include "core/probe/streams.h"
#include "core/probe/team.h"

namespace fusion {
namespace {

using testing::HasSubstr;

TEST(Probe, MeasuresEveryConstantOfThisMachine) {
  const ProbeResult result = Probe({.seconds = 0.1, .threads = 2, .program = "a test"}).value();
  EXPECT_TRUE(CheckMeasured(result.constants, "m").ok()) << CheckMeasured(result.constants, "m");
  EXPECT_EQ(result.constants.isa, HostIsaName());
  EXPECT_EQ(result.constants.threads, 2);
  EXPECT_THAT(result.constants.source, HasSubstr("a test, "));
  for (const char* name :
       {"product_rate", "total_product_rate", "scalar_rate", "total_scalar_rate", "l1.bandwidth",
        "l1.total_bandwidth", "l2.bandwidth", "memory.bandwidth", "memory.total_bandwidth",
        "launch", "barrier", "relaunch", "call", "task"}) {
    EXPECT_GT(result.constants.values.count(name), 0u) << name;
  }
  EXPECT_EQ(result.details.size(), result.constants.values.size());
  for (const ProbedConstant& constant : result.details) {
    EXPECT_GT(constant.value, 0) << constant.name;
    EXPECT_LE(constant.low, constant.value) << constant.name;
    EXPECT_GE(constant.high, constant.value) << constant.name;
    EXPECT_GE(constant.bursts, 3) << constant.name;
  }
}

TEST(Probe, MeasuresLowerLevelsToo) {
  const ProbeResult result = Probe({.seconds = 0.05, .threads = 1, .isa = Isa::kX86V2}).value();
  EXPECT_EQ(result.constants.isa, "x86-64-v2");
  EXPECT_EQ(result.constants.values.count("bf16.product_rate"), 0u);
  EXPECT_EQ(result.constants.values.count("task"), 0u) << "nothing is handed over";
}

TEST(Probe, RefusesOptionsOutOfRange) {
  for (double seconds : {0.0, -1.0, 61.0}) {
    EXPECT_THAT(std::string(Message(Probe({.seconds = seconds}).status())), HasSubstr("seconds: "))
        << seconds;
  }
  EXPECT_THAT(std::string(Message(Probe({.threads = 513}).status())),
              HasSubstr("threads: 513; expected 0..512"));
}

TEST(Probe, StopsWhenAsked) {
  int asked = 0;
  const absl::Status status =
      Probe({.seconds = 60, .threads = 1, .stop = [&] { return ++asked > 3; }}).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(asked, 4);
}

TEST(Arithmetic, LoopsOfEveryLevelThatRunsHereCountTheirWork) {
  for (Isa isa : kIsas) {
    if (!HostRuns(isa)) continue;
    for (DType type : {DType::kF32, DType::kBF16, DType::kI8}) {
      const WorkLoop loop = ProductLoop(type, isa);
      if (loop == nullptr) continue;
      EXPECT_GT(loop(1), 0);
      EXPECT_EQ(loop(20), 20 * loop(1)) << IsaName(isa) << " " << DTypeName(type);
    }
    EXPECT_EQ(AdditionLoop(isa)(2), 2 * 16 * 1024) << "sixteen of each of 1024 elements";
  }
}

TEST(Streams, APassWritesTheSumOfWhatItReads) {
  for (Isa isa : kIsas) {
    if (!HostRuns(isa)) continue;
    for (bool streaming : {false, true}) {
      const Streams streams(2, 1, 3 * 4096);
      ASSERT_EQ(streams.array_floats(), 1024);
      streams.read(1)[64] = 5;
      FindStreamPass(2, 1, streaming, isa)(streams, 64, 128);
      EXPECT_EQ(streams.written(0)[63], 1) << "before the range";
      EXPECT_EQ(streams.written(0)[64], 6);
      EXPECT_EQ(streams.written(0)[127], 2);
      EXPECT_EQ(streams.written(0)[128], 1) << "behind it";
    }
  }
  EXPECT_EQ(FindStreamPass(4, 4, false, Isa::kX86V2), nullptr);
}

TEST(Team, AddsUpTheWorkOfAllThreads) {
  std::vector<int> visits(3, 0);
  const Burst burst = RunOnThreads(3, [&](int thread) {
    ++visits[static_cast<size_t>(thread)];
    return 1.0;
  });
  EXPECT_EQ(visits, (std::vector<int>{1, 1, 1}));
  EXPECT_GT(burst.work_per_s, 0);
  EXPECT_LE(burst.cpu_share, 1);
}

}  // namespace
}  // namespace fusion
