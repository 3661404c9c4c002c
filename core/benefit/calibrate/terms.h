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

/// The time of a kernel with these factors: the formula of EstimateKernel, and
/// CostTerms::serial_us. With factors of 1 it is Estimate::time_us, also for phases in sequence or
/// in a pipeline.
double TimeOf(const CostTerms& terms, const CostFactors& factors);

/// The terms that TermsOf would give if the estimate had been made with these factors.
CostTerms Scaled(const CostTerms& terms, const CostFactors& factors);

/// 1 / each factor: Scaled(Scaled(terms, f), Inverse(f)) are `terms`, up to rounding.
CostFactors Inverse(const CostFactors& factors);

/// The spec with its constants multiplied by `factors`. EstimateKernel with the result gives the
/// times of TimeOf. They may differ a little for a kernel whose segments have products and
/// element-wise operations in different shares, since these share the loss of the last wave.
DeviceSpec Calibrated(const DeviceSpec& spec, const CostFactors& factors);

}  // namespace fusion
