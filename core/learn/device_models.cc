#include "core/learn/device_models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/median_interval.h"
#include "core/base/quantile.h"
#include "core/benefit/calibrate/fit.h"

namespace fusion {
namespace {

// A timing, and which fold holds it back.
struct Observation {
  TimingRecord record;
  size_t fold = 0;
};

std::string VoterOf(const KernelTimings& t) { return StrCat(t.tenant, "\n", t.machine); }

TimingRecord RecordOf(const KernelTimings& t) {
  std::vector<double> us(t.times.samples_us.begin(), t.times.samples_us.end());
  const MedianInterval median = MedianOf(std::move(us));
  return {.voter = VoterOf(t),
          .kernel = t.kernel.ToHex(),
          .bound = t.bound,
          .form = t.form,
          .terms = t.terms,
          .measured_us = median.median,
          .spread = (median.high - median.low) / 2 / median.median};
}

// By the name of the model, so that no fit has seen a kernel of the models on which it is judged.
size_t FoldOf(const KernelTimings& t) {
  const Digest of = Sha256(t.model_name.empty() ? t.kernel.ToHex() : t.model_name);
  return of.bytes[0] % kFolds;
}

ErrorSummary Summarise(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  return {.kernels = static_cast<int64_t>(errors.size()),
          .median = QuantileOfSorted(errors, 0.5),
          .p90 = QuantileOfSorted(errors, 0.9)};
}

double ErrorOf(const TimingRecord& record, const DeviceFit& fit) {
  const double expected = ExpectedUs(fit, record.terms, {record.bound, record.form});
  // A machine that the fit knows to be slow as a whole says nothing about kernels.
  auto machine = fit.machines.find(record.voter);
  const double offset = machine == fit.machines.end() ? 1 : machine->second;
  return std::abs(std::log(record.measured_us / (expected * offset)));
}

std::vector<FittedConstant> ConstantsOf(const CostFactors& f) {
  std::vector<FittedConstant> out = {{"launch", f.launch},       {"barrier", f.barrier},
                                     {"task", f.task},           {"elements", f.element},
                                     {"shared cache", f.shared}, {"memory", f.memory}};
  for (const auto& [type, factor] : f.product)
    out.push_back({StrCat("products of ", type), factor});
  return out;
}

absl::StatusOr<ErrorSummary> HoldBack(const std::vector<Observation>& all,
                                      const CancelToken& cancel) {
  std::vector<double> errors;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    RETURN_IF_ERROR(cancel.Check());
    std::vector<TimingRecord> others;
    for (const Observation& o : all) {
      if (o.fold != fold) others.push_back(o.record);
    }
    if (others.empty() || others.size() == all.size()) continue;
    const DeviceFit fit = FitDevice(others);
    for (const Observation& o : all) {
      if (o.fold == fold) errors.push_back(ErrorOf(o.record, fit));
    }
  }
  return Summarise(std::move(errors));
}

struct Timings {
  std::vector<Observation> observations;
  std::set<std::string> models;
  std::map<std::string, std::pair<std::string, std::string>> voters;  // machine, tenant
  bool complete = true;
};

absl::StatusOr<DeviceAccuracy> Fit(const TimedDevice& device, const Timings& timings,
                                   const CancelToken& cancel) {
  DeviceAccuracy out{.device = device, .complete = timings.complete};
  std::vector<TimingRecord> records;
  std::set<std::string> kernels;
  std::vector<double> before;
  for (const Observation& o : timings.observations) {
    records.push_back(o.record);
    kernels.insert(o.record.kernel);
    before.push_back(ErrorOf(o.record, DeviceFit()));
  }
  out.timings = static_cast<int64_t>(records.size());
  out.kernels = static_cast<int64_t>(kernels.size());
  out.models = static_cast<int64_t>(timings.models.size());
  out.spec = Summarise(std::move(before));
  ASSIGN_OR_RETURN(out.held_back, HoldBack(timings.observations, cancel));
  RETURN_IF_ERROR(cancel.Check());
  const DeviceFit fit = FitDevice(records);
  out.constants = ConstantsOf(fit.factors);
  for (const auto& [of, residual] : fit.residuals) {
    out.classes.push_back({.bound = of.bound,
                           .form = of.form,
                           .factor = residual.factor,
                           .kernels = residual.kernels,
                           .voters = residual.voters});
  }
  std::stable_sort(out.classes.begin(), out.classes.end(),
                   [](const auto& a, const auto& b) { return a.kernels > b.kernels; });
  for (const auto& [voter, factor] : fit.machines) {
    const auto& [machine, tenant] = timings.voters.at(voter);
    out.machines.push_back({.machine = machine, .tenant = tenant, .factor = factor});
  }
  std::stable_sort(out.machines.begin(), out.machines.end(), [](const auto& a, const auto& b) {
    return std::abs(std::log(a.factor)) > std::abs(std::log(b.factor));
  });
  if (out.machines.size() > kMaxMachines) out.machines.resize(kMaxMachines);
  return out;
}

}  // namespace

absl::StatusOr<std::vector<DeviceAccuracy>> FitDevices(TimingStore& timings,
                                                       std::string_view tenant,
                                                       const CancelToken& cancel) {
  std::map<TimedDevice, Timings> by_device;
  int64_t read = 0;
  bool complete = true;
  for (const Digest& key : timings.Keys()) {
    RETURN_IF_ERROR(cancel.Check());
    if (++read > kMaxReadTimings) {
      complete = false;
      break;
    }
    std::optional<KernelTimings> found = timings.Get(key);
    if (!found.has_value() || found->times.samples_us.empty()) continue;
    if (!found->tenant.empty() && found->tenant != tenant) continue;
    Timings& of = by_device[found->device];
    if (static_cast<int64_t>(of.observations.size()) == kMaxFittedTimings) {
      of.complete = false;
      continue;
    }
    TimingRecord record = RecordOf(*found);
    if (TimeOf(record.terms, {}) <= 0) continue;
    if (!found->model_name.empty()) of.models.insert(found->model_name);
    of.voters[record.voter] = {found->machine, found->tenant};
    of.observations.push_back({std::move(record), FoldOf(*found)});
  }
  std::vector<DeviceAccuracy> out;
  for (const auto& [device, of] : by_device) {
    if (of.observations.empty()) continue;
    ASSIGN_OR_RETURN(DeviceAccuracy accuracy, Fit(device, of, cancel));
    accuracy.complete &= complete;
    out.push_back(std::move(accuracy));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.timings > b.timings; });
  return out;
}

}  // namespace fusion
