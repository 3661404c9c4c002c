#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Longest text of a condition.
inline constexpr size_t kMaxConditionBytes = 256;

/// What a step of an expression is. proto/fusion/v1/rules.proto says what the terms mean.
enum class RuleTerm : uint8_t {
  kNumber,
  // Of a tensor.
  kDim,
  kRank,
  kElements,
  kBytes,
  kReaders,
  kConstant,
  kDType,  // a word
  // Of a node.
  kAttr,
  kAttrText,  // a word
  // Of the device.
  kUnits,
  kVectorBytes,
  kCapacity,
  kKind,  // a word
  // Of a match as one kernel.
  kUsage,
  kTimeUs,
  kApartUs,
  kSpeedup,
  kSavedBytes,
  kLaunches,
  // Of the values before it.
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
};

/// One step of an expression in postfix order.
struct RuleStep {
  RuleTerm term = RuleTerm::kNumber;
  double number = 0;    // kNumber
  int node = -1;        // terms of a tensor or node: position in the pattern,
  bool output = false;  // an output of the node, else an input,
  int position = 0;     // which one,
  int dim = 0;          // and kDim: which dim, counted from the end if negative
  std::string level;    // kCapacity, kUsage: "l1", ..., "on_chip"
  std::string name;     // kAttr, kAttrText: the attribute,
  int element = -1;     // which one of a list; -1: it is a number,
  std::optional<double> absent = std::nullopt;  // and what it is where the node does not say:
  std::string absent_word;                      // of kAttrText; empty: nothing
};

enum class RuleComparison : uint8_t { kEqual, kNotEqual, kLess, kAtMost, kMore, kAtLeast };

/// A comparison that is true or false of a match: "l1_usage < 0.8 * l1_capacity",
/// "dim(a.output, -1) >= 64", "dtype(a.output) == f32".
struct RuleCondition {
  std::string text;  // as it was written
  RuleComparison comparison = RuleComparison::kEqual;
  std::vector<RuleStep> left;
  std::vector<RuleStep> right;
  std::string word;  // of kDType, kAttrText and kKind, which are `left` alone; else empty

  /// True if it asks what the match is as one kernel.
  bool AsksKernel() const;
};

/// Reads one; `ids` are those of the pattern's nodes. InvalidArgument: "line 1, column 7: expected
/// ..., got ...".
absl::StatusOr<RuleCondition> ParseRuleCondition(std::string_view text,
                                                 const std::vector<std::string>& ids);

/// Reads an expression alone, as it stands in conditions; no dtype, no kind, and nothing that asks
/// what the match is as one kernel. Otherwise as ParseRuleCondition.
absl::StatusOr<std::vector<RuleStep>> ParseRuleExpression(std::string_view text,
                                                          const std::vector<std::string>& ids);

/// Reads a tensor, "conv.input0" or "act.output": node, output and position of the step say which.
/// Otherwise as ParseRuleCondition.
absl::StatusOr<RuleStep> ParseRuleTensor(std::string_view text,
                                         const std::vector<std::string>& ids);

/// What a condition is about.
class RuleFacts {
 public:
  virtual ~RuleFacts() = default;
  /// The value of a term (no number, no arithmetic); nullopt: there is no such thing.
  virtual std::optional<double> Number(const RuleStep& step) const = 0;
  /// The same of kDType ("f32"), kAttrText and kKind ("cpu").
  virtual std::optional<std::string> Word(const RuleStep& step) const = 0;
};

/// The value of an expression; nullopt if it asks for something that does not exist or divides by
/// zero.
std::optional<double> ValueOf(const std::vector<RuleStep>& steps, const RuleFacts& facts);

/// Whether it is true. What asks for something that does not exist, or divides by zero, is not.
bool Holds(const RuleCondition& condition, const RuleFacts& facts);

}  // namespace fusion
