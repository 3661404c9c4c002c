// Tiles that are timed, as people see it: what is asked for, what comes of it, and that it is kept.
#include "core/device/host_cpu.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class OptLevelCommandTest : public FusionctlTest {
 protected:
  std::string Model() {
    return Write("bert_tiny",
                 {.seq = 16, .layers = 2, .hidden = 64, .heads = 2, .kv_heads = 2, .ff = 128});
  }
  // One thread: other tests may have the other cores.
  static Json PlanOf(const std::string& model, const std::string& level) {
    return CtlJson({"plan", model, "--threads", "1", "--opt-level", level});
  }
};

TEST_F(OptLevelCommandTest, TilesAreTimedOnceAndThePlanIsStored) {
  const std::string model = Model();
  const Json plain = PlanOf(model, "0");
  EXPECT_TRUE(plain["search"].is_null());

  const Json tuned = PlanOf(model, "1");
  const Json& search = tuned["search"];
  ASSERT_TRUE(search.is_object()) << tuned.dump();
  EXPECT_EQ(search["level"], 1);
  EXPECT_EQ(search["state"], "done") << search.dump();
  EXPECT_GT(search["measured"], 0);
  EXPECT_NE(tuned["plan_key"], plain["plan_key"]);
  bool searched = false;
  for (const Json& stage : tuned["stages"]) searched |= stage["stage"] == "search";
  EXPECT_TRUE(searched);

  const Json again = PlanOf(model, "1");
  EXPECT_EQ(again["cache"], "memory");
  EXPECT_EQ(again["search"]["measured"], search["measured"]) << "of the first request";
  for (const Json& stage : again["stages"]) EXPECT_NE(stage["stage"], "search");
  for (const Json& kernel : again["kernels"]) EXPECT_EQ(kernel["cached"], true);

  ProgramResult shown = Ctl({"plan", model, "--threads", "1", "--opt-level", "1"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("tiles:   level 1: "), HasSubstr("timed in")));
}

TEST_F(OptLevelCommandTest, TheExplanationHasWhatWasMeasured) {
  const std::string model = Model();
  const Json explained = CtlJson({"explain", model, "--threads", "1", "--opt-level", "1"});
  const Json& search = explained["search"];
  ASSERT_GT(search["kernels"].size(), 0u) << search.dump();
  int64_t timed = 0;
  for (const Json& kernel : search["kernels"]) {
    EXPECT_GE(kernel["group"], 0);
    EXPECT_FALSE(kernel["reason"].get<std::string>().empty());
    const size_t chosen = kernel["chosen"];
    ASSERT_LT(chosen, kernel["tried"].size());
    const size_t group = kernel["group"];
    EXPECT_EQ(explained["groups"][group]["tiles"], kernel["tried"][chosen]["tiles"]);
    for (size_t i = 0; i < kernel["tried"].size(); ++i) {
      const Json& tried = kernel["tried"][i];
      EXPECT_GT(tried["estimated_us"], 0);
      if (tried["runs"] == 0) continue;
      timed += i > 0 ? 1 : 0;
      EXPECT_GT(tried["median_us"], 0);
      EXPECT_LE(tried["low_us"], tried["median_us"]);
      EXPECT_LE(tried["median_us"], tried["high_us"]);
    }
  }
  EXPECT_EQ(timed, search["measured"].get<int64_t>() + search["recalled"].get<int64_t>());
  const ProgramResult text = Ctl({"explain", model, "--threads", "1", "--opt-level", "1"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("which tiles were timed"), HasSubstr("the model's"),
                              HasSubstr("95 % interval"), HasSubstr("chosen")));
}

// Which cuts they have is for the clock to say: tests/unit/plan/tile_candidates_test.cc has others.
TEST_F(OptLevelCommandTest, PlansThatWereSearchedForAreRight) {
  for (const char* name : {"bert_tiny", "mha"}) {
    const std::string model =
        Write(name, {.seq = 24, .layers = 1, .hidden = 64, .heads = 2, .kv_heads = 2, .ff = 128});
    const Json verified = CtlJson({"verify", model, "--threads", "1", "--opt-level", "2"});
    EXPECT_EQ(verified["pass"], true) << name;
  }
  const std::string model = Write("mlp", SmallMlp());
  EXPECT_EQ(CtlJson({"verify", model, "--threads", "1", "--opt-level", "1", "--fusion",
                     "op-by-op"})["pass"],
            true);
  EXPECT_EQ(CtlJson({"verify", model, "--threads", "1", "--opt-level", "1", "--numerics",
                     "bitwise"})["pass"],
            true);
  EXPECT_EQ(Ctl({"run", model, "--threads", "1", "--opt-level", "1"}).code, 0);
}

TEST_F(OptLevelCommandTest, WhatCannotBeTimedHereIsSaidAndPlannedAllTheSame) {
  const std::string model = Model();
  const Json other =
      CtlJson({"plan", model, "--plan-only", "--target", "h100", "--opt-level", "2"});
  EXPECT_EQ(other["search"]["state"], "none");
  EXPECT_EQ(other["search"]["reason"], "no code generator for target \"h100\"");
  EXPECT_FALSE(other["search"].contains("kernels")) << "a plan travels without them";
  const Json explained = CtlJson({"explain", model, "--target", "h100", "--opt-level", "2"});
  EXPECT_EQ(explained["search"]["state"], "none");
  EXPECT_GT(explained["groups"].size(), 0u);
  const Json many = CtlJson({"plan", model, "--threads", "512", "--opt-level", "1"});
  EXPECT_EQ(many["search"]["state"], "none");
  EXPECT_THAT(many["search"]["reason"].get<std::string>(),
              HasSubstr("the plan is for 512 threads, this machine has"));
  EXPECT_GT(many["kernels"].size(), 0u);
  const Json later = CtlJson({"plan", model, "--threads", "1", "--plan-only", "--opt-level", "3"});
  EXPECT_EQ(later["search"]["state"], "pending");
}

TEST_F(OptLevelCommandTest, TuneSaysWhatItGainedAndThePlanIsUsed) {
  const std::string model = Model();
  const Json tuned = CtlJson({"tune", model, "--threads", "1", "--seconds", "10"})["tune"];
  EXPECT_EQ(tuned["opt_level"], 1);
  EXPECT_EQ(tuned["kept"], true);
  ASSERT_GT(tuned["kernels"].size(), 0u) << tuned.dump();
  EXPECT_GT(tuned["pick_us"], 0);
  for (const Json& kernel : tuned["kernels"]) EXPECT_GT(kernel["launches"], 0);
  const Json used = PlanOf(model, "1");
  EXPECT_EQ(used["cache"], "memory");
  EXPECT_EQ(used["search"]["measured"], tuned["search"]["measured"]);
  const ProgramResult text = Ctl({"tune", model, "--threads", "1", "--opt-level", "1"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("gained:"), HasSubstr("with --opt-level 1 and otherwise")));
}

TEST_F(OptLevelCommandTest, WhatTuneMeasuresCountsLikeReports) {
  const std::string store = dir_.path("store");
  const ProgramResult result =
      BareCtl({"tune", Model(), "--threads", "1", "--opt-level", "1", "--store", store, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json tuned = Json::parse(result.out, nullptr, false)["tune"];
  int64_t timed = 0;
  for (const Json& kernel : tuned["search"]["kernels"]) {
    for (const Json& tiling : kernel["tried"]) timed += tiling["runs"] > 0 ? 1 : 0;
  }
  ASSERT_GT(timed, 1) << tuned.dump();
  const ProgramResult seen = BareCtl({"report", "--accuracy", "--store", store, "--json"});
  ASSERT_EQ(seen.code, 0) << seen.err;
  const Json devices = Json::parse(seen.out, nullptr, false)["devices"];
  ASSERT_EQ(devices.size(), 1u) << seen.out;
  EXPECT_EQ(devices[0]["timings"], timed) << "the rivals that lost too";
  EXPECT_EQ(devices[0]["threads"], 1);
  ASSERT_EQ(devices[0]["machines"].size(), 1u);
  EXPECT_EQ(devices[0]["machines"][0]["tenant"], "") << "the server itself";
  EXPECT_EQ(devices[0]["machines"][0]["machine"], HostCpuName());
}

// The budget is the caller's: a search that takes longer ends, and the next one goes on.
TEST_F(OptLevelCommandTest, TuneEndsInTime) {
  const std::string model =
      Write("mha", {.seq = 40, .layers = 1, .hidden = 96, .heads = 2, .kv_heads = 2, .ff = 128});
  const Json tuned =
      CtlJson({"tune", model, "--threads", "1", "--seconds", "1", "--opt-level", "3"})["tune"];
  EXPECT_EQ(tuned["opt_level"], 3);
  EXPECT_THAT(tuned["search"]["state"].get<std::string>(), AnyOf("cut-short", "pending"));
  EXPECT_GT(tuned["warnings"].size(), 0u);
  EXPECT_EQ(tuned["plan_key"].get<std::string>().size(), 64u);
}

TEST_F(OptLevelCommandTest, TuneSaysWhyNothingIsTimed) {
  const Json tuned = CtlJson({"tune", Model(), "--threads", "512", "--seconds", "5"})["tune"];
  EXPECT_EQ(tuned["search"]["state"], "none");
  EXPECT_EQ(tuned["kernels"].size(), 0u);
  EXPECT_EQ(Ctl({"tune", Model(), "--lock", "l"}).code, 2) << "a lock leaves nothing to try";
  for (const char* option : {"--seconds", "--opt-level"}) {
    EXPECT_EQ(Ctl({"tune", Model(), option, "0"}).code, 2) << option;
    EXPECT_EQ(Ctl({"tune", Model(), option, "241"}).code, 2) << option;
  }
  const ProgramResult alone = BareCtl({"tune", Model(), "--threads", "512"});
  EXPECT_EQ(alone.code, 0);
  EXPECT_THAT(alone.err, HasSubstr("nothing is kept: expected --server ADDRESS or --store DIR"));
}

TEST_F(OptLevelCommandTest, OtherLevelsAreErrorsThatNameTheRange) {
  const ProgramResult result = Ctl({"plan", Model(), "--opt-level", "4"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("--opt-level"), HasSubstr("0"), HasSubstr("3")));
}

}  // namespace
}  // namespace fusion
