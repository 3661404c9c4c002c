#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/bundle/plan.h"

namespace fusion {

/// What a search for tiles gained for one kernel.
struct KernelGain {
  size_t kernel = 0;     // position in TileSearch::kernels
  int64_t launches = 0;  // of the kernel in one inference
  double pick_us = 0;    // median time of a launch with the tiling that the benefit model chose
  double chosen_us = 0;  // pick_us * the median of the ratios of the pairs; pick_us if it stays
  /// Rank correlation of the estimates of the timed tilings with their times; nullopt: fewer than
  /// three were timed, or all estimates or times are equal.
  std::optional<double> correlation;
};

/// What a search gained for a plan. Times in microseconds, sums over the launches of one inference
/// of the kernels that were timed.
struct TuningGain {
  std::vector<KernelGain> kernels;  // those that were timed, the largest gain in time first
  double pick_us = 0;
  double chosen_us = 0;
  std::optional<double> correlation;  // median of those of the kernels
};

/// `plan.search` must list its kernels, as that of an explanation does. Pure.
TuningGain GainOf(const Plan& plan);

/// The result of tune: the summary of the search, a table of the kernels, their sum, how well the
/// benefit model ordered the tilings, and how to use the plan. `kept`: the service keeps it.
std::string TuneText(const Plan& plan, const std::string& model, bool kept);
/// The same, with "search" as SearchJson.
nlohmann::ordered_json TuneJson(const Plan& plan, const std::string& model, bool kept);

}  // namespace fusion
