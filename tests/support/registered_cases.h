#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/rule_cases.h"

namespace fusion {

/// A registered kernel "r" for a pattern, with a source that nothing compiles.
inline std::shared_ptr<RegisteredKernel> KernelFor(std::string_view pattern,
                                                   const std::vector<std::string>& params) {
  auto kernel = std::make_shared<RegisteredKernel>();
  kernel->rule = RulesOf(Rule1(pattern, "force {}"))[0];
  std::vector<std::string> ids;
  for (const RuleNode& node : kernel->rule.nodes) ids.push_back(node.id);
  for (const std::string& param : params) {
    kernel->param_texts.push_back(param);
    kernel->params.push_back(ParseRuleTensor(param, ids).value());
  }
  kernel->source = "int x;";
  kernel->source_sha256 = Sha256(kernel->source);
  return kernel;
}

/// The plan of a graph with registered kernels, for Cpu(); the process ends if there is none.
inline PlannedModel PlanWithKernels(const Graph& graph, RegisteredKernels kernels,
                                    std::map<std::string, std::string> unused = {}) {
  auto model = MakePlan(graph, Cpu(), {}, nullptr, {},
                        {.kernels = std::move(kernels), .unused = std::move(unused)});
  FUSION_CHECK(model.ok(), Message(model.status()));
  return *std::move(model);
}

}  // namespace fusion
