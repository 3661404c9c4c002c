#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// Maximum length of the text of a condition or expression.
inline constexpr size_t kMaxConditionBytes = 256;

/// Kinds of steps in an expression. FusionRule.when in proto/fusion/v1/rules.proto defines the
/// terms.
enum class RuleTerm : uint8_t {
  kNumber,
  // Properties of a tensor.
  kDim,
  kRank,
  kElements,
  kBytes,
  kReaders,
  kConstant,
  kDType,  // a word
  // Properties of a node.
  kAttr,
  kAttrText,  // a word
  // Properties of the device.
  kUnits,
  kVectorBytes,
  kCapacity,
  kKind,  // a word
  // Properties of the match as one kernel.
  kUsage,
  kTimeUs,
  kApartUs,
  kSpeedup,
  kSavedBytes,
  kLaunches,
  // Operators on the preceding values.
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
  int node = -1;        // terms of a tensor or node: position in the pattern
  bool output = false;  // terms of a tensor: an output of the node, else an input
  int position = 0;     // terms of a tensor: position among the outputs or inputs
  int dim = 0;          // kDim: the dim, counted from the end if negative
  std::string level;    // kCapacity, kUsage: "l1", ..., "on_chip"
  std::string name;     // kAttr, kAttrText: the attribute
  int element = -1;     // kAttr: position in a list; -1: the attribute is a number
  // Value if the node lacks the attribute; not set or empty: there is no value.
  std::optional<double> absent = std::nullopt;  // kAttr
  std::string absent_word;                      // kAttrText
};

enum class RuleComparison : uint8_t { kEqual, kNotEqual, kLess, kAtMost, kMore, kAtLeast };

/// A comparison about a match: "l1_usage < 0.8 * l1_capacity",
/// "dim(a.output, -1) >= 64", "dtype(a.output) == f32".
struct RuleCondition {
  std::string text;  // as it was written
  RuleComparison comparison = RuleComparison::kEqual;
  std::vector<RuleStep> left;
  std::vector<RuleStep> right;
  /// The right side of a comparison of words; then `left` is one step (kDType, kAttrText, kKind).
  /// Empty: a comparison of numbers.
  std::string word;

  /// True if a term is a property of the match as one kernel.
  bool AsksKernel() const;
};

/// Parses a condition. `ids`: the ids of the pattern's nodes, by position. InvalidArgument: "line
/// 1, column 7: expected ..., got ...", also for texts that are too long or not printable ASCII.
absl::StatusOr<RuleCondition> ParseRuleCondition(std::string_view text,
                                                 const std::vector<std::string>& ids);

/// Parses one side of a condition. Words (dtype, attr_text, kind) and properties of the match as
/// one kernel are errors. Otherwise as ParseRuleCondition.
absl::StatusOr<std::vector<RuleStep>> ParseRuleExpression(std::string_view text,
                                                          const std::vector<std::string>& ids);

/// Parses the name of a tensor, "conv.input0" or "act.output", into `node`, `output` and `position`
/// of the step. Otherwise as ParseRuleCondition.
absl::StatusOr<RuleStep> ParseRuleTensor(std::string_view text,
                                         const std::vector<std::string>& ids);

/// Supplies the values of terms for one match. Implemented by the planner.
class RuleFacts {
 public:
  virtual ~RuleFacts() = default;
  /// The value of a numeric term (not kNumber, not an operator). nullopt: it does not exist.
  virtual std::optional<double> Number(const RuleStep& step) const = 0;
  /// The value of kDType ("f32"), kAttrText or kKind ("cpu"). nullopt: it does not exist.
  virtual std::optional<std::string> Word(const RuleStep& step) const = 0;
};

/// Evaluates an expression from a parser above. nullopt if a term does not exist, the divisor is
/// zero, or the result is NaN.
std::optional<double> ValueOf(const std::vector<RuleStep>& steps, const RuleFacts& facts);

/// Evaluates a condition. False if a side has no value (ValueOf).
bool Holds(const RuleCondition& condition, const RuleFacts& facts);

}  // namespace fusion
