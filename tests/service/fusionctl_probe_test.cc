// Constants that are measured on this machine, as people see it: the command, its file, and plans
// that are made with them.
#include <regex>
#include <set>

#include "client/detect_target.h"
#include "client/fused_model.h"
#include "core/base/files/file.h"
#include "core/device/measured_file.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class ProbeCommandTest : public FusionctlTest {
 protected:
  std::string Softmax() { return Write("softmax", {.rows = 64, .cols = 512}); }
  // Constants of a slow machine with these instructions.
  std::string Constants(const std::string& isa, double rate = 1e10) {
    const MeasuredConstants measured{.isa = isa,
                                     .threads = 2,
                                     .date = "2026-11-30",
                                     .source = "a test",
                                     .values = {{"l3.bandwidth", rate},
                                                {"l3.total_bandwidth", 2 * rate},
                                                {"scalar_rate", 16e9},
                                                {"total_scalar_rate", 32e9}}};
    return dir_.Write(StrCat("constants-", rate, ".json"), MeasuredFileText(measured));
  }
  static Json PlanWith(const std::string& model, std::vector<std::string> more) {
    std::vector<std::string> words = {"plan",  model,  "--threads",  "2",
                                      "--isa", "avx2", "--plan-only"};
    words.insert(words.end(), more.begin(), more.end());
    return CtlJson(words);
  }
};

TEST_F(ProbeCommandTest, EveryConstantIsMeasuredAndComparedWithTheSpec) {
  const std::string file = dir_.path("here.json");
  const ProgramResult result = BareCtl({"probe", "--seconds", "0.2", "--json", "--out", file});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json probe = Json::parse(result.out)["probe"];
  std::set<std::string> names;
  for (const Json& constant : probe["constants"]) {
    names.insert(constant["name"]);
    EXPECT_GT(constant["value"], 0) << constant.dump();
    EXPECT_LE(constant["low"], constant["value"]) << constant.dump();
    EXPECT_GE(constant["high"], constant["value"]) << constant.dump();
  }
  for (const char* name :
       {"product_rate", "total_product_rate", "scalar_rate", "l1.bandwidth", "l2.total_bandwidth",
        "memory.bandwidth", "launch", "relaunch", "call"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
  const MeasuredConstants read = ParseMeasuredFile(ReadFile(file, 1 << 20).value(), file).value();
  EXPECT_EQ(read.values.size(), names.size());
  EXPECT_EQ(read.isa, probe["isa"]);
  EXPECT_THAT(read.source, StartsWith("fusionctl probe "));

  // A plan for this machine takes them.
  const Json plan = CtlJson({"plan", Softmax(), "--plan-only", "--device-constants", file});
  EXPECT_EQ(plan["device"]["measured"]["date"], read.date) << plan["target"];
}

TEST_F(ProbeCommandTest, TheTextNamesSpecAndFile) {
  const std::string file = dir_.path("here.json");
  const ProgramResult result =
      BareCtl({"probe", "--seconds", "0.05", "--threads", "1", "--out", file});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("measured / spec"), HasSubstr("product_rate"),
                                HasSubstr("Gflop/s"), HasSubstr(StrCat("written to ", file))));
}

TEST_F(ProbeCommandTest, PlansWithThemHaveKeysAndEstimatesOfTheirOwn) {
  const std::string model = Softmax();
  const Json plain = PlanWith(model, {});
  const Json slow = PlanWith(model, {"--device-constants", Constants("avx2", 1e9)});
  const Json fast = PlanWith(model, {"--device-constants", Constants("avx2", 4e9)});
  const std::set<std::string> keys = {plain["plan_key"], slow["plan_key"], fast["plan_key"]};
  EXPECT_EQ(keys.size(), 3u);
  EXPECT_EQ(plain["target"], "generic-avx2");
  EXPECT_TRUE(plain["device"]["measured"].is_null());
  EXPECT_THAT(slow["target"].get<std::string>(), StartsWith("generic-avx2+probe-20261130-"));
  EXPECT_EQ(slow["device"]["measured"]["spec"], "generic-avx2");
  EXPECT_GT(slow["totals"]["estimated_us"], fast["totals"]["estimated_us"]);
  EXPECT_GT(fast["totals"]["estimated_us"], plain["totals"]["estimated_us"]);
  EXPECT_EQ(PlanWith(model, {})["plan_key"], plain["plan_key"]) << "others' constants do not count";
  EXPECT_EQ(PlanWith(model, {})["totals"], plain["totals"]);
}

TEST_F(ProbeCommandTest, PlanExplainAndReportSaySo) {
  const std::string model = Softmax();
  const std::string here = dir_.path("here.json");
  ASSERT_EQ(BareCtl({"probe", "--seconds", "0.05", "--threads", "1", "--out", here}).code, 0);
  const std::vector<std::string> with = {"--threads", "1", "--device-constants", here};
  const std::string date = ParseMeasuredFile(ReadFile(here, 1 << 20).value(), here)->date;
  const std::string said = StrCat("with constants measured by probe on ", date);
  auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), with.begin(), with.end());
    const ProgramResult result = Ctl(words);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  EXPECT_THAT(run({"plan", model}), HasSubstr(said));
  EXPECT_THAT(run({"explain", model}), HasSubstr(said));
  EXPECT_THAT(run({"bench", model, "--pairs", "20"}), HasSubstr(said));
  // Long lines go on in the next one.
  const std::string report = Ctl({"report"}).out;
  EXPECT_THAT(std::regex_replace(report, std::regex("\\s+"), " "), HasSubstr(said));
}

TEST_F(ProbeCommandTest, TimingsOfSuchPlansAreADeviceOfTheirOwn) {
  const std::string here = dir_.path("here.json");
  ASSERT_EQ(BareCtl({"probe", "--seconds", "0.05", "--threads", "1", "--out", here}).code, 0);
  const std::string store = dir_.path("store");
  std::vector<std::string> bench = {"bench",   Softmax(), "--threads", "1",
                                    "--pairs", "20",      "--store",   store};
  ASSERT_EQ(BareCtl(bench).code, 0);
  bench.insert(bench.end(), {"--device-constants", here});
  ASSERT_EQ(BareCtl(bench).code, 0);
  const ProgramResult report = BareCtl({"report", "--accuracy", "--store", store, "--json"});
  ASSERT_EQ(report.code, 0) << report.err;
  std::set<std::string> targets;
  const Json devices = Json::parse(report.out)["devices"];
  for (const Json& device : devices) targets.insert(device["target"]);
  ASSERT_EQ(targets.size(), 2u) << report.out;
  EXPECT_THAT(*targets.rbegin(), StartsWith(StrCat(*targets.begin(), "+probe-")));
}

TEST_F(ProbeCommandTest, BadFilesAreNamed) {
  const std::string model = Softmax();
  auto error = [&](const std::string& text) {
    const std::string file = dir_.Write("bad.json", text);
    const ProgramResult result =
        Ctl({"plan", model, "--plan-only", "--isa", "avx2", "--device-constants", file});
    EXPECT_EQ(result.code, 3) << result.err;
    return result.err;
  };
  EXPECT_THAT(error("no"),
              AllOf(HasSubstr("--device-constants"), HasSubstr("bad.json\": not JSON")));
  EXPECT_THAT(error("{}"), HasSubstr("field \"fusion_device_constants\": expected 1"));
  const std::string good = ReadFile(Constants("avx2"), 1 << 20).value();
  std::string text = good;
  text.replace(text.find("scalar_rate"), 11, "scalar_race");
  EXPECT_THAT(error(text), HasSubstr("\"scalar_race\" is not known; known: barrier"));
  text = good;
  text.replace(text.find("\"avx2\""), 6, "\"avx512\"");
  EXPECT_THAT(error(text), HasSubstr("--device-constants: avx512, the plan is for avx2"));
  const ProgramResult none = Ctl({"plan", model, "--device-constants", dir_.path("none")});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("--device-constants"));
}

TEST_F(ProbeCommandTest, BadOptionsAreUsage) {
  for (const std::vector<std::string>& words : std::initializer_list<std::vector<std::string>>{
           {"--seconds", "0"}, {"--seconds", "61"}, {"--threads", "0"}, {"--isa", "neon"}}) {
    std::vector<std::string> all = {"probe"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(BareCtl(all).code, 2) << words[0] << " " << words[1];
  }
  EXPECT_EQ(BareCtl({"probe", "--seconds", "0.05", "--out", dir_.path("no/such/x")}).code, 3);
}

// As client/README.md shows it.
absl::StatusOr<std::unique_ptr<FusedModel>> LoadMeasured(const Client& client,
                                                         const std::string& path,
                                                         const std::string& directory) {
  FusedModelOptions options;
  options.probe = {.policy = ProbePolicy::kOnce, .directory = directory};
  return FusedModel::Load(client, path, options);
}

// A CPU that has a spec keeps its constants.
TEST_F(ProbeCommandTest, AModelIsLoadedWithConsent) {
  std::unique_ptr<Client> client = Client::Connect(daemon_->address()).value();
  const std::string target =
      LoadMeasured(*client, Softmax(), dir_.path("cache")).value()->plan().target;
  EXPECT_EQ(target.starts_with("generic-"), target.find("+probe-") != std::string::npos) << target;
}

// What an application does whose CPU has no spec.
TEST_F(ProbeCommandTest, TheClientLibrarySendsThem) {
  Target target{.isa = std::string(DetectTarget().isa), .threads = 1};
  AddMeasured({.policy = ProbePolicy::kOnce, .seconds = 0.05, .directory = dir_.path("cache")},
              &target);
  ASSERT_TRUE(target.measured);
  std::unique_ptr<Client> client = Client::Connect(daemon_->address()).value();
  std::unique_ptr<FusedModel> model =
      FusedModel::Load(*client, Softmax(), {.target = target}).value();
  EXPECT_THAT(model->plan().target, StartsWith(StrCat("generic-", target.isa, "+probe-")));
}

}  // namespace
}  // namespace fusion
