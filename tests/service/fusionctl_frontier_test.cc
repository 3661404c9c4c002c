// Plans that could be had instead, and which one hints choose, as people see it.
#include <algorithm>
#include <limits>

#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FrontierCommandTest : public FusionctlTest {
 protected:
  // A layer whose hidden values are most of its memory, and one device for every machine.
  std::string Model() {
    return Write("bert_layer",
                 {.seq = 128, .layers = 1, .hidden = 192, .heads = 3, .kv_heads = 3, .ff = 1536});
  }
  static Json PlanOf(const std::string& model, std::vector<std::string> words = {}) {
    words.insert(words.begin(),
                 {"plan", model, "--plan-only", "--isa", "avx512", "--threads", "2"});
    return CtlJson(std::move(words));
  }
  static Json ChosenOf(const Json& plan) {
    for (const Json& point : plan["frontier"]) {
      if (point["chosen"] == true) return point;
    }
    ADD_FAILURE() << "no point is chosen";
    return Json::object({{"peak_bytes", -1}, {"reason", ""}});
  }
  static int64_t LeastPeak(const Json& plan) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Json& point : plan["frontier"]) {
      least = std::min(least, point["peak_bytes"].get<int64_t>());
    }
    return least;
  }
  static size_t CountOf(const Json& plan, std::string_view name) {
    return static_cast<size_t>(
        std::count_if(plan["frontier"].begin(), plan["frontier"].end(),
                      [&](const Json& point) { return point["name"] == name; }));
  }
};

TEST_F(FrontierCommandTest, PlanShowsWhatElseCouldBeHad) {
  std::string model = Model();
  ProgramResult shown =
      Ctl({"plan", model, "--plan-only", "--isa", "avx512", "--threads", "2", "--frontier"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("peak memory"), HasSubstr("least-memory"),
                               HasSubstr("chosen for the least time: no pressure is high")));
  Json plan = PlanOf(model, {"--frontier"});
  ASSERT_GE(plan["frontier"].size(), 2u);
  double before = -1;
  for (const Json& point : plan["frontier"]) {
    EXPECT_GT(point["latency_us"].get<double>(), before) << "by latency";
    before = point["latency_us"];
    EXPECT_GT(point["compile_s"].get<double>(), 0);
  }
  EXPECT_EQ(ChosenOf(plan)["launches"], plan["totals"]["launches"]);
  EXPECT_EQ(ChosenOf(plan)["kernels"], plan["kernels"].size());
}

TEST_F(FrontierCommandTest, MemoryPressureTakesTheLeastPeakAndRunsRight) {
  std::string model = Model();
  Json usual = PlanOf(model, {"--frontier"});
  Json pressed = PlanOf(model, {"--memory-pressure", "0.9"});
  EXPECT_LT(ChosenOf(pressed)["peak_bytes"], ChosenOf(usual)["peak_bytes"]);
  EXPECT_LE(ChosenOf(pressed)["peak_bytes"].get<double>(),
            1.01 * static_cast<double>(LeastPeak(usual)));
  EXPECT_THAT(ChosenOf(pressed)["reason"], HasSubstr("memory pressure"));
  Json verified = CtlJson({"verify", model, "--memory-pressure", "0.9"});
  EXPECT_EQ(verified["pass"], true);
  EXPECT_EQ(verified["fallbacks"], 0);
}

TEST_F(FrontierCommandTest, WantedLatencyJoinsLaunchesAndRunsRight) {
  ModelParams params = SmallMlp();
  params.rows = 1;
  params.cols = 256;
  params.depth = 4;
  std::string model = Write("mlp", params);
  Json usual = PlanOf(model);
  Json joined = PlanOf(model, {"--low-latency"});
  EXPECT_GT(usual["totals"]["launches"], 1);
  EXPECT_EQ(joined["totals"]["launches"], 1);
  EXPECT_EQ(joined["totals"]["kernels"], usual["totals"]["kernels"]);
  EXPECT_EQ(ChosenOf(joined)["name"], "all-in-one");
  EXPECT_EQ(CountOf(usual, "all-in-one"), 0u);
  Json verified = CtlJson({"verify", model, "--low-latency"});
  EXPECT_EQ(verified["pass"], true);
  EXPECT_EQ(verified["fallbacks"], 0);
  ProgramResult explained = Ctl({"explain", model, "--low-latency", "--candidates"});
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_THAT(explained.out, AllOf(HasSubstr("all-in-one"), HasSubstr("pipeline")));
  ProgramResult why = Ctl({"explain", model, "--low-latency", "--why", "#0"});
  EXPECT_THAT(why.out, HasSubstr("4 phases of one launch, which gains 0.0"));
  ProgramResult shown = Ctl({"show", model, "smg", "--low-latency"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("turn 1"));
}

TEST_F(FrontierCommandTest, TheFlagAsksForMoreAndChangesNothing) {
  std::string model = Model();
  Json usual = PlanOf(model);
  Json asked = PlanOf(model, {"--frontier"});
  EXPECT_EQ(CountOf(usual, "least-memory"), 0u);
  EXPECT_EQ(CountOf(asked, "least-memory"), 1u);
  EXPECT_EQ(usual["launches"], asked["launches"]);
  for (size_t k = 0; k < usual["kernels"].size(); ++k) {
    EXPECT_EQ(usual["kernels"][k]["key"], asked["kernels"][k]["key"]);
  }
  // The second time from the cache, with all of it.
  Json again = PlanOf(model, {"--frontier"});
  EXPECT_EQ(again["cache"], "memory");
  EXPECT_EQ(again["frontier"], asked["frontier"]);
}

TEST_F(FrontierCommandTest, ExplainTellsWhichPlanItIs) {
  std::string model = Model();
  ProgramResult told = Ctl({"explain", model, "--compute-pressure", "0.9"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("which plan"), HasSubstr("compute pressure is high")));
  Json json = CtlJson({"explain", model, "--memory-pressure", "0.9"});
  EXPECT_THAT(ChosenOf(json)["reason"], HasSubstr("least peak bytes"));
}

}  // namespace
}  // namespace fusion
