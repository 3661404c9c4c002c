#include "core/wire/options/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/v1/rules.pb.h"
#include "tests/support/message_checks.h"
#include "tests/support/scratch_dir.h"

namespace fusion {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kSample = R"(# a comment
rules {
  name: "qkv-1.0_a"
  pattern {
    nodes { id: "q" ops: ["MatMul", "Gemm"] }
    nodes { id: "k" ops: "*" }
    nodes { id: "s" ops: "Softmax" }
    edges { from: "q" to: "s" input: 0 through: ["Mul", "Add"] most: 3 }
    inputs { nodes: ["q", "k"] input: 0 }
  }
  when: "dim(q.output, -1) >= 64"
  when: "l1_usage < 0.8 * l1_capacity"
  bias { factor: 0.5 }
}
rules { name: "f" pattern { nodes { id: "a" ops: "Softmax" } } force {} }
)";

Rules Sample() {
  absl::StatusOr<Rules> rules = ParseRulesText(kSample, "sample");
  FUSION_CHECK(rules.ok(), Message(rules.status()));
  return *std::move(rules);
}

TEST(WireRules, EveryFieldTravels) {
  Rules rules = Sample();
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].name, "qkv-1.0_a");
  EXPECT_EQ(rules[0].action, RuleAction::kBias);
  EXPECT_EQ(rules[0].factor, 0.5);
  EXPECT_EQ(rules[0].nodes[0].ops, (std::vector<std::string>{"MatMul", "Gemm"}));
  EXPECT_EQ(rules[0].edges[0].to, 2);
  EXPECT_EQ(rules[0].edges[0].input, 0);
  EXPECT_EQ(rules[0].edges[0].through, (std::vector<std::string>{"Mul", "Add"}));
  EXPECT_EQ(rules[0].edges[0].most, 3);
  EXPECT_EQ(rules[0].inputs[0].nodes, (std::vector<int>{0, 1}));
  EXPECT_EQ(rules[0].when[1].text, "l1_usage < 0.8 * l1_capacity");
  EXPECT_TRUE(rules[0].when[1].AsksKernel());
  EXPECT_FALSE(rules[0].when[0].AsksKernel());
  EXPECT_EQ(rules[1].action, RuleAction::kForce);

  v1::FusionRules wire;
  EncodeRules(rules, &wire);
  EXPECT_THAT(UnsetFields(wire), testing::UnorderedElementsAre("rules.force", "rules.forbid"))
      << "of a bias";
  v1::FusionRules again;
  EncodeRules(DecodeRules(wire).value(), &again);
  EXPECT_EQ(TextOf(again), TextOf(wire));
  EXPECT_EQ(KeyText(DecodeRules(wire).value()), KeyText(rules));
}

TEST(WireRules, TheKeyKnowsNamesAndEveryFieldButNoComments) {
  const std::string base = KeyText(Sample());
  std::string text = kSample;
  std::string bare = text.substr(text.find('\n') + 1);
  EXPECT_EQ(KeyText(ParseRulesText(bare, "bare").value()), base);
  for (auto [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"qkv-1.0_a", "other"},
           {"\"Gemm\"", "\"Conv\""},
           {"from: \"q\" to: \"s\"", "from: \"s\" to: \"q\""},
           {"input: 0 through", "input: 1 through"},
           {"[\"Mul\", \"Add\"]", "[\"Mul\"]"},
           {"most: 3", "most: 4"},
           {"[\"q\", \"k\"] input: 0", "[\"q\", \"k\"]"},
           {">= 64", ">= 65"},
           {"bias { factor: 0.5 }", "bias { factor: 0.6 }"},
           {"bias { factor: 0.5 }", "forbid {}"}}) {
    std::string changed = text;
    size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    absl::StatusOr<Rules> rules = ParseRulesText(changed, "changed");
    ASSERT_TRUE(rules.ok()) << rules.status();
    EXPECT_NE(KeyText(*rules), base) << from;
  }
  EXPECT_THAT(KeyText(Rules{}), IsEmpty());
}

// A rule with something wrong in it.
std::string ErrorOf(const std::string& rule) {
  return std::string(Message(ParseRulesText(rule, "r.textproto").status()));
}

constexpr const char* kNodes =
    "pattern { nodes { id: 'a' ops: 'Add' } nodes { id: 'b' ops: 'Mul' } ";

TEST(WireRules, WhatIsWrongIsNamedWithItsLine) {
  const std::string ab = StrCat("rules { name: 'x' ", kNodes);
  struct {
    std::string rule;
    const char* message;
  } const kCases[] = {
      {"rules { name: 'x'\n  patern {} }", "r.textproto:2: column 10: "},
      {"\n\nrules { name: 'x' }", "r.textproto:3: rules[0] \"x\": action: missing"},
      {"rules { name: 'a b' force {} }", "rules[0]: name: \"a b\"; expected 1..64"},
      {"rules { force {} }", "rules[0]: name: \"\""},
      {"rules { name: 'x' force {} }", "pattern.nodes: 0 entries; expected 1..16"},
      {"rules { name: 'x' pattern { nodes { id: '9' ops: 'Add' } } force {} }",
       "pattern.nodes[0].id: \"9\""},
      {"rules { name: 'x' pattern { nodes { id: 'a' } } force {} }",
       "pattern.nodes[0].ops: 0 entries; expected 1..16"},
      {"rules { name: 'x' pattern { nodes { id: 'a' ops: ['*', 'Add'] } } force {} }",
       "pattern.nodes[0].ops[0]: \"*\"; expected an operator type"},
      {"rules { name: 'x' pattern { nodes { id: 'a' ops: 'A(\"' } } force {} }",
       "pattern.nodes[0].ops[0]: \"A(\\\"\""},
      {"rules { name: 'x' pattern { nodes { id: 'a' ops: '*' } } forbid {} }",
       "forbid: a pattern of one node; expected at least 2"},
      {ab + "} forbid {} }", "connect node \"b\" with \"a\""},
      {ab + "edges { from: 'a' to: 'z' } } forbid {} }",
       "pattern.edges[0].to: \"z\" is the id of no node of the pattern"},
      {ab + "edges { from: 'a' to: 'a' } } forbid {} }", "from and to are both \"a\""},
      {ab + "edges { from: 'a' to: 'b' input: -1 } } forbid {} }",
       "pattern.edges[0].input: -1; expected 0..65535"},
      {ab + "edges { from: 'a' to: 'b' most: 9 } } forbid {} }",
       "pattern.edges[0].most: 9; expected 0..8"},
      {ab + "inputs { nodes: 'a' } } forbid {} }", "pattern.inputs[0].nodes: 1 entries"},
      {ab + "inputs { nodes: ['a', 'a'] } } forbid {} }",
       "pattern.inputs[0].nodes[1]: \"a\" twice"},
      {ab + "edges { from: 'a' to: 'b' } } bias {} }", "bias.factor: 0; expected 0.01..100"},
      {ab + "edges { from: 'a' to: 'b' } } bias { factor: nan } }", "bias.factor: nan"},
      {ab + "edges { from: 'a' to: 'b' } } forbid {} when: 'l1_usage <' }",
       "when[0]: line 1, column 11: expected a number, a term or '(', got the end"},
      {StrCat("rules { name: 'x' pattern { nodes { id: 'a' ops: '*' } } force {} }\n",
              "rules { name: 'x' pattern { nodes { id: 'a' ops: '*' } } force {} }"),
       "r.textproto:2: rules[1] \"x\": name: an earlier rule has the same"},
  };
  for (const auto& bad : kCases) {
    EXPECT_THAT(ErrorOf(bad.rule), AllOf(HasSubstr("r.textproto:"), HasSubstr(bad.message)));
  }
}

TEST(WireRules, SizesAreBounded) {
  auto repeat = [](int times, const std::string& text) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const std::string one = "pattern { nodes { id: 'a' ops: '*' } } force {} ";
  EXPECT_THAT(ErrorOf(repeat(65, "rules {}")), HasSubstr("rules: 65 entries; expected 0..64"));
  EXPECT_THAT(ErrorOf(StrCat("rules { name: '", repeat(65, "x"), "' ", one, "}")),
              HasSubstr("name: "));
  EXPECT_THAT(
      ErrorOf(StrCat("rules { name: 'x' pattern {", repeat(17, "nodes { }"), "} force {} }")),
      HasSubstr("pattern.nodes: 17 entries"));
  EXPECT_THAT(ErrorOf(StrCat("rules { name: 'x' ", one, repeat(9, "when: 'units == 1' "), "}")),
              HasSubstr("when: 9 entries; expected 0..8"));
  EXPECT_THAT(
      ErrorOf(StrCat("rules { name: 'x' ", one, "when: 'units ==", repeat(300, " "), "1' }")),
      HasSubstr("when[0]: 309 characters; at most 256"));
}

TEST(WireRules, AFileThatIsNotThereIsNamed) {
  ScratchDir dir;
  absl::Status absent = ReadRulesFile(dir.path("none.textproto")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(absent));
  EXPECT_THAT(std::string(Message(absent)), HasSubstr("none.textproto"));
  std::string path = dir.Write("good.textproto", kSample);
  EXPECT_EQ(KeyText(ReadRulesFile(path).value()), KeyText(Sample()));
  auto refuse = [](const Rule& rule) { return InvalidArgument("no ", rule.name); };
  EXPECT_EQ(Message(ReadRulesFile(path, refuse).status()), StrCat(path, ":2: no qkv-1.0_a"));
}

}  // namespace
}  // namespace fusion
