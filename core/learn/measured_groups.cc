#include "core/learn/measured_groups.h"

#include <algorithm>

#include "core/learn/texts.h"

namespace fusion {
namespace {

constexpr double kMeasuredMargin = 1.1;
constexpr double kEstimatedMargin = 1.5;
constexpr size_t kLeastOthers = 4;

std::string Interval(const MeasuredGroup& group) {
  return StrCat(UsText(group.us.median), " (95 %: ", UsText(group.us.low), " to ",
                UsText(group.us.high), ", ", group.samples, " launches)");
}

// The sum of the high ends over the nodes; nullopt if one was not measured.
std::optional<double> PartsUs(const PlanGroup& fused, const Plan& parts,
                              const MeasuredGroups& measured) {
  double us = 0;
  size_t found = 0;
  for (const auto& [g, group] : measured) {
    const std::vector<int>& nodes = parts.groups[static_cast<size_t>(g)].nodes;
    const auto within = [&](int node) {
      return std::binary_search(fused.nodes.begin(), fused.nodes.end(), node);
    };
    if (nodes.empty() || !std::all_of(nodes.begin(), nodes.end(), within)) continue;
    if (group.samples < kLeastSamples) return std::nullopt;
    us += group.us.high;
    found += nodes.size();
  }
  if (found != fused.nodes.size()) return std::nullopt;
  return us;
}

// The voter's speed, from its other groups; nullopt if there are too few.
std::optional<double> SpeedOf(const Plan& plan, const MeasuredGroups& groups, int without) {
  std::vector<double> ratios;
  for (const auto& [g, group] : groups) {
    const double estimated = plan.groups[static_cast<size_t>(g)].estimate.time_us;
    if (g != without && estimated > 0) ratios.push_back(group.us.median / estimated);
  }
  if (ratios.size() < kLeastOthers) return std::nullopt;
  return MedianOf(std::move(ratios)).median;
}

}  // namespace

MeasuredGroups MeasuredGroupsOf(const Plan& plan, const ReadKernel& read) {
  std::map<int, std::optional<MeasuredGroup>> by_kernel;
  MeasuredGroups out;
  for (const PlanLaunch& launch : plan.launches) {
    if (out.contains(launch.group)) continue;
    if (plan.groups[static_cast<size_t>(launch.group)].form.empty()) continue;
    auto known = by_kernel.find(launch.kernel);
    if (known == by_kernel.end()) {
      const PlanKernel& kernel = plan.kernels[static_cast<size_t>(launch.kernel)];
      std::optional<MeasuredGroup> group;
      const std::optional<KernelTimings> timings = read(kernel.key, kernel.isa);
      if (timings.has_value() && !timings->times.samples_us.empty()) {
        const std::vector<float>& us = timings->times.samples_us;
        group = {.us = MedianOf(std::vector<double>(us.begin(), us.end())), .samples = us.size()};
      }
      known = by_kernel.emplace(launch.kernel, group).first;
    }
    if (known->second.has_value()) out.emplace(launch.group, *known->second);
  }
  return out;
}

std::optional<PlanTime> PlanTimeOf(const Plan& plan, const MeasuredGroups& groups) {
  if (plan.launches.empty()) return std::nullopt;
  PlanTime out{.samples = SIZE_MAX};
  for (const PlanLaunch& launch : plan.launches) {
    auto group = groups.find(launch.group);
    if (group == groups.end()) return std::nullopt;
    out.us += group->second.us.median;
    out.low_us += group->second.us.low;
    out.high_us += group->second.us.high;
    out.samples = std::min(out.samples, group->second.samples);
  }
  return out;
}

std::vector<FusionToUndo> FusionsToUndo(const Plan& plan, const MeasuredGroups& groups,
                                        const Plan* parts, const MeasuredGroups& parts_groups) {
  std::vector<FusionToUndo> out;
  for (const auto& [g, measured] : groups) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(g)];
    if (group.nodes.size() < 2 || RunsInSequence(group.kind) || !group.registered.empty()) continue;
    if (measured.samples < kLeastSamples) continue;
    const std::optional<double> parts_us =
        parts == nullptr ? std::nullopt : PartsUs(group, *parts, parts_groups);
    if (parts_us.has_value()) {
      if (measured.us.low <= kMeasuredMargin * *parts_us) continue;
      out.push_back({g, StrCat(kMeasuredSlower, group.label, " takes ", Interval(measured),
                               ", its parts ", UsText(*parts_us), " at most")});
      continue;
    }
    const std::optional<double> speed = SpeedOf(plan, groups, g);
    if (!speed.has_value()) continue;
    const double estimated = *speed * group.op_by_op.estimated_us;
    if (!(estimated > 0) || measured.us.low <= kEstimatedMargin * estimated) continue;
    out.push_back({g, StrCat(kMeasuredSlower, group.label, " takes ", Interval(measured),
                             ", its parts an estimated ", UsText(estimated),
                             ", by the speed of the plan's other kernels there")});
  }
  return out;
}

}  // namespace fusion
