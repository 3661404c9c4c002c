#include "client/fusionctl/report/report_json.h"

#include <nlohmann/json.hpp>

#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/report/report_figures.h"
#include "core/bundle/text.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// Of --json; the other formats show fewer.
constexpr size_t kJsonRegrets = 100;

Json OrNullJson(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
// Of a measured time.
Json UsJson(double us) { return us > 0 ? Json(us) : Json(); }

Json SummaryJson(const LatencySummary& s) {
  return {{"calls", s.calls},   {"samples", s.samples}, {"median_us", s.median_us},
          {"p10_us", s.p10_us}, {"p90_us", s.p90_us},   {"min_us", s.min_us}};
}

Json SpeedupJson(const std::optional<Speedup>& speedup) {
  if (!speedup) return {};
  return {{"factor", speedup->factor},
          {"measured", speedup->measured},
          {"op_by_op_us", speedup->op_by_op_us},
          {"fused_us", speedup->fused_us}};
}

Json SectionsJson(SectionSet sections) {
  Json out = Json::array();
  for (const Section one : kAllSections) {
    if ((sections & one) != 0) out.push_back(SectionNames(one));
  }
  return out;
}

Json KernelJson(const KernelReport& k) {
  return {{"kernel_key", k.kernel_key.ToHex()},
          {"label", k.label},
          {"launches", k.launches},
          {"nodes", k.nodes},
          {"sections", SectionsJson(k.sections)},
          {"measured", SummaryJson(k.measured)},
          {"estimated_us", k.estimated_us},
          {"measured_by_estimate", OrNullJson(MeasuredByEstimate(k))},
          {"op_by_op_us", k.op_by_op_us},
          {"op_by_op_measured_us", UsJson(k.op_by_op_measured_us)},
          {"estimated_speedup", EstimatedSpeedup(k).value_or(0)},
          {"speedup", SpeedupJson(SpeedupOf(k))},
          {"activation_bytes", k.activation_bytes},
          {"op_by_op_activation_bytes", k.op_by_op_activation_bytes},
          {"traffic_saved_bytes", TrafficSavedBytes(k)}};
}

Json SectionJson(const SectionReport& s) {
  return {{"sections", SectionsJson(s.sections)},
          {"fused_kernels", s.launches},
          {"op_by_op_kernels", s.op_by_op_kernels},
          {"measured_us", UsJson(s.measured_us)},
          {"estimated_us", s.estimated_us},
          {"op_by_op_measured_us", UsJson(s.op_by_op_measured_us)},
          {"op_by_op_us", s.op_by_op_us},
          {"speedup", SpeedupJson(SpeedupOf(s))},
          {"activation_bytes", s.activation_bytes},
          {"op_by_op_activation_bytes", s.op_by_op_activation_bytes},
          {"traffic_saved_bytes", s.op_by_op_activation_bytes - s.activation_bytes}};
}

Json BytesJson(int64_t bytes) { return bytes > 0 ? Json(bytes) : Json(); }

Json PlanJson(const PlanReport& plan) {
  Json kernels = Json::array();
  for (const KernelReport& kernel : plan.kernels) kernels.push_back(KernelJson(kernel));
  Json sections = Json::array();
  for (const SectionReport& section : plan.sections) sections.push_back(SectionJson(section));
  const PlanAccuracy accuracy = AccuracyOf(plan);
  const bool has_baseline = plan.op_by_op_plan != Digest();
  const bool has_peaks = plan.peak_bytes > 0 && plan.op_by_op_peak_bytes > 0;
  return {
      {"plan_key", plan.plan_key.ToHex()},
      {"model", plan.model_name},
      {"target", plan.target},
      {"threads", plan.threads},
      {"fusion", FusionName(plan.fusion)},
      {"devices", plan.devices},
      {"last_report_unix_ms", plan.last_report_unix_ms},
      {"runs", SummaryJson(plan.runs)},
      {"measured_by_estimate", OrNullJson(MeasuredByEstimate(plan))},
      {"totals", TotalsJson(plan.totals)},
      {"op_by_op", TotalsJson(plan.op_by_op)},
      {"op_by_op_plan", has_baseline ? Json(plan.op_by_op_plan.ToHex()) : Json()},
      {"op_by_op_runs", has_baseline ? SummaryJson(plan.op_by_op_runs) : Json()},
      {"speedup", SpeedupJson(SpeedupOf(plan))},
      {"peak_bytes", BytesJson(plan.peak_bytes)},
      {"op_by_op_peak_bytes", BytesJson(plan.op_by_op_peak_bytes)},
      {"peak_saved_bytes", has_peaks ? Json(plan.op_by_op_peak_bytes - plan.peak_bytes) : Json()},
      {"accuracy", accuracy.kernels == 0 ? Json()
                                         : Json{{"kernels", accuracy.kernels},
                                                {"median_abs_ln", accuracy.median},
                                                {"worst_abs_ln", accuracy.worst}}},
      {"sections", sections},
      {"kernels", kernels}};
}

Json RegretsJson(const std::vector<Regret>& regrets, const char* promised) {
  Json out = Json::array();
  for (const Regret& regret : regrets) {
    out.push_back({{"plan_key", regret.plan->plan_key.ToHex()},
                   {"model", regret.plan->model_name},
                   {"kernel_key", regret.kernel->kernel_key.ToHex()},
                   {"label", regret.kernel->label},
                   {"median_us", regret.kernel->measured.median_us},
                   {promised, regret.promised_us},
                   {"promised_is_measured", regret.measured},
                   {"calls", regret.kernel->measured.calls},
                   {"lost_us", regret.lost_us}});
  }
  return out;
}

}  // namespace

Json ReportJson(const std::vector<PlanReport>& plans) {
  Json shown = Json::array();
  for (const PlanReport& plan : plans) shown.push_back(PlanJson(plan));
  return {{"plans", shown},
          {"top_regrets", RegretsJson(TopRegrets(plans, kJsonRegrets), "estimated_us")},
          {"slower_than_parts", RegretsJson(SlowerThanParts(plans, kJsonRegrets), "op_by_op_us")},
          {"may_be_more", !CutNote(plans).empty()}};
}

}  // namespace fusion
