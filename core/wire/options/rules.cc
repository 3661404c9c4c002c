#include "core/wire/options/rules.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/files/file.h"
#include "core/wire/basics/decode_each.h"
#include "core/wire/basics/letters.h"
#include "core/wire/basics/text_format.h"
#include "fusion/v1/rules.pb.h"

namespace fusion {
namespace {

// Rules of the largest allowed size have some 400 KiB.
constexpr int64_t kMaxRulesFileBytes = int64_t{1} << 20;
constexpr size_t kMaxOpBytes = 64;
constexpr int kMaxInput = 65535;

bool IsWordStart(char c) { return IsLetter(c) || c == '_'; }

bool IsIdentifier(std::string_view text, size_t most) {
  return !text.empty() && text.size() <= most && IsWordStart(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsWordStart(c) || IsDigit(c); });
}

bool IsRuleName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxRuleNameBytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsWordStart(c) || IsDigit(c) || c == '-' || c == '.'; });
}

template <typename Words>
absl::Status DecodeOpNames(const std::string& field, const Words& words,
                           std::vector<std::string>* out) {
  for (const std::string& word : words) {
    bool any = word == kAnyOp && words.size() == 1;
    if (!any && !IsIdentifier(word, kMaxOpBytes)) {
      return InvalidArgument(field, "[", out->size(), "]: ", QuoteShort(word),
                             "; expected an operator type, or \"*\" alone");
    }
    out->push_back(word);
  }
  return absl::OkStatus();
}

/// Reads one rule.
class RuleDecoder {
 public:
  explicit RuleDecoder(const v1::FusionRule& wire) : wire_(wire), pattern_(wire.pattern()) {}

  absl::StatusOr<Rule> Run() {
    if (!IsRuleName(wire_.name())) {
      return InvalidArgument("name: ", QuoteShort(wire_.name()), "; expected 1..",
                             kMaxRuleNameBytes, " letters, digits, '-', '_' and '.'");
    }
    rule_.name = wire_.name();
    RETURN_IF_ERROR(DecodeAction());
    RETURN_IF_ERROR(CheckCount("pattern.nodes", pattern_.nodes_size(), 1, kMaxRuleNodes));
    for (const v1::RuleNode& node : pattern_.nodes()) RETURN_IF_ERROR(AddNode(node));
    RETURN_IF_ERROR(CheckCount("pattern.edges", pattern_.edges_size(), 0, kMaxRuleEdges));
    for (const v1::RuleEdge& edge : pattern_.edges()) RETURN_IF_ERROR(AddEdge(edge));
    RETURN_IF_ERROR(CheckCount("pattern.inputs", pattern_.inputs_size(), 0, kMaxRuleInputs));
    for (const v1::RuleInput& input : pattern_.inputs()) RETURN_IF_ERROR(AddInput(input));
    RETURN_IF_ERROR(CheckConnected());
    if (rule_.action == RuleAction::kForbid && rule_.nodes.size() < 2) {
      return InvalidArgument("forbid: a pattern of one node; expected at least 2");
    }
    RETURN_IF_ERROR(CheckCount("when", wire_.when_size(), 0, kMaxRuleConditions));
    for (const std::string& text : wire_.when()) {
      absl::StatusOr<RuleCondition> condition = ParseRuleCondition(text, ids_);
      if (!condition.ok()) {
        return Annotate(condition.status(), StrCat("when[", rule_.when.size(), "]"));
      }
      rule_.when.push_back(*std::move(condition));
    }
    return std::move(rule_);
  }

 private:
  absl::Status DecodeAction() {
    switch (wire_.action_case()) {
      case v1::FusionRule::kForce:
        rule_.action = RuleAction::kForce;
        return absl::OkStatus();
      case v1::FusionRule::kForbid:
        rule_.action = RuleAction::kForbid;
        return absl::OkStatus();
      case v1::FusionRule::kBias:
        rule_.action = RuleAction::kBias;
        rule_.factor = wire_.bias().factor();
        // Written so that NaN fails too.
        if (rule_.factor >= kLeastRuleFactor && rule_.factor <= kMostRuleFactor) {
          return absl::OkStatus();
        }
        return InvalidArgument("bias.factor: ", rule_.factor, "; expected ", kLeastRuleFactor, "..",
                               kMostRuleFactor);
      case v1::FusionRule::ACTION_NOT_SET:
        break;
    }
    return InvalidArgument("action: missing; expected force, forbid or bias");
  }

  absl::Status AddNode(const v1::RuleNode& wire) {
    std::string field = StrCat("pattern.nodes[", ids_.size(), "]");
    if (!IsIdentifier(wire.id(), kMaxRuleIdBytes)) {
      return InvalidArgument(field, ".id: ", QuoteShort(wire.id()),
                             "; expected a letter or '_', then letters, digits and '_', at most ",
                             kMaxRuleIdBytes);
    }
    if (std::find(ids_.begin(), ids_.end(), wire.id()) != ids_.end()) {
      return InvalidArgument(field, ".id: ", Quote(wire.id()), " is the id of another node");
    }
    RuleNode node{.id = wire.id(), .ops = {}};
    RETURN_IF_ERROR(CheckCount(StrCat(field, ".ops"), wire.ops_size(), 1, kMaxRuleOps));
    RETURN_IF_ERROR(DecodeOpNames(StrCat(field, ".ops"), wire.ops(), &node.ops));
    ids_.push_back(wire.id());
    rule_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::StatusOr<int> NodeOf(const std::string& field, const std::string& id) const {
    auto found = std::find(ids_.begin(), ids_.end(), id);
    if (found != ids_.end()) return static_cast<int>(found - ids_.begin());
    return InvalidArgument(field, ": ", QuoteShort(id), " is the id of no node of the pattern");
  }

  // -1: not given.
  template <typename Wire>
  static absl::StatusOr<int> InputOf(const std::string& field, const Wire& wire) {
    if (!wire.has_input()) return -1;
    if (wire.input() >= 0 && wire.input() <= kMaxInput) return wire.input();
    return InvalidArgument(field, ".input: ", wire.input(), "; expected 0..", kMaxInput);
  }

  absl::Status AddEdge(const v1::RuleEdge& wire) {
    std::string field = StrCat("pattern.edges[", rule_.edges.size(), "]");
    RuleEdge edge;
    ASSIGN_OR_RETURN(edge.from, NodeOf(StrCat(field, ".from"), wire.from()));
    ASSIGN_OR_RETURN(edge.to, NodeOf(StrCat(field, ".to"), wire.to()));
    if (edge.from == edge.to) {
      return InvalidArgument(field, ": from and to are both ", Quote(wire.from()));
    }
    ASSIGN_OR_RETURN(edge.input, InputOf(field, wire));
    RETURN_IF_ERROR(CheckCount(StrCat(field, ".through"), wire.through_size(), 0, kMaxRuleThrough));
    RETURN_IF_ERROR(DecodeOpNames(StrCat(field, ".through"), wire.through(), &edge.through));
    if (wire.most() < 0 || wire.most() > kMostThrough) {
      return InvalidArgument(field, ".most: ", wire.most(), "; expected 0..", kMostThrough);
    }
    if (wire.most() > 0) edge.most = wire.most();
    rule_.edges.push_back(std::move(edge));
    return absl::OkStatus();
  }

  absl::Status AddInput(const v1::RuleInput& wire) {
    std::string field = StrCat("pattern.inputs[", rule_.inputs.size(), "]");
    RuleInput input;
    RETURN_IF_ERROR(CheckCount(StrCat(field, ".nodes"), wire.nodes_size(), 2, kMaxRuleNodes));
    for (const std::string& id : wire.nodes()) {
      std::string entry = StrCat(field, ".nodes[", input.nodes.size(), "]");
      ASSIGN_OR_RETURN(int node, NodeOf(entry, id));
      if (std::find(input.nodes.begin(), input.nodes.end(), node) != input.nodes.end()) {
        return InvalidArgument(entry, ": ", Quote(id), " twice");
      }
      input.nodes.push_back(node);
    }
    ASSIGN_OR_RETURN(input.input, InputOf(field, wire));
    rule_.inputs.push_back(std::move(input));
    return absl::OkStatus();
  }

  // Else a match would be any two places of the graph.
  absl::Status CheckConnected() const {
    std::vector<size_t> part(ids_.size());
    std::iota(part.begin(), part.end(), size_t{0});
    auto join = [&part](int a, int b) {
      size_t from = part[static_cast<size_t>(b)];
      std::replace(part.begin(), part.end(), from, part[static_cast<size_t>(a)]);
    };
    for (const RuleEdge& edge : rule_.edges) join(edge.from, edge.to);
    for (const RuleInput& input : rule_.inputs) {
      for (int node : input.nodes) join(input.nodes[0], node);
    }
    for (size_t i = 1; i < part.size(); ++i) {
      if (part[i] == part[0]) continue;
      return InvalidArgument("pattern: neither edges nor inputs connect node ", Quote(ids_[i]),
                             " with ", Quote(ids_[0]));
    }
    return absl::OkStatus();
  }

  const v1::FusionRule& wire_;
  const v1::RulePattern& pattern_;
  std::vector<std::string> ids_;
  Rule rule_;
};

// The rule at a position; `names` are those before it.
absl::StatusOr<Rule> DecodeRuleAt(const v1::FusionRules& wire, int i,
                                  std::set<std::string>* names) {
  const v1::FusionRule& one = wire.rules(i);
  std::string where = StrCat("rules[", i, "]");
  if (IsRuleName(one.name())) where += StrCat(" ", Quote(one.name()));
  absl::StatusOr<Rule> rule = RuleDecoder(one).Run();
  if (!rule.ok()) return Annotate(rule.status(), where);
  if (!names->insert(rule->name).second) {
    return InvalidArgument(where, ": name: an earlier rule has the same");
  }
  return rule;
}

}  // namespace

void EncodeRules(const Rules& rules, v1::FusionRules* out) {
  out->Clear();
  for (const Rule& rule : rules) {
    v1::FusionRule& wire = *out->add_rules();
    wire.set_name(rule.name);
    if (rule.action == RuleAction::kForce) wire.mutable_force();
    if (rule.action == RuleAction::kForbid) wire.mutable_forbid();
    if (rule.action == RuleAction::kBias) wire.mutable_bias()->set_factor(rule.factor);
    auto id = [&rule](int node) { return rule.nodes[static_cast<size_t>(node)].id; };
    v1::RulePattern& pattern = *wire.mutable_pattern();
    for (const RuleNode& node : rule.nodes) {
      v1::RuleNode& to = *pattern.add_nodes();
      to.set_id(node.id);
      to.mutable_ops()->Assign(node.ops.begin(), node.ops.end());
    }
    for (const RuleEdge& edge : rule.edges) {
      v1::RuleEdge& to = *pattern.add_edges();
      to.set_from(id(edge.from));
      to.set_to(id(edge.to));
      if (edge.input >= 0) to.set_input(edge.input);
      to.mutable_through()->Assign(edge.through.begin(), edge.through.end());
      if (edge.most != kMostThrough) to.set_most(edge.most);
    }
    for (const RuleInput& input : rule.inputs) {
      v1::RuleInput& to = *pattern.add_inputs();
      for (int node : input.nodes) to.add_nodes(id(node));
      if (input.input >= 0) to.set_input(input.input);
    }
    for (const RuleCondition& condition : rule.when) wire.add_when(condition.text);
  }
}

absl::StatusOr<Rule> DecodeRule(const v1::FusionRule& wire) { return RuleDecoder(wire).Run(); }

absl::StatusOr<Rules> DecodeRules(const v1::FusionRules& wire) {
  RETURN_IF_ERROR(CheckCount("rules", wire.rules_size(), 0, kMaxRules));
  Rules rules;
  std::set<std::string> names;
  for (int i = 0; i < wire.rules_size(); ++i) {
    ASSIGN_OR_RETURN(Rule rule, DecodeRuleAt(wire, i, &names));
    rules.push_back(std::move(rule));
  }
  return rules;
}

namespace {

// The rules of a text that are right; what is wrong with the others goes to `problems`.
Rules ParseEachRule(std::string_view text, const std::string& name, const RuleCheck& check,
                    std::vector<absl::Status>* problems) {
  google::protobuf::TextFormat::ParseInfoTree places;
  v1::FusionRules wire;
  if (std::optional<TextError> error = ReadTextFormat(text, &wire, &places)) {
    problems->push_back(
        InvalidArgument(name, ":", error->line, ": column ", error->column, ": ", error->message));
    return {};
  }
  absl::Status count = CheckCount("rules", wire.rules_size(), 0, kMaxRules);
  if (!count.ok()) {
    problems->push_back(Annotate(count, name));
    return {};
  }
  const google::protobuf::FieldDescriptor* field =
      v1::FusionRules::descriptor()->FindFieldByNumber(v1::FusionRules::kRulesFieldNumber);
  Rules rules;
  std::set<std::string> names;
  for (int i = 0; i < wire.rules_size(); ++i) {
    std::string where = StrCat(name, ":", places.GetLocation(field, i).line + 1);
    absl::StatusOr<Rule> rule = DecodeRuleAt(wire, i, &names);
    absl::Status right = rule.status();
    if (right.ok() && check != nullptr) right = check(*rule);
    if (right.ok()) {
      rules.push_back(*std::move(rule));
    } else {
      problems->push_back(Annotate(right, where));
    }
  }
  return rules;
}

}  // namespace

absl::StatusOr<Rules> ParseRulesText(std::string_view text, const std::string& name,
                                     const RuleCheck& check) {
  std::vector<absl::Status> problems;
  Rules rules = ParseEachRule(text, name, check, &problems);
  if (!problems.empty()) return problems.front();
  return rules;
}

std::vector<absl::Status> ProblemsOfRulesFile(const std::string& path, const RuleCheck& check) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxRulesFileBytes);
  if (!text.ok()) return {InvalidArgument(Message(text.status()))};
  std::vector<absl::Status> problems;
  ParseEachRule(*text, path, check, &problems);
  return problems;
}

absl::StatusOr<Rules> ReadRulesFile(const std::string& path, const RuleCheck& check) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxRulesFileBytes);
  if (!text.ok()) return InvalidArgument(Message(text.status()));
  return ParseRulesText(*text, path, check);
}

}  // namespace fusion
