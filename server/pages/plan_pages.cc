#include "server/pages/plan_pages.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/text/human_numbers.h"
#include "core/base/text/text.h"
#include "core/base/utc_time.h"
#include "core/bundle/text.h"

namespace fusion {
namespace {

using Kind = PageTable::Kind;

// Rows of the table of groups.
constexpr size_t kGroupRows = 300;
constexpr size_t kGroupLabelCharacters = 160;

std::string TimeText(int64_t unix_ms) {
  return UtcTimeText(std::chrono::system_clock::time_point(std::chrono::milliseconds(unix_ms)));
}

std::string AgeText(int64_t now_unix_ms, int64_t unix_ms) {
  return StrCat(HumanAge(static_cast<double>(now_unix_ms - unix_ms) / 1e3), " ago");
}

std::string SavedText(int64_t fused_bytes, int64_t op_by_op_bytes) {
  if (op_by_op_bytes <= 0) return "-";
  return HumanPercent(1 - static_cast<double>(fused_bytes) / static_cast<double>(op_by_op_bytes));
}

std::map<Digest, const KernelReport*> ByKernel(const PlanView& view) {
  std::map<Digest, const KernelReport*> out;
  if (!view.report) return out;
  for (const KernelReport& kernel : view.report->kernels) out[kernel.kernel_key] = &kernel;
  return out;
}

// A run as measured; 0: unknown.
double MeasuredRunUs(const PlanView& view) {
  return view.report && view.report->runs.samples > 0 ? view.report->runs.median_us : 0;
}

Markup Figures(const PlanView& view) {
  const Plan& plan = view.stored->plan;
  const double measured = MeasuredRunUs(view);
  FigureList out;
  out.Add("Estimate of a run", Words(HumanMicroseconds(plan.totals.estimated_us)),
          Words(StrCat(HumanMicroseconds(plan.op_by_op.estimated_us), " with one kernel a node")));
  out.Add("Measured", Words(measured > 0 ? HumanMicroseconds(measured) : std::string("-")),
          measured > 0
              ? RatioMark(measured, plan.totals.estimated_us) +
                    Words(StrCat(" of the estimate, ", Count(view.report->runs.calls, "run")))
              : Words("no whole run was reported"));
  out.Add("Kernels", Words(StrCat(plan.totals.kernels)),
          Words(StrCat(plan.op_by_op.kernels, " with one a node")));
  out.Add("Traffic", Words(HumanBytes(plan.totals.activation_bytes)),
          Words(StrCat(SavedText(plan.totals.activation_bytes, plan.op_by_op.activation_bytes),
                       " saved, of ", HumanBytes(plan.op_by_op.activation_bytes))));
  return out.Show();
}

Markup Facts(const PlanView& view) {
  const Plan& plan = view.stored->plan;
  FactList out;
  out.Add("Model", Foreign(view.stored->model_name));
  out.Add("Target", Foreign(TargetText(plan)));
  out.Add("Fusion", StrCat(FusionName(plan.fusion), ", ", NumericsName(plan.numerics)));
  out.Add("Nodes", StrCat(plan.nodes));
  out.Add("Planned", TimeText(view.stored->created_unix_ms));
  out.Add("Tenant", Foreign(view.tenant));
  out.Add("Between kernels", HumanBytes(plan.arena_bytes));
  out.Add("Prepared weights", HumanBytes(plan.prepared_bytes));
  if (!plan.symbols.empty()) {
    out.Add("Open dims", StrCat(plan.symbols.size(), "; ",
                                Count(static_cast<int64_t>(plan.variants.size()), "variant")));
  }
  if (view.report) {
    out.Add("Measured on", Foreign(StrJoin(view.report->devices, ", ")));
    out.Add("Last report", TimeText(view.report->last_report_unix_ms));
  }
  return out.Show() + Paragraph(Words("Key: ") + Markup{"<code>"} +
                                Words(view.stored->key.ToHex()) + Markup{"</code>"});
}

Markup Picture(const PlanView& view) {
  if (!view.no_picture.empty()) {
    return Paragraph(Words("There is no picture: ") + Foreign(view.no_picture));
  }
  const std::string path = StrCat("/plans/", view.stored->key.ToHex(), ".svg");
  const Plan& plan = view.stored->plan;
  const std::string what =
      StrCat("The graph twice: on the left with one kernel a node (", plan.op_by_op.kernels,
             "), on the right with the groups of this plan (", plan.totals.kernels,
             "). The table of groups has the same as text.");
  return {
      StrCat("<figure><div class=\"picture\" role=\"region\" tabindex=\"0\" "
             "aria-label=\"Picture of the plan\"><img src=\"",
             path, "\" loading=\"lazy\" alt=\"", Words(what).html,
             "\"/></div>\n<figcaption>Left: one kernel a node. Right: this plan; what is in "
             "one box is one kernel, and edges between boxes go through memory. <a href=\"",
             path, "\">The picture by itself</a></figcaption></figure>\n")};
}

Markup Groups(const PlanView& view) {
  const Plan& plan = view.stored->plan;
  const std::map<Digest, const KernelReport*> measured = ByKernel(view);
  PageTable table("Groups in the order of the plan. Times are of one launch",
                  {{"Group", Kind::kName},
                   {"Ops", Kind::kText},
                   {"Estimate", Kind::kNumber},
                   {"Measured", Kind::kNumber},
                   {"Of estimate", Kind::kNumber},
                   {"One a node", Kind::kSpareNumber},
                   {"Nodes", Kind::kSpareNumber},
                   {"Kernel", Kind::kName},
                   {"Bound by", Kind::kSpareName},
                   {"Tiles", Kind::kSpareName}});
  for (size_t g = 0; g < std::min(plan.groups.size(), kGroupRows); ++g) {
    const PlanGroup& group = plan.groups[g];
    const auto at = static_cast<size_t>(group.kernel);
    const Digest& key = plan.kernels[at].key;
    const auto found = measured.find(key);
    const double us = found != measured.end() && found->second->measured.samples > 0
                          ? found->second->measured.median_us
                          : 0;
    const std::string hex = key.ToHex();
    const bool stored = at < view.kernel_stored.size() && view.kernel_stored[at];
    const Markup kernel =
        stored ? Link(StrCat("/kernels/", hex), Words(hex.substr(0, 8)))
               : Words(hex.substr(0, 8)) + Words(" ") + Badge(Mood::kQuiet, "not stored");
    const std::string ops =
        group.registered.empty() ? group.label : StrCat(group.registered, ": ", group.label);
    table.Add({Words(StrCat(g, group.kind == GroupKind::kPrepare ? ", once" : "")),
               Ops(ops, kGroupLabelCharacters), Words(HumanMicroseconds(group.estimate.time_us)),
               Words(us > 0 ? HumanMicroseconds(us) : std::string("-")),
               RatioMark(us, group.estimate.time_us),
               Words(HumanMicroseconds(group.op_by_op.estimated_us)),
               Words(StrCat(group.nodes.size())), kernel, Words(group.bound),
               Foreign(group.tiles)});
  }
  const Markup shown = table.Show("The plan launches no kernel.");
  if (plan.groups.size() <= kGroupRows) return shown;
  return shown +
         Paragraph(Words(StrCat("The first ", kGroupRows, " of ", plan.groups.size(), " groups.")));
}

Markup Fallbacks(const Plan& plan) {
  PageTable table("What this plan avoids, because a kernel failed",
                  {{"Where", Kind::kName}, {"Reason", Kind::kText}});
  for (size_t i = 0; i < std::min(plan.fallbacks.size(), kGroupRows); ++i) {
    const PlanFallback& fallback = plan.fallbacks[i];
    const std::string where = fallback.node == kNoVariant
                                  ? std::string("a variant for few elements")
                                  : StrCat("node ", fallback.node);
    table.Add({Words(where), Foreign(fallback.reason)});
  }
  for (const SkippedPass& pass : plan.skipped_passes) {
    table.Add({Words(StrCat("pass ", pass.pass)), Foreign(pass.reason)});
  }
  if (table.rows() == 0) return {};
  return PageSection("Avoided", table.Show(""));
}

}  // namespace

std::string PlaceText(const PlanPlace& place) {
  return StrCat(place.created_unix_ms, "-", place.key.ToHex());
}

std::optional<PlanPlace> ParsePlace(std::string_view text) {
  PlanPlace out;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out.created_unix_ms);
  if (error != std::errc() || out.created_unix_ms < 0 || rest == end || *rest != '-') {
    return std::nullopt;
  }
  if (!Digest::FromHex(std::string_view(rest + 1, static_cast<size_t>(end - rest - 1)), &out.key)) {
    return std::nullopt;
  }
  return out;
}

Markup PlansContent(const PlanPage& page, bool first, int64_t now_unix_ms) {
  PageTable table("Stored plans, newest first", {{"Plan", Kind::kName},
                                                 {"Model", Kind::kName},
                                                 {"Planned", Kind::kNumber},
                                                 {"Target", Kind::kSpareName},
                                                 {"Fusion", Kind::kSpareName},
                                                 {"Nodes", Kind::kSpareNumber},
                                                 {"Kernels", Kind::kNumber},
                                                 {"Compiled", Kind::kSpareNumber},
                                                 {"Estimate", Kind::kNumber},
                                                 {"Traffic saved", Kind::kSpareNumber},
                                                 {"Size", Kind::kSpareNumber},
                                                 {"Tenant", Kind::kSpareName}});
  for (const PlanSummary& plan : page.plans) {
    const std::string key = plan.plan_key.ToHex();
    Markup name = Link(StrCat("/plans/", key), Words(key.substr(0, 8)));
    if (plan.pinned) name = name + Words(" ") + Badge(Mood::kQuiet, "pinned");
    if (plan.fallbacks > 0) name = name + Words(" ") + Badge(Mood::kBad, "avoids failures");
    table.Add({name, Foreign(plan.model_name, 48),
               Words(AgeText(now_unix_ms, plan.created_unix_ms)),
               Foreign(StrCat(plan.target, ", ", Count(plan.threads, "thread"))),
               Words(FusionName(plan.fusion)), Words(StrCat(plan.nodes)),
               Words(StrCat(plan.totals.kernels)),
               Words(StrCat(plan.compiled_kernels, "/", plan.distinct_kernels)),
               Words(HumanMicroseconds(plan.totals.estimated_us)),
               Words(SavedText(plan.totals.activation_bytes, plan.op_by_op.activation_bytes)),
               Words(HumanBytes(plan.bytes)), Foreign(plan.tenant, 48)});
  }
  Markup links;
  if (!first) links = Link("/plans", Words("Newest plans"));
  if (page.last) {
    links = links + Link(StrCat("/plans?after=", PlaceText(*page.last)), Words("Older plans"));
  }
  const Markup shown =
      table.Show(page.last ? "None of these plans can be read." : "No plan is stored.");
  if (links.html.empty()) return shown;
  return shown + Markup{StrCat("<nav class=\"pages\" aria-label=\"Further plans\">", links.html,
                               "</nav>\n")};
}

Markup PlanContent(const PlanView& view) {
  const Plan& plan = view.stored->plan;
  return Figures(view) + Facts(view) + PageSection("Graph and groups", Picture(view)) +
         PageSection("Groups", Groups(view)) + Fallbacks(plan) +
         PageSection("Decisions", LedgerContent(plan));
}

}  // namespace fusion
