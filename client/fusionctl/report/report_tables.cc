#include "client/fusionctl/report/report_tables.h"

#include <algorithm>

#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/report/report_figures.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

constexpr size_t kKeyDigits = 8;
constexpr char kEstimatedNote[] = "~: estimated, not measured";

std::string ShortKey(const Digest& key) { return key.ToHex().substr(0, kKeyDigits); }

std::string RatioText(const std::optional<double>& ratio) {
  return ratio ? ShortNumber(*ratio) : "-";
}

// A launch may compute whole layers.
std::string SectionText(SectionSet sections) {
  return sections == kEverySection ? "QKV to FFN in one" : SectionNames(sections);
}

std::string KernelsText(int64_t apart, int64_t fused) { return StrCat(apart, " -> ", fused); }

bool AnyEstimated(const PlanReport& plan) {
  auto estimated = [](const auto& of) {
    const auto speedup = SpeedupOf(of);
    return speedup && !speedup->measured;
  };
  return estimated(plan) || std::any_of(plan.kernels.begin(), plan.kernels.end(), estimated) ||
         std::any_of(plan.sections.begin(), plan.sections.end(), estimated);
}

std::string OpByOpSentence(const PlanReport& plan) {
  const auto speedup = SpeedupOf(plan);
  if (!speedup) return "";
  const std::string times =
      StrCat("Op by op: ", HumanMicroseconds(speedup->op_by_op_us), " instead of ",
             HumanMicroseconds(speedup->fused_us), ", ", FactorText(speedup->factor));
  if (!speedup->measured) return StrCat(times, ", both estimated.");
  return StrCat(times, ", both measured (plan ", ShortKey(plan.op_by_op_plan), ", ",
                Count(plan.op_by_op_runs.calls, "run"), ").");
}

// " (93.1 % saved)", or how much more it is.
std::string SavedText(int64_t bytes, int64_t whole) {
  return bytes > whole ? StrCat(" (", BytesText(bytes - whole), " more)")
                       : StrCat(" (", SavedPartText(bytes, whole), " saved)");
}

std::string MemorySentence(const PlanReport& plan) {
  const int64_t moved = plan.totals.activation_bytes;
  const int64_t apart = plan.op_by_op.activation_bytes;
  std::string out = StrCat("Activations moved: ", BytesText(moved), " instead of ",
                           BytesText(apart), SavedText(moved, apart), ".");
  if (plan.peak_bytes <= 0 || plan.op_by_op_peak_bytes <= 0) return out;
  return StrCat(out, " Peak memory: ", BytesText(plan.peak_bytes), " instead of ",
                plan.op_by_op_plan == Digest() ? "about " : "", BytesText(plan.op_by_op_peak_bytes),
                SavedText(plan.peak_bytes, plan.op_by_op_peak_bytes), ".");
}

std::string AccuracySentence(const PlanReport& plan) {
  const PlanAccuracy accuracy = AccuracyOf(plan);
  if (accuracy.kernels == 0) return "";
  return StrCat("Accuracy: |ln(measured / estimated)| of ", accuracy.kernels, " of ",
                Count(static_cast<int64_t>(plan.kernels.size()), "kernel"), ": median ",
                ShortNumber(accuracy.median), ", worst ", ShortNumber(accuracy.worst), ".");
}

ReportTable RegretTable(const std::vector<Regret>& regrets, std::string title,
                        std::string promised) {
  ReportTable out{.title = std::move(title),
                  .columns = {{"plan", true},
                              {"kernel", true, /*spare=*/1},
                              {"measured"},
                              {std::move(promised)},
                              {"calls", false, /*spare=*/2},
                              {"lost in all"},
                              {"fused output", true}},
                  .rows = {},
                  .note = ""};
  for (const Regret& regret : regrets) {
    const KernelReport& kernel = *regret.kernel;
    const bool estimated_parts = !regret.measured && regret.promised_us != kernel.estimated_us;
    if (estimated_parts) out.note = kEstimatedNote;
    out.rows.push_back({ShortKey(regret.plan->plan_key), ShortKey(kernel.kernel_key),
                        MeasuredText(kernel.measured),
                        StrCat(estimated_parts ? "~" : "", HumanMicroseconds(regret.promised_us)),
                        StrCat(kernel.measured.calls), HumanMicroseconds(regret.lost_us),
                        kernel.label});
  }
  return out;
}

}  // namespace

std::vector<std::string> ReportSentences(const PlanReport& plan) {
  std::vector<std::string> out;
  const std::string estimate = HumanMicroseconds(plan.totals.estimated_us);
  const auto ratio = MeasuredByEstimate(plan);
  out.push_back(ratio ? StrCat("A run takes ", MeasuredText(plan.runs), ", estimated ", estimate,
                               " (measured / estimated ", ShortNumber(*ratio), ").")
                      : StrCat("No whole run was measured, estimated ", estimate, "."));
  for (std::string more : {OpByOpSentence(plan), MemorySentence(plan), AccuracySentence(plan)}) {
    if (!more.empty()) out.push_back(std::move(more));
  }
  return out;
}

ReportTable KernelTable(const PlanReport& plan) {
  ReportTable out{.title = "Kernels",
                  .columns = {{"kernel", true},
                              {"measured"},
                              {"estimate"},
                              {"ratio", false, /*spare=*/1},
                              {"op by op"},
                              {"speed-up"},
                              {"calls", false, /*spare=*/3},
                              {"traffic saved", false, /*spare=*/2},
                              {"fused output", true}},
                  .rows = {},
                  .totals = 1,
                  .note = AnyEstimated(plan) ? kEstimatedNote : ""};
  for (const KernelReport& k : plan.kernels) {
    const auto speedup = SpeedupOf(k);
    out.rows.push_back({ShortKey(k.kernel_key), MeasuredText(k.measured),
                        HumanMicroseconds(k.estimated_us), RatioText(MeasuredByEstimate(k)),
                        OpByOpText(speedup), SpeedupText(speedup), StrCat(k.measured.calls),
                        BytesText(TrafficSavedBytes(k)), k.label});
  }
  const auto speedup = SpeedupOf(plan);
  out.rows.push_back({"total", MeasuredText(plan.runs), HumanMicroseconds(plan.totals.estimated_us),
                      RatioText(MeasuredByEstimate(plan)), OpByOpText(speedup),
                      SpeedupText(speedup), StrCat(plan.runs.calls),
                      BytesText(plan.op_by_op.activation_bytes - plan.totals.activation_bytes),
                      StrCat("one run of ", LaunchesText(plan.totals.launches))});
  return out;
}

ReportTable SectionTable(const PlanReport& plan) {
  ReportTable out{.title = "Parts of transformer layers",
                  .columns = {{"part", true},
                              {"kernels"},
                              {"measured"},
                              {"op by op"},
                              {"speed-up"},
                              {"traffic saved", false, /*spare=*/2},
                              {"part saved", false, /*spare=*/1}},
                  .rows = {},
                  .totals = 1,
                  .note = ""};
  if (plan.sections.empty()) return out;
  // In the order of a layer.
  std::vector<SectionReport> sections = plan.sections;
  std::stable_sort(
      sections.begin(), sections.end(), [](const SectionReport& a, const SectionReport& b) {
        auto first = [](SectionSet s) { return s == 0 ? 99 : s & -s; };
        return std::pair(first(a.sections), a.sections) < std::pair(first(b.sections), b.sections);
      });
  bool estimated = false;
  auto add = [&](std::string part, int64_t apart, int64_t fused, double measured_us,
                 const std::optional<Speedup>& speedup, int64_t apart_bytes, int64_t fused_bytes) {
    estimated = estimated || (speedup && !speedup->measured);
    out.rows.push_back({std::move(part), KernelsText(apart, fused),
                        measured_us > 0 ? HumanMicroseconds(measured_us) : "-", OpByOpText(speedup),
                        SpeedupText(speedup), BytesText(apart_bytes - fused_bytes),
                        SavedPartText(fused_bytes, apart_bytes)});
  };
  for (const SectionReport& s : sections) {
    add(SectionText(s.sections), s.op_by_op_kernels, s.launches, s.measured_us, SpeedupOf(s),
        s.op_by_op_activation_bytes, s.activation_bytes);
  }
  add("all-in-one", plan.op_by_op.kernels, plan.totals.launches, plan.runs.median_us,
      SpeedupOf(plan), plan.op_by_op.activation_bytes, plan.totals.activation_bytes);
  out.note = "all-in-one: a whole run; the other rows are sums of kernels";
  if (estimated) StrAppend(&out.note, StrCat("; ", kEstimatedNote));
  return out;
}

ReportTable TopRegretTable(const std::vector<PlanReport>& plans) {
  return RegretTable(TopRegrets(plans, kShownRegrets), "Top regrets: slower than estimated",
                     "estimate");
}

ReportTable SlowerThanPartsTable(const std::vector<PlanReport>& plans) {
  return RegretTable(SlowerThanParts(plans, kShownRegrets), "Fused, but slower than op by op",
                     "op by op");
}

std::vector<PlanReport> ShownPlans(const std::vector<PlanReport>& plans) {
  std::vector<PlanReport> out;
  for (const PlanReport& plan : plans) {
    if (!IsBaseline(plan, plans)) out.push_back(plan);
  }
  return out;
}

}  // namespace fusion
