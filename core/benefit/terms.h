#pragma once

#include <string>

#include "core/bundle/cost_factors.h"
#include "core/bundle/cost_terms.h"
#include "core/bundle/plan.h"
#include "core/device/device_spec.h"

namespace fusion {

/// The terms of the estimate of a kernel with `phases` phases. `device`: the spec that the estimate
/// was made with.
CostTerms TermsOf(const Estimate& estimate, int phases, const std::string& product_type,
                  const DeviceSpec& device);

/// The time of a kernel with these factors, but those of classes: the formula of EstimateKernel,
/// and CostTerms::serial_us. With factors of 1 it is Estimate::time_us, also for phases in sequence
/// or in a pipeline.
double TimeOf(const CostTerms& terms, const CostFactors& factors);

/// The part of the time that starting the kernel, its phases and its tasks takes.
double StartOf(const CostTerms& terms);

/// The largest term of what a kernel does once it runs: "products", "elements", "private caches",
/// "shared cache", "memory", "idle units". Empty if all are 0. A factor on the work does not change
/// it (KernelClass).
std::string ClassBoundOf(const CostTerms& terms);

/// The time of a kernel of that form with all factors, classes included. The class is that of the
/// scaled terms.
double ExpectedUs(const CostTerms& terms, const std::string& form, const CostFactors& factors);

/// The terms that TermsOf would give if the estimate had been made with these factors, but those of
/// classes.
CostTerms Scaled(const CostTerms& terms, const CostFactors& factors);

/// 1 / each factor, without classes: Scaled(Scaled(terms, f), Inverse(f)) are `terms`, up to
/// rounding.
CostFactors Inverse(const CostFactors& factors);

/// The spec with its constants multiplied by `factors`. EstimateKernel with the result gives the
/// times of ExpectedUs. They may differ a little for a kernel whose segments have products and
/// element-wise operations in different shares, since these share the loss of the last wave.
DeviceSpec Calibrated(const DeviceSpec& spec, const CostFactors& factors);

/// The estimate with arithmetic, memory, stall and tiling loss multiplied by `factor`. Launches,
/// bytes and operations stay.
Estimate WithWork(const Estimate& estimate, double factor);

/// The terms with the constants of the spec, of an estimate that was made with `device` =
/// Calibrated(spec, factors). For kernels in sequence, which may be of several classes, the class
/// of the whole counts.
CostTerms SpecTermsOf(const Estimate& estimate, int phases, const std::string& product_type,
                      const std::string& form, const DeviceSpec& device,
                      const CostFactors& factors);

}  // namespace fusion
