#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/bundle/measured/kernel_timings.h"

namespace fusion {

/// |ln(measured / estimated)| over timings (kernels by machine and tenant): 0.1 is 10 % off. The
/// time of a machine that is slower than the others as a whole is divided by its factor
/// (MeasuredMachine). All 0 without timings.
struct ErrorSummary {
  int64_t timings = 0;
  double median = 0;
  double p90 = 0;

  bool operator==(const ErrorSummary&) const = default;
};

/// How wrong a constant of a device spec is: the measured cost divided by that of the spec.
struct FittedConstant {
  std::string name;   // as NamedFactors says
  double factor = 1;  // above 1: the device is slower than its spec says

  bool operator==(const FittedConstant&) const = default;
};

/// How wrong the estimates of a class of kernels remain with the fitted constants.
struct FittedClass {
  std::string bound;  // the largest term of the time with the fitted constants (KernelClass)
  std::string form;   // as PlanGroup::form
  double factor = 1;
  int64_t kernels = 0;
  int64_t voters = 0;

  bool operator==(const FittedClass&) const = default;
};

/// A machine of a tenant, relative to the median of all machines of its kind.
struct MeasuredMachine {
  std::string machine;
  std::string tenant;    // empty: the server itself
  double factor = 1;     // above 1: slower
  double clock_ghz = 0;  // as its latest report says; 0: unknown

  bool operator==(const MeasuredMachine&) const = default;
};

/// Measurements of one kind of device beside the estimates, and the constants that would fit them.
/// Plans are made with the constants of the spec.
struct DeviceAccuracy {
  TimedDevice device;
  int64_t timings = 0;     // kernels by voter
  int64_t kernels = 0;     // different ones
  int64_t models = 0;      // different names of models
  bool complete = true;    // false: there are more timings than are read (kMaxFittedTimings)
  ErrorSummary spec;       // with the constants of the spec
  ErrorSummary held_back;  // with constants fitted to the kernels of other models
  /// Of runs of whole plans: the measured median, and the sum of what is expected of the launches.
  /// `timings` counts plans. Those with registered kernels, loops or open dims do not count. Runs
  /// of a plan that tenants share are those of all callers, as in its PlanReport.
  ErrorSummary spec_plans;
  ErrorSummary held_back_plans;
  std::vector<FittedConstant> constants;  // fitted to all kernels
  std::vector<FittedClass> classes;
  std::vector<MeasuredMachine> machines;

  bool operator==(const DeviceAccuracy&) const = default;
};

}  // namespace fusion
