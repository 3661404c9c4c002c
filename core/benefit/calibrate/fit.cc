#include "core/benefit/calibrate/fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/base/statistics/quantile.h"
#include "core/benefit/calibrate/robust.h"

namespace fusion {
namespace {

// Steps of the iteration, which ends when no factor changes by more than 0.01 %.
constexpr int kMaxSteps = 100;
constexpr double kSmallStep = 1e-4;
// For derivatives of ln(time) by ln(factor): the time is linear in a factor but for two maxima.
constexpr double kDifference = 1e-4;

// One kernel as one voter measured it.
struct Observation {
  const TimingRecord* record = nullptr;
  double ln_us = 0;
  double weight = 0;
  size_t voter = 0;
};

bool IsTime(double us) { return std::isfinite(us) && us > 0; }

// The factors as a vector of their logarithms.
class Parameters {
 public:
  explicit Parameters(const std::vector<Observation>& observations) {
    std::set<std::string> types;
    for (const Observation& o : observations) {
      if (o.record->terms.product_us > 0) types.insert(o.record->terms.product_type);
    }
    types_.assign(types.begin(), types.end());
  }

  size_t size() const { return kCommon + types_.size(); }

  CostFactors Factors(const std::vector<double>& x) const {
    CostFactors out{.launch = std::exp(x[0]),
                    .barrier = std::exp(x[1]),
                    .task = std::exp(x[2]),
                    .element = std::exp(x[3]),
                    .local = std::exp(x[4]),
                    .shared = std::exp(x[5]),
                    .memory = std::exp(x[6])};
    for (size_t t = 0; t < types_.size(); ++t) out.product[types_[t]] = std::exp(x[kCommon + t]);
    return out;
  }

 private:
  static constexpr size_t kCommon = 7;
  std::vector<std::string> types_;
};

// Medians by voter and kernel. The weights of all voters are equal, and sum up to the number of
// different kernels, so that the prior keeps its meaning.
std::vector<Observation> Merge(const std::vector<TimingRecord>& records, const FitOptions& options,
                               std::vector<std::string>* voters) {
  std::map<std::string, std::map<std::string, std::vector<const TimingRecord*>>> merged;
  std::set<std::string> kernels;
  for (const TimingRecord& r : records) {
    if (!IsTime(r.measured_us) || !IsTime(TimeOf(r.terms, {}))) continue;
    merged[r.voter][r.kernel].push_back(&r);
    kernels.insert(r.kernel);
  }
  std::vector<Observation> out;
  for (const auto& [voter, by_kernel] : merged) {
    double total = 0;
    const size_t first = out.size();
    for (const auto& [kernel, same] : by_kernel) {
      std::vector<double> ln_us;
      std::vector<double> spreads;
      for (const TimingRecord* r : same) {
        ln_us.push_back(std::log(r->measured_us));
        spreads.push_back(r->spread);
      }
      const double spread = Quantile(std::move(spreads), 0.5) / options.huber;
      out.push_back({.record = same.front(),
                     .ln_us = Quantile(std::move(ln_us), 0.5),
                     .weight = 1 / (1 + spread * spread),
                     .voter = voters->size()});
      total += out.back().weight;
    }
    const double share = static_cast<double>(kernels.size()) / static_cast<double>(merged.size());
    for (size_t i = first; i < out.size(); ++i) out[i].weight *= share / total;
    voters->push_back(voter);
  }
  return out;
}

// ln of how much slower each voter is than the others, by the kernels that several voters measured:
// its median distance from the median of these voters, shrunk like residuals. So what differs
// between kernels is not taken for a difference between machines. 0 without such kernels.
std::vector<double> OffsetsOf(const std::vector<Observation>& observations, size_t voters,
                              const FitOptions& options) {
  std::map<std::string, std::vector<const Observation*>> by_kernel;
  for (const Observation& o : observations) by_kernel[o.record->kernel].push_back(&o);
  std::vector<std::vector<double>> distances(voters);
  for (const auto& [kernel, all] : by_kernel) {
    if (all.size() < 2) continue;
    std::vector<double> ln_us;
    for (const Observation* o : all) ln_us.push_back(o->ln_us);
    const double middle = Quantile(std::move(ln_us), 0.5);
    for (const Observation* o : all) distances[o->voter].push_back(o->ln_us - middle);
  }
  std::vector<double> out(voters, 0);
  for (size_t v = 0; v < voters; ++v) {
    if (distances[v].empty()) continue;
    const auto n = static_cast<double>(distances[v].size());
    out[v] = Quantile(std::move(distances[v]), 0.5) * n / (n + options.shrinkage);
  }
  return out;
}

class Fitter {
 public:
  Fitter(std::vector<Observation> observations, size_t voters, const FitOptions& options)
      : observations_(std::move(observations)),
        options_(options),
        parameters_(observations_),
        x_(parameters_.size(), 0),
        offsets_(OffsetsOf(observations_, voters, options)) {}

  void Run() {
    for (int step = 0; step < kMaxSteps && Step(); ++step) {
    }
  }

  CostFactors factors() const { return parameters_.Factors(x_); }
  const std::vector<double>& offsets() const { return offsets_; }
  const std::vector<Observation>& observations() const { return observations_; }
  // As a machine without an offset would have measured it.
  double MeasuredUs(const Observation& o) const { return std::exp(o.ln_us - offsets_[o.voter]); }

 private:
  double LeftOf(const Observation& o, const CostFactors& factors) const {
    return o.ln_us - std::log(TimeOf(o.record->terms, factors)) - offsets_[o.voter];
  }

  double Loss(const std::vector<double>& x) const {
    const CostFactors factors = parameters_.Factors(x);
    double loss = 0;
    for (const Observation& o : observations_) loss += o.weight * HuberOf(LeftOf(o, factors));
    for (double value : x) loss += options_.prior_records * HuberOf(value);
    return loss;
  }

  double HuberOf(double r) const {
    const double huber = options_.huber;
    return std::abs(r) <= huber ? r * r / 2 : huber * (std::abs(r) - huber / 2);
  }
  // The weight with which the square of `r` has the slope of HuberOf.
  double HuberWeight(double r) const {
    return std::min(1.0, options_.huber / std::max(std::abs(r), 1e-12));
  }

  // One Levenberg-Marquardt step on the reweighted problem; false if none makes the loss smaller.
  bool Step() {
    const size_t n = x_.size();
    const CostFactors now = factors();
    std::vector<std::vector<double>> normal(n, std::vector<double>(n, 0));
    std::vector<double> right(n, 0);
    for (size_t i = 0; i < n; ++i) {
      normal[i][i] = options_.prior_records * HuberWeight(x_[i]);
      right[i] = -normal[i][i] * x_[i];
    }
    std::vector<CostFactors> moved;
    for (size_t i = 0; i < n; ++i) {
      std::vector<double> x = x_;
      x[i] += kDifference;
      moved.push_back(parameters_.Factors(x));
    }
    for (const Observation& o : observations_) {
      const double ln_time = std::log(TimeOf(o.record->terms, now));
      const double r = LeftOf(o, now);
      const double weight = o.weight * HuberWeight(r);
      std::vector<double> slope(n);
      for (size_t i = 0; i < n; ++i) {
        slope[i] = (std::log(TimeOf(o.record->terms, moved[i])) - ln_time) / kDifference;
      }
      for (size_t i = 0; i < n; ++i) {
        right[i] += weight * slope[i] * r;
        for (size_t j = 0; j < n; ++j) normal[i][j] += weight * slope[i] * slope[j];
      }
    }
    const double loss = Loss(x_);
    for (; damping_ < 1e6; damping_ *= 10) {
      const std::vector<double> step = Solve(normal, right, damping_);
      std::vector<double> x = x_;
      double largest = 0;
      for (size_t i = 0; i < n; ++i) {
        x[i] = std::clamp(x[i] + step[i], std::log(kLeastCostFactor), std::log(kMostCostFactor));
        largest = std::max(largest, std::abs(x[i] - x_[i]));
      }
      if (!(Loss(x) < loss)) continue;  // also NaN
      x_ = std::move(x);
      damping_ = std::max(damping_ / 10, 1e-6);
      return largest >= kSmallStep;
    }
    damping_ = 1e-3;
    return false;
  }

  // (normal + damping * diagonal) * step = right, by Gaussian elimination with pivots. The matrix
  // is positive definite, because of the prior.
  static std::vector<double> Solve(std::vector<std::vector<double>> a, std::vector<double> b,
                                   double damping) {
    const size_t n = b.size();
    for (size_t i = 0; i < n; ++i) a[i][i] *= 1 + damping;
    for (size_t i = 0; i < n; ++i) {
      for (size_t row = i + 1; row < n; ++row) {
        const double times = a[row][i] / a[i][i];
        for (size_t j = i; j < n; ++j) a[row][j] -= times * a[i][j];
        b[row] -= times * b[i];
      }
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t j = i + 1; j < n; ++j) b[i] -= a[i][j] * b[j];
      b[i] /= a[i][i];
    }
    return b;
  }

  std::vector<Observation> observations_;
  const FitOptions& options_;
  Parameters parameters_;
  std::vector<double> x_;
  std::vector<double> offsets_;  // ln, by voter
  double damping_ = 1e-3;
};

// Each voter has a location over its kernels of the class; the residual is their median.
std::map<KernelClass, Residual> FitResiduals(const Fitter& fitter, const FitOptions& options) {
  struct Members {
    std::map<size_t, std::vector<double>> left;  // by voter
    std::set<std::string> kernels;
  };
  const CostFactors factors = fitter.factors();
  std::map<KernelClass, Members> members;
  for (const Observation& o : fitter.observations()) {
    const CostTerms terms = Scaled(o.record->terms, factors);
    const std::string bound = ClassBoundOf(terms);
    const double start = StartOf(terms);
    const double work = TimeOf(terms, {}) - start;
    if (work <= start) continue;  // says more about the launch
    const double least =
        work * kLeastResidual / 2;  // where the launch was faster than it is fitted
    Members& of = members[{bound, o.record->form}];
    of.left[o.voter].push_back(std::log(std::max(fitter.MeasuredUs(o) - start, least) / work));
    of.kernels.insert(o.record->kernel);
  }
  std::map<KernelClass, Residual> out;
  for (const auto& [of, all] : members) {
    std::vector<double> locations;
    for (const auto& [voter, ln] : all.left) locations.push_back(HodgesLehmann(ln));
    const auto n = static_cast<double>(all.kernels.size());
    const double ln = Quantile(std::move(locations), 0.5) * n / (n + options.shrinkage);
    out[of] = {.factor = std::clamp(std::exp(ln), kLeastResidual, kMostResidual),
               .kernels = static_cast<int64_t>(all.kernels.size()),
               .voters = static_cast<int64_t>(all.left.size())};
  }
  return out;
}

}  // namespace

DeviceFit FitDevice(const std::vector<TimingRecord>& records, const FitOptions& options) {
  DeviceFit out;
  std::vector<std::string> voters;
  std::vector<Observation> observations = Merge(records, options, &voters);
  if (observations.empty()) return out;
  Fitter fitter(std::move(observations), voters.size(), options);
  fitter.Run();
  out.factors = fitter.factors();
  out.residuals = FitResiduals(fitter, options);
  for (const auto& [of, residual] : out.residuals) out.factors.classes[of] = residual.factor;
  for (size_t v = 0; v < voters.size(); ++v) {
    out.machines[voters[v]] = std::exp(fitter.offsets()[v]);
  }
  std::set<std::string> kernels;
  std::vector<Weighted> before;
  std::vector<Weighted> after;
  for (const Observation& o : fitter.observations()) {
    const TimingRecord& r = *o.record;
    kernels.insert(r.kernel);
    const double ln_us = o.ln_us - fitter.offsets()[o.voter];
    before.push_back({std::abs(ln_us - std::log(TimeOf(r.terms, {}))), o.weight});
    const double expected = ExpectedUs(r.terms, r.form, out.factors);
    after.push_back({std::abs(ln_us - std::log(expected)), o.weight});
  }
  out.records = static_cast<int64_t>(records.size());
  out.kernels = static_cast<int64_t>(kernels.size());
  out.error_before = WeightedMedian(std::move(before));
  out.error_after = WeightedMedian(std::move(after));
  return out;
}

}  // namespace fusion
