#include "client/fusionctl/measure/kernel_times.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "client/fusionctl/measure/statistics.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"

namespace fusion {
namespace {

double SumOf(const std::vector<KernelTime>& kernels) {
  double sum = 0;
  for (const KernelTime& kernel : kernels) sum += kernel.total_us();
  return sum;
}

}  // namespace

double KernelTime::median_us() const { return Quantile(samples_us, 0.5); }

std::vector<KernelTime> KernelTimes(const Contender& contender) {
  const Plan& plan = contender.ran();
  std::vector<KernelTime> out;
  std::map<int, size_t> position;
  const std::vector<int64_t> runs = CountedRuns(plan);
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const PlanLaunch& launch = plan.launches[i];
    auto [it, is_new] = position.emplace(launch.kernel, out.size());
    if (is_new) {
      out.push_back({.kernel = &plan.kernels[static_cast<size_t>(launch.kernel)],
                     .group = &plan.groups[static_cast<size_t>(launch.group)]});
    }
    KernelTime& time = out[it->second];
    // What all passes of a loop took together.
    const int64_t passes = std::max<int64_t>(runs[i], 1);
    time.launches += passes;
    for (double took : contender.launch_us()[i]) {
      time.samples_us.push_back(took / static_cast<double>(passes));
    }
  }
  return out;
}

Json KernelTimesJson(const Contender& contender) {
  std::vector<KernelTime> kernels = KernelTimes(contender);
  double total_us = SumOf(kernels);
  Json out = Json::array();
  for (const KernelTime& k : kernels) {
    out.push_back({{"key", k.kernel->key.ToHex()},
                   {"ops", k.group->label},
                   {"launches", k.launches},
                   {"nodes", k.group->nodes.size()},
                   {"median_us", k.median_us()},
                   {"p10_us", Quantile(k.samples_us, 0.1)},
                   {"p90_us", Quantile(k.samples_us, 0.9)},
                   {"n", k.samples_us.size()},
                   {"estimated_us", k.group->estimate.time_us},
                   {"flops", k.group->estimate.flops},
                   {"bytes", k.bytes()},
                   {"gflop_per_s", k.gflops()},
                   {"gb_per_s", k.gb_per_s()},
                   {"share", k.total_us() / total_us}});
  }
  return out;
}

std::string KernelTable(const Contender& contender) {
  Table table({{"kernel"},
               {"launches", Table::kRight},
               {"median", Table::kRight},
               {"estimate", Table::kRight},
               {"GFLOP/s", Table::kRight},
               {"GB/s", Table::kRight, /*spare=*/1},
               {"share", Table::kRight},
               {"ops", Table::kCut}});
  std::vector<KernelTime> kernels = KernelTimes(contender);
  double total_us = SumOf(kernels);
  for (const KernelTime& k : kernels) {
    table.Add({k.kernel->key.ToHex().substr(0, 8), StrCat(k.launches),
               HumanMicroseconds(k.median_us()), HumanMicroseconds(k.group->estimate.time_us),
               k.gflops() > 0 ? ShortNumber(k.gflops()) : "-", ShortNumber(k.gb_per_s()),
               HumanPercent(k.total_us() / total_us), k.group->label});
  }
  return table.ToString();
}

}  // namespace fusion
