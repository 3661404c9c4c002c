#include "core/check/kernel_race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/statistics/quantile.h"
#include "core/compile/job_runner.h"
#include "core/compile/toolchain.h"
#include "core/device/host_isa.h"
#include "core/graph/build/text.h"
#include "core/runtime/usable_cores.h"
#include "core/schedule/lower/reference.h"
#include "core/schedule/tiles/candidates.h"
#include "tests/support/kernel_source.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

/// Vouches for everything.
class NoChecker final : public KernelChecker {
 public:
  absl::StatusOr<CheckReport> Check(const CompileJob&, std::string_view) override {
    return CheckReport();
  }
};

// Compiled kernels that add 256 numbers to themselves, some of them as often as they are told.
class KernelRaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HostRuns(Isa::kX86V2)) GTEST_SKIP() << "this machine runs none of our kernels";
    WholeProgram whole = AsOneGroup(BuildProgram(ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[256]
  %1 = Add(%0, %0) : f32[256]  "" @ ""
  output %1
}
)")
                                                     .value())
                                        .value())
                             .value();
    const DeviceSpec device = DeviceNamed("generic-x86-64-v2");
    const Choice choice = EnumerateChoices(whole.group, device, {}, nullptr).at(0);
    const Lowered lowered = Lower(whole.group, choice, device, false).value();
    schedule_ = ToString(lowered.schedule);
    reference_ = ToString(MakeReference(whole.program, whole.group, lowered));
    dir_ = std::make_unique<TempDir>(TempDir::Create(::testing::TempDir(), "race-").value());
    runner_ = MakeProcessRunner(FUSION_EXEC);
  }

  // `before`: what the kernel does before the work of each call.
  KernelRace::Runner Runner(const std::string& before = "") {
    ToolchainOptions options;
    options.scratch_dir = dir_->path();
    auto toolchain = Toolchain::Open(options, *runner_);
    FUSION_CHECK(toolchain.ok(), Message(toolchain.status()));
    const std::string symbol = StrCat("fk_race", made_++);
    WorkerJob work;
    work.job.symbol = symbol;
    work.job.source = TestKernelText(symbol, "x86-64-v2", "static volatile int waste;\n");
    const std::string_view place = "  const float* x = ";
    work.job.source.insert(work.job.source.rfind(place), before);
    work.compile_argv = toolchain->CompileArgv(Isa::kX86V2, Numerics::kFp32Accumulate, false);
    work.link_argv = toolchain->LinkArgv();
    NoChecker checker;
    const WorkerResult result =
        JobRunner(dir_->path(), *runner_, checker, [](std::string_view) {}).Run(work);
    FUSION_CHECK(result.status.ok(), StrCat(Message(result.status), result.log));
    return {symbol, result.binary, schedule_, reference_};
  }

  KernelRace Race(std::vector<KernelRace::Runner> runners) const {
    return {.label = "Add", .backend = "cpu", .runners = std::move(runners)};
  }

  static constexpr const char* kSlow = "  for (int i = 0; i < 200000; ++i) waste = i;\n";

  std::string schedule_;
  std::string reference_;
  std::unique_ptr<TempDir> dir_;
  std::unique_ptr<CommandRunner> runner_;
  int made_ = 0;
};

TEST_F(KernelRaceTest, TheFasterOneRunsAgainInPairs) {
  const RaceTimes times = RunRace(Race({Runner(kSlow), Runner(), Runner(kSlow)})).value();
  EXPECT_EQ(times.refusal, "");
  ASSERT_THAT(times.runners, SizeIs(3));
  for (const RaceTimes::Runner& runner : times.runners) {
    EXPECT_EQ(runner.refusal, "");
    EXPECT_EQ(runner.us.size(), times.runners[0].us.size()) << "whole rounds";
    EXPECT_GE(runner.us.size(), 5u);
  }
  EXPECT_EQ(times.rival, 1);
  EXPECT_GE(times.first_us.size(), 11u);
  EXPECT_LT(Quantile(times.rival_us, 0.5), Quantile(times.first_us, 0.5) / 4);
}

TEST_F(KernelRaceTest, WhereTheFirstIsTheFastestThereAreNoPairs) {
  const RaceTimes times = RunRace(Race({Runner(), Runner(kSlow)})).value();
  EXPECT_EQ(times.rival, 0);
  EXPECT_THAT(times.first_us, SizeIs(0));
}

TEST_F(KernelRaceTest, OtherMemoryIsTouchedInBetween) {
  KernelRace race = Race({Runner(), Runner()});
  race.displaced_bytes = 64 << 20;
  race.most_pairs = 0;
  auto seconds_of = [&](int runs) {
    race.least_runs = race.most_runs = runs;
    const Nanoseconds start = Clock::Real().Now();
    EXPECT_THAT(RunRace(race)->runners[1].us, SizeIs(static_cast<size_t>(runs)));
    return ToMilliseconds(Clock::Real().Now() - start) / 1e3;
  };
  const double few = seconds_of(1);
  // No machine touches a million lines in less than 0.2 ms; the kernels take a microsecond.
  EXPECT_GT(seconds_of(51) - few, 100 * 0.2e-3);
}

TEST_F(KernelRaceTest, MemoryThatIsTooMuchIsRefusedAndNotAllocated) {
  KernelRace race = Race({Runner(), Runner()});
  race.displaced_bytes = int64_t{1} << 40;
  const RaceTimes times = RunRace(race).value();
  EXPECT_THAT(times.runners[0].refusal, HasSubstr("needs 1.00 TiB"));
  EXPECT_THAT(times.runners[0].us, SizeIs(0));
}

TEST_F(KernelRaceTest, TheLimitHoldsFromTheStart) {
  KernelRace race = Race({Runner(kSlow), Runner()});
  race.limit = Nanoseconds(0);
  const RaceTimes times = RunRace(race).value();
  EXPECT_EQ(times.runners[0].refusal, "");
  EXPECT_THAT(times.runners[0].us, SizeIs(0));
}

TEST_F(KernelRaceTest, WhereNotAllOfThemFitTheFirstOnesRun) {
  const char* slow = "  for (int i = 0; i < 20000000; ++i) waste = i;\n";
  const KernelRace::Runner runner = Runner(slow);
  const std::vector<double> us = RunRace(Race({runner, runner}))->runners[0].us;
  ASSERT_FALSE(us.empty());
  KernelRace race = Race(std::vector<KernelRace::Runner>(10, runner));
  race.least_runs = race.most_runs = 40;
  race.most_pairs = race.least_pairs = 0;
  // 400 runs do not fit, however fast this machine is; 80 do.
  const double run_us = *std::min_element(us.begin(), us.end());
  race.limit = std::chrono::microseconds(static_cast<int64_t>(200 * run_us));
  const RaceTimes times = RunRace(race).value();
  EXPECT_GE(times.runners[0].us.size(), 5u);
  EXPECT_EQ(times.runners[1].us.size(), times.runners[0].us.size());
  EXPECT_THAT(times.runners[9].us, SizeIs(0));
}

TEST_F(KernelRaceTest, TheLimitEndsItWithWholeRounds) {
  KernelRace race = Race({Runner(kSlow), Runner(kSlow)});
  race.least_runs = 1000;
  race.most_runs = 1000;
  race.limit = std::chrono::milliseconds(50);
  const RaceTimes times = RunRace(race).value();
  EXPECT_LT(times.runners[0].us.size(), 1000u);
  EXPECT_EQ(times.runners[0].us.size(), times.runners[1].us.size());
  EXPECT_THAT(times.first_us, SizeIs(0));
}

TEST_F(KernelRaceTest, SaysWhyAKernelOrAllOfThemDidNotRun) {
  KernelRace::Runner broken = Runner();
  broken.binary = "no shared object";
  const RaceTimes times = RunRace(Race({Runner(), broken, Runner()})).value();
  EXPECT_NE(times.runners[1].refusal, "");
  EXPECT_THAT(times.runners[1].us, SizeIs(0));
  EXPECT_GE(times.runners[2].us.size(), 5u);
  EXPECT_THAT(RunRace(Race({broken, Runner()}))->runners[1].us, SizeIs(0)) << "nothing to beat";
  EXPECT_THAT(RunRace(Race({Runner(), broken}))->runners[0].us, SizeIs(0))
      << "nothing to be beaten";

  KernelRace many = Race({});
  many.threads = UsableCores() + 1;
  EXPECT_THAT(RunRace(many)->refusal, HasSubstr("threads, this machine has"));
  many.threads = 1;
  EXPECT_EQ(RunRace(many)->refusal, "");
  if (HostRuns(kIsas.back())) return;
  many.isa = kIsas.back();
  EXPECT_THAT(RunRace(many)->refusal, HasSubstr(StrCat("kernels need ", IsaName(many.isa))));
}

TEST_F(KernelRaceTest, AKernelThatAnswersAnErrorIsNoRunner) {
  const absl::StatusOr<RaceTimes> times =
      RunRace(Race({Runner(), Runner("  return FUSION_KERNEL_BAD_PHASE;\n")}));
  EXPECT_TRUE(absl::IsInternal(times.status())) << times.status();
}

TEST_F(KernelRaceTest, RunsOnAsManyThreadsAsThePlan) {
  if (UsableCores() < 2) GTEST_SKIP() << "one core";
  KernelRace race = Race({Runner(kSlow), Runner()});
  race.threads = 2;
  const RaceTimes times = RunRace(race).value();
  EXPECT_EQ(times.refusal, "");
  EXPECT_EQ(times.rival, 1);
}

}  // namespace
}  // namespace fusion
