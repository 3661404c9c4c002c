// fusionctl --share: outputs in the memory of inputs.
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::HasSubstr;

class FusionctlSharedTest : public FusionctlTest {
 protected:
  std::string WriteDecoder() {
    ModelParams params = FindModel("llama_small_decode")->defaults;
    params.dynamic = true;
    params.hidden = 64;
    params.heads = 2;
    params.kv_heads = 1;
    params.ff = 96;
    return Write("llama_small_decode", params);
  }
  static std::vector<std::string> Words(std::vector<std::string> words,
                                        const std::vector<std::string>& more) {
    for (const char* word : {"--bind", "batch=2", "--bind", "seq=1"}) words.emplace_back(word);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(FusionctlSharedTest, VerifyPassesAtAnyLengthOfTheCaches) {
  const std::string model = WriteDecoder();
  for (const char* past : {"1", "20", "31"}) {
    Json exact = CtlJson(Words({"verify", model, "--bind", StrCat("past=", past)},
                               {"--share", "past_*=present_*@40"}));
    EXPECT_TRUE(exact["pass"]) << exact;
    Json open =
        CtlJson(Words({"verify", model, "--range", "past=0..31", "--bind", StrCat("past=", past)},
                      {"--share", "past_*=present_*"}));
    EXPECT_TRUE(open["pass"]) << open;
  }
}

TEST_F(FusionctlSharedTest, PlanSaysWhatIsSharedAndMovesLess) {
  const std::string model = WriteDecoder();
  Json apart = CtlJson(Words({"plan", model, "--plan-only", "--bind", "past=500"}, {}));
  Json shared = CtlJson(Words({"plan", model, "--plan-only", "--bind", "past=500"},
                              {"--share", "past_*=present_*@512"}));
  EXPECT_EQ(apart["shared_buffers"].size(), 0);
  ASSERT_EQ(shared["shared_buffers"].size(), 2);
  EXPECT_EQ(shared["shared_buffers"][0]["input"], "past_key_0");
  EXPECT_EQ(shared["shared_buffers"][0]["output"], "present_key_0");
  EXPECT_EQ(shared["shared_buffers"][0]["dim"], 2);
  EXPECT_EQ(shared["shared_buffers"][0]["capacity"], 512);
  EXPECT_NE(shared["plan_key"], apart["plan_key"]);
  // Two caches of 2 x 500 x 32 floats need not be written any more.
  EXPECT_LE(shared["totals"]["activation_bytes"].get<int64_t>() + 2 * 2 * 500 * 32 * 4,
            apart["totals"]["activation_bytes"].get<int64_t>());
  ProgramResult text = Ctl(Words({"plan", model, "--plan-only", "--bind", "past=500"},
                                 {"--share", "past_*=present_*@512"}));
  EXPECT_THAT(text.out,
              HasSubstr("shared:  present_key_0 in past_key_0 with room for 512 along dim "
                        "2, and 1 more: a run writes new elements only"));
}

TEST_F(FusionctlSharedTest, StepsGoOnWhereTheLastOneStopped) {
  const std::string model = WriteDecoder();
  const std::vector<std::string> share = {"--share", "past_*=present_*"};
  Json run = CtlJson(Words(
      Words({"run", model, "--range", "past=0..31", "--bind", "past=3"}, share), {"--steps", "5"}));
  ASSERT_EQ(run["steps"].size(), 5);
  for (int s = 0; s < 5; ++s) {
    EXPECT_EQ(run["steps"][s]["cached"], 3 + s);
    EXPECT_GT(run["steps"][s]["latency_us"], 0);
  }
  ProgramResult text =
      Ctl(Words(Words({"run", model, "--range", "past=0..31", "--bind", "past=3"}, share),
                {"--steps", "20"}));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("median of a step: "));
  EXPECT_THAT(text.out, HasSubstr("cached"));
  ProgramResult full =
      Ctl(Words(Words({"run", model, "--range", "past=0..31", "--bind", "past=3"}, share),
                {"--steps", "40"}));
  EXPECT_EQ(full.code, 3);
  ProgramResult one_length = Ctl(Words({"run", model, "--bind", "past=3"},
                                       {"--share", "past_*=present_*@40", "--steps", "2"}));
  EXPECT_EQ(one_length.code, 3);
  EXPECT_THAT(one_length.err, HasSubstr("step 1 (a plan for growing caches leaves their dim open: "
                                        "--range)"));
  EXPECT_THAT(full.err, HasSubstr("step 29"));
  EXPECT_THAT(full.err, HasSubstr("the plan is for \"past\" = 0..31"));
}

TEST_F(FusionctlSharedTest, BenchAndIntermediatesTakeIt) {
  const std::string model = WriteDecoder();
  const std::vector<std::string> share = {"--bind", "past=9", "--share", "past_*=present_*@16"};
  Json bench = CtlJson(Words(Words({"bench", model}, share), {"--pairs", "2", "--warmup", "1"}));
  EXPECT_TRUE(bench.contains("ratio")) << bench;
  Json compared = CtlJson(Words(Words({"run", model}, share), {"--compare"}));
  EXPECT_GT(compared["outputs"].size(), 2) << compared;
}

TEST_F(FusionctlSharedTest, BadSharingIsNamed) {
  const std::string model = WriteDecoder();
  for (const char* words : {"past", "past_*=present", "=present", "past_*=present_*@"}) {
    ProgramResult bad = Ctl(Words({"plan", model, "--bind", "past=3"}, {"--share", words}));
    EXPECT_NE(bad.code, 0) << words;
  }
  ProgramResult usage = Ctl(Words({"plan", model, "--bind", "past=3"}, {"--share", "past"}));
  EXPECT_EQ(usage.code, 2);
  EXPECT_THAT(usage.err, HasSubstr("expected INPUT=OUTPUT[@CAPACITY], got \"past\""));
  ProgramResult none = Ctl(Words({"plan", model, "--bind", "past=3"}, {"--share", "pest_*=p_*"}));
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("--share \"pest_*\": no input of the model is called so"));
  ProgramResult small =
      Ctl(Words({"plan", model, "--bind", "past=30"}, {"--share", "past_*=present_*@16"}));
  EXPECT_EQ(small.code, 3);
  EXPECT_THAT(small.err, HasSubstr("has 31 elements along dim 2, its buffer 16"));
  ProgramResult steps = Ctl(Words({"run", model, "--bind", "past=3"}, {"--steps", "2"}));
  EXPECT_EQ(steps.code, 3);
  EXPECT_THAT(steps.err, HasSubstr("--steps: the model appends to nothing; --share says what"));
}

}  // namespace
}  // namespace fusion
