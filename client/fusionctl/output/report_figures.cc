#include "client/fusionctl/output/report_figures.h"

#include <fmt/format.h>

#include "client/fusionctl/output/terminal.h"
#include "core/base/text/text.h"
#include "core/wire/report.h"

namespace fusion {
namespace {

std::optional<double> Speedup(double op_by_op_us, double estimated_us) {
  if (op_by_op_us <= 0 || estimated_us <= 0) return std::nullopt;
  return op_by_op_us / estimated_us;
}

}  // namespace

std::string CutNote(const std::vector<PlanReport>& plans) {
  if (plans.size() < static_cast<size_t>(kMaxListedPlans)) return "";
  return StrCat("these are the ", kMaxListedPlans,
                " plans with the latest reports, a service gives no more at once");
}

std::optional<double> EstimatedSpeedup(const KernelReport& kernel) {
  return Speedup(kernel.op_by_op_us, kernel.estimated_us);
}

std::optional<double> EstimatedSpeedup(const PlanReport& plan) {
  return Speedup(plan.op_by_op.estimated_us, plan.totals.estimated_us);
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

std::string SpeedupText(std::optional<double> speedup) {
  return speedup ? fmt::format("{:.2f} x", *speedup) : "-";
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
