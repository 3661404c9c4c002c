#include "core/benefit/terms.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace fusion {
namespace {

constexpr double CostTerms::*kTimes[] = {
    &CostTerms::product_us, &CostTerms::element_us, &CostTerms::idle_us,   &CostTerms::spill_us,
    &CostTerms::serial_us,  &CostTerms::local_us,   &CostTerms::shared_us, &CostTerms::memory_us,
    &CostTerms::launch_us,  &CostTerms::barrier_us, &CostTerms::task_us};

double Arithmetic(const CostTerms& t) { return t.product_us + t.element_us; }
double Bytes(const CostTerms& t) { return t.local_us + t.shared_us + t.memory_us; }

}  // namespace

CostTerms TermsOf(const Estimate& e, int phases, const std::string& product_type,
                  const DeviceSpec& device) {
  CostTerms out{.product_type = product_type, .exposed = 1 - device.overlap};
  out.product_us = std::clamp(e.product_us, 0.0, e.compute_us);
  out.element_us = e.compute_us - out.product_us;
  out.idle_us = std::max(e.tiling_loss_us, 0.0);
  // Where no cache is shared, all traffic is that of the last level.
  const bool one_level = &device.SharedLevel() == &device.levels.back();
  out.memory_us = one_level ? e.memory_us : std::clamp(e.off_chip_us, 0.0, e.memory_us);
  out.local_us = one_level ? 0 : std::clamp(e.local_us, 0.0, e.memory_us - out.memory_us);
  out.shared_us = e.memory_us - out.memory_us - out.local_us;
  out.spill_us = std::max(0.0, e.stall_us - out.exposed * std::min(e.compute_us, e.memory_us));
  out.launch_us = std::min(device.launch_s * 1e6, e.launch_us);
  out.barrier_us = std::min((phases - 1) * device.barrier_s * 1e6, e.launch_us - out.launch_us);
  out.task_us = e.launch_us - out.launch_us - out.barrier_us;
  // Estimates of phases one by one, or in a pipeline, differ from those of one phase of that size.
  const double missing = e.time_us - TimeOf(out, {});
  if (missing >= 0) {
    out.serial_us = missing;
    return out;
  }
  const double factor = std::max(e.time_us, 0.0) / TimeOf(out, {});
  for (double CostTerms::*term : kTimes) out.*term *= factor;
  return out;
}

CostTerms Scaled(const CostTerms& t, const CostFactors& f) {
  CostTerms out = t;
  out.product_us *= f.ProductOf(t.product_type);
  out.element_us *= f.element;
  const double before = Arithmetic(t);
  const double growth = before > 0 ? Arithmetic(out) / before : 1;
  out.idle_us *= growth;
  out.spill_us *= growth;
  out.local_us *= f.local;
  out.shared_us *= f.shared;
  out.memory_us *= f.memory;
  const double both = before + Bytes(t);
  if (both > 0) out.serial_us *= (Arithmetic(out) + Bytes(out)) / both;
  out.launch_us *= f.launch;
  out.barrier_us *= f.barrier;
  out.task_us *= f.task;
  return out;
}

double TimeOf(const CostTerms& terms, const CostFactors& factors) {
  const CostTerms t = Scaled(terms, factors);
  const double arithmetic = Arithmetic(t);
  const double bytes = Bytes(t);
  return std::max(arithmetic, bytes) + t.exposed * std::min(arithmetic, bytes) + t.spill_us +
         t.idle_us + t.serial_us + StartOf(t);
}

double StartOf(const CostTerms& t) { return t.launch_us + t.barrier_us + t.task_us; }

std::string ClassBoundOf(const CostTerms& t) {
  const std::pair<double, std::string_view> kTerms[] = {
      {t.product_us, "products"},    {t.element_us, "elements"}, {t.local_us, "private caches"},
      {t.shared_us, "shared cache"}, {t.memory_us, "memory"},    {t.idle_us, "idle units"}};
  const auto& most =
      *std::max_element(std::begin(kTerms), std::end(kTerms),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
  return most.first > 0 ? std::string(most.second) : "";
}

double ExpectedUs(const CostTerms& terms, const std::string& form, const CostFactors& factors) {
  const CostTerms t = Scaled(terms, factors);
  const double us = TimeOf(t, {});
  if (factors.classes.empty()) return us;
  const double start = StartOf(t);
  return start + factors.ClassOf({ClassBoundOf(t), form}) * (us - start);
}

CostFactors Inverse(const CostFactors& f) {
  CostFactors out{.launch = 1 / f.launch,
                  .barrier = 1 / f.barrier,
                  .task = 1 / f.task,
                  .element = 1 / f.element,
                  .local = 1 / f.local,
                  .shared = 1 / f.shared,
                  .memory = 1 / f.memory};
  for (const auto& [type, factor] : f.product) out.product[type] = 1 / factor;
  return out;
}

DeviceSpec Calibrated(const DeviceSpec& spec, const CostFactors& f) {
  DeviceSpec out = spec;
  out.launch_s *= f.launch;
  out.relaunch_s *= f.launch;
  out.call_s *= f.launch;
  out.barrier_s *= f.barrier;
  out.task_s *= f.task;
  out.exchange_s *= f.task;
  out.flops_per_s /= f.ProductOf("f32");
  out.turn_s *= f.ProductOf("f32");
  out.scalar_ops_per_s /= f.element;
  for (auto& [type, unit] : out.other_types) {
    unit.rates.flops_per_s /= f.ProductOf(std::string(DTypeName(type)));
    unit.rates.scalar_ops_per_s /= f.element;
  }
  auto slow = [](double factor, MemoryLevel* level) {
    level->bytes_per_s /= factor;
    level->total_bytes_per_s /= factor;
  };
  const std::string shared = out.SharedLevel().name;
  for (MemoryLevel& level : out.levels) {
    if (&level == &out.levels.back()) {
      slow(f.memory, &level);
    } else if (level.name == shared) {
      slow(f.shared, &level);
    }
  }
  out.local_part = f.local / f.shared;
  for (const auto& [of, factor] : f.classes) out.class_factors[{of.bound, of.form}] = factor;
  return out;
}

Estimate WithWork(const Estimate& e, double factor) {
  Estimate out = e;
  for (double Estimate::*us :
       {&Estimate::compute_us, &Estimate::product_us, &Estimate::memory_us, &Estimate::off_chip_us,
        &Estimate::local_us, &Estimate::stall_us, &Estimate::tiling_loss_us}) {
    out.*us *= factor;
  }
  out.time_us = e.launch_us + factor * (e.time_us - e.launch_us);
  return out;
}

CostTerms SpecTermsOf(const Estimate& e, int phases, const std::string& product_type,
                      const std::string& form, const DeviceSpec& device,
                      const CostFactors& factors) {
  CostTerms terms = TermsOf(e, phases, product_type, device);
  const double factor = factors.ClassOf({ClassBoundOf(terms), form});
  if (factor != 1) terms = TermsOf(WithWork(e, 1 / factor), phases, product_type, device);
  return factors == CostFactors() ? terms : Scaled(terms, Inverse(factors));
}

}  // namespace fusion
