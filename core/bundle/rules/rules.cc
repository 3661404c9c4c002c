#include "core/bundle/rules/rules.h"

namespace fusion {

std::string KeyText(const Rules& rules) {
  // Names, ids and op types contain no spaces. Conditions are quoted.
  std::string out;
  for (const Rule& rule : rules) {
    out += StrCat("rule ", rule.name, " ", rule.action, " ", HexDouble(rule.factor), "\n");
    for (const RuleNode& node : rule.nodes) {
      out += StrCat(" node ", node.id, " ", StrJoin(node.ops, " "), "\n");
    }
    for (const RuleEdge& edge : rule.edges) {
      out += StrCat(" edge ", edge.from, " ", edge.to, " ", edge.input, " ", edge.most, " ",
                    StrJoin(edge.through, " "), "\n");
    }
    for (const RuleInput& input : rule.inputs) {
      out += StrCat(" input ", input.input, " ", StrJoin(input.nodes, " "), "\n");
    }
    for (const RuleCondition& condition : rule.when) {
      out += StrCat(" when ", Quote(condition.text), "\n");
    }
  }
  return out;
}

}  // namespace fusion
