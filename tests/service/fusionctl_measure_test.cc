// fusionctl's measurements and what a service keeps of them; what it shows on a terminal and offers
// to a shell.
#include <sys/stat.h>

#include <cctype>
#include <regex>

#include "core/base/files/file.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class MeasureTest : public FusionctlTest {
 protected:
  /// The words of a short bench of `model`.
  static std::vector<std::string> Bench(const std::string& model) {
    return {"bench", model, "--pairs", "9", "--seconds", "0.05", "--warmup", "1"};
  }
  static std::string Read(const std::string& path) {
    return ReadFile(path, int64_t{16} << 20).value_or("");
  }
};

// --- bench

void ExpectMeasured(const Json& contender) {
  const Json& latency = contender["latency_us"];
  EXPECT_EQ(latency["n"], 9);
  EXPECT_GT(latency["p10"], 0);
  EXPECT_LE(latency["p10"], latency["median"]);
  EXPECT_LE(latency["median"], latency["p90"]);
  EXPECT_LE(latency["low95"], latency["high95"]);
  const Json& memory = contender["memory"];
  int64_t sum = 0;
  for (const auto& [name, bytes] : memory.items()) {
    if (name != "peak_bytes") sum += bytes.get<int64_t>();
  }
  EXPECT_EQ(memory["peak_bytes"], sum);
  EXPECT_GT(memory["input_bytes"], 0);
  EXPECT_GT(contender["totals"]["launches"], 0);
}

TEST_F(MeasureTest, BenchMeasuresFusedAgainstOpByOp) {
  Json bench = CtlJson(Bench(Write("mlp", SmallMlp())));
  ExpectMeasured(bench["fused"]);
  ExpectMeasured(bench["op_by_op"]);
  EXPECT_EQ(bench["pairs"], 9);
  EXPECT_LE(bench["ratio"]["low95"], bench["ratio"]["median"]);
  EXPECT_LE(bench["ratio"]["median"], bench["ratio"]["high95"]);
  EXPECT_LT(bench["fused"]["totals"]["kernels"], bench["op_by_op"]["totals"]["kernels"]);
  EXPECT_LT(bench["max_rel_between"], 1e-4);
  EXPECT_GT(bench["process_peak_rss_bytes"], 1 << 20);
  EXPECT_GT(bench["reported_samples"], 0);
  EXPECT_FALSE(bench["fused"].contains("kernels")) << "not asked for";
}

TEST_F(MeasureTest, TheSuiteShowsWhatFusionGainsForEachOfSixModels) {
  Json suite = CtlJson({"bench", "--suite", "--pairs", "2", "--warmup", "1", "--threads", "1"});
  ASSERT_EQ(suite["models"].size(), 6U);
  std::set<std::string> names;
  for (const Json& row : suite["models"]) {
    names.insert(row["model"].get<std::string>());
    EXPECT_FALSE(row["id"].get<std::string>().empty());
    EXPECT_EQ(row["threads"], 1);
    EXPECT_EQ(row["fused"]["latency_us"]["n"], 2);
    EXPECT_EQ(row["op_by_op"]["latency_us"]["n"], 2);
    EXPECT_GT(row["ratio"]["median"], 0);
    EXPECT_LT(row["fused"]["kernels"], row["op_by_op"]["kernels"]) << row;
    EXPECT_LT(row["fused"]["activation_bytes"], row["op_by_op"]["activation_bytes"]) << row;
    const double saved = 1 - row["fused"]["activation_bytes"].get<double>() /
                                 row["op_by_op"]["activation_bytes"].get<double>();
    EXPECT_NEAR(row["traffic_saved"].get<double>(), saved, 1e-9);
    EXPECT_LT(row["max_rel_between"], row["numerics"] == "fast" ? 0.05 : 1e-4) << row;
  }
  EXPECT_EQ(names.size(), 6U);
  ProgramResult text = Ctl({"bench", "--suite", "--pairs", "1", "--warmup", "0", "--threads", "1"});
  EXPECT_EQ(text.code, 0);
  for (const std::string& name : names) EXPECT_THAT(text.out, HasSubstr(name));
}

TEST_F(MeasureTest, TheSuiteTakesNoModelAndNoDataOfAModel) {
  ProgramResult neither = Ctl({"bench"});
  EXPECT_EQ(neither.code, 2);
  EXPECT_THAT(neither.err, HasSubstr("which model? expected MODEL or --suite"));
  const std::string model = Write("mlp", SmallMlp());
  EXPECT_EQ(Ctl({"bench", model, "--suite"}).code, 2);
  EXPECT_EQ(Ctl({"bench", "--suite", "--numerics", "fast"}).code, 2);
  EXPECT_EQ(Ctl({"bench", "--suite", "--kernels"}).code, 2);
}

TEST_F(MeasureTest, BenchSaysWhatPlanningAndCompilingTookWhereItDid) {
  std::vector<std::string> words = Bench(Write("mlp", SmallMlp()));
  words.insert(words.end(), {"--store", dir_.path("store"), "--json"});
  Json cold = Json::parse(BareCtl(words).out, nullptr, false);
  EXPECT_EQ(cold["fused"]["cache"], "planned");
  EXPECT_GT(cold["fused"]["plan_ms"], 0);
  EXPECT_GT(cold["fused"]["compile_ms"], 0);
  Json warm = Json::parse(BareCtl(words).out, nullptr, false);
  EXPECT_EQ(warm["fused"]["cache"], "store");
  EXPECT_TRUE(warm["fused"]["plan_ms"].is_null()) << warm["fused"];
}

TEST_F(MeasureTest, BenchTimesEachKernel) {
  std::vector<std::string> words = Bench(Write("mlp", SmallMlp()));
  words.push_back("--kernels");
  Json bench = CtlJson(words);
  for (const char* which : {"fused", "op_by_op"}) {
    const Json& kernels = bench[which]["kernels"];
    ASSERT_FALSE(kernels.empty());
    double share = 0;
    int launches = 0;
    for (const Json& kernel : kernels) {
      EXPECT_GE(kernel["n"], 5);
      EXPECT_GT(kernel["median_us"], 0);
      EXPECT_GT(kernel["estimated_us"], 0);
      EXPECT_NEAR(kernel["gb_per_s"].get<double>(),
                  kernel["bytes"].get<double>() / kernel["median_us"].get<double>() / 1e3, 1e-6);
      share += kernel["share"].get<double>();
      launches += kernel["launches"].get<int>();
    }
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_EQ(launches, bench[which]["totals"]["launches"]);
  }
  EXPECT_THAT(Ctl(words).out, AllOf(HasSubstr("GFLOP/s"), HasSubstr("share")));
}

TEST_F(MeasureTest, BenchOfOpByOpSaysSo) {
  std::vector<std::string> words = Bench(Write("mlp", SmallMlp()));
  words.insert(words.end(), {"--fusion", "op-by-op", "--no-report"});
  ProgramResult text = Ctl(words);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("95 % interval"), HasSubstr("9 pairs")));
  EXPECT_THAT(text.out, Not(HasSubstr("fused"))) << "nothing of it was";
  EXPECT_THAT(text.out, Not(HasSubstr("reported")));
}

TEST_F(MeasureTest, BenchTakesItsDataFromFiles) {
  absl::StatusOr<GeneratedModel> model = GenerateModel(*FindModel("mlp"), SmallMlp());
  ASSERT_TRUE(model.ok());
  std::vector<std::string> words = Bench(Write(model->model));
  ASSERT_TRUE(SaveTestDataSet(dir_.path("data"), MakeData(*model)).ok());
  words.insert(words.end(), {"--data", dir_.path("data")});
  EXPECT_EQ(CtlJson(words)["data"], dir_.path("data"));
  words.back() = dir_.path("nowhere");
  ProgramResult absent = Ctl(words);
  EXPECT_EQ(absent.code, 3);
  ExpectOneErrorLine(absent);
}

// --- report and list

TEST_F(MeasureTest, AReportSetsWhatBenchMeasuredBesideTheEstimates) {
  std::string model = Write("mlp", SmallMlp());
  std::string store = dir_.path("store");
  std::vector<std::string> bench = Bench(model);
  bench.insert(bench.end(), {"--store", store, "--json"});
  ProgramResult benched = BareCtl(bench);
  ASSERT_EQ(benched.code, 0) << benched.err;
  Json measured = Json::parse(benched.out, nullptr, false);
  std::string key = measured["fused"]["plan_key"];

  // Another server on the same store: by model, by key, by its first digits, by nothing.
  std::string none;
  std::string shouted = key.substr(0, 8);
  for (char& c : shouted) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string& subject : {model, key, key.substr(0, 8), shouted, none}) {
    std::vector<std::string> words = {"report", "--store", store, "--json"};
    if (!subject.empty()) words.push_back(subject);
    ProgramResult result = BareCtl(words);
    ASSERT_EQ(result.code, 0) << subject << ": " << result.err;
    Json plans = Json::parse(result.out, nullptr, false)["plans"];
    ASSERT_EQ(plans.size(), subject.empty() ? 2u : 1u) << subject << ": bench reports both plans";
    const Json& plan = plans[0];
    EXPECT_EQ(plan["op_by_op_plan"], measured["op_by_op"]["plan_key"]);
    EXPECT_EQ(plan["speedup"]["measured"], true);
    EXPECT_GT(plan["op_by_op_runs"]["median_us"], 0);
    EXPECT_GT(plan["op_by_op_peak_bytes"], 0);
    EXPECT_TRUE(plan["sections"].empty()) << "no attention";
    EXPECT_EQ(plan["plan_key"], key);
    EXPECT_EQ(plan["runs"]["calls"], 9);
    EXPECT_EQ(plan["devices"].size(), 1u);
    EXPECT_EQ(plan["devices"][0], measured["device"]);
    ASSERT_EQ(plan["kernels"].empty(), false);
    for (const Json& kernel : plan["kernels"]) {
      EXPECT_GE(kernel["measured"]["calls"], 5);
      EXPECT_GT(kernel["measured"]["median_us"], 0);
      EXPECT_NEAR(kernel["estimated_speedup"].get<double>(),
                  kernel["op_by_op_us"].get<double>() / kernel["estimated_us"].get<double>(), 1e-9);
      EXPECT_EQ(kernel["traffic_saved_bytes"].get<int64_t>(),
                kernel["op_by_op_activation_bytes"].get<int64_t>() -
                    kernel["activation_bytes"].get<int64_t>());
    }
  }
  ProgramResult text = BareCtl({"report", "--store", store, "--html", dir_.path("page.html")});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("fused output"), HasSubstr("measured"),
                              HasSubstr("speed-up"), HasSubstr("calls"), HasSubstr("total"),
                              HasSubstr("both measured"), HasSubstr(key.substr(0, 16))));
  struct stat page_file = {};
  ASSERT_EQ(stat(dir_.path("page.html").c_str(), &page_file), 0);
  mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(page_file.st_mode & 0777, 0666 & ~mask) << "for others too";
  std::string page = Read(dir_.path("page.html"));
  EXPECT_THAT(page, AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("<svg"), HasSubstr("</html>"),
                          HasSubstr(key.substr(0, 16))));
}

TEST_F(MeasureTest, AReportOfALayerNamesItsPartsInEveryFormat) {
  ModelParams params = FindModel("bert_tiny")->defaults;
  params.layers = 1;
  params.seq = 16;
  const std::string model = Write("bert_tiny", params);
  const std::string store = dir_.path("store");
  std::vector<std::string> bench = Bench(model);
  bench.insert(bench.end(), {"--store", store, "--threads", "1"});
  ASSERT_EQ(BareCtl(bench).code, 0);
  const std::string page = dir_.path("page.html");
  const std::string notes = dir_.path("notes.md");
  const ProgramResult text =
      BareCtl({"report", "--store", store, "--html", page, "--markdown", notes});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const std::string& shown : {text.out, Read(page), Read(notes)}) {
    EXPECT_THAT(shown, AllOf(HasSubstr("QKV"), HasSubstr("FFN"), HasSubstr("all-in-one"),
                             HasSubstr("Peak memory")));
  }
  for (const std::string_view line : StrSplit(text.out, '\n')) EXPECT_LE(line.size(), 100u) << line;
  const ProgramResult markdown = BareCtl({"report", "--store", store, "--markdown", "-"});
  ASSERT_EQ(markdown.code, 0) << markdown.err;
  EXPECT_THAT(markdown.out, StartsWith("# Reported latencies\n"));
  EXPECT_THAT(markdown.out, Not(HasSubstr("\nmeasured on \""))) << "instead of the text";
  const ProgramResult json = BareCtl({"report", "--store", store, "--json"});
  int64_t kernels = 0;
  const Json report = Json::parse(json.out, nullptr, false);
  for (const Json& plan : report["plans"]) {
    if (plan["fusion"] != "fused") continue;
    for (const Json& section : plan["sections"]) {
      kernels += section["fused_kernels"].get<int64_t>();
      EXPECT_GT(section["measured_us"], 0);
      EXPECT_GT(section["op_by_op_measured_us"], 0);
      EXPECT_EQ(section["speedup"]["measured"], true);
    }
    EXPECT_EQ(kernels, plan["totals"]["launches"]);
  }
  EXPECT_GT(kernels, 0);
  const ProgramResult both = BareCtl({"report", "--store", store, "--json", "--markdown", "-"});
  EXPECT_EQ(both.code, 3);
  EXPECT_THAT(both.err, HasSubstr("--markdown: -; expected a file"));
}

TEST_F(MeasureTest, TheAccuracyIsThatOfAllThatWasMeasured) {
  const std::string store = dir_.path("store");
  std::vector<std::string> words = {"report", "--accuracy", "--store", store};
  EXPECT_THAT(BareCtl(words).out, HasSubstr("no latencies of kernels were reported"));
  std::vector<std::string> bench = Bench(Write("mlp", SmallMlp()));
  bench.insert(bench.end(), {"--store", store, "--json"});
  ProgramResult benched = BareCtl(bench);
  ASSERT_EQ(benched.code, 0) << benched.err;
  const Json measured = Json::parse(benched.out, nullptr, false);
  ProgramResult text = BareCtl(words);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("of the spec "), HasSubstr("median error"),
                              HasSubstr(measured["target"].get<std::string>())));
  words.push_back("--json");
  const Json devices = Json::parse(BareCtl(words).out, nullptr, false)["devices"];
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0]["target"], measured["target"]);
  EXPECT_EQ(devices[0]["isa"], measured["isa"]);
  EXPECT_EQ(devices[0]["threads"], measured["threads"]);
  EXPECT_GT(devices[0]["kernels"].get<int64_t>(), 0);
  EXPECT_EQ(devices[0]["spec"]["timings"], devices[0]["timings"]);
  EXPECT_EQ(devices[0]["machines"][0]["machine"], measured["device"]);
  ProgramResult both = BareCtl({"report", "0123456789", "--accuracy", "--store", store});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("--accuracy"));
}

TEST_F(MeasureTest, AReportOfWhatIsNotThereIsBadInput) {
  struct Case {
    std::string subject;
    std::string says;
  };
  for (const Case& c :
       {Case{"0123456789abcdef", "begins with 0123456789abcdef"}, Case{std::string(64, '0'), ""},
        Case{"0123abc", "\"0123abc\" is neither a file nor a plan key of 8..64"},
        Case{dir_.path("none.onnx"), "none.onnx"},
        Case{dir_.Write("bad.onnx", "no model"), "bad.onnx"}}) {
    ProgramResult result = Ctl({"report", c.subject});
    EXPECT_EQ(result.code, 3) << c.subject << result.out;
    EXPECT_THAT(result.err, HasSubstr(c.says));
    ExpectOneErrorLine(result);
  }
  ProgramResult option = Ctl({"report", "0123456789abcdef", "--threads", "2"});
  EXPECT_EQ(option.code, 3);
  EXPECT_THAT(option.err, AllOf(HasSubstr("--threads"), HasSubstr("0123456789abcdef")));
  ExpectOneErrorLine(option);
  option = Ctl({"report", "--fusion", "op-by-op"});
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.err, HasSubstr("--fusion says how a model is planned; none is given"));
  ProgramResult unwritable = Ctl({"report", "--html", dir_.path("no/such/page.html")});
  EXPECT_EQ(unwritable.code, 3);
  EXPECT_THAT(unwritable.err, HasSubstr("--html"));
  ExpectOneErrorLine(unwritable);
}

TEST_F(MeasureTest, AReportOfAModelWithOpenDimsTakesThemFromData) {
  ModelParams params = FindModel("bert_tiny")->defaults;
  params.dynamic = true;
  params.layers = 1;
  params.seq = 16;
  std::string path = Write("bert_tiny", params);
  params.dynamic = false;
  TestDataSet data = MakeData(*GenerateModel(*FindModel("bert_tiny"), params));
  ASSERT_TRUE(SaveTestDataSet(dir_.path("data"), data).ok());
  std::vector<std::string> bench = Bench(path);
  bench.insert(bench.end(), {"--data", dir_.path("data")});
  std::string key = CtlJson(bench)["fused"]["plan_key"];
  EXPECT_EQ(CtlJson({"report", path, "--data", dir_.path("data")})["plans"][0]["plan_key"], key);
  EXPECT_EQ(Ctl({"report", path}).code, 3) << "its dims are open";
}

TEST_F(MeasureTest, AReportOfNothingSaysSo) {
  std::vector<std::string> words = {"report", "--store", dir_.path("empty")};
  EXPECT_THAT(BareCtl(words).out, HasSubstr("no latencies were reported"));
  words.push_back("--json");
  EXPECT_EQ(Json::parse(BareCtl(words).out, nullptr, false)["plans"], Json::array());
}

TEST_F(MeasureTest, ListsStoredPlansNewestFirst) {
  std::string store = dir_.path("store");
  EXPECT_EQ(BareCtl({"list", "--store", store}).out, "no plans are stored\n");
  std::string model = Write("mlp", SmallMlp());
  ASSERT_EQ(BareCtl({"plan", model, "--store", store, "--no-compile"}).code, 0);
  ASSERT_EQ(BareCtl({"plan", model, "--store", store, "--fusion", "op-by-op"}).code, 0);
  ProgramResult result = BareCtl({"list", "--store", store, "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  Json list = Json::parse(result.out, nullptr, false);
  EXPECT_EQ(list["stored"], 2);
  ASSERT_EQ(list["plans"].size(), 2u);
  EXPECT_EQ(list["plans"][0]["fusion"], "op by op");
  EXPECT_EQ(list["plans"][0]["compiled_kernels"], list["plans"][0]["distinct_kernels"]);
  EXPECT_EQ(list["plans"][1]["fusion"], "fused");
  EXPECT_GT(list["plans"][1]["distinct_kernels"], 0);
  EXPECT_LE(list["plans"][1]["created_unix_ms"], list["plans"][0]["created_unix_ms"]);

  std::string key = list["plans"][0]["plan_key"];
  ProgramResult text = BareCtl({"list", "--store", store, "--limit", "1"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("traffic saved"), HasSubstr(key.substr(0, 8)),
                              Not(HasSubstr(key)), HasSubstr("and 1 older")));
  EXPECT_THAT(BareCtl({"list", "--store", store, "--full"}).out, HasSubstr(key));
}

// --- capabilities

TEST_F(MeasureTest, CapabilitiesOfAService) {
  Json all = CtlJson({"capabilities"});
  for (const char* name : {"devices", "ops", "limits"}) EXPECT_FALSE(all[name].empty()) << name;
  EXPECT_GT(all["workers"], 0);
  ProgramResult text = Ctl({"capabilities"});
  EXPECT_EQ(text.code, 0);
  for (const Json& device : all["devices"]) {
    EXPECT_THAT(text.out, HasSubstr(device["name"].get<std::string>()));
  }
  EXPECT_THAT(text.out, HasSubstr("--ops lists them"));
  ProgramResult ops = Ctl({"capabilities", "--ops"});
  for (const Json& op : all["ops"]) {
    EXPECT_THAT(ops.out, HasSubstr(StrCat("\n", op["name"].get<std::string>(), " ")));
  }
}

TEST_F(MeasureTest, CapabilitiesSayHowMuchIsKeptOnDisk) {
  auto limit = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"capabilities", "--json"});
    const ProgramResult result = BareCtl(args);
    EXPECT_EQ(result.code, 0) << result.err;
    const Json all = Json::parse(result.out, nullptr, false);
    for (const Json& row : all["limits"]) {
      if (row["option"] == "--store-limit") return row["value"].get<int64_t>();
    }
    return int64_t{-1};
  };
  const std::string store = dir_.path("store");
  EXPECT_EQ(limit({}), -1) << "nothing is kept";
  EXPECT_EQ(limit({"--store", store, "--store-limit", "1MiB"}), 1 << 20);
  EXPECT_EQ(limit({"--store", store}), 0) << "a fusiond of its own puts nothing out";
}

TEST_F(MeasureTest, CommandsThatAskAServiceSayWhereNoneIs) {
  for (const char* command : {"report", "list", "capabilities"}) {
    ProgramResult result = BareCtl({command, "--server", "unix:" + dir_.path("nothing")});
    EXPECT_EQ(result.code, 4) << command;
    EXPECT_THAT(result.err, HasSubstr(dir_.path("nothing")));
    ExpectOneErrorLine(result);
  }
  for (const char* command : {"report", "list"}) {
    ProgramResult result = BareCtl({command});
    EXPECT_EQ(result.code, 2) << command;
    EXPECT_THAT(result.err, HasSubstr("--store DIR"));
    ExpectOneErrorLine(result);
  }
}

// --- progress on a terminal

TEST_F(MeasureTest, ATerminalShowsProgressAndIsLeftClean) {
  std::string model = Write("mlp", SmallMlp());
  ProgramResult result = RunOnTerminal({FUSIONCTL, "plan", model, "--workers", "1"});
  ASSERT_EQ(result.code, 0) << result.out;
  EXPECT_THAT(result.out, AllOf(HasSubstr("starting fusiond"), HasSubstr("compile")));
  static const std::regex bar(R"(\[#*-*\] [0-9.]+ m?u?s  compile [0-9]+/[0-9]+)");
  EXPECT_TRUE(std::regex_search(result.out, bar)) << result.out;
  // Every line of progress is cleared; the answer begins on a clean line.
  size_t last = result.out.rfind("\r\x1b[K");
  ASSERT_NE(last, std::string::npos);
  EXPECT_THAT(result.out.substr(last + 4), AllOf(HasSubstr("model.onnx"), Not(HasSubstr("..."))));
}

TEST_F(MeasureTest, ProgressIsForPeopleOnly) {
  std::string model = Write("mlp", SmallMlp());
  const std::string clear = "\r\x1b[K";
  for (const char* flag : {"--json", "--quiet"}) {
    ProgramResult result =
        RunOnTerminal({FUSIONCTL, "plan", model, "--server", daemon_->address(), flag});
    ASSERT_EQ(result.code, 0) << result.out;
    EXPECT_THAT(result.out, Not(HasSubstr(clear))) << flag;
  }
  ProgramResult dumb =
      RunOnTerminal({FUSIONCTL, "status", "--server", daemon_->address()}, {"TERM=dumb"});
  EXPECT_THAT(dumb.out, Not(HasSubstr(clear)));
  ProgramResult redirected = Ctl({"plan", model});
  EXPECT_EQ(redirected.err, "");
  ProgramResult plain =
      RunOnTerminal({FUSIONCTL, "plan", model, "--server", daemon_->address()}, {"NO_COLOR=1"});
  ASSERT_EQ(plain.code, 0);
  EXPECT_THAT(plain.out, AllOf(HasSubstr(clear), Not(HasSubstr("\x1b[1m")))) << "no colours";
}

TEST_F(MeasureTest, ABenchShowsHowFarItIs) {
  std::vector<std::string> words = Bench(Write("mlp", SmallMlp()));
  words.insert(words.begin(), FUSIONCTL);
  words.insert(words.end(), {"--server", daemon_->address()});
  ProgramResult result = RunOnTerminal(words);
  ASSERT_EQ(result.code, 0) << result.out;
  EXPECT_THAT(result.out, AllOf(HasSubstr("warming up"), HasSubstr("timing kernels")));
}

// --- completion

/// What bash offers for the last of these words.
std::vector<std::string> Offers(const std::string& script, const std::string& directory,
                                const std::vector<std::string>& words) {
  std::string line = StrJoin(words, " ", [](const std::string& word) { return "'" + word + "'"; });
  ProgramResult result =
      RunProgram({"/bin/bash", "--norc", "-c",
                  StrCat("cd '", directory, "' && source '", script, "' && COMP_WORDS=(", line,
                         ") COMP_CWORD=", words.size() - 1,
                         " && _fusionctl && printf '%s\\n' \"${COMPREPLY[@]}\"")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  std::vector<std::string> out;
  for (std::string_view word : StrSplit(result.out, '\n')) {
    if (!word.empty()) out.emplace_back(word);
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST_F(MeasureTest, BashCompletesWhatTheCommandLineKnows) {
  using Words = std::vector<std::string>;
  std::string script = dir_.Write("completion.bash", BareCtl({"completion", "bash"}).out);
  ASSERT_TRUE(MakeDirectories(dir_.path("files/models")).ok());
  std::string files = dir_.path("files");
  for (const char* name : {"a.onnx", "two words.onnx", "notes.txt"}) {
    ASSERT_TRUE(WriteFile(StrCat(files, "/", name), "").ok());
  }
  auto offers = [&](Words words) {
    words.insert(words.begin(), "fusionctl");
    return Offers(script, files, words);
  };
  EXPECT_EQ(offers({"rep"}), (Words{"report", "repro"}));
  EXPECT_THAT(offers({""}), testing::IsSupersetOf({"plan", "bench", "verify", "completion"}));
  EXPECT_EQ(offers({"--v"}), Words{"--version"});
  EXPECT_EQ(offers({"plan", "--fu"}), (Words{"--fusion", "--fusiond"}));
  EXPECT_EQ(offers({"plan", "--fusion", ""}), (Words{"fused", "op-by-op"}));
  EXPECT_EQ(offers({"plan", "--fusion", "=", "op"}), Words{"op-by-op"});
  EXPECT_EQ(offers({"plan", "--fusion", "="}), (Words{"fused", "op-by-op"}));
  EXPECT_EQ(offers({"bench", "--kern"}), Words{"--kernels"});
  EXPECT_EQ(offers({"status", "--kern"}), Words{});
  EXPECT_EQ(offers({"plan", ""}), (Words{"a.onnx", "models", "two words.onnx"}));
  EXPECT_EQ(offers({"plan", "--threads", "2", "a"}), Words{"a.onnx"});
  EXPECT_EQ(offers({"plan", "--threads", ""}), Words{}) << "a number";
  EXPECT_EQ(offers({"plan", "--store", ""}), Words{"models"}) << "a directory";
  EXPECT_EQ(offers({"report", "--html", "n"}), Words{"notes.txt"});
  EXPECT_EQ(offers({"report", "a"}), Words{"a.onnx"});
  EXPECT_EQ(offers({"show", "a.onnx", "s"}), (Words{"schedule", "smg", "source"}));
  EXPECT_EQ(offers({"show", "--json", "a.onnx", "gr"}), Words{"graph"});
  EXPECT_EQ(offers({"completion", ""}), (Words{"bash", "fish", "zsh"}));
  // A COMP_WORDBREAKS without '=' and ':' leaves them whole.
  EXPECT_EQ(offers({"plan", "--fusion=op"}), Words{"--fusion=op-by-op"});
  EXPECT_EQ(offers({"report", "--html=n"}), Words{"--html=notes.txt"});
  // bash cuts these values into words.
  const Words models{"a.onnx", "models", "two words.onnx"};
  EXPECT_EQ(offers({"plan", "--server", "unix", ":", "/tmp/s", ""}), models);
  EXPECT_EQ(offers({"plan", "--server", "=", "unix", ":", "/tmp/s", ""}), models);
  EXPECT_EQ(offers({"show", "--server", "localhost", ":", "1", "s.onnx", ""}),
            (Words{"graph", "plan", "program", "schedule", "smg", "source"}));
  EXPECT_EQ(offers({"plan", "--bind", "batch", "=", "4", ""}), models);
  ASSERT_TRUE(WriteFile(StrCat(files, "/page:1.html"), "").ok());
  EXPECT_EQ(offers({"report", "--html", "page", ":", "1"}), Words{"1.html"}) << "behind the cut";
}

TEST_F(MeasureTest, EveryShellCompletesEveryOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    ProgramResult result = BareCtl({"completion", shell});
    EXPECT_EQ(result.code, 0);
    for (const char* command :
         {"plan", "run", "bench", "verify", "show", "explain", "diff", "kernels", "report", "tune",
          "epochs", "probe", "top", "list", "capabilities", "status", "completion"}) {
      EXPECT_THAT(result.out, HasSubstr(command)) << shell;
      std::string help = BareCtl({command, "--help"}).out;
      static const std::regex option("--([a-z-]+)");
      for (std::sregex_iterator it(help.begin(), help.end(), option), none; it != none; ++it) {
        EXPECT_THAT(result.out, HasSubstr((*it)[1].str())) << shell << " " << command;
      }
    }
  }
}

}  // namespace
}  // namespace fusion
