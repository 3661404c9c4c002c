#include "client/fusionctl/measure/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"

namespace fusion {
namespace {

// The profiled run of median total; -1: none.
int MedianRun(const Contender& plan) {
  if (plan.launch_us().empty()) return -1;
  std::vector<int> runs(plan.launch_us()[0].size());
  if (runs.empty()) return -1;
  std::iota(runs.begin(), runs.end(), 0);
  auto total = [&](int run) {
    double sum = 0;
    for (const std::vector<double>& launch : plan.launch_us()) {
      sum += launch[static_cast<size_t>(run)];
    }
    return sum;
  };
  std::sort(runs.begin(), runs.end(), [&](int a, int b) { return total(a) < total(b); });
  return runs[runs.size() / 2];
}

void AddEvents(const Contender& contender, int process, Json* events) {
  const Plan& plan = contender.ran();
  events->push_back({{"name", "process_name"},
                     {"ph", "M"},
                     {"pid", process},
                     {"args",
                      {{"name", StrCat(FusionName(plan.fusion), ", ", plan.launches.size(),
                                       plan.launches.size() == 1 ? " launch" : " launches")}}}});
  const int run = MedianRun(contender);
  const std::vector<int64_t> runs = CountedRuns(plan);
  double at = 0;
  for (size_t i = 0; run >= 0 && i < plan.launches.size(); ++i) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(plan.launches[i].group)];
    const double took = contender.launch_us()[i][static_cast<size_t>(run)];
    const Estimate& e = group.estimate;
    events->push_back(
        {{"name", group.label},
         {"cat", "launch"},
         {"ph", "X"},
         {"pid", process},
         {"tid", 1},
         {"ts", at},
         {"dur", took},
         {"args",
          {{"launch", i},
           {"passes", runs[i]},
           {"kernel",
            plan.kernels[static_cast<size_t>(plan.launches[i].kernel)].key.ToHex().substr(0, 16)},
           {"nodes", NodeNames(contender.reply(), group.nodes)},
           {"estimated_us", e.time_us},
           {"bound", group.bound},
           {"flops", e.flops},
           {"bytes", e.activation_bytes + e.recompute_bytes + e.weight_bytes}}}});
    at += took;
  }
}

}  // namespace

Json TraceOf(const std::vector<const Contender*>& plans) {
  Json events = Json::array();
  for (size_t i = 0; i < plans.size(); ++i) {
    AddEvents(*plans[i], static_cast<int>(i) + 1, &events);
  }
  return {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
}

}  // namespace fusion
