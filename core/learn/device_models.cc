#include "core/learn/device_models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/benefit/calibrate/fit.h"

namespace fusion {
namespace {

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
  return SummariseErrors(std::move(errors));
}

absl::StatusOr<DeviceAccuracy> Fit(const TimedDevice& device, const DeviceObservations& timings,
                                   const CancelToken& cancel) {
  DeviceAccuracy out{.device = device, .complete = timings.complete};
  std::vector<TimingRecord> records;
  std::set<std::string> kernels;
  std::set<std::string> models;
  std::map<std::string, const Observation*> voters;
  for (const Observation& o : timings.observations) {
    records.push_back(o.record);
    kernels.insert(o.record.kernel);
    voters[o.record.voter] = &o;
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
  out.spec = SummariseErrors(std::move(before));
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
    const Observation& of = *voters.at(voter);
    out.machines.push_back({.machine = of.machine, .tenant = of.tenant, .factor = factor});
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
  ASSIGN_OR_RETURN(const auto by_device,
                   ReadObservations(keys, read, TimingsForTenant(tenant), cancel));
  std::vector<DeviceAccuracy> out;
  for (const auto& [device, of] : by_device) {
    ASSIGN_OR_RETURN(DeviceAccuracy accuracy, Fit(device, of, cancel));
    out.push_back(std::move(accuracy));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.timings > b.timings; });
  return out;
}

}  // namespace fusion
