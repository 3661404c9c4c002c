#include "client/fusionctl/report/report_page.h"

#include <algorithm>
#include <set>

#include "client/fusionctl/output/bar_chart.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/report/report_figures.h"
#include "client/fusionctl/report/report_tables.h"
#include "core/base/text/probed_name.h"
#include "core/base/text/text.h"
#include "core/view/html.h"

namespace fusion {
namespace {

// Maximum rows of a chart; the kernels that take the least share the last row.
constexpr size_t kChartRows = 24;

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en" xmlns="http://www.w3.org/1999/xhtml">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"/>
<title>fusionctl report</title>
<style>
:root { color-scheme: light dark; --text: #1c2430; --quiet: #5a6573; --back: #ffffff; --line: #d5dae1;
  --first: #2563c9; --second: #9fb4d0; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e9f0; --quiet: #9aa6b4; --back: #14181e; --line: #333c48; --first: #6aa2ff; --second: #4a5b73; }
}
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; box-sizing: border-box; color: var(--text); background: var(--back);
  font: 15px/1.5 system-ui, sans-serif; }
a { color: var(--first); } h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
p.headline { color: var(--text); font-size: 1.05rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; overflow-wrap: anywhere; } h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
p { color: var(--quiet); margin: .3rem 0; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; overflow-x: auto; } figcaption { font-weight: 600; margin-bottom: .6rem; }
svg { max-width: 100%; height: auto; } svg text { font: 11px ui-monospace, monospace; fill: var(--text); }
.s0 { fill: var(--first); } .s1 { fill: var(--second); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { color: var(--quiet); font-weight: 600; white-space: normal; vertical-align: bottom; } td.name, th.name { text-align: left; }
td { vertical-align: top; } td.key, th.key { text-align: left; }
td.name { white-space: normal; overflow-wrap: anywhere; min-width: 14rem; } tfoot td { font-weight: 600; }
@media (max-width: 48rem) { svg { max-width: none; } th, td { padding: .3rem .4rem; } }
</style>
</head>
<body>
)";

/// One row of the charts: a kernel, or several fast ones. Figures are per inference.
struct Entry {
  std::string label;
  double real_us = 0;  // 0: not measured
  double estimated_us = 0;
  int64_t before_bytes = 0;
  int64_t after_bytes = 0;
};

std::vector<Entry> Entries(const PlanReport& plan) {
  std::vector<Entry> all;
  for (const KernelReport& k : plan.kernels) {
    all.push_back({StrCat(k.label, k.launches > 1 ? StrCat("  (", k.launches, " launches)") : ""),
                   MeasuredUs(k), k.estimated_us * k.launches, k.op_by_op_activation_bytes,
                   k.activation_bytes});
  }
  std::stable_sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.real_us, a.estimated_us) > std::pair(b.real_us, b.estimated_us);
  });
  if (all.size() <= kChartRows) return all;
  Entry rest{.label = StrCat("the other ", all.size() - kChartRows + 1, " kernels")};
  for (size_t i = kChartRows - 1; i < all.size(); ++i) {
    rest.real_us += all[i].real_us;
    rest.estimated_us += all[i].estimated_us;
    rest.before_bytes += all[i].before_bytes;
    rest.after_bytes += all[i].after_bytes;
  }
  all.resize(kChartRows - 1);
  all.push_back(std::move(rest));
  return all;
}

std::string Figure(const BarChart& chart) {
  return StrCat("<figure><figcaption>", EscapeHtml(chart.title), "</figcaption>\n", ToSvg(chart),
                "</figure>\n");
}

std::string Charts(const PlanReport& plan) {
  std::vector<Entry> entries = Entries(plan);
  double real_us = 0;
  for (const Entry& e : entries) real_us += e.real_us;
  BarChart time{.title = "Time of an inference by kernel", .series = {"real", "estimated"}};
  BarChart traffic{.title = "Activations moved by an inference", .series = {"fused", "op by op"}};
  BarChart share{.title = "Share of the real time", .series = {"share"}};
  auto bytes = [](int64_t n) { return BarChart::Bar{static_cast<double>(n), HumanBytes(n)}; };
  traffic.rows.push_back(
      {"all kernels",
       {bytes(plan.totals.activation_bytes), bytes(plan.op_by_op.activation_bytes)}});
  for (const Entry& e : entries) {
    std::string real = e.real_us > 0 ? HumanMicroseconds(e.real_us) : "not measured";
    time.rows.push_back(
        {e.label, {{e.real_us, real}, {e.estimated_us, HumanMicroseconds(e.estimated_us)}}});
    traffic.rows.push_back({e.label, {bytes(e.after_bytes), bytes(e.before_bytes)}});
    if (e.real_us <= 0) continue;
    share.rows.push_back({e.label, {{e.real_us / real_us, HumanPercent(e.real_us / real_us)}}});
  }
  std::string out = Figure(time);
  if (!share.rows.empty()) out += Figure(share);
  return out + Figure(traffic);
}

// Of a cell: the last column may be long, other names are short.
std::string ClassOf(const ReportTable& table, size_t column) {
  if (!table.columns[column].left) return "";
  return column + 1 == table.columns.size() ? " class=\"name\"" : " class=\"key\"";
}

// Lists of ops break behind a plus.
std::string NameText(std::string_view name) {
  std::string out;
  for (const char c : ForeignText(name)) {
    out += c;
    if (c == '+') out += "<wbr/>";
  }
  return out;
}

std::string PageRow(const ReportTable& table, const std::vector<std::string>& cells) {
  std::string out = "<tr>";
  for (size_t c = 0; c < cells.size(); ++c) {
    out += StrCat("<td", ClassOf(table, c), ">",
                  table.columns[c].left ? NameText(cells[c]) : EscapeHtml(cells[c]), "</td>");
  }
  return out + "</tr>\n";
}

// Nothing for a table without rows. `level`: of its heading.
std::string PageTable(const ReportTable& table, int level) {
  if (table.rows.empty()) return "";
  std::string out = StrCat("<h", level, ">", EscapeHtml(table.title), "</h", level,
                           ">\n<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>");
  for (size_t c = 0; c < table.columns.size(); ++c) {
    out += StrCat("<th scope=\"col\"", ClassOf(table, c), ">", EscapeHtml(table.columns[c].heading),
                  "</th>");
  }
  out += "</tr></thead>\n<tbody>\n";
  const size_t totals = table.rows.size() - table.totals;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (r == totals) out += "</tbody>\n<tfoot>\n";
    out += PageRow(table, table.rows[r]);
  }
  out += table.totals > 0 ? "</tfoot>\n</table></div>\n" : "</tbody>\n</table></div>\n";
  return StrCat(out, table.note.empty() ? "" : StrCat("<p>", EscapeHtml(table.note), "</p>\n"));
}

// The display name of the plan, if it is known.
std::string NameOf(const PlanReport& plan) {
  return plan.model_name.empty() ? "" : ForeignText(plan.model_name);
}

std::string ShortKey(const PlanReport& plan) { return plan.plan_key.ToHex().substr(0, 16); }

// The first sentence stands out.
std::string SentencesOf(const PlanReport& plan) {
  std::string out;
  for (const std::string& sentence : ReportSentences(plan)) {
    out += StrCat(out.empty() ? "<p class=\"headline\">" : "<p>", EscapeHtml(sentence), "</p>\n");
  }
  return out;
}

std::string PlanPart(const PlanReport& plan) {
  const std::string name = NameOf(plan);
  std::string out =
      StrCat("<section>\n<h2 id=\"plan-", plan.plan_key.ToHex(), "\">",
             name.empty() ? "" : StrCat(name, ": "), "plan ", ShortKey(plan), "</h2>\n",
             SentencesOf(plan), "<p>for ", ForeignText(DeviceNameText(plan.target)), ", ",
             plan.threads, plan.threads == 1 ? " thread" : " threads", "; last report ",
             ReportAge(plan), " before this page was made</p>\n");
  if (!plan.devices.empty()) {
    out += StrCat("<p>measured on ", StrJoin(plan.devices, ", ", ForeignText), "</p>\n");
  }
  if (plan.kernels.empty()) return out + "<p>The plan launches no kernel.</p>\n</section>\n";
  return StrCat(out, PageTable(SectionTable(plan), 3), Charts(plan),
                PageTable(KernelTable(plan), 3), "</section>\n");
}

std::string Headline(const std::vector<PlanReport>& plans) {
  if (plans.empty()) return "<h1>Reported latencies</h1>\n<p>No latencies were reported.</p>\n";
  if (plans.size() == 1) {
    const std::string name = NameOf(plans[0]);
    return StrCat("<h1>Reported latencies of ", name.empty() ? "one plan" : name, "</h1>\n");
  }
  std::set<std::string> models;
  int64_t runs = 0;
  for (const PlanReport& plan : plans) {
    if (!plan.model_name.empty()) models.insert(plan.model_name);
    runs += plan.runs.calls;
  }
  return StrCat(
      "<h1>Reported latencies of ", plans.size(), " plans</h1>\n<p class=\"headline\">",
      models.empty() ? "" : StrCat(models.size(), models.size() == 1 ? " model, " : " models, "),
      runs, runs == 1 ? " run" : " runs", " reported.</p>\n");
}

// Every plan in a row, the latest report first, with a link to its section.
std::string Index(const std::vector<PlanReport>& plans) {
  std::string out = "<nav class=\"wide\"><table>\n<thead><tr>";
  for (const char* heading : {"plan", "measured", "estimate", "op by op", "speed-up",
                              "traffic saved", "kernels", "last report"}) {
    out += StrCat("<th scope=\"col\">", heading, "</th>");
  }
  out += "<th scope=\"col\" class=\"name\">model</th></tr></thead>\n<tbody>\n";
  for (const PlanReport& plan : plans) {
    out += StrCat("<tr><td><a href=\"#plan-", plan.plan_key.ToHex(), "\">",
                  plan.plan_key.ToHex().substr(0, 8), "</a></td>");
    for (const std::string& cell :
         {MeasuredText(plan.runs), HumanMicroseconds(plan.totals.estimated_us),
          OpByOpText(SpeedupOf(plan)), SpeedupText(SpeedupOf(plan)),
          SavedPartText(plan.totals.activation_bytes, plan.op_by_op.activation_bytes),
          StrCat(plan.kernels.size()), ReportAge(plan)}) {
      out += StrCat("<td>", EscapeHtml(cell), "</td>");
    }
    const std::string name = NameOf(plan);
    out += StrCat("<td class=\"name\">", name.empty() ? "-" : name, "</td></tr>\n");
  }
  return out + "</tbody>\n</table></nav>\n";
}

}  // namespace

std::string ReportPage(const std::vector<PlanReport>& plans) {
  std::string out = StrCat(kHead, Headline(ShownPlans(plans)));
  if (std::string note = CutNote(plans); !note.empty()) out += StrCat("<p>", note, ".</p>\n");
  const std::vector<PlanReport> shown = ShownPlans(plans);
  if (shown.size() > 1) out += Index(shown);
  out += PageTable(TopRegretTable(plans), 2);
  out += PageTable(SlowerThanPartsTable(plans), 2);
  for (const PlanReport& plan : shown) out += PlanPart(plan);
  return out + "</body>\n</html>\n";
}

}  // namespace fusion
