#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/bundle/measured/epoch.h"
#include "core/bundle/plan.h"
#include "core/learn/observations.h"

namespace fusion {

/// A plan that was measured, of a set of plans of the same graph.
struct MeasuredPlan {
  struct Launch {
    std::string kernel;  // key in hex
    std::string form;    // as PlanGroup::form
    CostTerms terms;
  };
  std::vector<Launch> launches;
  double measured_us = 0;  // of a run; above 0
};
/// Plans of one graph for one device, all measured by one voter.
using MeasuredPlans = std::vector<MeasuredPlan>;

/// Constants that were fitted to measurements, and how they do on measurements that they were not
/// fitted to.
struct EpochTrial {
  CostFactors factors;  // fitted to all observations
  int64_t kernels = 0;
  int64_t timings = 0;
  HeldBackScore before;
  HeldBackScore after;
  bool better = false;
  /// Two factors differ by more than kLeastChange. False: the constants in force stay.
  bool differs = false;
  std::string reason;  // why it is better, or why not, with numbers
};

/// Kernels that a fit needs at least.
inline constexpr int64_t kLeastKernels = 8;
/// Factors that differ by less, as a fraction, are the same.
inline constexpr double kLeastChange = 0.02;

/// Fits constants to the observations of one device and compares them with `current` on what the
/// fit has not seen: observations of each part are estimated with constants fitted to the other
/// parts (kFolds).
///
/// The new constants are better if
///   - the median error of kernels, or the regret of choices, falls: the error by at least a tenth
///     of itself and 0.01, the regret by at least 0.002;
///   - neither rises: the error by 0.005, its 90 % quantile by 0.05, the regret by 0.001;
///   - the rank correlation falls by at most 0.02;
///   - the median error of no class (bound and form of the kernel) with kLeastOfClass timings rises
///     by more than 0.03.
/// The thresholds are chosen: noise of +-30 % in single reports stays below them.
///
/// A pure function. Takes about kFolds + 1 times as long as FitDevice. kCancelled or
/// kDeadlineExceeded if `cancel` ends; a fit is not interrupted.
absl::StatusOr<EpochTrial> TryEpoch(const std::vector<Observation>& observations,
                                    const std::vector<MeasuredPlans>& plans,
                                    const CostFactors& current, const CancelToken& cancel);
inline constexpr size_t kLeastOfClass = 5;

/// Whether a factor of one differs from that of the other by more than this fraction.
bool FactorsDiffer(const CostFactors& a, const CostFactors& b, double fraction);

/// The part of the plan's first kernel that was observed; nullopt: none was. `fold_of`: by kernel.
std::optional<size_t> FoldOf(const MeasuredPlan& plan,
                             const std::map<std::string, size_t>& fold_of);

/// The launches of a plan; nullopt if what one of them costs is not known, or if there are more
/// than kMaxLaunches.
std::optional<MeasuredPlan> LaunchesOf(const Plan& plan);
inline constexpr size_t kMaxLaunches = 1024;

/// The time of a run of these launches with `factors`, in microseconds.
double EstimatedUs(const MeasuredPlan& plan, const CostFactors& factors);

}  // namespace fusion
