#include "core/learn/latency_book.h"

#include <algorithm>

namespace fusion {
namespace {

absl::Status NoPlan(const Digest& key) {
  return NotFound("no plan ", key.ToHex(),
                  ": never made by this server, or evicted since; PlanFusion makes it again");
}

int64_t SamplesOf(const LatencyReport& report) {
  auto samples = static_cast<int64_t>(report.run_samples_us.size());
  for (const LaunchLatency& launch : report.launches) {
    samples += static_cast<int64_t>(launch.samples_us.size());
  }
  return samples;
}

// A kernel and where it is launched.
struct KernelUse {
  int kernel = 0;
  std::vector<int> launches;
};

std::vector<KernelUse> UsesOf(const Plan& plan) {
  std::vector<KernelUse> uses;
  std::vector<int> use_of(plan.kernels.size(), -1);
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    int kernel = plan.launches[i].kernel;
    int& use = use_of[static_cast<size_t>(kernel)];
    if (use < 0) {
      use = static_cast<int>(uses.size());
      uses.push_back({.kernel = kernel, .launches = {}});
    }
    uses[static_cast<size_t>(use)].launches.push_back(static_cast<int>(i));
  }
  return uses;
}

KernelReport ReportOf(const Plan& plan, const KernelUse& use, const PlanMeasurements& known) {
  const PlanKernel& kernel = plan.kernels[static_cast<size_t>(use.kernel)];
  KernelReport out{.kernel_key = kernel.key,
                   .label = kernel.label,
                   .launches = static_cast<int>(use.launches.size())};
  std::vector<const MeasuredTimes*> times;
  for (int launch : use.launches) {
    const PlanLaunch& at = plan.launches[static_cast<size_t>(launch)];
    const PlanGroup& group = plan.groups[static_cast<size_t>(at.group)];
    out.nodes = std::max(out.nodes, static_cast<int>(group.nodes.size()));
    out.estimated_us += group.estimate.time_us;
    out.op_by_op_us += group.op_by_op.estimated_us;
    out.activation_bytes += group.estimate.activation_bytes + group.estimate.recompute_bytes;
    out.op_by_op_activation_bytes += group.op_by_op.activation_bytes;
    auto measured = known.launches.find(launch);
    if (measured != known.launches.end()) times.push_back(&measured->second);
  }
  out.estimated_us /= out.launches;
  out.op_by_op_us /= out.launches;
  out.measured = Summarise(times);
  return out;
}

int64_t SentBytes(const PlanReport& report) {
  constexpr int64_t kPlanBytes = 256;
  constexpr int64_t kKernelBytes = 160;
  int64_t bytes = kPlanBytes;
  for (const KernelReport& kernel : report.kernels) {
    bytes += kKernelBytes + static_cast<int64_t>(kernel.label.size());
  }
  for (const std::string& device : report.devices) bytes += static_cast<int64_t>(device.size());
  return bytes;
}

}  // namespace

absl::Status CheckFits(const LatencyReport& report, const Plan& plan) {
  if (report.kernels != Digest() && report.kernels != LaunchedKernels(plan)) {
    return NotFound("kernels_sha256: the plan ", report.plan_key.ToHex(),
                    " has other kernels by now; PlanFusion gives the new plan");
  }
  for (size_t i = 0; i < report.launches.size(); ++i) {
    int launch = report.launches[i].launch;
    if (launch >= 0 && static_cast<size_t>(launch) < plan.launches.size()) continue;
    if (plan.launches.empty()) {
      return InvalidArgument("launches[", i, "].launch: ", launch, "; the plan has no launches");
    }
    return InvalidArgument("launches[", i, "].launch: ", launch, "; the plan has launches 0..",
                           plan.launches.size() - 1);
  }
  return absl::OkStatus();
}

PlanReport MakeReport(const StoredPlan& stored, const PlanMeasurements& measurements) {
  const Plan& plan = stored.plan;
  // What was measured of other kernels says nothing about these.
  bool same = measurements.kernels == LaunchedKernels(plan);
  const PlanMeasurements none;
  const PlanMeasurements& known = same ? measurements : none;
  PlanReport out{.plan_key = stored.key,
                 .target = plan.target,
                 .threads = plan.threads,
                 .devices = measurements.devices,
                 .last_report_unix_ms = measurements.last_report_unix_ms,
                 .runs = Summarise({&known.runs}),
                 .totals = plan.totals,
                 .op_by_op = plan.op_by_op,
                 .kernels = {}};
  for (const KernelUse& use : UsesOf(plan)) out.kernels.push_back(ReportOf(plan, use, known));
  return out;
}

LatencyBook::LatencyBook(Store& plans, MeasurementStore& measurements, const Clock& clock)
    : plans_(plans), measurements_(measurements), clock_(clock) {}

absl::StatusOr<int64_t> LatencyBook::Add(const LatencyReport& report) {
  Found<StoredPlan> stored = plans_.GetPlan({report.plan_key});
  if (!stored) return NoPlan(report.plan_key);
  const Plan& plan = stored.value->plan;
  RETURN_IF_ERROR(CheckFits(report, plan));
  Digest kernels = LaunchedKernels(plan);
  int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.UnixTime()).count();
  MutexLock lock(&MutexOf(report.plan_key));
  PlanMeasurements known = measurements_.Get(report.plan_key).value_or(PlanMeasurements{});
  AddReport(report, kernels, plan.launches.size(), now_ms, &known);
  RETURN_IF_ERROR(measurements_.Put(report.plan_key, known));
  return SamplesOf(report);
}

std::optional<PlanMeasurements> LatencyBook::Read(const Digest& plan) {
  MutexLock lock(&MutexOf(plan));  // a damaged record is deleted: not one that is just written
  return measurements_.Get(plan);
}

absl::StatusOr<std::vector<PlanReport>> LatencyBook::Reports(const std::optional<Digest>& plan,
                                                             int limit) {
  std::vector<PlanReport> reports;
  int64_t bytes = 0;
  for (const Digest& key : plan ? std::vector<Digest>{*plan} : measurements_.Plans()) {
    if (reports.size() >= static_cast<size_t>(limit)) break;
    Found<StoredPlan> stored = plans_.GetPlan({key});
    if (!stored && plan.has_value()) return NoPlan(key);
    if (!stored) continue;
    std::optional<PlanMeasurements> known = Read(key);
    if (!known.has_value()) continue;
    reports.push_back(MakeReport(*stored.value, *known));
    bytes += SentBytes(reports.back());
    if (bytes <= kMaxReportBytes || reports.size() == 1) continue;
    reports.pop_back();
    break;
  }
  return reports;
}

}  // namespace fusion
