#include "core/bundle/rules/rule_condition.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "core/base/parse/expression_parser.h"
#include "core/tensor/dtype.h"

namespace fusion {
namespace {

struct Word {
  std::string_view word;
  RuleTerm term;
};

constexpr Word kOfTensors[] = {{"dim", RuleTerm::kDim},           {"rank", RuleTerm::kRank},
                               {"elements", RuleTerm::kElements}, {"bytes", RuleTerm::kBytes},
                               {"readers", RuleTerm::kReaders},   {"constant", RuleTerm::kConstant},
                               {"dtype", RuleTerm::kDType}};
constexpr Word kNames[] = {
    {"units", RuleTerm::kUnits},      {"vector_bytes", RuleTerm::kVectorBytes},
    {"time_us", RuleTerm::kTimeUs},   {"apart_us", RuleTerm::kApartUs},
    {"speedup", RuleTerm::kSpeedup},  {"saved_bytes", RuleTerm::kSavedBytes},
    {"launches", RuleTerm::kLaunches}};
// Memory levels of the device specs; on_chip is the one that holds tiles.
constexpr std::string_view kLevels[] = {"on_chip",   "l1",     "l2",  "l3", "memory",
                                        "registers", "shared", "l0c", "ub"};
constexpr std::string_view kKinds[] = {"cpu", "gpu", "npu"};

constexpr struct {
  std::string_view sign;
  RuleComparison comparison;
} kComparisons[] = {  // long ones first
    {"==", RuleComparison::kEqual},  {"!=", RuleComparison::kNotEqual},
    {"<=", RuleComparison::kAtMost}, {">=", RuleComparison::kAtLeast},
    {"<", RuleComparison::kLess},    {">", RuleComparison::kMore}};

template <size_t n>
bool IsOneOf(const std::string_view (&words)[n], std::string_view word) {
  return std::find(words, words + n, word) != words + n;
}

bool IsWordTerm(RuleTerm term) {
  return term == RuleTerm::kDType || term == RuleTerm::kAttrText || term == RuleTerm::kKind;
}

bool IsOfKernel(const RuleStep& step) {
  return step.term >= RuleTerm::kUsage && step.term <= RuleTerm::kLaunches;
}

using Steps = std::vector<RuleStep>;

const OperatorTable<RuleTerm> kOperators = {
    .binary = {{{"+", RuleTerm::kAdd}, {"-", RuleTerm::kSubtract}},
               {{"*", RuleTerm::kMultiply}, {"/", RuleTerm::kDivide}}},
    .prefix = {{"-", RuleTerm::kNegate}},
    .signed_numbers = true};

/// Parses one condition. The recursion depth is bounded by kMaxConditionBytes.
class Parser : public ExpressionParser<Parser, Steps, RuleTerm> {
 public:
  Parser(std::string_view text, const std::vector<std::string>& ids)
      : ExpressionParser(text, kOperators), ids_(ids) {}

  absl::StatusOr<Steps> Expression() {
    ASSIGN_OR_RETURN(Steps out, Whole());
    for (const RuleStep& step : out) {
      if (IsWordTerm(step.term)) return InvalidArgument("dtype, attr_text and kind are no numbers");
      if (IsOfKernel(step)) {
        return InvalidArgument(
            "it asks what the match is as one kernel; expected terms of tensors, nodes and the "
            "device");
      }
    }
    if (!in_.AtEnd()) return in_.Error("the end of the expression");
    return out;
  }

  absl::StatusOr<RuleStep> OneTensor() {
    RuleStep step;
    RETURN_IF_ERROR(TensorName(&step));
    if (!in_.AtEnd()) return in_.Error("the end of the tensor");
    return step;
  }

  absl::StatusOr<RuleCondition> Run() {
    RuleCondition out;
    ASSIGN_OR_RETURN(out.left, Whole());
    bool words = std::any_of(out.left.begin(), out.left.end(),
                             [](const RuleStep& step) { return IsWordTerm(step.term); });
    if (words && out.left.size() > 1) {
      return InvalidArgument(
          "dtype and kind are words, attr_text too: they are compared as they are");
    }
    RETURN_IF_ERROR(Comparison(words, &out.comparison));
    if (words) {
      ASSIGN_OR_RETURN(out.word, WordFor(out.left[0].term));
    } else {
      ASSIGN_OR_RETURN(out.right, Whole());
      for (const RuleStep& step : out.right) {
        if (IsWordTerm(step.term)) {
          return InvalidArgument("dtype and kind stand on the left of == and !=, attr_text too");
        }
      }
    }
    if (!in_.AtEnd()) return in_.Error("the end of the condition");
    return out;
  }

 private:
  friend class ExpressionParser<Parser, Steps, RuleTerm>;

  absl::Status Comparison(bool words, RuleComparison* out) {
    for (const auto& [sign, comparison] : kComparisons) {
      bool equality =
          comparison == RuleComparison::kEqual || comparison == RuleComparison::kNotEqual;
      if ((words && !equality) || !in_.Accept(sign)) continue;
      *out = comparison;
      return absl::OkStatus();
    }
    return in_.Error(words ? "== or !=" : "a comparison: == != < <= > >=");
  }

  absl::StatusOr<std::string> WordFor(RuleTerm term) {
    Lexer before = in_;
    absl::StatusOr<std::string> word = in_.Identifier();
    if (term == RuleTerm::kAttrText) return word.ok() ? word : before.Error("a word");
    bool known = word.ok() && (term == RuleTerm::kDType ? ParseDType(*word).has_value()
                                                        : IsOneOf(kKinds, *word));
    if (known) return word;
    return before.Error(term == RuleTerm::kDType ? "an element type such as f32"
                                                 : "cpu, gpu or npu");
  }

  absl::StatusOr<Steps> Whole() { return Level(0); }
  absl::Status Expect(std::string_view token) { return in_.Expect(token); }

  static absl::StatusOr<Steps> Binary(RuleTerm term, size_t /*place*/, Steps left, Steps right) {
    left.insert(left.end(), std::make_move_iterator(right.begin()),
                std::make_move_iterator(right.end()));
    return Prefix(term, 0, std::move(left));
  }

  static absl::StatusOr<Steps> Prefix(RuleTerm term, size_t /*place*/, Steps of) {
    of.push_back({.term = term});
    return of;
  }

  absl::StatusOr<Steps> Operand() {
    Lexer before = in_;
    if (in_.PeekIdentifier()) {
      ASSIGN_OR_RETURN(RuleStep term, Term(before));
      return Steps{std::move(term)};
    }
    if (!in_.PeekNumber()) return in_.Error("a number, a term or '('");
    ASSIGN_OR_RETURN(double number, in_.Number());
    if (!std::isfinite(number)) return before.Error("a finite number");
    return Steps{{.number = number}};
  }

  absl::StatusOr<RuleStep> Term(const Lexer& before) {
    ASSIGN_OR_RETURN(std::string name, in_.Identifier());
    RuleStep step;
    for (const Word& word : kOfTensors) {
      if (word.word != name) continue;
      step.term = word.term;
      RETURN_IF_ERROR(Arguments(&step));
      return step;
    }
    for (const Word& word : kNames) {
      if (word.word == name) step.term = word.term;
    }
    if (name == "attr" || name == "attr_text") {
      step.term = name == "attr" ? RuleTerm::kAttr : RuleTerm::kAttrText;
      RETURN_IF_ERROR(Attribute(&step));
      return step;
    }
    if (name == "kind") step.term = RuleTerm::kKind;
    for (auto [end, term] :
         {Word{"_capacity", RuleTerm::kCapacity}, {"_usage", RuleTerm::kUsage}}) {
      std::string_view level = name;
      if (!level.ends_with(end)) continue;
      level.remove_suffix(end.size());
      if (!IsOneOf(kLevels, level)) {
        return before.Error(StrCat("one of ", StrJoin(kLevels, ", "), " before ", end));
      }
      step.term = term;
      step.level = level;
    }
    if (step.term == RuleTerm::kNumber) {
      auto words = [](const Word& word) { return word.word; };
      return before.Error(StrCat("a term: ", StrJoin(kOfTensors, ", ", words), ", ",
                                 StrJoin(kNames, ", ", words),
                                 ", attr, attr_text, kind, <level>_capacity, <level>_usage"));
    }
    return step;
  }

  // "(a.output)"; of a dim "(a.output, -1)".
  absl::Status Arguments(RuleStep* step) {
    RETURN_IF_ERROR(in_.Expect("("));
    RETURN_IF_ERROR(TensorName(step));
    if (step->term == RuleTerm::kDim) {
      RETURN_IF_ERROR(in_.Expect(","));
      Lexer at = in_;
      ASSIGN_OR_RETURN(int64_t dim, in_.Integer());
      if (dim < -64 || dim > 64) return at.Error("a dim, -64..64");
      step->dim = static_cast<int>(dim);
    }
    return in_.Expect(")");
  }

  // "(conv, strides[0], 1)", "(conv, auto_pad, NOTSET)": the last one is the default.
  absl::Status Attribute(RuleStep* step) {
    const bool text = step->term == RuleTerm::kAttrText;
    RETURN_IF_ERROR(in_.Expect("("));
    Lexer before = in_;
    ASSIGN_OR_RETURN(std::string id, in_.Identifier());
    RETURN_IF_ERROR(SetNode(before, id, step));
    RETURN_IF_ERROR(in_.Expect(","));
    ASSIGN_OR_RETURN(step->name, in_.Identifier());
    if (!text && in_.Accept("[")) {
      Lexer at = in_;
      ASSIGN_OR_RETURN(int64_t element, in_.Integer());
      if (element < 0 || element > 64) return at.Error("an element, 0..64");
      step->element = static_cast<int>(element);
      RETURN_IF_ERROR(in_.Expect("]"));
    }
    if (text && in_.Accept(",")) {
      ASSIGN_OR_RETURN(step->absent_word, in_.Identifier());
    } else if (in_.Accept(",")) {
      const bool negative = in_.Accept("-");
      Lexer at = in_;
      ASSIGN_OR_RETURN(double absent, in_.Number());
      if (!std::isfinite(absent)) return at.Error("a finite number");
      step->absent = negative ? -absent : absent;
    }
    return in_.Expect(")");
  }

  absl::Status SetNode(const Lexer& before, std::string_view name, RuleStep* step) const {
    auto id = std::find(ids_.begin(), ids_.end(), name);
    if (id == ids_.end()) {
      return before.Error(StrCat("the id of a node of the pattern: ", StrJoin(ids_, ", ")));
    }
    step->node = static_cast<int>(id - ids_.begin());
    return absl::OkStatus();
  }

  absl::Status TensorName(RuleStep* step) {
    Lexer before = in_;
    absl::StatusOr<std::string> tensor = in_.Identifier();
    size_t dot = tensor.ok() ? tensor->find('.') : std::string::npos;
    if (dot == std::string::npos) return before.Error("a tensor such as ID.output or ID.input0");
    RETURN_IF_ERROR(SetNode(before, std::string_view(*tensor).substr(0, dot), step));
    std::string_view side = std::string_view(*tensor).substr(dot + 1);
    step->output = side.starts_with("output");
    if (!step->output && !side.starts_with("input")) return before.Error("output or input");
    side.remove_prefix(step->output ? 6 : 5);
    auto [end, error] = std::from_chars(side.data(), side.data() + side.size(), step->position);
    bool number = error == std::errc() && end == side.data() + side.size() && step->position >= 0;
    if (!side.empty() && !number) return before.Error("output or input and a position");
    return absl::OkStatus();
  }

  const std::vector<std::string>& ids_;
};

std::optional<double> Combine(RuleTerm term, double a, double b) {
  switch (term) {
    case RuleTerm::kAdd:
      return a + b;
    case RuleTerm::kSubtract:
      return a - b;
    case RuleTerm::kMultiply:
      return a * b;
    default:
      return b == 0 ? std::nullopt : std::optional(a / b);
  }
}

// Checks every text before parsing.
absl::Status CheckText(std::string_view text) {
  if (text.size() > kMaxConditionBytes) {
    return InvalidArgument(text.size(), " characters; at most ", kMaxConditionBytes);
  }
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
    return InvalidArgument(QuoteShort(text), ": expected printable ASCII on one line");
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<double> ValueOf(const std::vector<RuleStep>& steps, const RuleFacts& facts) {
  std::vector<double> stack;
  for (const RuleStep& step : steps) {
    if (step.term == RuleTerm::kNumber) {
      stack.push_back(step.number);
    } else if (step.term == RuleTerm::kNegate) {
      stack.back() = -stack.back();
    } else if (step.term > RuleTerm::kNegate) {
      double b = stack.back();
      stack.pop_back();
      std::optional<double> value = Combine(step.term, stack.back(), b);
      if (!value.has_value()) return std::nullopt;
      stack.back() = *value;
    } else {
      std::optional<double> value = facts.Number(step);
      if (!value.has_value()) return std::nullopt;
      stack.push_back(*value);
    }
  }
  if (std::isnan(stack.back())) return std::nullopt;
  return stack.back();
}

bool RuleCondition::AsksKernel() const {
  return std::any_of(left.begin(), left.end(), IsOfKernel) ||
         std::any_of(right.begin(), right.end(), IsOfKernel);
}

absl::StatusOr<std::vector<RuleStep>> ParseRuleExpression(std::string_view text,
                                                          const std::vector<std::string>& ids) {
  RETURN_IF_ERROR(CheckText(text));
  return Parser(text, ids).Expression();
}

absl::StatusOr<RuleStep> ParseRuleTensor(std::string_view text,
                                         const std::vector<std::string>& ids) {
  RETURN_IF_ERROR(CheckText(text));
  return Parser(text, ids).OneTensor();
}

absl::StatusOr<RuleCondition> ParseRuleCondition(std::string_view text,
                                                 const std::vector<std::string>& ids) {
  RETURN_IF_ERROR(CheckText(text));
  absl::StatusOr<RuleCondition> out = Parser(text, ids).Run();
  if (out.ok()) out->text = text;
  return out;
}

bool Holds(const RuleCondition& condition, const RuleFacts& facts) {
  if (!condition.word.empty()) {
    std::optional<std::string> word = facts.Word(condition.left[0]);
    bool equal = word.has_value() && *word == condition.word;
    return word.has_value() && equal == (condition.comparison == RuleComparison::kEqual);
  }
  std::optional<double> left = ValueOf(condition.left, facts);
  std::optional<double> right = ValueOf(condition.right, facts);
  if (!left.has_value() || !right.has_value()) return false;
  switch (condition.comparison) {
    case RuleComparison::kEqual:
      return *left == *right;
    case RuleComparison::kNotEqual:
      return *left != *right;
    case RuleComparison::kLess:
      return *left < *right;
    case RuleComparison::kAtMost:
      return *left <= *right;
    case RuleComparison::kMore:
      return *left > *right;
    case RuleComparison::kAtLeast:
      return *left >= *right;
  }
  return false;
}

}  // namespace fusion
