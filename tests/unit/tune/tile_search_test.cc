#include "core/tune/tile_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/fake_clock.h"

namespace fusion {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

CompileJob JobOf(const std::string& name) {
  CompileJob job;
  job.full_key = name;
  job.key = Sha256(name);
  job.symbol = StrCat("fk_", name);
  job.label = name;
  return job;
}

SearchedTiling TilingOf(const std::string& name, double estimated_us) {
  LockedChoice choice;
  choice.parts = {{.grid = {{name, 8}}, .streamed = {}, .products = {}}};
  return {.choice = choice, .tiles = name, .estimated_us = estimated_us, .job = JobOf(name)};
}

// A kernel whose pick is "<name>0", with so many others, "<name>1", ... by estimate.
SearchedKernel KernelOf(const std::string& name, int others) {
  SearchedKernel kernel{.ops = {static_cast<int>(name[0])},
                        .group = 3,
                        .displaced_bytes = 1 << 20,
                        .pick = TilingOf(StrCat(name, 0), 10)};
  kernel.others = [=](size_t most) {
    std::vector<SearchedTiling> tilings;
    for (int i = 1; i <= others && tilings.size() < most; ++i) {
      tilings.push_back(TilingOf(StrCat(name, i), 10 + i));
    }
    return absl::StatusOr<std::vector<SearchedTiling>>(std::move(tilings));
  };
  return kernel;
}

// Makes everything but what it is told not to; the time of a kernel is what `us_` says, 10 by
// default, in the pairs what `pairs_us_` says, else the same.
class FakeBench final : public TileBench {
 public:
  explicit FakeBench(FakeClock* clock) : clock_(*clock) {}

  std::vector<CompileResult> Make(const std::vector<CompileJob>& jobs,
                                  const CancelToken& until) override {
    std::vector<CompileResult> made;
    for (const CompileJob& job : jobs) {
      if (until.Check().ok()) clock_.Advance(make_takes_);
      if (absl::Status wanted = until.Check(); !wanted.ok()) {
        made.emplace_back(wanted);
      } else if (failures_.contains(job.label)) {
        made.emplace_back(failures_[job.label]);
      } else {
        made_.push_back(job.label);
        auto kernel = std::make_shared<KernelArtifact>();
        kernel->binary = job.label;
        kernel->check.verified = !unverified_.contains(job.label);
        made.emplace_back(std::shared_ptr<const KernelArtifact>(std::move(kernel)));
      }
    }
    return made;
  }

  absl::StatusOr<RaceTimes> Race(KernelRace race, const CancelToken&) override {
    RaceTimes times{.refusal = refusal_};
    if (race.runners.empty()) return times;
    races_.push_back(race);
    if (!race_status_.ok()) return race_status_;
    if (!pick_refusal_.empty()) {
      times.runners.resize(race.runners.size());
      times.runners[0].refusal = pick_refusal_;
      return times;
    }
    if (too_slow_) {
      times.runners.resize(race.runners.size());
      return times;
    }
    for (size_t i = 0; i < race.runners.size(); ++i) {
      times.runners.push_back({.us = Samples(race.runners[i].binary, us_, race.most_runs)});
      const bool faster = times.runners[i].us[0] < times.runners[0].us[0];
      if (faster &&
          times.runners[i].us[0] < times.runners[static_cast<size_t>(times.rival)].us[0]) {
        times.rival = static_cast<int>(i);
      }
    }
    if (times.rival > 0) {
      const auto rival = static_cast<size_t>(times.rival);
      times.first_us = Samples(race.runners[0].binary, pairs_us_, race.least_pairs);
      times.rival_us = Samples(race.runners[rival].binary, pairs_us_, race.least_pairs);
    }
    return times;
  }

  bool waited_for_others() const override { return waited_; }

  std::optional<TunedKernel> Recall(const Digest&, const Digest& race) override {
    auto known = kept_.find(race);
    if (known == kept_.end()) return std::nullopt;
    return known->second;
  }
  void Keep(const Digest& pick, MeasuredTiles measured) override {
    kept_[measured.race] = measured.result;
    kept_of_.push_back(pick);
  }
  void NoteTimes(const Digest& pick, const SearchedTiling& tiling,
                 const std::vector<double>& us) override {
    picks_told_.insert(pick);
    noted_[tiling.tiles] = us;
  }

  FakeClock& clock_;
  Nanoseconds make_takes_{0};
  std::string refusal_;
  std::string pick_refusal_;
  bool too_slow_ = false;
  bool waited_ = false;
  absl::Status race_status_;
  std::map<std::string, absl::Status> failures_;
  std::set<std::string> unverified_;
  std::set<Digest> picks_told_;
  std::map<std::string, std::vector<double>> us_;        // by kernel, repeated as often as needed
  std::map<std::string, std::vector<double>> pairs_us_;  // not given: as us_
  std::vector<std::string> made_;
  std::vector<KernelRace> races_;
  std::map<Digest, TunedKernel> kept_;
  std::vector<Digest> kept_of_;
  std::map<std::string, std::vector<double>> noted_;

 private:
  std::vector<double> Samples(const std::string& kernel,
                              const std::map<std::string, std::vector<double>>& by_kernel,
                              int count) const {
    std::vector<double> pattern = {10};
    for (const auto* from : {&us_, &by_kernel}) {
      if (auto known = from->find(kernel); known != from->end()) pattern = known->second;
    }
    std::vector<double> samples;
    for (int i = 0; i < count; ++i) {
      samples.push_back(pattern[static_cast<size_t>(i) % pattern.size()]);
    }
    return samples;
  }
};

class SearchTilesTest : public testing::Test {
 protected:
  TileSearch Search(std::vector<SearchedKernel> kernels, int level = 1) {
    SearchTask task{.level = level,
                    .label = device_,
                    .machine = machine_,
                    .threads = threads_,
                    .kernels = std::move(kernels),
                    .left_out = left_out_};
    const CancelToken until(request_, clock_.Now() + BudgetOf(level).limit);
    return SearchTiles(task, bench_, request_, until, clock_, [this](int done) { done_ = done; });
  }

  FakeClock clock_;
  CancelToken request_{clock_};
  FakeBench bench_{&clock_};
  std::string device_ = "device";
  std::string machine_ = "machine";
  int threads_ = 2;
  std::string left_out_;
  int done_ = 0;
};

TEST_F(SearchTilesTest, AllTimesOfARaceAreNoted) {
  bench_.us_["a2"] = {5};
  Search({KernelOf("a", 2)});
  ASSERT_EQ(bench_.noted_.size(), 3u);
  EXPECT_EQ(bench_.picks_told_.size(), 1u) << "they compute the same";
  const KernelRace& race = bench_.races_.at(0);
  const auto runs = static_cast<size_t>(race.most_runs);
  const auto pairs = static_cast<size_t>(race.least_pairs);
  EXPECT_EQ(bench_.noted_["a0"], std::vector<double>(runs + pairs, 10)) << "the pick, in pairs too";
  EXPECT_EQ(bench_.noted_["a1"], std::vector<double>(runs, 10));
  EXPECT_EQ(bench_.noted_["a2"], std::vector<double>(runs + pairs, 5));
  bench_.noted_.clear();
  Search({KernelOf("a", 2)});
  EXPECT_TRUE(bench_.noted_.empty()) << "recalled, not measured again";
}

TEST_F(SearchTilesTest, WhatIsMeasuredFasterTakesThePlaceOfTheModelsPick) {
  bench_.us_["a2"] = {8, 8.1, 7.9};
  const TileSearch search = Search({KernelOf("a", 3)});
  EXPECT_EQ(search.state, TileSearchState::kDone);
  ASSERT_EQ(search.kernels.size(), 1);
  const TunedKernel& kernel = search.kernels[0];
  EXPECT_EQ(kernel.chosen, 2) << "although its estimate is worse";
  EXPECT_EQ(kernel.rival, 2);
  EXPECT_NEAR(kernel.ratio, 0.8, 0.02);
  EXPECT_THAT(kernel.reason, HasSubstr("cut 2 is faster than the model's pick: 0.8 of its time"));
  ASSERT_EQ(kernel.tried.size(), 4);
  EXPECT_EQ(kernel.tried[2].median_us, 8);
  EXPECT_EQ(kernel.tried[2].low_us, 7.9);
  EXPECT_EQ(kernel.tried[2].high_us, 8.1);
  EXPECT_EQ(kernel.tried[2].estimated_us, 12);
  EXPECT_EQ(kernel.tried[0].median_us, 10);
  EXPECT_EQ(search.measured, 3);
  EXPECT_EQ(search.changed, 1);
  EXPECT_EQ(done_, 1);
}

TEST_F(SearchTilesTest, NoiseReplacesNothing) {
  // Faster in the median at first, as some of several equal ones always is.
  bench_.us_["a1"] = {9, 11, 9.5};
  bench_.pairs_us_["a1"] = {9, 11, 9.5, 10.5};
  const TileSearch search = Search({KernelOf("a", 1)});
  const TunedKernel& kernel = search.kernels.at(0);
  EXPECT_EQ(kernel.rival, 1);
  EXPECT_EQ(kernel.chosen, 0);
  EXPECT_THAT(kernel.reason, HasSubstr("not surely faster"));
  EXPECT_EQ(search.changed, 0);
}

TEST_F(SearchTilesTest, WhatIsFasterByLessThanTwoPercentReplacesNothing) {
  bench_.us_["a1"] = {9.9};
  EXPECT_EQ(Search({KernelOf("a", 1)}).kernels.at(0).chosen, 0);
}

TEST_F(SearchTilesTest, WhereNoOtherIsFasterNoneRunsAgain) {
  const TileSearch search = Search({KernelOf("a", 2)});
  EXPECT_EQ(search.kernels.at(0).rival, 0);
  EXPECT_EQ(search.kernels.at(0).pairs, 0);
  EXPECT_EQ(search.kernels.at(0).reason, "none of the others was faster");
}

TEST_F(SearchTilesTest, AKernelThatIsWrongDropsOut) {
  bench_.us_["a1"] = {1};
  bench_.us_["a2"] = {8};
  bench_.failures_["a1"] = Internal("check: output 0 on random values: 1 of 8 elements differ");
  const TileSearch search = Search({KernelOf("a", 2)});
  const TunedKernel& kernel = search.kernels.at(0);
  EXPECT_EQ(kernel.chosen, 2);
  EXPECT_EQ(kernel.tried[1].runs, 0);
  EXPECT_THAT(kernel.tried[1].reason, HasSubstr("elements differ"));
  EXPECT_EQ(bench_.races_.at(0).runners.size(), 2);
  EXPECT_EQ(search.measured, 1);
}

TEST_F(SearchTilesTest, WhatCouldNotBeComparedIsNoRivalOfWhatWas) {
  bench_.us_["a1"] = {1};
  bench_.unverified_ = {"a1"};
  EXPECT_EQ(Search({KernelOf("a", 1)}).kernels.at(0).chosen, 0);
  bench_.unverified_ = {"b0", "b1"};
  bench_.us_["b1"] = {1};
  EXPECT_EQ(Search({KernelOf("b", 1)}).kernels.at(0).chosen, 1);
}

TEST_F(SearchTilesTest, TheFirstIsTheOneToBeatOnThePlansThreadsAndCaches) {
  Search({KernelOf("a", 1)});
  const KernelRace& race = bench_.races_.at(0);
  EXPECT_EQ(race.runners[0].symbol, "fk_a0");
  EXPECT_EQ(race.runners[1].symbol, "fk_a1");
  EXPECT_EQ(race.threads, 2);
  EXPECT_EQ(race.displaced_bytes, 1 << 20);
  EXPECT_LE(race.limit, BudgetOf(1).limit);
}

TEST_F(SearchTilesTest, ALevelTriesSoManyAndNoMore) {
  for (int level : {1, 2, 3}) {
    const TileSearch search = Search({KernelOf(StrCat(level, "k"), 40)}, level);
    EXPECT_EQ(search.measured, static_cast<int64_t>(BudgetOf(level).others)) << level;
    EXPECT_EQ(search.level, level);
  }
  EXPECT_LT(BudgetOf(1).others, BudgetOf(2).others);
  EXPECT_LT(BudgetOf(2).limit, BudgetOf(3).limit);
  EXPECT_EQ(BudgetOf(0).others, 0);
}

TEST_F(SearchTilesTest, TheTimeOfALevelIsNotExceeded) {
  bench_.make_takes_ = seconds(2);  // level 1: two kernels of four jobs would take 16 s of 10
  const TileSearch search = Search({KernelOf("a", 3), KernelOf("b", 3), KernelOf("c", 3)});
  EXPECT_EQ(search.state, TileSearchState::kDone) << "that is what was asked for";
  ASSERT_EQ(search.kernels.size(), 3);
  EXPECT_EQ(search.kernels[0].tried.size(), 4);
  EXPECT_EQ(search.kernels[2].tried.size(), 1);
  EXPECT_EQ(search.kernels[2].reason, "the time for the search was over");
  EXPECT_THAT(search.reason, HasSubstr("level 1 has 10 s: they were over before 2 kernels were"));
  EXPECT_EQ(bench_.races_.size(), 1);
  EXPECT_LE(clock_.Now(), seconds(12));
}

TEST_F(SearchTilesTest, TimeThatOthersHadIsNotGoneForGood) {
  bench_.make_takes_ = seconds(2);
  bench_.waited_ = true;
  const TileSearch search = Search({KernelOf("a", 3), KernelOf("b", 3)});
  EXPECT_EQ(search.state, TileSearchState::kCutShort);
  EXPECT_THAT(search.reason, HasSubstr("while the workers made kernels for other requests"));
  EXPECT_TRUE(GoesOn(search));
  bench_.make_takes_ = seconds(0);
  EXPECT_EQ(Search({KernelOf("c", 3)}).state, TileSearchState::kDone) << "nothing was late";
}

TEST_F(SearchTilesTest, WhatMayPassIsTriedByTheNextRequest) {
  const absl::Status passing[] = {
      ResourceExhausted("compile queue is full"), Unavailable("compile workers are stopped"),
      absl::AbortedError("worker failed"), DeadlineExceeded("killed after 90 s")};
  for (const absl::Status& status : passing) {
    bench_.failures_ = {{"a1", status}};
    const TileSearch search = Search({KernelOf("a", 2)});
    EXPECT_EQ(search.state, TileSearchState::kCutShort) << status;
    EXPECT_THAT(search.reason, HasSubstr("not all cuts of 1 kernel could be tried now"));
    EXPECT_THAT(search.kernels.at(0).tried.at(1).reason, HasSubstr(Message(status)));
    EXPECT_GT(search.kernels.at(0).tried.at(2).runs, 0) << "the others are timed";
    bench_.failures_ = {{"a0", status}};
    EXPECT_EQ(Search({KernelOf("a", 2)}).state, TileSearchState::kCutShort) << status;
    bench_.failures_ = {};
    bench_.race_status_ = status;
    EXPECT_EQ(Search({KernelOf("a", 2)}).state, TileSearchState::kCutShort) << status;
    bench_.race_status_ = absl::OkStatus();
  }
  EXPECT_THAT(bench_.kept_, testing::IsEmpty()) << "a race without one of them is another race";
  EXPECT_EQ(Search({KernelOf("a", 2)}).measured, 2);
  bench_.race_status_ = Internal("a kernel answered a code");
  EXPECT_EQ(Search({KernelOf("b", 2)}).state, TileSearchState::kDone) << "it would again";
}

TEST_F(SearchTilesTest, APickThatIsTooLargeToRunIsNotCompiledAgainstOthers) {
  SearchedKernel large = KernelOf("a", 3);
  large.run_bytes = kMaxRaceBytes + 1;
  const TileSearch search = Search({large});
  EXPECT_THAT(search.kernels.at(0).reason, HasSubstr("the model's pick was not run"));
  EXPECT_THAT(bench_.made_, testing::IsEmpty());
  EXPECT_EQ(search.state, TileSearchState::kDone);
}

TEST_F(SearchTilesTest, WhereThePickDoesNotRunNothingIsSaidToBeLate) {
  bench_.pick_refusal_ = "it needs too much";
  const TunedKernel kernel = Search({KernelOf("a", 1)}).kernels.at(0);
  EXPECT_EQ(kernel.reason, "the model's pick was not run: it needs too much");
  EXPECT_EQ(kernel.tried.at(1).reason, "the model's pick was not run");
}

TEST_F(SearchTilesTest, KernelsThatAreTooSlowForARaceSayThat) {
  bench_.too_slow_ = true;
  const TileSearch search = Search({KernelOf("a", 1)}, 3);
  EXPECT_EQ(search.kernels.at(0).tried.at(1).reason, "the time for its race was over");
  EXPECT_THAT(bench_.kept_, testing::IsEmpty());
  EXPECT_EQ(bench_.races_.at(0).limit, BudgetOf(3).race_limit);
  EXPECT_LT(BudgetOf(1).race_limit, BudgetOf(2).race_limit);
  EXPECT_LT(BudgetOf(2).race_limit, BudgetOf(3).race_limit);
}

TEST_F(SearchTilesTest, ADeadlineCutsItShortAndTheBestSoFarStays) {
  bench_.us_["a1"] = {8};
  bench_.make_takes_ = seconds(1);
  SearchTask task{.level = 3,
                  .label = "device",
                  .machine = "machine",
                  .threads = 2,
                  .kernels = {KernelOf("a", 3), KernelOf("b", 3)},
                  .left_out = ""};
  const CancelToken request(request_, seconds(6));
  const CancelToken until(request, BudgetOf(3).limit);
  const TileSearch search = SearchTiles(task, bench_, request, until, clock_);
  EXPECT_EQ(search.state, TileSearchState::kCutShort);
  EXPECT_THAT(search.reason, HasSubstr("the deadline of the request came before the end"));
  EXPECT_EQ(search.kernels.at(0).chosen, 1);
  EXPECT_EQ(search.kernels.at(1).chosen, 0);
  EXPECT_EQ(search.kernels.at(1).reason, "the time for the search was over");
  EXPECT_TRUE(GoesOn(search));
}

TEST_F(SearchTilesTest, ACallerThatLeavesEndsIt) {
  request_.Cancel();
  const TileSearch search = Search({KernelOf("a", 3)});
  EXPECT_EQ(search.state, TileSearchState::kCutShort);
  EXPECT_THAT(search.reason, HasSubstr("given up"));
  EXPECT_THAT(bench_.made_, testing::IsEmpty());
}

TEST_F(SearchTilesTest, WhatWasMeasuredForAnotherPlanIsNotMeasuredAgain) {
  bench_.us_["a2"] = {5};
  const TileSearch first = Search({KernelOf("a", 3)});
  const size_t made = bench_.made_.size();
  SearchedKernel elsewhere = KernelOf("a", 3);
  elsewhere.ops = {77};
  elsewhere.group = 9;
  const TileSearch second = Search({elsewhere});
  EXPECT_EQ(bench_.races_.size(), 1);
  EXPECT_EQ(bench_.made_.size(), made);
  EXPECT_EQ(second.measured, 0);
  EXPECT_EQ(second.recalled, 3);
  EXPECT_EQ(second.changed, 1);
  const TunedKernel& kernel = second.kernels.at(0);
  EXPECT_TRUE(kernel.recalled);
  EXPECT_EQ(kernel.ops, std::vector<int>{77});
  EXPECT_EQ(kernel.group, 9);
  EXPECT_EQ(kernel.chosen, first.kernels[0].chosen);
  EXPECT_EQ(bench_.kept_of_, std::vector<Digest>{Sha256("a0")});
}

TEST_F(SearchTilesTest, OtherConditionsAreAnotherRace) {
  Search({KernelOf("a", 3)});
  SearchedKernel colder = KernelOf("a", 3);
  colder.displaced_bytes = 1 << 28;
  EXPECT_EQ(Search({colder}).measured, 3);
  EXPECT_EQ(Search({KernelOf("a", 2)}).measured, 2) << "of other rivals";
  EXPECT_EQ(bench_.races_.size(), 3);
  threads_ = 4;
  EXPECT_EQ(Search({KernelOf("a", 3)}).measured, 3);
  threads_ = 2;
  device_ = "another device";
  EXPECT_EQ(Search({KernelOf("a", 3)}).measured, 3);
  device_ = "device";
  machine_ = "another machine";
  EXPECT_EQ(Search({KernelOf("a", 3)}).measured, 3) << "of a store that moved there";
  machine_ = "machine";
  EXPECT_EQ(Search({KernelOf("a", 3)}).recalled, 3);
}

TEST_F(SearchTilesTest, AMachineThatCannotRunThemLeavesTheModelsPicks) {
  bench_.refusal_ = "kernels need avx512, this machine has avx2";
  const TileSearch search = Search({KernelOf("a", 3)});
  EXPECT_EQ(search.state, TileSearchState::kNone);
  EXPECT_EQ(search.reason, "kernels need avx512, this machine has avx2");
  EXPECT_THAT(bench_.made_, testing::IsEmpty()) << "nothing is compiled in vain";
  EXPECT_FALSE(GoesOn(search));
}

TEST_F(SearchTilesTest, WhatTakesNoPartIsSaid) {
  left_out_ = "2 kernels in the body of a loop";
  EXPECT_THAT(Search({KernelOf("a", 1)}).reason, HasSubstr("2 kernels in the body of a loop"));
  const TileSearch none = Search({});
  EXPECT_EQ(none.state, TileSearchState::kDone);
  EXPECT_THAT(none.reason, HasSubstr("no kernel to search for"));
  EXPECT_EQ(Search({KernelOf("a", 0)}).kernels.at(0).chosen, 0);
}

}  // namespace
}  // namespace fusion
