#include "core/bundle/rules/registered_kernel.h"

namespace fusion {

std::string KeyText(const RegisteredKernels& kernels) {
  // The text of rules is unambiguous. Names, ISAs and params contain no spaces.
  std::string out;
  for (const auto& kernel : kernels) {
    out +=
        StrCat("kernel ", kernel->name(), " ", kernel->source_sha256.ToHex(), " ", kernel->phases,
               " ", Quote(kernel->scratch.text), " ", Quote(kernel->workspace.text), " ",
               kernel->force, "\n", KeyText(Rules{kernel->rule}), " params ",
               StrJoin(kernel->param_texts, " "), "\n isas ", StrJoin(kernel->isas, " "), "\n");
    for (const KernelConstant& constant : kernel->constants) {
      out += StrCat(" constant ", constant.name, " ", constant.integer, " ", Quote(constant.text),
                    "\n");
    }
    out += StrCat(" cost ", HexDouble(kernel->flops_per_us), " ", HexDouble(kernel->bytes_per_us),
                  " ", Quote(kernel->time_text), "\n");
  }
  return out;
}

std::string PatternText(const Rule& rule) {
  auto ops = [&rule](int node) { return StrJoin(rule.nodes[static_cast<size_t>(node)].ops, "|"); };
  std::vector<std::string> parts;
  for (const RuleEdge& edge : rule.edges) {
    std::string through = edge.through.empty() ? "" : StrCat(" .. ", StrJoin(edge.through, "|"));
    parts.push_back(StrCat(ops(edge.from), through, " > ", ops(edge.to)));
  }
  for (const RuleInput& input : rule.inputs) {
    parts.push_back(StrCat("input > ", StrJoin(input.nodes, ", ", ops)));
  }
  return parts.empty() ? ops(0) : StrJoin(parts, "; ");
}

}  // namespace fusion
