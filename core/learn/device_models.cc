#include "core/learn/device_models.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "core/benefit/calibrate/fit.h"

namespace fusion {
namespace {

// `machines`: by voter, DeviceFit::machines.
double ErrorOf(const TimingRecord& record, const DeviceFit& fit,
               const std::map<std::string, double>& machines) {
  const double expected = ExpectedUs(record.terms, record.form, fit.factors);
  return std::abs(std::log(record.measured_us / (expected * machines.at(record.voter))));
}

// Fits to the observations of the other parts, by part; nullopt: no others, or none of this part.
using PartFits = std::array<std::optional<DeviceFit>, kFolds>;

absl::StatusOr<PartFits> FitParts(const std::vector<Observation>& all, const CancelToken& cancel) {
  PartFits out;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    RETURN_IF_ERROR(cancel.Check());
    std::vector<TimingRecord> others;
    for (const Observation& o : all) {
      if (o.fold != fold) others.push_back(o.record);
    }
    if (!others.empty() && others.size() < all.size()) out[fold] = FitDevice(others);
  }
  return out;
}

// The part that holds all observed kernels of the plan back; nullopt: there is none.
std::optional<size_t> PartOf(const MeasuredPlan& plan,
                             const std::map<std::string, size_t>& fold_of) {
  const std::optional<size_t> fold = FoldOf(plan, fold_of);
  for (const MeasuredPlan::Launch& launch : plan.launches) {
    const auto known = fold_of.find(launch.kernel);
    if (known != fold_of.end() && known->second != fold) return std::nullopt;
  }
  return fold;
}

void HoldBack(const DeviceObservations& timings, const std::vector<MeasuredPlan>& plans,
              const std::map<std::string, double>& machines, const PartFits& parts,
              DeviceAccuracy* out) {
  std::vector<double> errors;
  std::map<std::string, size_t> fold_of;  // by kernel
  for (const Observation& o : timings.observations) {
    fold_of[o.record.kernel] = o.fold;
    if (const auto& fit = parts[o.fold]) errors.push_back(ErrorOf(o.record, *fit, machines));
  }
  out->held_back = SummariseErrors(std::move(errors));
  std::vector<double> of_spec;
  std::vector<double> of_others;
  for (const MeasuredPlan& plan : plans) {
    if (!FoldOf(plan, fold_of).has_value()) continue;  // not measured by anybody who counts
    const auto error = [&](const CostFactors& factors) {
      return std::abs(std::log(plan.measured_us / EstimatedUs(plan, factors)));
    };
    of_spec.push_back(error({}));
    const std::optional<size_t> part = PartOf(plan, fold_of);
    if (part.has_value() && parts[*part]) of_others.push_back(error(parts[*part]->factors));
  }
  out->spec_plans = SummariseErrors(std::move(of_spec));
  out->held_back_plans = SummariseErrors(std::move(of_others));
}

absl::StatusOr<DeviceAccuracy> Fit(const TimedDevice& device, const DeviceObservations& timings,
                                   const std::vector<MeasuredPlan>& plans,
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
  ASSIGN_OR_RETURN(const PartFits parts, FitParts(timings.observations, cancel));
  HoldBack(timings, plans, fit.machines, parts, &out);
  for (const auto& [name, factor] : NamedFactors(fit.factors)) {
    out.constants.push_back({name, factor});
  }
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
    out.machines.push_back(
        {.machine = of.machine, .tenant = of.tenant, .factor = factor, .clock_ghz = of.clock_ghz});
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
                                                       const PlansOfDevices& plans,
                                                       std::string_view tenant,
                                                       const CancelToken& cancel) {
  ASSIGN_OR_RETURN(const auto by_device,
                   ReadObservations(keys, read, TimingsForTenant(tenant), cancel));
  std::vector<DeviceAccuracy> out;
  for (const auto& [device, of] : by_device) {
    const auto runs = plans.find(device);
    ASSIGN_OR_RETURN(
        DeviceAccuracy accuracy,
        Fit(device, of, runs == plans.end() ? std::vector<MeasuredPlan>() : runs->second, cancel));
    out.push_back(std::move(accuracy));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.timings > b.timings; });
  return out;
}

}  // namespace fusion
