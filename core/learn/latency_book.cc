#include "core/learn/latency_book.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <thread>

#include "core/base/key_field.h"
#include "core/base/unix_time.h"
#include "core/learn/device_models.h"
#include "core/learn/op_by_op_times.h"
#include "core/learn/report_timings.h"

namespace fusion {
namespace {

absl::Status NoPlan(const Digest& key) {
  return NotFound("no plan ", key.ToHex(),
                  ": never made by this server, or evicted since; PlanFusion makes it again");
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

// The same calls and runs, none of them timed.
LatencyReport WithoutSamples(const LatencyReport& report) {
  auto all = [](int64_t calls, const std::vector<double>& samples_us) {
    return std::max(calls, static_cast<int64_t>(samples_us.size()));
  };
  LatencyReport out = report;
  for (LaunchLatency& launch : out.launches) {
    launch.calls = all(launch.calls, launch.samples_us);
    launch.samples_us.clear();
  }
  out.runs = all(out.runs, out.run_samples_us);
  out.run_samples_us.clear();
  return out;
}

int64_t SentBytes(const PlanReport& report) {
  constexpr int64_t kPlanBytes = 360;
  constexpr int64_t kKernelBytes = 175;
  constexpr int64_t kSectionBytes = 64;
  int64_t bytes = kPlanBytes + kSectionBytes * static_cast<int64_t>(report.sections.size()) +
                  static_cast<int64_t>(report.model_name.size());
  for (const KernelReport& kernel : report.kernels) {
    bytes += kKernelBytes + static_cast<int64_t>(kernel.label.size());
  }
  for (const std::string& device : report.devices) bytes += static_cast<int64_t>(device.size());
  return bytes;
}

}  // namespace

absl::Status CheckFits(const LatencyReport& report, const Plan& plan) {
  if (!plan.symbols.empty()) {
    return InvalidArgument("plan_key: the plan ", report.plan_key.ToHex(),
                           " leaves dims open: its runs are of many shapes, its estimates of one");
  }
  if (!plan.loops.empty()) {
    return InvalidArgument("plan_key: the plan ", report.plan_key.ToHex(),
                           " has loops: its launches run several times, its estimates are of once");
  }
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
  PlanReport out{.plan_key = stored.key,
                 .model_name = stored.model_name,
                 .target = plan.target,
                 .threads = plan.threads,
                 .devices = measurements.devices,
                 .last_report_unix_ms = measurements.last_report_unix_ms,
                 .runs = Summarise({&measurements.runs}),
                 .totals = plan.totals,
                 .op_by_op = plan.op_by_op,
                 .kernels = {},
                 .fusion = plan.fusion,
                 .peak_bytes = RunBytes(plan, plan.threads),
                 .op_by_op_peak_bytes = stored.outline.op_by_op_peak_bytes};
  for (const KernelUse& use : UsesOf(plan)) {
    out.kernels.push_back(ReportOf(plan, use, measurements));
  }
  AddSections(stored, measurements, &out);
  return out;
}

LatencyBook::LatencyBook(Store& plans, MeasurementStore& measurements, TimingStore& timings,
                         const Clock& clock)
    : plans_(plans), measurements_(measurements), timings_(timings), clock_(clock) {}

absl::StatusOr<int64_t> LatencyBook::Add(const LatencyReport& report, std::string_view tenant,
                                         bool trusted) {
  return StoreReport(report, {}, tenant, trusted);
}

absl::StatusOr<AddedReport> LatencyBook::Add(const LatencyReport& report,
                                             const ReportOrigin& origin, std::string_view tenant,
                                             bool trusted) {
  if (origin.id.empty()) {
    ASSIGN_OR_RETURN(int64_t samples, StoreReport(report, origin, tenant, trusted));
    return AddedReport{.samples = samples};
  }
  MutexLock one(&id_mutexes_[Sha256(origin.id).bytes[0] % id_mutexes_.size()]);
  {
    MutexLock lock(&recent_mutex_);
    if (recent_.Has(tenant, origin.id)) return AddedReport{.duplicate = true};
  }
  ASSIGN_OR_RETURN(int64_t samples, StoreReport(report, origin, tenant, trusted));
  MutexLock lock(&recent_mutex_);
  recent_.Add(tenant, origin.id);
  return AddedReport{.samples = samples};
}

absl::StatusOr<int64_t> LatencyBook::StoreReport(const LatencyReport& report,
                                                 const ReportOrigin& origin,
                                                 std::string_view tenant, bool trusted) {
  Found<StoredPlan> stored = plans_.GetPlan({report.plan_key});
  if (!stored) return NoPlan(report.plan_key);
  const Plan& plan = stored.value->plan;
  RETURN_IF_ERROR(CheckFits(report, plan));
  const bool busy = origin.background_load > kMaxBackgroundLoad;
  const LatencyReport kept = busy ? WithoutSamples(report) : report;
  const int64_t now_ms = UnixMilliseconds(clock_);
  int64_t samples = 0;
  {
    MutexLock lock(&MutexOf(report.plan_key));
    PlanMeasurements known = measurements_.Get(report.plan_key).value_or(PlanMeasurements{});
    samples = AddReport(kept, plan, now_ms, &known);
    RETURN_IF_ERROR(measurements_.Put(report.plan_key, known));
  }
  if (busy) return samples;
  std::vector<KernelTimings> times = TimingsOf(kept, *stored.value, tenant, trusted, now_ms);
  for (KernelTimings& of : times) {
    of.clock_ghz = origin.clock_ghz;
    of = NoteAndGet(of);
  }
  if (listener_) listener_(*stored.value, times);
  return samples;
}

// The report is stored already. Times of kernels that cannot be stored are left out: a caller who
// sent the report again would have it counted twice.
KernelTimings LatencyBook::NoteAndGet(const KernelTimings& timings) {
  const Digest key = KeyOf(timings);
  MutexLock lock(&MutexOf(key));
  KernelTimings all = timings_.Get(key).value_or(KernelTimings{});
  AddTimings(timings, &all);
  timings_.Put(key, all).IgnoreError();
  return all;
}

// Reads under the lock, so that a damaged record is not deleted after Add has written a sound one.
TimingSource LatencyBook::Timings() {
  return {.keys = [this] { return timings_.Keys(); },
          .read =
              [this](const Digest& key) {
                MutexLock lock(&MutexOf(key));
                return timings_.Get(key);
              }};
}

absl::Status LatencyBook::Note(const KernelTimings& timings) {
  const Digest key = KeyOf(timings);
  MutexLock lock(&MutexOf(key));
  KernelTimings all = timings_.Get(key).value_or(KernelTimings{});
  AddTimings(timings, &all);
  return timings_.Put(key, all);
}

absl::StatusOr<std::vector<DeviceAccuracy>> LatencyBook::Accuracy(
    std::string_view tenant, const CancelToken& cancel,
    const std::function<absl::Status()>& before) {
  constexpr std::chrono::milliseconds kLook(5);
  while (fitting_.exchange(true)) {
    RETURN_IF_ERROR(cancel.Check());
    std::this_thread::sleep_for(kLook);
  }
  absl::Cleanup done = [this] { fitting_ = false; };
  RETURN_IF_ERROR(before());
  const TimingSource timings = Timings();
  ASSIGN_OR_RETURN(const PlansOfDevices plans, RunsOf(tenant, cancel));
  return FitDevices(timings.keys(), timings.read, plans, tenant, cancel);
}

absl::StatusOr<PlansOfDevices> LatencyBook::RunsOf(std::string_view tenant,
                                                   const CancelToken& cancel) {
  PlansOfDevices out;
  size_t plans = 0;
  int64_t read_bytes = 0;
  for (const Digest& key : measurements_.Keys()) {
    RETURN_IF_ERROR(cancel.Check());
    if (plans == kMaxRunPlans || read_bytes > kMaxReadBytes) break;
    const std::shared_ptr<const StoredPlan> stored = plans_.PeekPlan(key);
    if (stored == nullptr) continue;
    read_bytes += ChargedBytes(*stored);
    const std::string_view owner = TenantOfKey(stored->full_key);
    if (!owner.empty() && owner != tenant) continue;
    const Plan& plan = stored->plan;
    std::optional<MeasuredPlan> launches = LaunchesOf(plan);
    if (!launches.has_value() || launches->launches.empty()) continue;
    const std::optional<PlanMeasurements> known = ReadCurrent(key, LaunchedKernels(plan));
    if (!known.has_value() || known->runs.samples_us.empty()) continue;
    launches->measured_us = Summarise({&known->runs}).median_us;
    // A plan has one instruction set on CPUs.
    const PlanKernel& kernel = plan.kernels[static_cast<size_t>(plan.launches.front().kernel)];
    out[{plan.target, kernel.isa, plan.threads}].push_back(*std::move(launches));
    ++plans;
  }
  return out;
}

// Under the lock, so that it does not delete what Add has just written.
std::optional<PlanMeasurements> LatencyBook::ReadCurrent(const Digest& plan,
                                                         const Digest& kernels) {
  MutexLock lock(&MutexOf(plan));
  std::optional<PlanMeasurements> known = measurements_.Get(plan);
  if (!known.has_value() || known->kernels == kernels) return known;
  measurements_.Remove(plan);  // of other kernels; do not read it again
  return std::nullopt;
}

// Checks again under the lock: the plan may have been planned again and reported on since.
void LatencyBook::ForgetUnlessThere(const Digest& plan) {
  MutexLock lock(&MutexOf(plan));
  if (!plans_.HasPlan(plan)) measurements_.Remove(plan);
}

int64_t LatencyBook::AddBaseline(const StoredPlan& stored, const Shows& shows, PlanReport* report) {
  int64_t read_bytes = 0;
  for (const Digest& key : OpByOpKeysOf(stored.full_key)) {
    const std::shared_ptr<const StoredPlan> apart = plans_.PeekPlan(key);
    if (apart == nullptr) continue;
    read_bytes += ChargedBytes(*apart);
    if (shows && !shows(*apart)) continue;
    const std::optional<PlanMeasurements> known = ReadCurrent(key, LaunchedKernels(apart->plan));
    if (!known.has_value()) continue;
    AddOpByOp(stored, *apart, *known, report);
    return read_bytes + ChargedBytes(*known);
  }
  return read_bytes;
}

absl::StatusOr<std::vector<PlanReport>> LatencyBook::Reports(const std::optional<Digest>& plan,
                                                             int limit, const CancelToken& cancel,
                                                             const Shows& shows) {
  std::vector<PlanReport> reports;
  int64_t sent_bytes = 0;
  int64_t read_bytes = 0;
  int64_t hidden_bytes = 0;
  for (const Digest& key : plan ? std::vector<Digest>{*plan} : measurements_.Keys()) {
    if (reports.size() >= static_cast<size_t>(limit)) break;
    RETURN_IF_ERROR(cancel.Check());
    std::shared_ptr<const StoredPlan> stored = plans_.PeekPlan(key);
    if (stored == nullptr) {
      ForgetUnlessThere(key);
      if (plan.has_value()) return NoPlan(key);
      continue;
    }
    if (shows && !shows(*stored)) {
      if (plan.has_value()) return NoPlan(key);
      hidden_bytes += ChargedBytes(*stored);
      if (hidden_bytes > kMaxHiddenBytes) break;
      continue;
    }
    std::optional<PlanMeasurements> known = ReadCurrent(key, LaunchedKernels(stored->plan));
    if (!known.has_value()) continue;
    PlanReport report = MakeReport(*stored, *known);
    read_bytes += AddBaseline(*stored, shows, &report);
    sent_bytes += SentBytes(report);
    if (sent_bytes > kMaxReportBytes && !reports.empty()) break;
    reports.push_back(std::move(report));
    read_bytes += ChargedBytes(*stored) + ChargedBytes(*known);
    if (read_bytes > kMaxReadBytes) break;
  }
  return reports;
}

}  // namespace fusion
