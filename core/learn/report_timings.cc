#include "core/learn/report_timings.h"

#include <algorithm>
#include <map>

namespace fusion {

std::vector<KernelTimings> TimingsOf(const LatencyReport& report, const StoredPlan& stored,
                                     std::string_view tenant, bool trusted, int64_t now_ms) {
  const Plan& plan = stored.plan;
  std::map<int, size_t> launches_of;
  for (const LaunchLatency& measured : report.launches) {
    ++launches_of[plan.launches[static_cast<size_t>(measured.launch)].kernel];
  }
  std::map<int, KernelTimings> by_kernel;
  std::map<int, int> seen;  // launches with times, by kernel
  for (const LaunchLatency& measured : report.launches) {
    if (report.threads != plan.threads) break;
    const PlanLaunch& launch = plan.launches[static_cast<size_t>(measured.launch)];
    const PlanGroup& group = plan.groups[static_cast<size_t>(launch.group)];
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(launch.kernel)];
    if (group.form.empty()) continue;
    KernelTimings timings{.device = {plan.target, kernel.isa, plan.threads},
                          .kernel = kernel.key,
                          .machine = report.device,
                          .tenant = std::string(tenant),
                          .trusted = trusted,
                          .model_name = stored.model_name,
                          .bound = group.bound,
                          .form = group.form,
                          .terms = group.terms,
                          .last_report_unix_ms = now_ms};
    const auto samples = static_cast<int64_t>(measured.samples_us.size());
    timings.times.calls = std::max(measured.calls, samples);
    // Launches of one kernel find its data in different caches: each has an equal share.
    const size_t share =
        std::max<size_t>(KernelTimings::kMaxSamples / launches_of.at(launch.kernel), 1);
    AddNewest(measured.samples_us, share, &timings.times);
    KernelTimings& all = by_kernel[launch.kernel];
    const CostTerms before = all.terms;
    AddTimings(timings, &all);
    // What a private cache holds differs between the launches: their mean counts.
    const auto n = static_cast<double>(++seen[launch.kernel]);
    all.terms.local_us = before.local_us + (timings.terms.local_us - before.local_us) / n;
    all.terms.shared_us = before.shared_us + (timings.terms.shared_us - before.shared_us) / n;
  }
  std::vector<KernelTimings> out;
  for (auto& [kernel, timings] : by_kernel) out.push_back(std::move(timings));
  return out;
}

}  // namespace fusion
