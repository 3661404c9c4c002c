#include "core/wire/report.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/commands/report_post.h"
#include "client/fusionctl/input/data.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/output/accuracy_output.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/report_figures.h"
#include "client/fusionctl/output/report_page.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/service/plan_subject.h"
#include "client/fusionctl/service/session.h"
#include "core/base/text/probed_name.h"

namespace fusion {
namespace {

/// Which plan is meant; none: every one with reports.
absl::StatusOr<std::optional<Digest>> Subject(const Arguments& arguments, const ModelFile* model,
                                              const Client& client, Progress* progress) {
  if (arguments.subject.empty()) return std::nullopt;
  if (model != nullptr) {
    PlanOptions options = arguments.options;
    if (!arguments.data.empty()) {
      ASSIGN_OR_RETURN(std::vector<RunData> sets, LoadData(arguments.data, *model));
      options = BindToData(options, sets.front().inputs, *model);
    }
    FusionRequest request = model->Request(arguments, options);
    request.mode = PlanMode::kPlanOnly;
    ASSIGN_OR_RETURN(FusionReply reply, PlanWithProgress(client, request, progress));
    return reply.plan_key;
  }
  return FindStoredPlan(arguments.subject, client);
}

Json SummaryJson(const LatencySummary& s) {
  return {{"calls", s.calls},   {"samples", s.samples}, {"median_us", s.median_us},
          {"p10_us", s.p10_us}, {"p90_us", s.p90_us},   {"min_us", s.min_us}};
}

Json PlanReportJson(const PlanReport& plan) {
  Json kernels = Json::array();
  for (const KernelReport& k : plan.kernels) {
    kernels.push_back({{"kernel_key", k.kernel_key.ToHex()},
                       {"label", k.label},
                       {"launches", k.launches},
                       {"nodes", k.nodes},
                       {"measured", SummaryJson(k.measured)},
                       {"estimated_us", k.estimated_us},
                       {"op_by_op_us", k.op_by_op_us},
                       {"estimated_speedup", EstimatedSpeedup(k).value_or(0)},
                       {"activation_bytes", k.activation_bytes},
                       {"op_by_op_activation_bytes", k.op_by_op_activation_bytes},
                       {"traffic_saved_bytes", TrafficSavedBytes(k)}});
  }
  return {{"plan_key", plan.plan_key.ToHex()},
          {"model", plan.model_name},
          {"target", plan.target},
          {"threads", plan.threads},
          {"devices", plan.devices},
          {"last_report_unix_ms", plan.last_report_unix_ms},
          {"runs", SummaryJson(plan.runs)},
          {"totals", TotalsJson(plan.totals)},
          {"op_by_op", TotalsJson(plan.op_by_op)},
          {"kernels", kernels}};
}

std::string PlanReportText(const PlanReport& plan) {
  Table table({{"kernel"},
               {"real latency", Table::kRight},
               {"estimate", Table::kRight},
               {"estimated speed-up", Table::kRight, /*spare=*/1},
               {"calls", Table::kRight, /*spare=*/2},
               {"traffic saved", Table::kRight},
               {"", Table::kRight},
               {"fused output", Table::kCut}});
  for (const KernelReport& k : plan.kernels) {
    table.Add({k.kernel_key.ToHex().substr(0, 8), MeasuredText(k.measured),
               HumanMicroseconds(k.estimated_us), SpeedupText(EstimatedSpeedup(k)),
               StrCat(k.measured.calls), BytesText(TrafficSavedBytes(k)),
               SavedPartText(k.activation_bytes, k.op_by_op_activation_bytes), k.label});
  }
  const PlanTotals& a = plan.totals;
  const PlanTotals& b = plan.op_by_op;
  table.Add({"total", MeasuredText(plan.runs), HumanMicroseconds(a.estimated_us),
             SpeedupText(EstimatedSpeedup(plan)), StrCat(plan.runs.calls),
             BytesText(b.activation_bytes - a.activation_bytes),
             SavedPartText(a.activation_bytes, b.activation_bytes),
             StrCat("one run of ", LaunchesText(a.launches))});
  return StrCat(
      Bold(StrCat("plan ", plan.plan_key.ToHex().substr(0, 16))),
      plan.model_name.empty() ? "" : StrCat(" of ", Bold(plan.model_name)), " for ",
      DeviceNameText(plan.target), ", ", Count(plan.threads, "thread"), ", last report ",
      ReportAge(plan), " ago\n",
      plan.devices.empty() ? "" : StrCat("measured on ", StrJoin(plan.devices, ", ", Quote), "\n"),
      "\n", table.ToString());
}

std::string Text(const std::vector<PlanReport>& plans) {
  if (plans.empty()) {
    return "no latencies were reported; fusionctl bench and the client library report them\n";
  }
  std::string note = CutNote(plans);
  return StrCat(StrJoin(plans, "\n", PlanReportText), note.empty() ? "" : StrCat("\n", note, "\n"));
}

absl::StatusOr<ExitCode> PrintAccuracy(const Arguments& arguments, const Client& client,
                                       Progress* progress) {
  ASSIGN_OR_RETURN(std::vector<DeviceAccuracy> devices, client.GetAccuracy());
  progress->Clear();
  if (!arguments.json) {
    Print(AccuracyText(devices));
    return kExitOk;
  }
  Json shown = Json::array();
  for (const DeviceAccuracy& device : devices) shown.push_back(AccuracyJson(device));
  PrintJson(Json{{"devices", shown}});
  return kExitOk;
}

}  // namespace

absl::StatusOr<ExitCode> RunReport(const Arguments& arguments, Progress* progress) {
  if (!arguments.post.empty()) return PostReports(arguments, progress);
  std::unique_ptr<ModelFile> model;
  if (!arguments.subject.empty()) {
    ASSIGN_OR_RETURN(bool is_file, IsFileSubject(arguments.subject, arguments.model_option));
    if (is_file) {
      ASSIGN_OR_RETURN(model, ModelFile::Load(arguments.subject, arguments));
    }
  }
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    if (arguments.accuracy) return PrintAccuracy(arguments, client, progress);
    ASSIGN_OR_RETURN(std::optional<Digest> plan, Subject(arguments, model.get(), client, progress));
    ASSIGN_OR_RETURN(std::vector<PlanReport> plans, client.GetReport(plan, kMaxListedPlans));
    progress->Clear();
    if (!arguments.html.empty()) {
      RETURN_IF_ERROR(WriteOptionFile("--html", arguments.html, ReportPage(plans)));
    }
    if (arguments.json) {
      Json reports = Json::array();
      for (const PlanReport& report : plans) reports.push_back(PlanReportJson(report));
      PrintJson(Json{{"plans", reports}, {"may_be_more", !CutNote(plans).empty()}});
    } else {
      Print(Text(plans));
    }
    return kExitOk;
  });
}

}  // namespace fusion
