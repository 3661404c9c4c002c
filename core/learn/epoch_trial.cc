#include "core/learn/epoch_trial.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/statistics/quantile.h"
#include "core/base/statistics/rank_correlation.h"
#include "core/learn/texts.h"

namespace fusion {
namespace {

constexpr double kLeastFall = 0.01;
constexpr double kLeastFallShare = 0.1;
constexpr double kLeastRegretFall = 0.002;

// The constants that judge an observation of each part: those in force, or fitted to the others.
using Judges = std::array<CostFactors, kFolds>;

// Of alternatives that compute the same.
struct Alternative {
  double measured_us = 0;
  double estimated_us = 0;
};

double RegretOf(const std::vector<Alternative>& set) {
  const auto chosen = std::min_element(set.begin(), set.end(), [](const auto& a, const auto& b) {
    return a.estimated_us < b.estimated_us;
  });
  const auto best = std::min_element(set.begin(), set.end(), [](const auto& a, const auto& b) {
    return a.measured_us < b.measured_us;
  });
  return std::log(chosen->measured_us / best->measured_us);
}

class Score {
 public:
  Score(const std::vector<Observation>& observations, const std::vector<MeasuredPlans>& plans,
        const std::map<std::string, double>& machines, const Judges& judges) {
    std::vector<double> all;
    std::vector<double> estimated;
    std::vector<double> measured;
    std::map<std::string, std::vector<Alternative>> tilings;  // by choice and voter
    std::map<std::string, size_t> fold_of;
    for (const Observation& o : observations) {
      const TimingRecord& record = o.record;
      const double us = ExpectedUs(record.terms, record.form, judges[o.fold]);
      const double here = record.measured_us / machines.at(record.voter);
      const double error = std::abs(std::log(here / us));
      all.push_back(error);
      classes_[{o.bound, record.form}].push_back(error);
      estimated.push_back(us);
      measured.push_back(here);
      fold_of[record.kernel] = o.fold;
      if (!o.choice.empty()) {
        tilings[StrCat(o.choice, "\n", record.voter)].push_back({record.measured_us, us});
      }
    }
    out_.errors = SummariseErrors(std::move(all));
    if (estimated.size() > 1) out_.rank = RankCorrelation(estimated, measured);
    double regret = 0;
    auto add = [&](const std::vector<Alternative>& set) {
      if (set.size() < 2) return;
      ++out_.choices;
      regret += RegretOf(set);
    };
    for (const auto& [choice, set] : tilings) add(set);
    for (const MeasuredPlans& of_graph : plans) add(Alternatives(of_graph, judges, fold_of));
    if (out_.choices > 0) out_.regret = regret / static_cast<double>(out_.choices);
  }

  const HeldBackScore& score() const { return out_; }
  std::map<KernelClass, std::vector<double>> classes() const { return classes_; }

 private:
  // A kernel that was not observed is judged by the part of the plan's first one that was.
  static std::vector<Alternative> Alternatives(const MeasuredPlans& plans, const Judges& judges,
                                               const std::map<std::string, size_t>& fold_of) {
    std::vector<Alternative> out;
    for (const MeasuredPlan& plan : plans) {
      const size_t fold = FoldOf(plan, fold_of).value_or(0);
      out.push_back({plan.measured_us, EstimatedUs(plan, judges[fold])});
    }
    return out;
  }

  HeldBackScore out_;
  std::map<KernelClass, std::vector<double>> classes_;  // errors
};

// |ln ratio| as a percentage.
std::string ErrorText(double ln) { return PercentText(std::expm1(ln)); }

// The first class that is estimated worse than before; empty: none.
std::string WorseClass(const Score& before, const Score& after) {
  constexpr double kMostRise = 0.03;
  const auto old = before.classes();
  for (const auto& [of, errors] : after.classes()) {
    if (errors.size() < kLeastOfClass) continue;
    const double was = Quantile(old.at(of), 0.5);
    const double now = Quantile(errors, 0.5);
    if (now <= was + kMostRise) continue;
    return StrCat("the error of ", of.form, " kernels bound by ", of.bound, " rises from ",
                  ErrorText(was), " to ", ErrorText(now));
  }
  return "";
}

// Why the new constants are no better; empty: they are.
std::string Objection(const Score& old, const Score& now) {
  const HeldBackScore& a = old.score();
  const HeldBackScore& b = now.score();
  const double fall = a.errors.median - b.errors.median;
  const bool errors_fall = fall >= kLeastFall && fall >= kLeastFallShare * a.errors.median;
  const bool regret_falls = a.regret - b.regret >= kLeastRegretFall;
  if (fall < -0.005) {
    return StrCat("the error rises from ", ErrorText(a.errors.median), " to ",
                  ErrorText(b.errors.median));
  }
  if (b.errors.p90 > a.errors.p90 + 0.05) {
    return StrCat("the error that a tenth of the kernels exceeds rises from ",
                  ErrorText(a.errors.p90), " to ", ErrorText(b.errors.p90));
  }
  if (b.regret > a.regret + 0.001) {
    return StrCat("the regret of ", b.choices, " choices rises from ", ErrorText(a.regret), " to ",
                  ErrorText(b.regret));
  }
  if (b.rank < a.rank - 0.02) {
    return StrCat("the rank correlation falls from ", std::round(1000 * a.rank) / 1000, " to ",
                  std::round(1000 * b.rank) / 1000);
  }
  if (std::string worse = WorseClass(old, now); !worse.empty()) return worse;
  if (errors_fall || regret_falls) return "";
  return StrCat("the error stays: ", ErrorText(a.errors.median), " before, ",
                ErrorText(b.errors.median), " after");
}

}  // namespace

bool FactorsDiffer(const CostFactors& a, const CostFactors& b, double fraction) {
  auto far = [fraction](double x, double y) { return std::abs(std::log(x / y)) > fraction; };
  if (far(a.launch, b.launch) || far(a.barrier, b.barrier) || far(a.task, b.task) ||
      far(a.element, b.element) || far(a.local, b.local) || far(a.shared, b.shared) ||
      far(a.memory, b.memory)) {
    return true;
  }
  auto any_far = [&](const CostFactors& of) {
    return std::any_of(of.product.begin(), of.product.end(),
                       [&](const auto& entry) {
                         return far(a.ProductOf(entry.first), b.ProductOf(entry.first));
                       }) ||
           std::any_of(of.classes.begin(), of.classes.end(), [&](const auto& entry) {
             return far(a.ClassOf(entry.first), b.ClassOf(entry.first));
           });
  };
  return any_far(a) || any_far(b);
}

std::optional<size_t> FoldOf(const MeasuredPlan& plan,
                             const std::map<std::string, size_t>& fold_of) {
  for (const MeasuredPlan::Launch& launch : plan.launches) {
    auto known = fold_of.find(launch.kernel);
    if (known != fold_of.end()) return known->second;
  }
  return std::nullopt;
}

std::optional<MeasuredPlan> LaunchesOf(const Plan& plan) {
  if (plan.launches.size() > kMaxLaunches) return std::nullopt;
  MeasuredPlan out;
  for (const PlanLaunch& launch : plan.launches) {
    const PlanGroup& group = plan.groups[static_cast<size_t>(launch.group)];
    if (group.form.empty()) return std::nullopt;
    out.launches.push_back(
        {plan.kernels[static_cast<size_t>(launch.kernel)].key.ToHex(), group.form, group.terms});
  }
  return out;
}

double EstimatedUs(const MeasuredPlan& plan, const CostFactors& factors) {
  double us = 0;
  for (const MeasuredPlan::Launch& launch : plan.launches) {
    us += ExpectedUs(launch.terms, launch.form, factors);
  }
  return us;
}

absl::StatusOr<EpochTrial> TryEpoch(const std::vector<Observation>& observations,
                                    const std::vector<MeasuredPlans>& plans,
                                    const CostFactors& current, const CancelToken& cancel) {
  std::vector<TimingRecord> records;
  for (const Observation& o : observations) records.push_back(o.record);
  RETURN_IF_ERROR(cancel.Check());
  const DeviceFit fit = FitDevice(records);
  EpochTrial out{.factors = fit.factors,
                 .kernels = fit.kernels,
                 .timings = static_cast<int64_t>(observations.size())};
  if (fit.kernels < kLeastKernels) {
    out.reason = StrCat("only ", fit.kernels, " kernels are measured; a fit needs ", kLeastKernels);
    return out;
  }
  Judges judges;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    RETURN_IF_ERROR(cancel.Check());
    std::vector<TimingRecord> others;
    for (const Observation& o : observations) {
      if (o.fold != fold) others.push_back(o.record);
    }
    judges[fold] = others.size() == observations.size() ? fit.factors : FitDevice(others).factors;
  }
  Judges in_force;
  in_force.fill(current);
  const Score before(observations, plans, fit.machines, in_force);
  const Score after(observations, plans, fit.machines, judges);
  out.before = before.score();
  out.after = after.score();
  out.differs = FactorsDiffer(fit.factors, current, kLeastChange);
  out.reason = Objection(before, after);
  out.better = out.reason.empty();
  if (out.better) {
    out.reason =
        StrCat("on kernels that it was not fitted to, the median error falls from ",
               ErrorText(out.before.errors.median), " to ", ErrorText(out.after.errors.median));
    if (out.after.choices > 0) {
      StrAppend(&out.reason,
                StrCat(", the regret of ", out.after.choices, " choices from ",
                       ErrorText(out.before.regret), " to ", ErrorText(out.after.regret)));
    }
  }
  return out;
}

}  // namespace fusion
