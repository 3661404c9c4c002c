#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/benefit/terms.h"

namespace fusion {

/// A measured kernel, or a candidate that lost a race. A plain value.
struct TimingRecord {
  std::string voter;   // machine and tenant: however many records they send, they have one vote
  std::string kernel;  // equal for records of the same kernel
  std::string form;    // of the kernel: "product", "streamed product", "reduction", "element-wise"
  CostTerms terms;     // with the constants of the spec
  double measured_us = 0;  // median; above 0
  double spread = 0;  // half of the 95 % interval of the median, as a fraction of it; at least 0
};

/// By how much a class is still estimated wrongly with the fitted constants.
struct Residual {
  double factor = 1;    // CostFactors::classes
  int64_t kernels = 0;  // different ones that it is fitted to
  int64_t voters = 0;

  bool operator==(const Residual&) const = default;
};

/// Fitted constants of one device, with one number of threads and one instruction set.
struct DeviceFit {
  CostFactors factors;                        // with those of classes
  std::map<KernelClass, Residual> residuals;  // of all classes that were seen
  /// exp of the offset of each voter: above 1, it is slower than the others on the kernels that
  /// they share. Of three voters or more, one that is slow as a whole moves neither factors nor
  /// residuals. Of two, each is as far from the middle.
  std::map<std::string, double> machines;
  int64_t records = 0;
  int64_t kernels = 0;
  /// Over the kernels of the fit, with factors of 1 and as fitted: median of |ln(measured /
  /// (estimated
  /// * offset of the voter))|, by the weights of the fit.
  double error_before = 0;
  double error_after = 0;

  bool operator==(const DeviceFit&) const = default;
};

struct FitOptions {
  /// Pull of each factor towards 1: as many kernels whose time depends on that factor alone and
  /// that say 1. So a factor that few kernels depend on stays where the spec has it.
  double prior_records = 3;
  /// Beyond this ln ratio a record counts by its sign only (Huber's loss).
  double huber = 0.1;
  /// Residuals are shrunk by n / (n + shrinkage), n: kernels of the class.
  double shrinkage = 8;
};

/// Fits constants to records of one device.
///
///   m_i = exp(s_v(i) + noise) * (start_i + exp(r_class(i)) * (TimeOf(terms_i, exp(x)) - start_i))
///
/// start: StartOf the terms with the factors exp(x). Class: ClassBoundOf these terms, and the form.
///
/// 1. Records are merged by voter and kernel (median of ln m and of the spread). Each voter has the
///    same total weight; within it a kernel has the weight 1 / (1 + (spread / huber)^2).
/// 2. s, the offset of each voter: its median distance, over the kernels that several voters
///    measured, from the median of these voters, shrunk by n / (n + shrinkage).
/// 3. x, the ln of the factors: minimum of the sum of weights * Huber(residual) plus the prior
///    prior_records * Huber(x), by iteratively reweighted Levenberg-Marquardt steps.
///    Sources: P. J. Huber, "Robust Estimation of a Location Parameter", Annals of Mathematical
///    Statistics 35 (1964); D. W. Marquardt, "An Algorithm for Least-Squares Estimation of
///    Nonlinear Parameters", SIAM J. Appl. Math. 11 (1963).
/// 4. r, the residual of each class: HodgesLehmann over the kernels of each voter of
///    ln((m - start) / (TimeOf - start)), the median over voters, shrunk by the number of kernels,
///    clamped. Kernels that take longer to start than to run say nothing about it.
///
/// A pure function. Records of one voter and kernel must have equal terms and class; then the order
/// of the records does not matter. Time: about 0.3 s for 4,000 kernels (measured). Records whose
/// measured or estimated time is not positive and finite are left out. Without records all factors
/// are 1.
DeviceFit FitDevice(const std::vector<TimingRecord>& records, const FitOptions& options = {});

}  // namespace fusion
