#pragma once

#include <cstdint>
#include <map>
#include <string>

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
  double ProductOf(const std::string& type) const {
    auto known = product.find(type);
    return known == product.end() ? 1 : known->second;
  }

  bool operator==(const CostFactors&) const = default;
};

/// Least and largest factor of the constants.
inline constexpr double kLeastCostFactor = 1.0 / 64;
inline constexpr double kMostCostFactor = 64;

/// The constants that a plan was made with: those of the device's spec, times factors that a server
/// fitted to measurements (core/learn). It is no part of a plan's key.
struct PlanCalibration {
  int64_t epoch = 0;  // number of the set of factors (Epoch::number); 0: the spec alone
  CostFactors factors;

  bool operator==(const PlanCalibration&) const = default;
};

}  // namespace fusion
