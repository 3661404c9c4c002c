#include "client/fusionctl/report/report_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "client/fusionctl/output/terminal.h"
#include "core/base/statistics/quantile.h"
#include "core/base/text/text.h"
#include "core/wire/report.h"

namespace fusion {
namespace {

// A kernel is slower than its parts from here on. Chosen: medians of a few dozen runs differ by
// some percent.
constexpr double kSlower = 1.05;

std::optional<Speedup> SpeedupOf(double measured_apart_us, double measured_us,
                                 double estimated_apart_us, double estimated_us) {
  Speedup out{.measured = measured_apart_us > 0 && measured_us > 0};
  out.op_by_op_us = out.measured ? measured_apart_us : estimated_apart_us;
  out.fused_us = out.measured ? measured_us : estimated_us;
  if (out.op_by_op_us <= 0 || out.fused_us <= 0) return std::nullopt;
  out.factor = out.op_by_op_us / out.fused_us;
  return out;
}

std::optional<double> Quotient(double a, double b) {
  if (a <= 0 || b <= 0) return std::nullopt;
  return a / b;
}

std::vector<Regret> Largest(std::vector<Regret> regrets, size_t most) {
  std::stable_sort(regrets.begin(), regrets.end(),
                   [](const Regret& a, const Regret& b) { return a.lost_us > b.lost_us; });
  if (regrets.size() > most) regrets.resize(most);
  return regrets;
}

// Adds it if a launch takes longer than promised.
void AddRegret(const PlanReport& plan, const KernelReport& kernel, double promised_us,
               bool measured, std::vector<Regret>* out) {
  const double over_us = kernel.measured.median_us - promised_us;
  if (kernel.measured.samples == 0 || promised_us <= 0 || over_us <= 0) return;
  out->push_back({.plan = &plan,
                  .kernel = &kernel,
                  .promised_us = promised_us,
                  .measured = measured,
                  .lost_us = over_us * static_cast<double>(kernel.measured.calls)});
}

}  // namespace

std::string CutNote(const std::vector<PlanReport>& plans) {
  if (plans.size() < static_cast<size_t>(kMaxListedPlans)) return "";
  return StrCat("these are the ", kMaxListedPlans,
                " plans with the latest reports, a service gives no more at once");
}

std::optional<Speedup> SpeedupOf(const KernelReport& kernel) {
  return SpeedupOf(kernel.op_by_op_measured_us, kernel.measured.median_us, kernel.op_by_op_us,
                   kernel.estimated_us);
}

std::optional<Speedup> SpeedupOf(const PlanReport& plan) {
  return SpeedupOf(plan.op_by_op_runs.median_us, plan.runs.median_us, plan.op_by_op.estimated_us,
                   plan.totals.estimated_us);
}

std::optional<Speedup> SpeedupOf(const SectionReport& section) {
  return SpeedupOf(section.op_by_op_measured_us, section.measured_us, section.op_by_op_us,
                   section.estimated_us);
}

std::optional<double> EstimatedSpeedup(const KernelReport& kernel) {
  return Quotient(kernel.op_by_op_us, kernel.estimated_us);
}

std::optional<double> EstimatedSpeedup(const PlanReport& plan) {
  return Quotient(plan.op_by_op.estimated_us, plan.totals.estimated_us);
}

std::optional<double> MeasuredByEstimate(const KernelReport& kernel) {
  return Quotient(kernel.measured.median_us, kernel.estimated_us);
}

std::optional<double> MeasuredByEstimate(const PlanReport& plan) {
  return Quotient(plan.runs.median_us, plan.totals.estimated_us);
}

PlanAccuracy AccuracyOf(const PlanReport& plan) {
  std::vector<double> errors;
  for (const KernelReport& kernel : plan.kernels) {
    if (const auto ratio = MeasuredByEstimate(kernel))
      errors.push_back(std::fabs(std::log(*ratio)));
  }
  if (errors.empty()) return {};
  return {.kernels = errors.size(),
          .median = Quantile(errors, 0.5),
          .worst = *std::max_element(errors.begin(), errors.end())};
}

std::vector<Regret> TopRegrets(const std::vector<PlanReport>& plans, size_t most) {
  std::vector<Regret> out;
  for (const PlanReport& plan : plans) {
    for (const KernelReport& kernel : plan.kernels) {
      AddRegret(plan, kernel, kernel.estimated_us, /*measured=*/false, &out);
    }
  }
  return Largest(std::move(out), most);
}

std::vector<Regret> SlowerThanParts(const std::vector<PlanReport>& plans, size_t most) {
  std::vector<Regret> out;
  for (const PlanReport& plan : plans) {
    if (plan.fusion != FusionMode::kFused) continue;
    for (const KernelReport& kernel : plan.kernels) {
      if (kernel.nodes < 2) continue;
      const bool measured = kernel.op_by_op_measured_us > 0;
      const double parts_us = measured ? kernel.op_by_op_measured_us : kernel.op_by_op_us;
      if (kernel.measured.median_us < kSlower * parts_us) continue;
      AddRegret(plan, kernel, parts_us, measured, &out);
    }
  }
  return Largest(std::move(out), most);
}

bool IsBaseline(const PlanReport& plan, const std::vector<PlanReport>& plans) {
  return std::any_of(plans.begin(), plans.end(), [&](const PlanReport& other) {
    return other.op_by_op_plan == plan.plan_key && other.op_by_op_plan != Digest();
  });
}

int64_t TrafficSavedBytes(const KernelReport& kernel) {
  return kernel.op_by_op_activation_bytes - kernel.activation_bytes;
}

double MeasuredUs(const KernelReport& kernel) {
  return kernel.measured.median_us * kernel.launches;
}

std::string MeasuredText(const LatencySummary& measured) {
  return measured.samples == 0 ? "-" : HumanMicroseconds(measured.median_us);
}

std::string FactorText(std::optional<double> factor) {
  return factor ? fmt::format("{:.2f} x", *factor) : "-";
}

std::string SpeedupText(const std::optional<Speedup>& speedup) {
  if (!speedup) return "-";
  return StrCat(speedup->measured ? "" : "~", FactorText(speedup->factor));
}

std::string OpByOpText(const std::optional<Speedup>& speedup) {
  if (!speedup) return "-";
  return StrCat(speedup->measured ? "" : "~", HumanMicroseconds(speedup->op_by_op_us));
}

std::string BytesText(int64_t bytes) {
  return bytes < 0 ? StrCat("-", HumanBytes(-bytes)) : HumanBytes(bytes);
}

std::string SavedPartText(int64_t bytes, int64_t whole) {
  if (whole <= 0) return "-";
  return HumanPercent(1 - static_cast<double>(bytes) / static_cast<double>(whole));
}

std::string ReportAge(const PlanReport& plan) {
  return HumanAge(ToMilliseconds(Clock::Real().UnixTime()) / 1e3 -
                  static_cast<double>(plan.last_report_unix_ms) / 1e3);
}

std::string LaunchesText(int64_t launches) {
  return StrCat(launches, launches == 1 ? " launch" : " launches");
}

}  // namespace fusion
