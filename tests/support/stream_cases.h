#pragma once

#include <algorithm>
#include <array>
#include <iterator>

#include "tests/support/exponential_cases.h"
#include "tests/support/sum_cases.h"

namespace fusion {

/// All of them.
inline constexpr auto kStreamCases = [] {
  std::array<StreamCase, std::size(kExponentialCases) + std::size(kSumCases)> all{};
  auto end = std::copy(std::begin(kExponentialCases), std::end(kExponentialCases), all.begin());
  std::copy(std::begin(kSumCases), std::end(kSumCases), end);
  return all;
}();

}  // namespace fusion
