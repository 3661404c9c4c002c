#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fusion {

/// A class of kernels whose estimates are wrong in the same way.
struct KernelClass {
  std::string bound;  // the largest term of the time: ClassBoundOf (core/benefit/terms.h)
  std::string form;   // FormOf (core/benefit/kernel_form.h)

  auto operator<=>(const KernelClass&) const = default;
};

/// Factors on the constants of a device spec; 1: as in the spec. Above 1 the device is slower than
/// its spec says.
struct CostFactors {
  double launch = 1;   // of launch_s, call_s, relaunch_s
  double barrier = 1;  // of barrier_s
  double task = 1;     // of task_s and exchange_s
  double element = 1;  // per element-wise operation, of every type
  double local = 1;    // per byte that a private cache may hold; the spec: as of the shared level
  double shared = 1;   // per byte of the first shared level
  double memory = 1;   // per byte of the last level
  /// Per product operation, by type of the products ("f32", "bf16", "i8").
  std::map<std::string, double> product = {};
  /// On arithmetic and traffic of the kernels of a class, kLeastResidual..kMostResidual: what the
  /// constants leave. What starting a kernel takes is not in it.
  std::map<KernelClass, double> classes = {};

  /// The factor of products of `type`; 1 if there is none.
  double ProductOf(const std::string& type) const {
    auto known = product.find(type);
    return known == product.end() ? 1 : known->second;
  }
  /// The factor of the class; 1 if there is none.
  double ClassOf(const KernelClass& of) const {
    auto known = classes.find(of);
    return known == classes.end() ? 1 : known->second;
  }

  bool operator==(const CostFactors&) const = default;
};

/// The factors but those of classes, each with its name: "launch", "barrier", "task", "elements",
/// "private caches", "shared cache", "memory", "products of f32".
std::vector<std::pair<std::string, double>> NamedFactors(const CostFactors& factors);

/// Least and largest factor of the constants.
inline constexpr double kLeastCostFactor = 1.0 / 64;
inline constexpr double kMostCostFactor = 64;
/// Least and largest factor of a class.
inline constexpr double kLeastResidual = 0.5;
inline constexpr double kMostResidual = 2;

/// The constants that a plan was made with: those of the device's spec, times factors that a server
/// fitted to measurements (core/learn). It is no part of a plan's key.
struct PlanCalibration {
  int64_t epoch = 0;  // number of the set of factors (Epoch::number); 0: the spec alone
  CostFactors factors;

  bool operator==(const PlanCalibration&) const = default;
};

}  // namespace fusion
