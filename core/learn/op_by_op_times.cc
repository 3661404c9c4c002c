#include "core/learn/op_by_op_times.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/key_field.h"

namespace fusion {
namespace {

// The full key with one kernel per node: no rules, no lock, none of the options that choose between
// fused plans (Resolver::MakeWork).
std::string OpByOpKey(std::string_view full_key, bool same_opt_level) {
  static const std::set<std::string_view> kOfFused = {"low_latency", "frontier", "lock",
                                                      "registered"};
  FieldHasher h;
  bool fuses = false;
  while (const std::optional<FramedField> field = NextFramedField(&full_key)) {
    if (kOfFused.contains(field->label)) continue;
    if (field->label == "opt_level" && !same_opt_level) continue;
    if (field->label == "fusion") {
      constexpr auto kFused = static_cast<int64_t>(FusionMode::kFused);
      fuses = field->value == StrCat(kFused);
      h.Add(field->label, static_cast<int64_t>(FusionMode::kOpByOp));
    } else {
      h.Add(field->label, field->label == "rules" ? std::string_view() : field->value);
    }
  }
  return fuses && full_key.empty() ? h.bytes() : "";
}

double MedianOf(const PlanMeasurements& measurements, int launch) {
  const auto times = measurements.launches.find(launch);
  if (times == measurements.launches.end()) return 0;
  return Summarise(std::vector<const MeasuredTimes*>{&times->second}).median_us;
}

// The node that a kernel of a plan with one kernel per node computes. Views of its inputs are
// before it and belong to it, as they belong to its group in other plans.
int NodeOf(const PlanGroup& group) { return group.nodes.empty() ? -1 : group.nodes.back(); }

// Sums over groups of nodes; 0 as soon as a part is missing.
struct Sum {
  double us = 0;
  bool whole = true;
  void Add(double part_us) {
    whole = whole && part_us > 0;
    us += part_us;
  }
  double value() const { return whole ? us : 0; }
};

}  // namespace

std::vector<Digest> OpByOpKeysOf(std::string_view full_key) {
  std::vector<Digest> out;
  for (const bool same_opt_level : {true, false}) {
    const std::string key = OpByOpKey(full_key, same_opt_level);
    if (key.empty()) continue;
    const Digest digest = Sha256(key);
    if (out.empty() || out.front() != digest) out.push_back(digest);
  }
  return out;
}

void AddSections(const StoredPlan& stored, const PlanMeasurements& measurements,
                 PlanReport* report) {
  const Plan& plan = stored.plan;
  const std::vector<SectionSet>& sections = stored.outline.sections;
  if (sections.size() != plan.groups.size()) return;
  std::vector<Sum> measured;
  std::map<SectionSet, size_t> row_of;
  std::map<Digest, SectionSet> of_kernel;
  for (size_t l = 0; l < plan.launches.size(); ++l) {
    const PlanLaunch& launch = plan.launches[l];
    const PlanGroup& group = plan.groups[static_cast<size_t>(launch.group)];
    const SectionSet of = sections[static_cast<size_t>(launch.group)];
    of_kernel[plan.kernels[static_cast<size_t>(launch.kernel)].key] |= of;
    const auto [at, fresh] = row_of.try_emplace(of, report->sections.size());
    if (fresh) {
      report->sections.push_back({.sections = of});
      measured.emplace_back();
    }
    SectionReport& row = report->sections[at->second];
    ++row.launches;
    row.estimated_us += group.estimate.time_us;
    row.activation_bytes += group.estimate.activation_bytes + group.estimate.recompute_bytes;
    row.op_by_op_kernels += group.op_by_op.kernels;
    row.op_by_op_us += group.op_by_op.estimated_us;
    row.op_by_op_activation_bytes += group.op_by_op.activation_bytes;
    measured[at->second].Add(MedianOf(measurements, static_cast<int>(l)));
  }
  for (size_t s = 0; s < measured.size(); ++s)
    report->sections[s].measured_us = measured[s].value();
  for (KernelReport& kernel : report->kernels) kernel.sections = of_kernel[kernel.kernel_key];
}

void AddOpByOp(const StoredPlan& fused, const StoredPlan& op_by_op,
               const PlanMeasurements& measurements, PlanReport* report) {
  const Plan& apart = op_by_op.plan;
  if (apart.fusion != FusionMode::kOpByOp || apart.nodes != fused.plan.nodes) return;
  report->op_by_op_plan = op_by_op.key;
  report->op_by_op_runs = Summarise(std::vector<const MeasuredTimes*>{&measurements.runs});
  report->op_by_op_peak_bytes = RunBytes(apart, apart.threads);
  std::map<int, double> us_of;  // by node
  for (size_t l = 0; l < apart.launches.size(); ++l) {
    const PlanLaunch& launch = apart.launches[l];
    const double us = MedianOf(measurements, static_cast<int>(l));
    us_of[NodeOf(apart.groups[static_cast<size_t>(launch.group)])] = us;
  }
  std::map<Digest, Sum> of_kernel;
  std::map<SectionSet, Sum> of_sections;
  const std::vector<SectionSet>& sections = fused.outline.sections;
  for (const PlanLaunch& launch : fused.plan.launches) {
    Sum sum;
    const PlanGroup& group = fused.plan.groups[static_cast<size_t>(launch.group)];
    int kernels = 0;
    for (const int node : group.nodes) {
      const auto us = us_of.find(node);
      if (us == us_of.end()) continue;  // a view, or known before the run
      sum.Add(us->second);
      ++kernels;
    }
    if (kernels == 0) sum.whole = false;
    of_kernel[fused.plan.kernels[static_cast<size_t>(launch.kernel)].key].Add(sum.value());
    if (!report->sections.empty()) {
      of_sections[sections[static_cast<size_t>(launch.group)]].Add(sum.value());
    }
  }
  for (KernelReport& kernel : report->kernels) {
    kernel.op_by_op_measured_us = of_kernel[kernel.kernel_key].value() / kernel.launches;
  }
  for (SectionReport& row : report->sections) {
    row.op_by_op_measured_us = of_sections[row.sections].value();
  }
}

}  // namespace fusion
