#include "core/learn/observations.h"

#include <algorithm>
#include <cmath>

#include "core/base/statistics/median_interval.h"
#include "core/base/statistics/quantile.h"

namespace fusion {
namespace {

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
          .form = t.form,
          .terms = t.terms,
          .measured_us = median.median,
          .spread = few ? std::max(spread, kLeastSpread) : spread};
}

std::string KernelNode(const Observation& o) { return StrCat("kernel ", o.record.kernel); }

// The sets of kernels that are held back together, each named by one of its members: by kernel.
// Alternatives of a choice are together; with `by_model` also the kernels of a model.
std::map<std::string, std::string> Joined(const std::vector<Observation>& all, bool by_model) {
  std::map<std::string, std::string> parent;  // of kernels, choices and models
  auto root = [&parent](std::string of) {
    while (parent.at(of) != of) of = parent[of] = parent.at(parent.at(of));
    return of;
  };
  auto join = [&](const std::string& kernel, const std::string& other) {
    parent.emplace(other, other);
    parent[root(kernel)] = root(other);
  };
  for (const Observation& o : all) {
    const std::string kernel = KernelNode(o);
    parent.emplace(kernel, kernel);
    if (!o.choice.empty()) join(kernel, StrCat("choice ", o.choice));
    if (by_model && !o.model.empty()) join(kernel, StrCat("model ", o.model));
  }
  std::map<std::string, std::string> out;
  for (const Observation& o : all) out[KernelNode(o)] = root(KernelNode(o));
  return out;
}

// Deals the sets out in the order of their digests. Where all models share kernels, sets are of
// kernels.
void SetFolds(std::vector<Observation>* all) {
  std::map<std::string, size_t> folds;
  std::map<std::string, std::string> set_of;
  for (const bool by_model : {true, false}) {
    set_of = Joined(*all, by_model);
    std::map<Digest, std::string> sets;
    for (const auto& [kernel, set] : set_of) sets[Sha256(set)] = set;
    folds.clear();
    size_t next = 0;
    for (const auto& [digest, set] : sets) folds[set] = next++ % kFolds;
    if (sets.size() > 1) break;
  }
  for (Observation& o : *all) o.fold = folds.at(set_of.at(KernelNode(o)));
}

}  // namespace

ErrorSummary SummariseErrors(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  return {.timings = static_cast<int64_t>(errors.size()),
          .median = QuantileOfSorted(errors, 0.5),
          .p90 = QuantileOfSorted(errors, 0.9)};
}

CountsTimings TimingsForTenant(std::string_view tenant) {
  return [tenant = std::string(tenant)](const KernelTimings& timings) {
    return timings.tenant.empty() || timings.tenant == tenant;
  };
}

CountsTimings TimingsForScope(std::string_view scope) {
  if (!scope.empty()) return TimingsForTenant(scope);
  return [](const KernelTimings& timings) { return timings.tenant.empty() || timings.trusted; };
}

absl::StatusOr<std::map<TimedDevice, DeviceObservations>> ReadObservations(
    const std::vector<Digest>& keys, const ReadTimings& read, const CountsTimings& counts,
    const CancelToken& cancel) {
  std::map<TimedDevice, DeviceObservations> by_device;
  int64_t counted = 0;
  bool complete = true;
  for (const Digest& key : keys) {
    RETURN_IF_ERROR(cancel.Check());
    std::optional<KernelTimings> found = read(key);
    if (!found.has_value() || found->times.samples_us.empty() || !counts(*found)) continue;
    TimingRecord record = RecordOf(*found);
    if (const double us = TimeOf(record.terms, {}); !(us > 0) || !std::isfinite(us)) continue;
    if (++counted > kMaxReadTimings) {
      complete = false;
      break;
    }
    DeviceObservations& of = by_device[found->device];
    if (static_cast<int64_t>(of.observations.size()) == kMaxFittedTimings) {
      of.complete = false;
      continue;
    }
    of.observations.push_back({.record = std::move(record),
                               .model = std::move(found->model_name),
                               .choice = found->choice == Digest() ? "" : found->choice.ToHex(),
                               .bound = std::move(found->bound),
                               .machine = std::move(found->machine),
                               .clock_ghz = found->clock_ghz,
                               .tenant = std::move(found->tenant)});
  }
  for (auto& [device, of] : by_device) {
    of.complete &= complete;
    SetFolds(&of.observations);
  }
  return by_device;
}

}  // namespace fusion
