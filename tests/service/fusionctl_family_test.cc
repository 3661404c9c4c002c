// fusionctl --range: plans that leave dims open.
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class FusionctlFamilyTest : public FusionctlTest {
 protected:
  std::string WriteOpen(std::string_view name) {
    ModelParams params = FindModel(name)->defaults;
    params.dynamic = true;
    return Write(name, params);
  }
  static std::vector<std::string> Ranges() {
    return {"--range", "batch=1..4", "--range", "seq=1..300@64"};
  }
  static std::vector<std::string> With(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(FusionctlFamilyTest, VerifyRunsOnePlanAtAnyOfItsShapes) {
  const std::string model = WriteOpen("bert_tiny");
  std::set<std::string> keys;
  for (const char* seq : {"1", "37", "300"}) {
    Json report = CtlJson(With(With({"verify", model}, Ranges()),
                               {"--bind", "batch=3", "--bind", StrCat("seq=", seq)}));
    EXPECT_TRUE(report["pass"]) << report;
    keys.insert(report["plan_key"].get<std::string>());
  }
  EXPECT_EQ(keys.size(), 1) << "the value at which it runs is no part of the plan";
}

TEST_F(FusionctlFamilyTest, PlanSaysWhatIsOpenAndWhatThatCosts) {
  const std::string model = WriteOpen("bert_tiny");
  Json plan = CtlJson(With({"plan", model, "--plan-only"}, Ranges()));
  ASSERT_EQ(plan["symbols"].size(), 2);
  EXPECT_EQ(plan["symbols"][1]["name"], "seq");
  EXPECT_EQ(plan["symbols"][1]["max"], 300);
  EXPECT_EQ(plan["symbols"][1]["likely"], 64);
  ASSERT_FALSE(plan["samples"].empty());
  for (const Json& sample : plan["samples"]) EXPECT_GT(sample["exact_us"], 0);
  ProgramResult text = Ctl(With({"plan", model, "--plan-only"}, Ranges()));
  EXPECT_THAT(text.out, HasSubstr("open:    batch 1..4, seq 1..300; figures are for the largest"));
  EXPECT_THAT(text.out, HasSubstr("loss:    against plans of these values alone, estimated: "));
}

TEST_F(FusionctlFamilyTest, StepsAreKept) {
  const std::string model = WriteOpen("bert_tiny");
  const std::vector<std::string> ranges = {"--range", "batch=1..4", "--range", "seq=8..256/8"};
  for (const char* seq : {"8", "64", "256"}) {
    Json report = CtlJson(With(With({"verify", model}, ranges),
                               {"--bind", "batch=2", "--bind", StrCat("seq=", seq)}));
    EXPECT_TRUE(report["pass"]) << report;
  }
  ProgramResult odd =
      Ctl(With(With({"verify", model}, ranges), {"--bind", "batch=2", "--bind", "seq=12"}));
  EXPECT_EQ(odd.code, 3);
  EXPECT_THAT(odd.err, HasSubstr("\"seq\" = 8..256 in multiples of 8"));
}

TEST_F(FusionctlFamilyTest, ARotaryModelRunsAtEveryLength) {
  const std::string model = WriteOpen("llama_small");
  for (const char* seq : {"1", "129"}) {
    Json report = CtlJson(With(With({"verify", model}, Ranges()),
                               {"--bind", "batch=2", "--bind", StrCat("seq=", seq)}));
    EXPECT_TRUE(report["pass"]) << report;
  }
}

TEST_F(FusionctlFamilyTest, ADecodeStepRunsAtEveryLengthOfItsCache) {
  const std::string model = WriteOpen("llama_small_decode");
  const std::vector<std::string> ranges = {"--range",  "batch=1..4", "--range",
                                           "seq=1..8", "--range",    "past=0..300"};
  const std::vector<std::pair<std::string, std::string>> steps = {
      {"1", "0"}, {"1", "300"}, {"5", "77"}};
  for (const auto& [seq, past] : steps) {
    Json report =
        CtlJson(With(With({"verify", model}, ranges),
                     {"--bind", "batch=2", "--bind", "seq=" + seq, "--bind", "past=" + past}));
    EXPECT_TRUE(report["pass"]) << report;
  }
}

TEST_F(FusionctlFamilyTest, ALockGivesThePlanAgain) {
  const std::string model = WriteOpen("bert_tiny");
  const std::string lock = dir_.path("family.lock");
  Json plan = CtlJson(With(With({"plan", model, "--plan-only"}, Ranges()), {"--write-lock", lock}));
  Json report = CtlJson(With(With({"verify", model, "--lock", lock}, Ranges()),
                             {"--bind", "batch=2", "--bind", "seq=9"}));
  EXPECT_TRUE(report["pass"]) << report;
  Json again = CtlJson(With(With({"plan", model, "--plan-only"}, Ranges()), {"--lock", lock}));
  EXPECT_EQ(again["launches"], plan["launches"]);
}

TEST_F(FusionctlFamilyTest, LatenciesAreMeasuredButNotReported) {
  Json bench = CtlJson(With(With({"bench", WriteOpen("bert_tiny"), "--seconds", "0.05"}, Ranges()),
                            {"--bind", "batch=2", "--bind", "seq=9"}));
  EXPECT_THAT(bench.dump(), HasSubstr("leaves dims open"));
}

TEST_F(FusionctlFamilyTest, BadRangesAreSaidInOneLine) {
  const std::string model = WriteOpen("bert_tiny");
  ProgramResult form = Ctl({"plan", model, "--range", "seq=1-8"});
  EXPECT_EQ(form.code, 2);
  EXPECT_THAT(form.err, HasSubstr("expected NAME=MIN..MAX[/STEP][@LIKELY], got \"seq=1-8\""));
  ProgramResult empty = Ctl({"plan", model, "--range", "seq=9..8"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("values 9..8"));
  ProgramResult one = Ctl({"plan", model, "--range", "seq=8..8", "--bind", "batch=1"});
  EXPECT_EQ(one.code, 3);
  EXPECT_THAT(one.err, HasSubstr("options.dim_ranges[\"seq\"]: 8..8; expected several values"));
  ProgramResult unknown = Ctl({"plan", model, "--range", "sequence=1..8"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("\"sequence\""));
}

}  // namespace
}  // namespace fusion
