#include "client/fusionctl/output/tune_output.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/fusionctl/output/explain_output.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/search_output.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/statistics/quantile.h"
#include "core/base/statistics/rank_correlation.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// Of two an order is right or wrong by chance.
constexpr size_t kLeastOrdered = 3;

// In one inference; in a loop once for each pass.
int64_t LaunchesOf(const Plan& plan, const std::vector<int64_t>& runs, int group) {
  const int kernel = plan.groups[static_cast<size_t>(group)].kernel;
  int64_t launches = 0;
  for (size_t l = 0; l < plan.launches.size(); ++l) {
    if (plan.launches[l].kernel == kernel) launches += runs[l];
  }
  return launches;
}

std::optional<double> CorrelationOf(const TunedKernel& kernel) {
  std::vector<double> estimated;
  std::vector<double> measured;
  for (const TriedTiling& tiling : kernel.tried) {
    if (tiling.runs == 0) continue;
    estimated.push_back(tiling.estimated_us);
    measured.push_back(tiling.median_us);
  }
  auto equal = [](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
  };
  if (estimated.size() < kLeastOrdered || equal(estimated) || equal(measured)) return std::nullopt;
  return RankCorrelation(estimated, measured);
}

std::string GainedText(double before, double after) {
  return after < before ? HumanPercent(1 - after / before) : "-";
}

std::string KernelGains(const Plan& plan, const TuningGain& gain) {
  Table table({{"launches", Table::kRight},
               {"the model's", Table::kRight},
               {"chosen", Table::kRight},
               {"gained", Table::kRight},
               {"ratio, 95 % interval", Table::kLeft, /*spare=*/2},
               {"timed", Table::kRight, /*spare=*/1},
               {"order", Table::kRight, /*spare=*/3},
               {"kernel", Table::kCut}});
  for (const KernelGain& of : gain.kernels) {
    const TunedKernel& kernel = plan.search.kernels[of.kernel];
    const auto timed = std::count_if(kernel.tried.begin(), kernel.tried.end(),
                                     [](const TriedTiling& tiling) { return tiling.runs > 0; });
    table.Add({StrCat(of.launches), HumanMicroseconds(of.pick_us), HumanMicroseconds(of.chosen_us),
               GainedText(of.pick_us, of.chosen_us),
               kernel.pairs > 0
                   ? StrCat(ShortNumber(kernel.ratio), " (", ShortNumber(kernel.ratio_low), " .. ",
                            ShortNumber(kernel.ratio_high), ")")
                   : "-",
               StrCat(timed), of.correlation ? ShortNumber(*of.correlation) : "-",
               GroupText(plan, kernel.group)});
  }
  return table.ToString();
}

}  // namespace

TuningGain GainOf(const Plan& plan) {
  TuningGain out;
  std::vector<double> correlations;
  const std::vector<int64_t> runs = CountedRuns(plan);
  for (size_t k = 0; k < plan.search.kernels.size(); ++k) {
    const TunedKernel& kernel = plan.search.kernels[k];
    const bool timed = std::count_if(kernel.tried.begin(), kernel.tried.end(),
                                     [](const auto& t) { return t.runs > 0; }) > 1;
    if (!timed || kernel.tried[0].runs == 0 || kernel.group < 0) continue;
    KernelGain gain{.kernel = k, .launches = LaunchesOf(plan, runs, kernel.group)};
    if (gain.launches == 0) continue;  // a loop without passes
    gain.pick_us = kernel.tried[0].median_us;
    gain.chosen_us = kernel.chosen > 0 ? gain.pick_us * kernel.ratio : gain.pick_us;
    gain.correlation = CorrelationOf(kernel);
    if (gain.correlation) correlations.push_back(*gain.correlation);
    out.pick_us += static_cast<double>(gain.launches) * gain.pick_us;
    out.chosen_us += static_cast<double>(gain.launches) * gain.chosen_us;
    out.kernels.push_back(gain);
  }
  auto saved = [](const KernelGain& gain) {
    return static_cast<double>(gain.launches) * (gain.pick_us - gain.chosen_us);
  };
  std::stable_sort(out.kernels.begin(), out.kernels.end(),
                   [&](const auto& a, const auto& b) { return saved(a) > saved(b); });
  if (!correlations.empty()) out.correlation = Quantile(correlations, 0.5);
  return out;
}

std::string TuneText(const Plan& plan, const std::string& model, bool kept) {
  const TuningGain gain = GainOf(plan);
  const TileSearch& search = plan.search;
  const std::string line = SearchLine(search);
  std::string out = StrCat(Bold(model), " for ", TargetText(plan), "\n",
                           line.empty() ? "tiles:   this service times none\n" : line);
  if (gain.kernels.empty()) return out;
  StrAppend(&out, StrCat("\n", KernelGains(plan, gain), "\n"));
  StrAppend(&out, StrCat("gained:  ", HumanMicroseconds(gain.pick_us), " -> ",
                         HumanMicroseconds(gain.chosen_us), " an inference in the timed kernels (",
                         ShortNumber(gain.pick_us / gain.chosen_us), " times as fast)\n"));
  if (gain.correlation) {
    StrAppend(&out, StrCat("order:   rank correlation of estimates and times of a kernel's tiles: ",
                           ShortNumber(*gain.correlation), " (median)\n"));
  }
  if (GoesOn(search))
    StrAppend(&out, "next:    not all tiles were tried; the same command goes on\n");
  StrAppend(&out, kept ? StrCat("use it:  with --opt-level ", search.level,
                                " and otherwise the same options\n")
                       : "use it:  nothing is kept; give --server ADDRESS or --store DIR\n");
  return out;
}

Json TuneJson(const Plan& plan, const std::string& model, bool kept) {
  const TuningGain gain = GainOf(plan);
  auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json kernels = Json::array();
  for (const KernelGain& of : gain.kernels) {
    const TunedKernel& kernel = plan.search.kernels[of.kernel];
    kernels.push_back({{"group", kernel.group},
                       {"launches", of.launches},
                       {"pick_us", of.pick_us},
                       {"chosen_us", of.chosen_us},
                       {"rank_correlation", or_null(of.correlation)}});
  }
  return {{"model", model},
          {"target", plan.target},
          {"isa", plan.isa},
          {"threads", plan.threads},
          {"opt_level", plan.search.level},
          {"kept", kept},
          {"pick_us", gain.pick_us},
          {"chosen_us", gain.chosen_us},
          {"rank_correlation", or_null(gain.correlation)},
          {"kernels", std::move(kernels)},
          {"search", SearchJson(plan.search)}};
}

}  // namespace fusion
