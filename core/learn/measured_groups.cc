#include "core/learn/measured_groups.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/benefit/terms.h"
#include "core/learn/texts.h"

namespace fusion {
namespace {

constexpr double kMargin = 1.1;
constexpr double kMarginUnknownSpeed = 1.5;
constexpr size_t kLeastOthers = 4;

std::string Interval(const MeasuredGroup& group) {
  return StrCat(UsText(group.us.median), " (95 %: ", UsText(group.us.low), " to ",
                UsText(group.us.high), ", ", group.samples, " launches)");
}

// The sum of the high ends over the nodes of `fused`; nullopt if one was not measured together with
// it.
std::optional<double> PartsUs(const PlanGroup& fused, const MeasuredGroup& measured,
                              const Plan& parts, const MeasuredGroups& parts_groups) {
  double us = 0;
  std::set<int> found;
  for (const auto& [g, group] : parts_groups) {
    const std::vector<int>& nodes = parts.groups[static_cast<size_t>(g)].nodes;
    const auto within = [&](int node) {
      return std::binary_search(fused.nodes.begin(), fused.nodes.end(), node);
    };
    if (nodes.empty() || !std::all_of(nodes.begin(), nodes.end(), within)) continue;
    if (group.samples < kLeastSamples) return std::nullopt;
    if (std::abs(group.last_report_unix_ms - measured.last_report_unix_ms) > kTogetherMs) {
      return std::nullopt;
    }
    us += group.us.high;
    found.insert(nodes.begin(), nodes.end());
  }
  if (found.size() != fused.nodes.size()) return std::nullopt;
  return us;
}

// How fast the machine was: the median of measured / estimated over the groups that hold none of
// these nodes. nullopt if there are too few.
std::optional<double> SpeedOf(const Plan& plan, const MeasuredGroups& groups,
                              const std::vector<int>& without) {
  std::vector<double> ratios;
  for (const auto& [g, measured] : groups) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(g)];
    const bool other = std::none_of(group.nodes.begin(), group.nodes.end(), [&](int node) {
      return std::binary_search(without.begin(), without.end(), node);
    });
    const double us = TimeOf(group.terms, {});  // plans may have other constants
    if (other && us > 0) ratios.push_back(measured.us.median / us);
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
        group = {.us = MedianOf(std::vector<double>(us.begin(), us.end())),
                 .samples = us.size(),
                 .last_report_unix_ms = timings->last_report_unix_ms};
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
                                        const Plan& parts, const MeasuredGroups& parts_groups) {
  std::vector<FusionToUndo> out;
  for (const auto& [g, measured] : groups) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(g)];
    if (group.nodes.size() < 2 || RunsInSequence(group.kind) || !group.registered.empty()) continue;
    if (measured.samples < kLeastSamples) continue;
    const std::optional<double> parts_us = PartsUs(group, measured, parts, parts_groups);
    if (!parts_us.has_value()) continue;
    const std::optional<double> here = SpeedOf(plan, groups, group.nodes);
    const std::optional<double> there = SpeedOf(parts, parts_groups, group.nodes);
    const bool known = here.has_value() && there.has_value();
    const double expected = known ? kMargin * *parts_us * std::max(*here / *there, 1.0)
                                  : kMarginUnknownSpeed * *parts_us;
    if (measured.us.low <= expected) continue;
    out.push_back({g, StrCat(kMeasuredSlower, group.label, " takes ", Interval(measured),
                             ", its parts ", UsText(*parts_us), " at most")});
  }
  return out;
}

}  // namespace fusion
