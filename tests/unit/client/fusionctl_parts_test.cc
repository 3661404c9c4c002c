// The parts of fusionctl that need no service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/input/named_graph.h"
#include "client/fusionctl/measure/statistics.h"
#include "client/fusionctl/output/bar_chart.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/report/accuracy_output.h"
#include "client/fusionctl/report/report_figures.h"
#include "client/fusionctl/report/report_page.h"
#include "client/fusionctl/service/plan_keys.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/view/html.h"
#include "core/wire/report.h"
#include "tests/support/well_formed.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using testing::Not;

ParsedArguments Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "fusionctl");
  return ParseArguments(static_cast<int>(words.size()), words.data());
}

TEST(Arguments, ReadsEveryOptionOfARun) {
  ParsedArguments parsed = Parse({"verify",
                                  "m.onnx",
                                  "--server",
                                  "unix:/x",
                                  "--json",
                                  "--threads",
                                  "3",
                                  "--fusion",
                                  "op-by-op",
                                  "--batch",
                                  "4",
                                  "--numerics",
                                  "bitwise",
                                  "--bind",
                                  "a=b=5",
                                  "--bind",
                                  "seq=128",
                                  "--data",
                                  "d",
                                  "--atol",
                                  "0.5",
                                  "--rtol",
                                  "0.25",
                                  "--memory-pressure",
                                  "0.9",
                                  "--seed",
                                  "7",
                                  "--rules",
                                  "r.textproto",
                                  "--frontier",
                                  "--low-latency"});
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  const Arguments& a = parsed.arguments;
  EXPECT_EQ(a.command, CommandKind::kVerify);
  EXPECT_EQ(a.model, "m.onnx");
  EXPECT_EQ(a.server, "unix:/x");
  EXPECT_TRUE(a.json);
  EXPECT_EQ(a.threads, 3);
  EXPECT_EQ(a.options.fusion, FusionMode::kOpByOp);
  EXPECT_EQ(a.options.numerics, Numerics::kBitwise);
  EXPECT_EQ(a.options.hints.batch_size, 4);
  EXPECT_EQ(a.options.hints.memory_pressure, 0.9);
  EXPECT_EQ(a.options.dim_bindings, (std::map<std::string, int64_t>{{"a=b", 5}, {"seq", 128}}));
  EXPECT_EQ(a.data, "d");
  EXPECT_EQ(a.atol, 0.5);
  EXPECT_EQ(a.rtol, 0.25);
  EXPECT_EQ(a.seed, 7u);
  EXPECT_EQ(a.rules, "r.textproto");
  EXPECT_TRUE(a.options.frontier);
  EXPECT_TRUE(a.options.hints.low_latency);
}

TEST(Arguments, HelpStatesTheExitCodes) {
  for (auto words : {std::vector{"--help"}, std::vector{"verify", "--help"}}) {
    ParsedArguments parsed = Parse(words);
    EXPECT_EQ(parsed.exit_code, kExitOk);
    EXPECT_THAT(parsed.text, HasSubstr("3 bad input"));
    EXPECT_THAT(parsed.text, HasSubstr("4 the service"));
    EXPECT_THAT(parsed.text, HasSubstr("5 this machine"));
  }
}

class BadUsage : public testing::TestWithParam<std::vector<const char*>> {};

TEST_P(BadUsage, IsRefusedInOneLine) {
  ParsedArguments parsed = Parse(GetParam());
  EXPECT_EQ(parsed.exit_code, kExitUsage);
  EXPECT_FALSE(parsed.text.empty());
  EXPECT_EQ(parsed.text.find('\n'), std::string::npos) << parsed.text;
}

using Words = std::vector<const char*>;
INSTANTIATE_TEST_SUITE_P(
    Words, BadUsage,
    testing::Values(
        Words{}, Words{"plan"}, Words{"fly", "m.onnx"}, Words{"plan", "m.onnx", "--colour"},
        Words{"plan", "m.onnx", "--threads", "0"}, Words{"plan", "m.onnx", "--bind", "seq"},
        Words{"plan", "m.onnx", "--bind", "seq=-1"},
        Words{"plan", "m.onnx", "--bind", "seq=12345678901234567890"},
        Words{"plan", "m.onnx", "--fusion", "maybe"},
        Words{"plan", "m.onnx", "--memory-pressure", "1.5"},
        Words{"plan", "m.onnx", "--server", "a:1", "--store", "d"},
        Words{"show", "m.onnx", "everything"}, Words{"show", "m.onnx", "source", "--format", "dot"},
        Words{"run", "m.onnx", "--repeat", "0"}, Words{"run", "m.onnx", "--isa", "avx2"},
        Words{"verify", "m.onnx", "--atol", "-1"}, Words{"bench"},
        Words{"bench", "m.onnx", "--seconds", "0"}, Words{"bench", "m.onnx", "--pairs", "10001"},
        Words{"bench", "m.onnx", "--warmup", "-1"}, Words{"bench", "m.onnx", "--isa", "avx2"},
        Words{"report"}, Words{"report", "12345678"}, Words{"report", "--store", "d", "--html", ""},
        Words{"report", "--store", "d", "--markdown", ""}, Words{"list"},
        Words{"list", "--store", "d", "--limit", "0"}, Words{"completion"},
        Words{"completion", "tcsh"}, Words{"capabilities", "m.onnx"}));

/// What follows `verify m.onnx`, and what the message says about it.
struct BadValue {
  Words words;
  std::string says;
};
class BadValues : public testing::TestWithParam<BadValue> {};

TEST_P(BadValues, AreNamedWithWhatWasExpected) {
  Words words = {"verify", "m.onnx"};
  words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
  ParsedArguments parsed = Parse(words);
  EXPECT_EQ(parsed.exit_code, kExitUsage);
  EXPECT_THAT(parsed.text, HasSubstr(GetParam().words[0]));
  EXPECT_THAT(parsed.text, HasSubstr(GetParam().says));
  EXPECT_LT(parsed.text.size(), 120u) << parsed.text;
}

const std::string kLongPath = "unix:/" + std::string(107, 'p');
const std::string kLongestPath = "unix:/" + std::string(106, 'p');

INSTANTIATE_TEST_SUITE_P(
    Values, BadValues,
    testing::Values(BadValue{{"--server", ""}, "expected HOST:PORT or unix:/PATH, got \"\""},
                    BadValue{{"--store", ""}, "expected a value"},
                    BadValue{{"--fusiond", ""}, "expected a value"},
                    BadValue{{"--data", ""}, "expected a value"},
                    BadValue{{"--server", "unix:"}, "1..107 bytes, got 0"},
                    BadValue{{"--server", kLongPath.c_str()}, "1..107 bytes, got 108"},
                    BadValue{{"--atol", "abc"}, "finite number >= 0, got \"abc\""},
                    BadValue{{"--atol", ""}, "finite number >= 0"},
                    BadValue{{"--atol", "-1"}, "finite number >= 0"},
                    BadValue{{"--atol", "inf"}, "finite number >= 0"},
                    BadValue{{"--atol", "1e999"}, "finite number >= 0"},
                    BadValue{{"--rtol", "nan"}, "finite number >= 0"},
                    BadValue{{"--rtol", "1e-4x"}, "finite number >= 0"},
                    BadValue{{"--seed", "-1"}, "0..18446744073709551615"},
                    BadValue{{"--seed", "1.5"}, "0..18446744073709551615"},
                    BadValue{{"--seed", "18446744073709551616"}, "0..18446744073709551615"}));

TEST(Arguments, TakesValuesAtTheirLimits) {
  ParsedArguments parsed = Parse({"verify", "m.onnx", "--seed", "18446744073709551615", "--atol",
                                  "0", "--rtol", "1e-30", "--server", kLongestPath.c_str()});
  ASSERT_FALSE(parsed.exit_code) << parsed.text;
  EXPECT_EQ(parsed.arguments.seed, UINT64_MAX);
  EXPECT_EQ(parsed.arguments.atol, 0);
  EXPECT_EQ(parsed.arguments.rtol, 1e-30);
  EXPECT_EQ(parsed.arguments.server, kLongestPath);
}

TEST(Arguments, EmptyWordsAreNoIsaAndNoModel) {
  EXPECT_EQ(Parse({"plan", "m.onnx", "--isa", ""}).exit_code, kExitUsage);
  EXPECT_EQ(Parse({"plan", ""}).exit_code, kExitUsage);
}

TEST(Arguments, AnUnknownIsaNamesAllOfThem) {
  for (const char* word : {"foo", "AVX2", "avx512 ", "avx-512"}) {
    const ParsedArguments parsed = Parse({"plan", "m.onnx", "--isa", word});
    EXPECT_EQ(parsed.exit_code, kExitUsage) << word;
    EXPECT_EQ(parsed.text,
              StrCat("--isa: expected one of x86-64-v2, avx2, avx512, avx512-vnni, avx512-bf16, "
                     "avx512-amx; got \"",
                     word, "\""));
  }
  EXPECT_FALSE(Parse({"plan", "m.onnx", "--isa", "avx512-amx"}).exit_code);
}

TEST(Arguments, AddressesAreHostsWithPortsOrSockets) {
  for (const char* good : {"localhost:1", "plans.example:65535", "127.0.0.1:50051", "[::1]:80",
                           "[fe80::1%eth0]:80", "unix:/run/fusiond.sock", "unix:relative"}) {
    EXPECT_FALSE(Parse({"status", "--server", good}).exit_code) << good;
  }
  for (const char* bad :
       {"foo", "foo:", "foo:bar", ":80", "foo:0", "foo:65536", "::1:5", "two words:80",
        "http://localhost:80", "dns:///foo:80", "a_b:80:90", "[foo]:80", "fo\xc3\xb6:80"}) {
    const ParsedArguments parsed = Parse({"status", "--server", bad});
    EXPECT_EQ(parsed.exit_code, kExitUsage) << bad;
    EXPECT_THAT(parsed.text, HasSubstr("--server: expected HOST:PORT or unix:/PATH, got "));
  }
  EXPECT_THAT(Parse({"status", "--server", "a:1,b:2"}).text, HasSubstr("several addresses"));
  EXPECT_FALSE(Parse({"run", "m.onnx", "--fallback", "--server", "a:1, b:2"}).exit_code);
  EXPECT_THAT(Parse({"run", "m.onnx", "--fallback", "--server", "a:1,b"}).text,
              HasSubstr("got \"b\""));
}

// What fusiond --tokens would refuse is no entry for it.
TEST(Arguments, TokensAreWhatTheServerTakes) {
  for (const char* word : {"foo", "1h", "2027-02-30", "2027-13-01", "2027-01-31T18:00:00",
                           "2027-01-31 ", "31.01.2027", ""}) {
    const ParsedArguments parsed = Parse({"token", "ci", "--expires", word});
    EXPECT_EQ(parsed.exit_code, kExitUsage) << word;
    EXPECT_EQ(parsed.text, StrCat("--expires: \"", word,
                                  "\"; expected a time in UTC, 2027-01-31 or "
                                  "2027-01-31T18:00:00Z"));
  }
  for (const char* word : {"2027-01-31", "2027-01-31T18:00:00Z"}) {
    EXPECT_FALSE(Parse({"token", "ci", "--expires", word}).exit_code) << word;
  }
  const std::string name(128, 'n'), tenant(64, 't');
  EXPECT_FALSE(Parse({"token", name.c_str(), "--tenant", tenant.c_str()}).exit_code);
  EXPECT_THAT(Parse({"token", (name + "n").c_str()}).text, HasSubstr("1..128 bytes, got 129"));
  EXPECT_THAT(Parse({"token", "ci", "--tenant", (tenant + "t").c_str()}).text,
              HasSubstr("--tenant: expected a name of 1..64 bytes, got 65"));
  for (const char* word : {"two\nlines", "no \xff utf-8", ""}) {
    EXPECT_EQ(Parse({"token", word}).exit_code, kExitUsage) << word;
  }
}

TEST(Arguments, AWordThatIsNoCommandIsNamed) {
  EXPECT_EQ(Parse({"foo"}).text,
            "\"foo\" is no command; expected one of plan, run, bench, verify, show, kernels, "
            "export, explain, diff, repro, report, tune, probe, list, capabilities, status, top, "
            "epochs, token, store, completion");
  EXPECT_THAT(Parse({}).text, HasSubstr("expected one of plan, run"));
}

TEST(Arguments, SwappedWordsOfShowAreNamed) {
  std::string text = Parse({"show", "graph", "m.onnx"}).text;
  EXPECT_THAT(text, HasSubstr("expected one of graph, plan, program, schedule, smg, source"));
  EXPECT_THAT(text, HasSubstr("got \"m.onnx\" after the MODEL"));
}

TEST(MedianOf, IsTheMiddleWithItsInterval) {
  std::vector<double> samples;
  for (int i = 100; i > 0; --i) samples.push_back(i);
  MedianInterval m = MedianOf(samples);
  EXPECT_EQ(m.median, 50.5);
  // Ranks 40 and 61 of 100 hold the median with 95 % (binomial table).
  EXPECT_EQ(m.low, 40);
  EXPECT_EQ(m.high, 61);
}

TEST(MedianOf, OfFewSamplesIsTheirRange) {
  MedianInterval m = MedianOf({3, 1, 2});
  EXPECT_EQ(m.median, 2);
  EXPECT_EQ(m.low, 1);
  EXPECT_EQ(m.high, 3);
  EXPECT_EQ(MedianOf({5}).low, 5);
}

TEST(BootstrapMedian, HoldsTheMedianAndIsRepeatable) {
  std::vector<double> samples;
  for (int i = 1; i <= 101; ++i) samples.push_back(i);
  MedianInterval m = BootstrapMedian(samples);
  EXPECT_EQ(m.median, 51);
  EXPECT_LT(m.low, 51);
  EXPECT_GT(m.high, 51);
  // Order statistics of the same samples: the two ways agree on uniform ones.
  MedianInterval by_rank = MedianOf(samples);
  EXPECT_NEAR(m.low, by_rank.low, 4);
  EXPECT_NEAR(m.high, by_rank.high, 4);
  EXPECT_EQ(BootstrapMedian(samples).low, m.low);
  MedianInterval even = BootstrapMedian({1, 1, 3, 3});
  EXPECT_EQ(even.median, 2);
  EXPECT_GE(even.low, 1);
  EXPECT_LE(even.high, 3);
  EXPECT_EQ(BootstrapMedian({7}).high, 7);
}

PlanSummary Stored(const std::string& key) {
  PlanSummary out;
  FUSION_CHECK(Digest::FromHex(key + std::string(64 - key.size(), '0'), &out.plan_key), "a key");
  return out;
}

TEST(PlanKeys, AreKnownByTheirDigits) {
  EXPECT_TRUE(LooksLikeKey("0123abcd"));
  EXPECT_TRUE(LooksLikeKey(std::string(64, 'f')));
  EXPECT_FALSE(LooksLikeKey("0123abc"));
  EXPECT_FALSE(LooksLikeKey(std::string(65, 'f')));
  EXPECT_TRUE(LooksLikeKey("0123ABCD"));
  EXPECT_FALSE(LooksLikeKey("12345678.onnx"));
}

TEST(PlanKeys, APrefixNamesOnePlanOrNone) {
  std::vector<PlanSummary> plans = {Stored("aaaaaaaa1"), Stored("aaaaaaaa2"), Stored("bbbbbbbb")};
  absl::StatusOr<Digest> found = FindPlan("bbbbbbbb", plans);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, plans[2].plan_key);
  EXPECT_EQ(*FindPlan("aaaaaaaa2", plans), plans[1].plan_key);
  EXPECT_EQ(*FindPlan("BBBBBBbb", plans), plans[2].plan_key);
  absl::Status several = FindPlan("aaaaaaaa", plans).status();
  EXPECT_TRUE(absl::IsInvalidArgument(several));
  EXPECT_THAT(std::string(Message(several)), HasSubstr(plans[1].plan_key.ToHex()));
  EXPECT_TRUE(absl::IsNotFound(FindPlan("cccccccc", plans).status()));
}

TEST(PlanKeys, ShowsAsManyDigitsAsTellThemApart) {
  EXPECT_EQ(UniqueDigits({}), 8u);
  EXPECT_EQ(UniqueDigits({Stored("aaaaaaaa1"), Stored("bbbbbbbb")}), 8u);
  EXPECT_EQ(UniqueDigits({Stored("aaaaaaaa1"), Stored("bb"), Stored("aaaaaaaa2")}), 9u);
  EXPECT_EQ(UniqueDigits({Stored("ab"), Stored("ab")}), 8u) << "the same plan twice";
}

TEST(ProgressBar, FillsUp) {
  EXPECT_EQ(ProgressBar(0, 4, 8), "[--------]");
  EXPECT_EQ(ProgressBar(1, 4, 8), "[##------]");
  EXPECT_EQ(ProgressBar(4, 4, 8), "[########]");
  EXPECT_EQ(ProgressBar(9, 4, 8), "[########]");
}

// --- the page of fusionctl report

constexpr const char* kHostile = "</title><script>alert('x')</script> \" & \x1b[31m \xff \u202e";

struct Box {
  double left, top, right, bottom;
  std::string text;
};

// Of the letters of an <svg>, at the width that fixed-width fonts have.
std::vector<Box> TextBoxes(const std::string& svg) {
  static const std::regex text(R"re(<text x="([0-9.]+)" y="([0-9.]+)">([^<]*)</text>)re");
  static const std::regex entity("&[a-z#0-9]+;");
  std::vector<Box> out;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), none; it != none; ++it) {
    double x = std::stod((*it)[1]);
    double y = std::stod((*it)[2]);
    std::string letters = std::regex_replace((*it)[3].str(), entity, "?");
    out.push_back({x, y - 9, x + 6.7 * static_cast<double>(letters.size()), y + 2, letters});
  }
  return out;
}

void ExpectNoOverlap(const std::string& svg) {
  std::vector<Box> boxes = TextBoxes(svg);
  ASSERT_FALSE(boxes.empty());
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box& a = boxes[i];
    EXPECT_LE(a.right, 760) << a.text;
    for (size_t j = i + 1; j < boxes.size(); ++j) {
      const Box& b = boxes[j];
      bool apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      EXPECT_TRUE(apart) << a.text << " | " << b.text;
    }
  }
}

PlanReport SampleReport(int kernels) {
  PlanReport out;
  out.target = "generic-avx2";
  out.devices = {kHostile, "Intel(R) Xeon(R)"};
  for (int i = 0; i < kernels; ++i) {
    KernelReport k;
    k.label = i % 3 == 1 ? std::string(400, 'M') : i % 3 == 2 ? kHostile : "MatMul+Add";
    k.launches = 1 + i % 2;
    k.measured = {
        .calls = 5, .samples = i % 4 == 3 ? 0 : 5, .median_us = i % 4 == 3 ? 0.0 : 100 + i};
    k.estimated_us = 80;
    k.op_by_op_us = 160;
    k.activation_bytes = 1 << 20;
    k.op_by_op_activation_bytes = i % 5 == 0 ? 1 << 10 : 3 << 20;
    out.kernels.push_back(k);
  }
  out.runs = {.calls = 5, .samples = 5, .median_us = 100.0 * kernels};
  out.totals = {.launches = kernels, .activation_bytes = kernels << 20, .estimated_us = 80};
  out.op_by_op = {.launches = 9, .activation_bytes = kernels << 22, .estimated_us = 200};
  return out;
}

// Every link leads to a place of the page, of which there is one.
int ExpectLinksWithin(const std::string& page) {
  static const std::regex link("href=\"([^\"]*)\"");
  int links = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), link), none; it != none; ++it, ++links) {
    const std::string to = (*it)[1];
    EXPECT_EQ(to.substr(0, 6), "#plan-") << to;
    const std::string id = StrCat("id=\"", to.substr(1), "\"");
    const size_t at = page.find(id);
    EXPECT_NE(at, std::string::npos) << id;
    EXPECT_EQ(page.find(id, at + 1), std::string::npos) << id;
  }
  return links;
}

class ReportPageTest : public testing::TestWithParam<int> {};

TEST_P(ReportPageTest, IsWellFormedAndLegibleWhateverIsInIt) {
  std::string page = ReportPage({SampleReport(GetParam())});
  ExpectWellFormed(page);
  for (const char* never : {"<script", "http://fonts", "src=", "url(", "\x1b", "\xff"}) {
    EXPECT_EQ(page.find(never), std::string::npos) << never;
  }
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  ExpectLinksWithin(page);
  size_t charts = 0;
  for (size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1)) {
    ExpectNoOverlap(page.substr(at, page.find("</svg>", at) - at));
    ++charts;
  }
  EXPECT_EQ(charts, 3u);
  if (GetParam() > 24) {
    EXPECT_THAT(page, HasSubstr(StrCat("the other ", GetParam() - 23, " kernels")));
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, ReportPageTest, testing::Values(1, 10, 24, 25, 60));

TEST(Accuracy, ShowsWhatIsWorthKnowing) {
  DeviceAccuracy device{
      .device = {"toy", "avx2", 2},
      .timings = 12,
      .kernels = 6,
      .models = 2,
      .spec = {.timings = 12, .median = std::log(1.5), .p90 = std::log(3)},
      .held_back = {.timings = 12, .median = std::log(1.1), .p90 = std::log(1.2)},
      .constants = {{"launch", 1}, {"memory", 1.5}},
      .classes =
          {{.bound = "memory", .form = "copy", .factor = 0.75, .kernels = 2, .voters = 1},
           {.bound = "launch", .form = "product", .factor = 1.001, .kernels = 4, .voters = 2}},
      .machines = {{.machine = "fast", .tenant = "a", .factor = 1},
                   {.machine = "slow", .tenant = "b", .factor = 2}}};
  const std::string text = AccuracyText({device});
  for (const char* shown :
       {"toy, avx2, 2 threads: 6 kernels of 2 models, 2 machines", "50.0 %", "200.0 %", "10.0 %",
        "20.0 %", "memory", "1.50 x", "copy", "0.75 x", "slow", "2.00 x"}) {
    EXPECT_THAT(text, HasSubstr(shown));
  }
  for (const char* left_out : {"launch", "product", "fast", "newest"}) {
    EXPECT_THAT(text, testing::Not(HasSubstr(left_out))) << "as good as 1";
  }
  device.held_back = {};
  device.constants = {};
  device.complete = false;
  EXPECT_THAT(AccuracyText({device}),
              testing::AllOf(HasSubstr("takes two models"), HasSubstr("only the newest"),
                             HasSubstr("the constants of the spec fit")));
  EXPECT_THAT(AccuracyText({}), HasSubstr("no latencies of kernels were reported"));
}

TEST(ReportPage, OfNothingSaysSo) {
  std::string page = ReportPage({});
  ExpectWellFormed(page);
  EXPECT_THAT(page, HasSubstr("No latencies were reported."));
  page = ReportPage({SampleReport(0)});
  ExpectWellFormed(page);
  EXPECT_THAT(page, HasSubstr("launches no kernel"));
}

TEST(ReportPage, HasAPartForEachPlan) {
  PlanReport other = SampleReport(3);
  other.plan_key = Sha256("other");
  other.model_name = kHostile;
  std::string page = ReportPage({SampleReport(2), other});
  ExpectWellFormed(page);
  EXPECT_EQ(ExpectLinksWithin(page), 2) << "an index";
  EXPECT_THAT(page, HasSubstr("<h1>Reported latencies of 2 plans</h1>"));
  EXPECT_THAT(page, HasSubstr("A run takes 200 us, estimated 80.0 us"));
  EXPECT_THAT(page, HasSubstr("Op by op: 200 us instead of 80.0 us, 2.50 x, both estimated."));
  EXPECT_EQ(ExpectLinksWithin(ReportPage({other})), 0);
  size_t first = page.find("<section>");
  EXPECT_NE(page.find("<section>", first + 1), std::string::npos);
}

TEST(ReportPage, SaysThatThereMayBeMorePlans) {
  std::vector<PlanReport> plans(kMaxListedPlans - 1, SampleReport(0));
  EXPECT_EQ(CutNote(plans), "");
  EXPECT_THAT(ReportPage(plans), Not(HasSubstr("no more at once")));
  plans.push_back(SampleReport(0));
  EXPECT_THAT(CutNote(plans), HasSubstr("the 1000 plans with the latest reports"));
  EXPECT_THAT(ReportPage(plans), HasSubstr(CutNote(plans)));
}

TEST(BarChart, BarsAreInProportion) {
  BarChart chart{.title = "t", .series = {"s"}};
  chart.rows = {{"a", {{10, "10"}}}, {"b", {{5, "5"}}}, {"c", {{-1, "-1"}}}};
  std::string svg = ToSvg(chart);
  std::smatch match;
  std::vector<double> widths;
  static const std::regex bar(R"re(x="0" y="[0-9.]+" width="([0-9.]+)")re");
  for (std::sregex_iterator it(svg.begin(), svg.end(), bar), none; it != none; ++it) {
    widths.push_back(std::stod((*it)[1]));
  }
  ASSERT_EQ(widths.size(), 3u) << svg;
  EXPECT_NEAR(widths[0], 2 * widths[1], 0.2);
  EXPECT_EQ(widths[2], 0);
}

TEST(EscapeHtml, LeavesOnlyText) {
  EXPECT_EQ(EscapeHtml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(EscapeHtml("\x1b[0m\n\x7f"), "?[0m??");
  EXPECT_EQ(EscapeHtml("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(EscapeHtml("\xff"), "?");
}

TEST(HumanNumbers, HaveThreeFiguresAndAUnit) {
  EXPECT_EQ(HumanMicroseconds(0.04), "0.0 us");
  EXPECT_EQ(HumanMicroseconds(12.34), "12.3 us");
  EXPECT_EQ(HumanMicroseconds(812.4), "812 us");
  EXPECT_EQ(HumanMicroseconds(999.7), "1.00 ms");
  EXPECT_EQ(HumanMicroseconds(12345), "12.3 ms");
  EXPECT_EQ(HumanMicroseconds(1.5e6), "1.50 s");
  EXPECT_EQ(HumanFlops(0), "0 flop");
  EXPECT_EQ(HumanFlops(1.8119e9), "1.81 Gflop");
  EXPECT_EQ(HumanPercent(0.774), "77.4 %");
  EXPECT_EQ(ShortNumber(1.26e-6), "1.3e-06");
  EXPECT_EQ(ShortNumber(0.2723), "0.2723");
  EXPECT_EQ(HumanAge(-3), "0 s");
  EXPECT_EQ(HumanAge(59.9), "59 s");
  EXPECT_EQ(HumanAge(60), "1 min");
  EXPECT_EQ(HumanAge(7200), "2 h");
  EXPECT_EQ(HumanAge(86400 * 3.5), "3 d");
}

TEST(Table, AlignsAndEscapes) {
  Table table({{"name"}, {"n", Table::kRight}});
  table.Add({"long name", "1"});
  table.Add({"a\x1b[31m", "1234"});
  EXPECT_EQ(table.ToString(),
            "name          n\n"
            "long name     1\n"
            "a\\x1b[31m  1234\n");
}

TEST(NameGraph, PutsTheCallersNamesBack) {
  std::string text =
      "graph \"\" {\n"
      "  %0 = input \"x\" : f32[2,3]\n"
      "  %1 = weight \"w\" : f32[3,4]\n"
      "  %2 = MatMul(%0, %1) : f32[2,4]  \"\" @ \"a*/\\\"b\"\n"
      "  %3 = Relu(%2) : f32[2,4]  \"y\" @ \"relu\"\n"
      "  output %3\n"
      "}\n";
  absl::StatusOr<Graph> graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  absl::StatusOr<CanonicalGraph> canonical = Canonicalise(*graph);
  ASSERT_TRUE(canonical.ok()) << canonical.status();
  Binding names{canonical->input_names, canonical->output_names, canonical->weight_names,
                canonical->node_names};
  absl::StatusOr<Graph> named = NameGraph(canonical->graph, names);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(ToString(*named), ToString(*graph));
  names.weights.push_back("more");
  EXPECT_TRUE(absl::IsInvalidArgument(NameGraph(canonical->graph, names).status()));
}

}  // namespace
}  // namespace fusion
