#include "server/pages/kernel_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/text/human_numbers.h"
#include "core/base/text/text.h"

namespace fusion {
namespace {

using Kind = PageTable::Kind;

constexpr size_t kKernelLabelCharacters = 120;
// Of each text of a kernel.
constexpr size_t kTextBytes = 192 << 10;
// Factors nearer to 1 are not worth a row.
constexpr double kAsGoodAsOne = 0.02;

struct KernelRow {
  KernelReport kernel;  // of the plan in which it took most time
  Digest plan;
  double total_us = 0;
  int64_t calls = 0;
};

std::vector<KernelRow> RowsOf(const std::vector<PlanReport>& reports) {
  std::map<Digest, KernelRow> by_key;
  for (const PlanReport& report : reports) {
    for (const KernelReport& kernel : report.kernels) {
      if (kernel.measured.samples == 0) continue;
      const double us = kernel.measured.median_us * static_cast<double>(kernel.measured.calls);
      KernelRow& row = by_key[kernel.kernel_key];
      const double most =
          row.kernel.measured.median_us * static_cast<double>(row.kernel.measured.calls);
      if (row.calls == 0 || us > most) {
        row.kernel = kernel;
        row.plan = report.plan_key;
      }
      row.total_us += us;
      row.calls += kernel.measured.calls;
    }
  }
  std::vector<KernelRow> out;
  for (auto& [key, row] : by_key) out.push_back(std::move(row));
  std::stable_sort(out.begin(), out.end(),
                   [](const KernelRow& a, const KernelRow& b) { return a.total_us > b.total_us; });
  return out;
}

// |ln ratio| as a percentage: 0.69 is 100 %, off by a factor of two.
std::string ErrorText(double error) { return HumanPercent(std::expm1(error)); }

std::string FactorText(double factor) { return fmt::format("{:.2f} x", factor); }

bool IsOne(double factor) { return factor > 0 && std::abs(std::log(factor)) < kAsGoodAsOne; }

Markup ErrorTable(const DeviceAccuracy& device) {
  PageTable table("How far estimates are from measured times", {{"Constants", Kind::kName},
                                                                {"Median error", Kind::kNumber},
                                                                {"90 % are below", Kind::kNumber},
                                                                {"Timings", Kind::kNumber}});
  auto add = [&](std::string_view name, const ErrorSummary& errors) {
    if (errors.timings == 0) return;
    table.Add({Words(name), Words(ErrorText(errors.median)), Words(ErrorText(errors.p90)),
               Words(StrCat(errors.timings))});
  };
  add("of the spec", device.spec);
  add("fitted to other models", device.held_back);
  add("of the spec, whole runs", device.spec_plans);
  add("fitted to other models, whole runs", device.held_back_plans);
  return table.Show("There are no timings.");
}

Markup ConstantTable(const DeviceAccuracy& device) {
  PageTable table("Constants that differ from the spec",
                  {{"Cost of", Kind::kName}, {"Measured / spec", Kind::kNumber}});
  for (const FittedConstant& constant : device.constants) {
    if (!IsOne(constant.factor)) {
      table.Add({Words(constant.name), Words(FactorText(constant.factor))});
    }
  }
  return table.Show("The constants of the spec fit.");
}

Markup ClassTable(const DeviceAccuracy& device) {
  PageTable table("Kinds of kernels that are off with the fitted constants too",
                  {{"Kernels", Kind::kName},
                   {"Bound by", Kind::kName},
                   {"Measured / fitted", Kind::kNumber},
                   {"Number", Kind::kSpareNumber},
                   {"Machines", Kind::kSpareNumber}});
  for (const FittedClass& of : device.classes) {
    if (IsOne(of.factor)) continue;
    table.Add({Words(of.form), Words(of.bound), Words(FactorText(of.factor)),
               Words(StrCat(of.kernels)), Words(StrCat(of.voters))});
  }
  return table.Show("No kind of kernels is off.");
}

Markup MachineTable(const DeviceAccuracy& device) {
  PageTable table("Machines: those of another speed than the others, or with a known clock",
                  {{"Machine", Kind::kName},
                   {"Tenant", Kind::kSpareName},
                   {"Time / median of all", Kind::kNumber},
                   {"GHz", Kind::kSpareNumber}});
  for (const MeasuredMachine& machine : device.machines) {
    if (IsOne(machine.factor) && machine.clock_ghz == 0) continue;
    table.Add({Foreign(machine.machine), Foreign(machine.tenant, 64),
               Words(FactorText(machine.factor)),
               Words(machine.clock_ghz == 0 ? "-" : fmt::format("{:.2f}", machine.clock_ghz))});
  }
  return table.Show("No machine is faster or slower than the others.");
}

Markup Device(const DeviceAccuracy& device) {
  const std::string heading = StrCat(device.device.target, ", ", device.device.isa, ", ",
                                     Count(device.device.threads, "thread"));
  const std::string of =
      StrCat(Count(device.kernels, "kernel"), " of ", Count(device.models, "model"), ", ",
             Count(static_cast<int64_t>(device.machines.size()), "machine"),
             device.complete ? "." : "; only the newest measurements are read.");
  return PageSection(heading, Paragraph(Words(of)) + ErrorTable(device) + ConstantTable(device) +
                                  ClassTable(device) + MachineTable(device));
}

}  // namespace

Markup KernelsContent(const std::vector<PlanReport>& reports, size_t limit) {
  PageTable table(
      "Kernels with reported latencies, by the time that they took in all. Times are of "
      "one launch",
      {{"Kernel", Kind::kName},
       {"Ops", Kind::kText},
       {"Measured", Kind::kNumber},
       {"Estimate", Kind::kNumber},
       {"Of estimate", Kind::kNumber},
       {"p10 to p90", Kind::kSpareNumber},
       {"Launches", Kind::kSpareNumber},
       {"Time in all", Kind::kSpareNumber},
       {"Plan", Kind::kSpareName}});
  const std::vector<KernelRow> rows = RowsOf(reports);
  for (size_t i = 0; i < std::min(rows.size(), kKernelRows); ++i) {
    const KernelRow& row = rows[i];
    const LatencySummary& measured = row.kernel.measured;
    const std::string key = row.kernel.kernel_key.ToHex();
    const std::string plan = row.plan.ToHex();
    table.Add({Link(StrCat("/kernels/", key), Words(key.substr(0, 8))),
               Ops(row.kernel.label, kKernelLabelCharacters),
               Words(HumanMicroseconds(measured.median_us)),
               Words(HumanMicroseconds(row.kernel.estimated_us)),
               RatioMark(measured.median_us, row.kernel.estimated_us),
               Words(StrCat(HumanMicroseconds(measured.p10_us), " .. ",
                            HumanMicroseconds(measured.p90_us))),
               Words(StrCat(row.calls)), Words(HumanMicroseconds(row.total_us)),
               Link(StrCat("/plans/", plan), Words(plan.substr(0, 8)))});
  }
  const Markup shown = table.Show(
      "No latencies of kernels were reported. The client library reports them, and so does "
      "fusionctl bench --kernels.");
  std::string note;
  if (rows.size() > kKernelRows)
    note = StrCat("The first ", kKernelRows, " of ", rows.size(), " kernels. ");
  if (reports.size() >= limit)
    StrAppend(&note, StrCat("Of the ", limit, " plans with the latest reports."));
  return note.empty() ? shown : shown + Paragraph(Words(note));
}

Markup KernelContent(const KernelArtifact& kernel) {
  FactList facts;
  facts.Add("Check", kernel.check.verified ? Badge(Mood::kGood, "equals the evaluator")
                                           : Badge(Mood::kQuiet, "not checked") + Words(" ") +
                                                 Foreign(kernel.check.reason));
  facts.Add("Largest difference", StrCat(ShortNumber(kernel.check.max_rel), " of max|b|"));
  facts.Add("Elements compared", StrCat(kernel.check.elements));
  facts.Add("Compiled in", HumanMilliseconds(kernel.compile_ms));
  facts.Add("Checked in", HumanMilliseconds(kernel.check_ms));
  facts.Add("Shared object", HumanBytes(static_cast<int64_t>(kernel.binary.size())));
  Markup out =
      facts.Show() +
      Paragraph(Words("Key: ") + Markup{"<code>"} + Words(kernel.key.ToHex()) + Markup{"</code>"}) +
      PageSection("Source", Verbatim("Source of the kernel", kernel.source, kTextBytes)) +
      PageSection("Schedule", Verbatim("Schedule of the kernel", kernel.schedule, kTextBytes));
  if (!kernel.reference.empty()) {
    out = out + PageSection("What it was compared with",
                            Verbatim("Program of the evaluator", kernel.reference, kTextBytes));
  }
  return out + PageSection("Compiler", Verbatim("Commands", kernel.compiler, kTextBytes));
}

Markup AccuracyContent(const std::vector<DeviceAccuracy>& devices,
                       const std::vector<std::string>& tenants, const std::string& tenant) {
  Markup out = Paragraph(Words("Reports of the tenant ") + Foreign(tenant, 64) +
                         Words(", beside the estimates. Plans use the constants of the spec."));
  if (tenants.size() > 1) {
    Markup links;
    for (const std::string& other : tenants) {
      if (other != tenant)
        links = links + Link(StrCat("/accuracy?tenant=", UrlPart(other)), Foreign(other, 64)) +
                Words(" ");
    }
    out = out +
          Markup{StrCat("<nav class=\"pages\" aria-label=\"Tenants\">", links.html, "</nav>\n")};
  }
  if (devices.empty()) {
    return out + Paragraph(Words(
                     "No latencies of kernels were reported, or their plans are of an earlier "
                     "version. The client library reports them, and so does fusionctl bench."));
  }
  for (const DeviceAccuracy& device : devices) out = out + Device(device);
  return out;
}

}  // namespace fusion
