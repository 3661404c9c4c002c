#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/statistics/median_interval.h"
#include "core/bundle/answer.h"
#include "core/bundle/measured/kernel_timings.h"

namespace fusion {

/// The measured time of one launch of a group.
struct MeasuredGroup {
  MedianInterval us;
  size_t samples = 0;
  int64_t last_report_unix_ms = 0;
};

/// What one voter measured of the groups of a plan, by position in Plan::groups. Groups whose
/// kernel was not measured, or has no terms, are absent.
using MeasuredGroups = std::map<int, MeasuredGroup>;

/// Reads the times of a kernel by the voter; nullopt: there are none.
using ReadKernel =
    std::function<std::optional<KernelTimings>(const Digest& kernel, const std::string& isa)>;

/// `plan` has neither open dims nor loops.
MeasuredGroups MeasuredGroupsOf(const Plan& plan, const ReadKernel& read);

/// The time of a run: sums over the launches.
struct PlanTime {
  double us = 0;
  double low_us = 0;  // sums of the ends of 95 % intervals: further apart than the sum's interval
  double high_us = 0;
  size_t samples = 0;  // of the launch with fewest
};
/// nullopt if a launch was not measured.
std::optional<PlanTime> PlanTimeOf(const Plan& plan, const MeasuredGroups& groups);

/// Begins the reason of PlanFallback for nodes that are not fused because of measured times.
inline constexpr std::string_view kMeasuredSlower = "measured slower than its parts: ";

/// A fused group that is slower than its parts.
struct FusionToUndo {
  int group = 0;
  std::string reason;  // kMeasuredSlower, then numbers
};

/// Samples of a group that say something.
inline constexpr size_t kLeastSamples = 20;

/// Fused groups of `plan` that were measured slower than their nodes with one kernel each.
///
/// `parts`: an op-by-op plan of the same graph, device, numerics and hints; `parts_groups`: what
/// the same voter measured of it. All nodes of a group must have been measured there, within
/// kTogetherMs of the group. The group counts as slower if the low end of its interval exceeds the
/// sum of the high ends of its parts, times a margin:
///   - 1.1, after the times are divided by the speed of the machine in each plan. That speed is the
///     median of measured / estimated over the other groups. Both plans need four such groups.
///   - 1.5 where there are fewer.
/// So neither a machine that is slow as a whole, nor one that was slow for a while, nor a wrong
/// estimate undoes anything. Groups need kLeastSamples samples. Groups of one node, in sequence and
/// of registered kernels are never undone. Pure.
std::vector<FusionToUndo> FusionsToUndo(const Plan& plan, const MeasuredGroups& groups,
                                        const Plan& parts, const MeasuredGroups& parts_groups);
/// An hour.
inline constexpr int64_t kTogetherMs = 3'600'000;

}  // namespace fusion
