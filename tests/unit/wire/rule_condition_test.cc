#include "core/bundle/rules/rule_condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace fusion {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kIds = {"a", "b_1"};

// What a test says about a match.
class Facts final : public RuleFacts {
 public:
  std::optional<double> Number(const RuleStep& step) const override {
    switch (step.term) {
      case RuleTerm::kDim:
        return 100 * step.node + 10 * (step.output ? 1 : 0) + step.position + 0.1 * step.dim;
      case RuleTerm::kUnits:
        return 8;
      case RuleTerm::kUsage:
        return 1000;
      case RuleTerm::kCapacity:
        if (step.level == "l1") return 2000;
        return std::nullopt;
      case RuleTerm::kSpeedup:
        return 0;
      default:
        return std::nullopt;
    }
  }
  std::optional<std::string> Word(const RuleStep& step) const override {
    return step.term == RuleTerm::kKind ? "cpu" : "f32";
  }
};

bool IsTrue(std::string_view text) {
  absl::StatusOr<RuleCondition> condition = ParseRuleCondition(text, kIds);
  EXPECT_TRUE(condition.ok()) << text << ": " << condition.status();
  return condition.ok() && Holds(*condition, Facts());
}

TEST(RuleCondition, ComparesWhatTheTermsSay) {
  EXPECT_TRUE(IsTrue("l1_usage < 0.8 * l1_capacity"));
  EXPECT_FALSE(IsTrue("l1_usage > 0.8 * l1_capacity"));
  EXPECT_TRUE(IsTrue("units == 8"));
  EXPECT_TRUE(IsTrue("units >= 8"));
  EXPECT_TRUE(IsTrue("units <= 8"));
  EXPECT_FALSE(IsTrue("units != 8"));
  EXPECT_TRUE(IsTrue("dtype(a.output) == f32"));
  EXPECT_TRUE(IsTrue("dtype(a.output) != bf16"));
  EXPECT_FALSE(IsTrue("kind == gpu"));
  EXPECT_TRUE(IsTrue("kind == cpu"));
}

TEST(RuleCondition, ArithmeticBindsAsUsual) {
  EXPECT_TRUE(IsTrue("2 + 3 * 4 == 14"));
  EXPECT_TRUE(IsTrue("(2 + 3) * 4 == 20"));
  EXPECT_TRUE(IsTrue("20 - 5 - 3 == 12"));
  EXPECT_TRUE(IsTrue("units -3 == 5"));
  EXPECT_TRUE(IsTrue("-(units / 2) == -4"));
  EXPECT_TRUE(IsTrue("24 / 4 / 2 == 3"));
  EXPECT_TRUE(IsTrue("0x1p3 == units"));
}

TEST(RuleCondition, TensorsAreNamedByNodeSideAndPosition) {
  EXPECT_TRUE(IsTrue("dim(a.input2, 3) == 2.3"));
  EXPECT_TRUE(IsTrue("dim(b_1.output1, 0) == 111"));
  EXPECT_TRUE(IsTrue("dim(a.output, -1) == 9.9"));
}

TEST(RuleCondition, WhatDoesNotExistIsNeverTrue) {
  EXPECT_FALSE(IsTrue("ub_capacity > 0"));
  EXPECT_FALSE(IsTrue("ub_capacity != 0"));
  EXPECT_FALSE(IsTrue("0 * l2_capacity == 0"));
  EXPECT_FALSE(IsTrue("1 / speedup > 0"));
  EXPECT_FALSE(IsTrue("1 / speedup <= 0"));
}

TEST(RuleCondition, WhatCannotBeReadSaysWhere) {
  struct {
    const char* text;
    const char* message;
  } const kCases[] = {
      {"", "column 1: expected a number, a term or '(', got the end"},
      {"units", "column 6: expected a comparison"},
      {"units = 3", "column 7: expected a comparison"},
      {"units == 3 4", "column 12: expected the end of the condition"},
      {"l1_capcity > 3", "column 1: expected a term: dim, rank,"},
      {"l7_capacity > 3", "column 1: expected one of on_chip, l1,"},
      {"dim(c.output, 0) > 1", "column 5: expected the id of a node of the pattern: a, b_1"},
      {"dim(a, 0) > 1", "column 5: expected a tensor such as"},
      {"dim(a.weights, 0) > 1", "column 5: expected output or input"},
      {"dim(a.output9999999999, 0) > 1", "column 5: expected output or input and a position"},
      {"dim(a.output) > 1", "column 13: expected ','"},
      {"dim(a.output, 99) > 1", "column 15: expected a dim, -64..64"},
      {"rank(a.output > 1", "column 15: expected ')'"},
      {"dtype(a.output) < f32", "column 17: expected == or !="},
      {"dtype(a.output) == float", "column 20: expected an element type such as f32"},
      {"dtype(a.output) + 1 == 2", "dtype and kind are words"},
      {"1 == dtype(a.output)", "dtype and kind stand on the left"},
      {"kind == tpu", "column 9: expected cpu, gpu or npu"},
      {"attr(a) > 1", "column 7: expected ','"},
      {"attr(c, alpha) > 1", "column 6: expected the id of a node of the pattern: a, b_1"},
      {"attr(a, pads[-1]) > 1", "column 14: expected an element, 0..64"},
      {"attr(a, alpha, inf) > 1", "column 16: expected a finite number"},
      {"attr_text(a, mode) == 3", "column 23: expected a word"},
      {"attr_text(a, mode) + 1 == 3", "dtype and kind are words, attr_text too"},
      {"1e999 > 1", "column 1: expected a finite number"},
      {"units > 1\n", "expected printable ASCII on one line"},
      {"units > 1 # \xff", "expected printable ASCII on one line"},
  };
  for (const auto& bad : kCases) {
    absl::Status status = ParseRuleCondition(bad.text, kIds).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad.text;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(bad.message)) << bad.text;
  }
  std::string deep(200, '(');
  EXPECT_FALSE(ParseRuleCondition(deep, kIds).ok());
}

TEST(RuleExpression, IsOneOfTensorsNodesAndTheDevice) {
  auto value = [](std::string_view text) {
    absl::StatusOr<std::vector<RuleStep>> steps = ParseRuleExpression(text, kIds);
    EXPECT_TRUE(steps.ok()) << text << ": " << steps.status();
    return steps.ok() ? ValueOf(*steps, Facts()) : std::nullopt;
  };
  EXPECT_EQ(value("2 * units"), 16);
  EXPECT_EQ(value("1 / (units - 8)"), std::nullopt);
  struct {
    const char* text;
    const char* message;
  } const kCases[] = {
      {"units > 3", "column 7: expected the end of the expression"},
      {"2 * time_us", "it asks what the match is as one kernel"},
      {"l1_usage", "it asks what the match is as one kernel"},
      {"dtype(a.output)", "are no numbers"},
      {"", "column 1: expected a number"},
  };
  for (const auto& bad : kCases) {
    absl::Status status = ParseRuleExpression(bad.text, kIds).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad.text;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(bad.message)) << bad.text;
  }
}

TEST(RuleExpression, ATensorIsNamedAlone) {
  RuleStep step = ParseRuleTensor("b_1.input2", kIds).value();
  EXPECT_EQ(step.node, 1);
  EXPECT_FALSE(step.output);
  EXPECT_EQ(step.position, 2);
  EXPECT_TRUE(ParseRuleTensor(" a.output ", kIds).value().output);
  for (const char* bad : {"", "a", "c.output", "a.weights", "a.output 2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRuleTensor(bad, kIds).status())) << bad;
  }
}

}  // namespace
}  // namespace fusion
