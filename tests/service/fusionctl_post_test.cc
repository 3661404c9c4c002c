// fusionctl report --post: a runtime in any language posts its own timings.
#include <absl/strings/escaping.h>

#include "core/base/files/file.h"
#include "tests/service/fusionctl_fixture.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class PostTest : public FusionctlTest {
 protected:
  // The key of a small plan of the shared server, and its threads.
  Json Planned() {
    return CtlJson({"plan", Write("mlp", SmallMlp()), "--plan-only", "--threads", "1"});
  }
  static std::string HexKey(const Json& plan) { return plan["plan_key"].get<std::string>(); }
  static std::string Report(const std::string& key, const std::string& more = {}) {
    return StrCat(R"({"plan_key":")", key,
                  R"(","threads":1,"launches":[{"launch":0,"samples_us":[12,10.5]}])", more, "}");
  }
  ProgramResult Post(const std::string& text) {
    return Ctl({"report", "--post", dir_.Write("reports.jsonl", text)});
  }
  int64_t CallsOf(const std::string& key) {
    const Json report = CtlJson({"report", key});
    return report["plans"].empty()
               ? 0
               : report["plans"][0]["kernels"][0]["measured"]["calls"].get<int64_t>();
  }
};

TEST_F(PostTest, JsonLinesAreStored) {
  const std::string key = HexKey(Planned());
  const int64_t before = CallsOf(key);
  const std::string base64 = absl::Base64Escape(absl::HexStringToBytes(key));
  const std::string text =
      StrCat(Report(key, R"(,"report_id":"aWQtMQ==","clock_ghz":3.1,"background_load":0.05)"),
             "\n\n", Report(base64, R"(,"device":"a machine")"), "\n", R"({"planKey": ")", key,
             R"(", "threads": 1, "launches": [{"launch": 0, "summary":
         {"n": "1000", "meanUs": 12, "minUs": 9, "p10Us": 10, "p50Us": 11, "p90Us": 14}}]})");
  ProgramResult posted = Post(text);
  EXPECT_EQ(posted.code, 0) << posted.err;
  EXPECT_EQ(posted.out, "3 reports: 3 stored with 20 samples, 0 known already, 0 refused\n");
  EXPECT_EQ(CallsOf(key), before + 1004);
  posted = Post(text);
  EXPECT_EQ(posted.code, 0) << posted.err;
  EXPECT_THAT(posted.out, HasSubstr("2 stored with 18 samples, 1 known already"));
}

TEST_F(PostTest, AnArrayIsStoredToo) {
  const std::string key = HexKey(Planned());
  EXPECT_EQ(Post(StrCat("[\n", Report(key), ",\n", Report(key), "\n]\n")).code, 0);
  const std::string path =
      dir_.Write("array.json", StrCat("[", Report(key), ", ", Report(key), "]"));
  const Json shown = CtlJson({"report", "--post", path});
  EXPECT_EQ(shown["reports"], 2);
  EXPECT_EQ(shown["accepted_reports"], 2);
  EXPECT_EQ(shown["accepted_samples"], 4);
  EXPECT_EQ(shown["refused"], Json::array());
}

TEST_F(PostTest, StandardInputIsRead) {
  const std::string key = HexKey(Planned());
  const std::string path = dir_.Write("piped.jsonl", StrCat(Report(key), "\n"));
  const ProgramResult posted =
      RunProgram({"/bin/sh", "-c", R"(cat "$1" | "$0" report --post - --server "$2")", FUSIONCTL,
                  path, daemon_->address()});
  EXPECT_EQ(posted.code, 0) << posted.err;
  EXPECT_THAT(posted.out, StartsWith("1 report: 1 stored with 2 samples"));
}

TEST_F(PostTest, ARefusedReportIsNamedByItsLine) {
  const std::string key = HexKey(Planned());
  const std::string path =
      dir_.Write("some.jsonl", StrCat(Report(key), "\n", Report(std::string(64, '0')), "\n",
                                      Report(key, R"(,"runs":-4)"), "\n",
                                      Report(key, R"(,"run_samples_us":["NaN"])"), "\n"));
  const ProgramResult posted = Ctl({"report", "--post", path});
  EXPECT_EQ(posted.code, 3);
  EXPECT_THAT(posted.out,
              AllOf(StartsWith("4 reports: 1 stored with 2 samples, 0 known already, 3 refused\n"),
                    HasSubstr(StrCat(path, ":2: NOT_FOUND: no plan 0000")),
                    HasSubstr(StrCat(path, ":3: INVALID_ARGUMENT: runs: -4; expected 0")),
                    HasSubstr(StrCat(path, ":4: INVALID_ARGUMENT: run_samples_us[0]: nan"))));
  const Json shown = CtlJson({"report", "--post", path}, /*code=*/3);
  EXPECT_EQ(shown["refused_reports"], 3);
  EXPECT_EQ(shown["refused"][0]["index"], 1);
  EXPECT_EQ(shown["refused"][0]["line"], 2);
  EXPECT_EQ(shown["refused"][0]["code"], "NOT_FOUND");
}

TEST_F(PostTest, AMalformedFileSendsNothing) {
  const std::string key = HexKey(Planned());
  ASSERT_EQ(Post(Report(key)).code, 0);
  const int64_t before = CallsOf(key);
  const std::string good = StrCat(Report(key), "\n");
  struct Case {
    std::string text;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"", ": no report in it"},
      {" \n", ": no report in it"},
      {"[]", ": no report in it"},
      {StrCat(good, "{\"plan_key\":\"", key, "\",\n"), ":2: the text ends within the report"},
      {StrCat(good, "\n7\n"), ":3: found \"7\"; expected '{', where a report begins"},
      {StrCat(good, ","), ":2: found \",\"; expected '{'"},
      {StrCat("[", good, good, "]"), ":2: found \"{\"; expected ',' or ']' after a report"},
      {StrCat("[", good, "] x"), ":2: found \"x\"; expected the end of the text"},
      {StrCat("[", good), ":2: the text ends; expected ',' or ']'"},
      {StrCat(good, "{\"threads\": 1 2}"), ":2: no JSON: "},
      {StrCat(good, "{\"speed\": 1}"), ":2: no report: "},
      {StrCat(good, R"({"launches": [{"launch": "first"}]})"), ":2: no report: "},
      {StrCat(good, R"({"plan_key": "???"})"), ":2: no report: "},
      {StrCat(good, "{\"threads\": ", std::string(100'000, '['), std::string(100'000, ']'), "}"),
       ":2: nested deeper than 32 levels"},
      {StrCat(good, "{\"device\": \"\xff\"}"), ":2: no JSON: "}};
  for (const Case& c : cases) {
    const ProgramResult posted = Post(c.text);
    EXPECT_EQ(posted.code, 3) << c.says;
    EXPECT_THAT(posted.err, HasSubstr(StrCat(dir_.path("reports.jsonl"), c.says)));
  }
  EXPECT_EQ(CallsOf(key), before);
  EXPECT_THAT(Ctl({"report", "--post", dir_.path("none")}).err, HasSubstr("--post: "));
  EXPECT_EQ(Ctl({"report", "--post", dir_.path("none")}).code, 3);
  EXPECT_EQ(Ctl({"report", "--post", "x", "--accuracy"}).code, 2);
}

}  // namespace
}  // namespace fusion
