// The parts of fusionctl that need no service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fusionctl/arguments.h"
#include "client/fusionctl/named_graph.h"
#include "client/fusionctl/statistics.h"
#include "client/fusionctl/terminal.h"
#include "core/graph/canonical.h"
#include "core/graph/text.h"

namespace fusion {
namespace {

using testing::HasSubstr;

ParsedArguments Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "fusionctl");
  return ParseArguments(static_cast<int>(words.size()), words.data());
}

TEST(Arguments, ReadsEveryOptionOfARun) {
  ParsedArguments parsed = Parse(
      {"verify",   "m.onnx",   "--server",          "unix:/x", "--json",     "--threads", "3",
       "--fusion", "op-by-op", "--batch",           "4",       "--numerics", "bitwise",   "--bind",
       "a=b=5",    "--bind",   "seq=128",           "--data",  "d",          "--atol",    "0.5",
       "--rtol",   "0.25",     "--memory-pressure", "0.9",     "--seed",     "7"});
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
        Words{"verify", "m.onnx", "--atol", "-1"}));

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
    testing::Values(BadValue{{"--server", ""}, "expected a value"},
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

TEST(Arguments, AWordThatIsNoCommandIsNamed) {
  EXPECT_EQ(Parse({"foo"}).text,
            "\"foo\" is no command; expected one of plan, run, verify, show, kernels, status");
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
