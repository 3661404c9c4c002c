#include "core/learn/device_models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/statistics/median_interval.h"
#include "core/base/statistics/quantile.h"
#include "core/benefit/calibrate/fit.h"

namespace fusion {
namespace {

// A timing, and which fold holds it back.
struct Observation {
  TimingRecord record;
  std::string model;  // empty: unknown
  size_t fold = 0;
};

// Of a median of fewer than six samples, whose interval says little: as FitOptions::huber.
constexpr double kLeastSpread = 0.1;

std::string VoterOf(const KernelTimings& t) { return StrCat(t.tenant, "\n", t.machine); }

TimingRecord RecordOf(const KernelTimings& t) {
  std::vector<double> us(t.times.samples_us.begin(), t.times.samples_us.end());
  const bool few = us.size() < 6;
  const MedianInterval median = MedianOf(std::move(us));
  const double spread = (median.high - median.low) / 2 / median.median;
  return {.voter = VoterOf(t),
          .kernel = t.kernel.ToHex(),
          .bound = t.bound,
          .form = t.form,
          .terms = t.terms,
          .measured_us = median.median,
          .spread = few ? std::max(spread, kLeastSpread) : spread};
}

// Divides kernels into folds, so that a kernel and the kernels of its models are in one: models
// that share a kernel are joined, and what is joined is dealt out in the order of its digest.
void SetFolds(std::vector<Observation>* all) {
  std::map<std::string, std::string> parent;  // of models and kernels
  auto root = [&parent](std::string of) {
    while (parent.at(of) != of) of = parent[of] = parent.at(parent.at(of));
    return of;
  };
  auto kernel_of = [](const Observation& o) { return StrCat("kernel ", o.record.kernel); };
  for (const Observation& o : *all) {
    const std::string kernel = kernel_of(o);
    parent.emplace(kernel, kernel);
    if (o.model.empty()) continue;
    const std::string model = StrCat("model ", o.model);
    parent.emplace(model, model);
    parent[root(kernel)] = root(model);
  }
  std::map<Digest, std::string> joined;
  for (const Observation& o : *all) {
    const std::string of = root(kernel_of(o));
    joined[Sha256(of)] = of;
  }
  std::map<std::string, size_t> folds;
  size_t next = 0;
  for (const auto& [digest, of] : joined) folds[of] = next++ % kFolds;
  for (Observation& o : *all) o.fold = folds.at(root(kernel_of(o)));
}

ErrorSummary Summarise(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  return {.timings = static_cast<int64_t>(errors.size()),
          .median = QuantileOfSorted(errors, 0.5),
          .p90 = QuantileOfSorted(errors, 0.9)};
}

// `machines`: by voter, DeviceFit::machines.
double ErrorOf(const TimingRecord& record, const DeviceFit& fit,
               const std::map<std::string, double>& machines) {
  const double expected = ExpectedUs(fit, record.terms, {record.bound, record.form});
  return std::abs(std::log(record.measured_us / (expected * machines.at(record.voter))));
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
                                      const std::map<std::string, double>& machines,
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
      if (o.fold == fold) errors.push_back(ErrorOf(o.record, fit, machines));
    }
  }
  return Summarise(std::move(errors));
}

struct Timings {
  std::vector<Observation> observations;
  std::map<std::string, std::pair<std::string, std::string>> voters;  // machine, tenant
  bool complete = true;
};

absl::StatusOr<DeviceAccuracy> Fit(const TimedDevice& device, Timings timings,
                                   const CancelToken& cancel) {
  DeviceAccuracy out{.device = device, .complete = timings.complete};
  SetFolds(&timings.observations);
  std::vector<TimingRecord> records;
  std::set<std::string> kernels;
  std::set<std::string> models;
  for (const Observation& o : timings.observations) {
    records.push_back(o.record);
    kernels.insert(o.record.kernel);
    if (!o.model.empty()) models.insert(o.model);
  }
  RETURN_IF_ERROR(cancel.Check());
  const DeviceFit fit = FitDevice(records);
  std::vector<double> before;
  for (const TimingRecord& record : records) {
    before.push_back(ErrorOf(record, DeviceFit(), fit.machines));
  }
  out.timings = static_cast<int64_t>(records.size());
  out.kernels = static_cast<int64_t>(kernels.size());
  out.models = static_cast<int64_t>(models.size());
  out.spec = Summarise(std::move(before));
  ASSIGN_OR_RETURN(out.held_back, HoldBack(timings.observations, fit.machines, cancel));
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

absl::StatusOr<std::vector<DeviceAccuracy>> FitDevices(const std::vector<Digest>& keys,
                                                       const ReadTimings& read,
                                                       std::string_view tenant,
                                                       const CancelToken& cancel) {
  std::map<TimedDevice, Timings> by_device;
  int64_t counted = 0;
  bool complete = true;
  for (const Digest& key : keys) {
    RETURN_IF_ERROR(cancel.Check());
    std::optional<KernelTimings> found = read(key);
    if (!found.has_value() || found->times.samples_us.empty()) continue;
    if (!found->tenant.empty() && found->tenant != tenant) continue;
    TimingRecord record = RecordOf(*found);
    if (TimeOf(record.terms, {}) <= 0) continue;
    if (++counted > kMaxReadTimings) {
      complete = false;
      break;
    }
    Timings& of = by_device[found->device];
    if (static_cast<int64_t>(of.observations.size()) == kMaxFittedTimings) {
      of.complete = false;
      continue;
    }
    of.voters[record.voter] = {found->machine, found->tenant};
    of.observations.push_back({std::move(record), std::move(found->model_name)});
  }
  std::vector<DeviceAccuracy> out;
  for (auto& [device, of] : by_device) {
    of.complete &= complete;
    ASSIGN_OR_RETURN(DeviceAccuracy accuracy, Fit(device, std::move(of), cancel));
    out.push_back(std::move(accuracy));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.timings > b.timings; });
  return out;
}

}  // namespace fusion
