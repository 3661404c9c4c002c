#include "core/bundle/cost_factors.h"

namespace fusion {

std::vector<std::pair<std::string, double>> NamedFactors(const CostFactors& f) {
  std::vector<std::pair<std::string, double>> out = {
      {"launch", f.launch},    {"barrier", f.barrier},      {"task", f.task},
      {"elements", f.element}, {"private caches", f.local}, {"shared cache", f.shared},
      {"memory", f.memory}};
  for (const auto& [type, factor] : f.product) out.emplace_back("products of " + type, factor);
  return out;
}

}  // namespace fusion
