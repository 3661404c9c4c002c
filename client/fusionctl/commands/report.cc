#include "core/wire/report.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/exit_code.h"
#include "client/fusionctl/commands/commands.h"
#include "client/fusionctl/commands/report_post.h"
#include "client/fusionctl/input/data.h"
#include "client/fusionctl/input/model_file.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/report/accuracy_output.h"
#include "client/fusionctl/report/report_json.h"
#include "client/fusionctl/report/report_page.h"
#include "client/fusionctl/report/report_text.h"
#include "client/fusionctl/service/plan_subject.h"
#include "client/fusionctl/service/session.h"

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

/// Writes the file of --markdown; "-" is stdout.
absl::Status WriteMarkdown(const std::string& path, const std::vector<PlanReport>& plans) {
  const std::string text = ReportMarkdown(plans);
  if (path != "-") return WriteOptionFile("--markdown", path, text);
  PrintAsItIs(text);
  return absl::OkStatus();
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
  if (arguments.json && arguments.markdown == "-") {
    return BadInput(InvalidArgument("--markdown: -; expected a file, --json is written to stdout"));
  }
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
    if (!arguments.markdown.empty()) RETURN_IF_ERROR(WriteMarkdown(arguments.markdown, plans));
    if (arguments.json) {
      PrintJson(ReportJson(plans));
    } else if (arguments.markdown != "-") {
      const size_t terminal = StdoutColumns();
      Print(ReportText(plans, terminal > 0 ? terminal : kReportColumns));
    }
    return kExitOk;
  });
}

}  // namespace fusion
