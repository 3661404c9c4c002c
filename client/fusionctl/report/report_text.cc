#include "client/fusionctl/report/report_text.h"

#include <algorithm>

#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/report/report_figures.h"
#include "client/fusionctl/report/report_tables.h"
#include "core/base/text/cells.h"
#include "core/base/text/probed_name.h"
#include "core/base/text/text.h"
#include "core/base/text/utf8.h"
#include "core/base/text/wrapped_text.h"

namespace fusion {
namespace {

constexpr char kNothing[] =
    "no latencies were reported; fusionctl bench and the client library report them";
constexpr size_t kPlanDigits = 16;
constexpr size_t kRoom = 30;  // beside a name on its line

// --- text

std::string TableText(const ReportTable& table, size_t columns) {
  if (table.rows.empty()) return "";
  std::vector<Table::Column> shown;
  for (const ReportTable::Column& column : table.columns) {
    const bool last = &column == &table.columns.back();
    shown.push_back({column.heading,
                     !column.left ? Table::kRight
                     : last       ? Table::kCut
                                  : Table::kLeft,
                     column.spare});
  }
  Table text(std::move(shown));
  for (const std::vector<std::string>& row : table.rows) text.Add(row);
  return StrCat("\n", Bold(table.title), "\n", text.ToString(columns),
                table.note.empty() ? "" : StrCat(Wrapped(table.note, columns), "\n"));
}

std::string HeadText(const PlanReport& plan, size_t columns) {
  auto name = [&](const std::string& text) {
    return CutToCells(OneLine(text), std::max(columns, 2 * kRoom) - kRoom);
  };
  return StrCat(
      Bold(StrCat("plan ", plan.plan_key.ToHex().substr(0, kPlanDigits))),
      plan.model_name.empty() ? "" : StrCat(" of ", Bold(name(plan.model_name))), " for ",
      OneLine(DeviceNameText(plan.target)), ", ", Count(plan.threads, "thread"),
      plan.fusion == FusionMode::kOpByOp ? ", op by op" : "", ", last report ", ReportAge(plan),
      " ago\n",
      plan.devices.empty()
          ? ""
          : StrCat("measured on ",
                   StrJoin(plan.devices, ", ",
                           [&](const std::string& device) { return Quote(name(device)); }),
                   "\n"));
}

std::string PlanText(const PlanReport& plan, size_t columns) {
  std::string head = HeadText(plan, columns);
  for (const std::string& sentence : ReportSentences(plan)) StrAppend(&head, sentence + "\n");
  return StrCat(Wrapped(head, columns), TableText(KernelTable(plan), columns),
                TableText(SectionTable(plan), columns));
}

// --- Markdown

std::string TableMarkdown(const ReportTable& table) {
  if (table.rows.empty()) return "";
  std::string out = StrCat("\n### ", EscapeMarkdown(table.title), "\n\n|");
  for (const ReportTable::Column& column : table.columns) {
    StrAppend(&out, StrCat(" ", EscapeMarkdown(column.heading), " |"));
  }
  out += "\n|";
  for (const ReportTable::Column& column : table.columns) {
    out += column.left ? " :--- |" : " ---: |";
  }
  out += "\n";
  for (const std::vector<std::string>& row : table.rows) {
    out += "|";
    for (const std::string& cell : row) StrAppend(&out, StrCat(" ", EscapeMarkdown(cell), " |"));
    out += "\n";
  }
  return StrCat(out, table.note.empty() ? "" : StrCat("\n", EscapeMarkdown(table.note), "\n"));
}

std::string PlanMarkdown(const PlanReport& plan) {
  std::string out = StrCat("\n## Plan ", plan.plan_key.ToHex().substr(0, kPlanDigits));
  if (!plan.model_name.empty()) StrAppend(&out, StrCat(" of ", EscapeMarkdown(plan.model_name)));
  StrAppend(&out, StrCat("\n\nFor ", EscapeMarkdown(DeviceNameText(plan.target)), ", ",
                         Count(plan.threads, "thread"),
                         plan.fusion == FusionMode::kOpByOp ? ", op by op" : "", "; last report ",
                         ReportAge(plan), " before this was written.\n"));
  if (!plan.devices.empty()) {
    StrAppend(&out, StrCat("Measured on ", StrJoin(plan.devices, ", ", EscapeMarkdown), ".\n"));
  }
  out += "\n";
  for (const std::string& sentence : ReportSentences(plan)) {
    StrAppend(&out, StrCat("- ", EscapeMarkdown(sentence), "\n"));
  }
  return StrCat(out, TableMarkdown(KernelTable(plan)), TableMarkdown(SectionTable(plan)));
}

}  // namespace

std::string ReportText(const std::vector<PlanReport>& plans, size_t columns) {
  if (plans.empty()) return StrCat(kNothing, "\n");
  std::string out = StrJoin(ShownPlans(plans), "\n",
                            [&](const PlanReport& plan) { return PlanText(plan, columns); });
  for (const ReportTable& table : {TopRegretTable(plans), SlowerThanPartsTable(plans)}) {
    out += TableText(table, columns);
  }
  const std::string note = CutNote(plans);
  return StrCat(out, note.empty() ? "" : StrCat("\n", Wrapped(note, columns), "\n"));
}

std::string ReportMarkdown(const std::vector<PlanReport>& plans) {
  if (plans.empty()) return StrCat("# Reported latencies\n\n", kNothing, "\n");
  std::string out = "# Reported latencies\n";
  for (const PlanReport& plan : ShownPlans(plans)) out += PlanMarkdown(plan);
  std::string regrets;
  for (const ReportTable& table : {TopRegretTable(plans), SlowerThanPartsTable(plans)}) {
    regrets += TableMarkdown(table);
  }
  if (!regrets.empty()) StrAppend(&out, StrCat("\n## What was slower than promised\n", regrets));
  const std::string note = CutNote(plans);
  return StrCat(out, note.empty() ? "" : StrCat("\n", note, "\n"));
}

std::string EscapeMarkdown(std::string_view text) {
  std::string out;
  for (const char c : OneLine(text)) {
    if (std::string_view("\\`*_[]<>|~&$").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace fusion
