#pragma once

#include <vector>

namespace fusion {

/// Spearman's rank correlation, -1..1; equal values share the mean of their ranks. 0 if all values
/// of `a` or of `b` are equal. Both have the same size, at least 2.
/// Source: C. Spearman, "The Proof and Measurement of Association between Two Things", American
/// Journal of Psychology 15 (1904).
double RankCorrelation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace fusion
