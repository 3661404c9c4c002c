#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/bundle/cost_terms.h"
#include "core/bundle/plan.h"
#include "core/device/device_spec.h"

namespace fusion {

/// Factors on the constants of a device spec; 1: as in the spec. Above 1 the device is slower than
/// its spec says.
struct CostFactors {
  double launch = 1;   // of launch_s, call_s, relaunch_s
  double barrier = 1;  // of barrier_s
  double task = 1;     // of task_s and exchange_s
  double element = 1;  // per element-wise operation, of every type
  double shared = 1;   // per byte of the first shared level
  double memory = 1;   // per byte of the last level
  /// Per product operation, by type of the products ("f32", "bf16", "i8").
  std::map<std::string, double> product = {};

  /// The factor of products of `type`; 1 if there is none.
  double ProductOf(const std::string& type) const;

  bool operator==(const CostFactors&) const = default;
};

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

/// The spec with its constants multiplied by `factors`. EstimateKernel with the result gives the
/// times of TimeOf. They may differ a little for a kernel whose segments have products and
/// element-wise operations in different shares, since these share the loss of the last wave.
DeviceSpec Calibrated(const DeviceSpec& spec, const CostFactors& factors);

}  // namespace fusion
