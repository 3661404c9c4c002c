#pragma once

#include <cstdint>
#include <string_view>

namespace fusion {

/// The laws of scalar arithmetic that the separation of expressions may use. A test disables them
/// one by one.
enum class AlgebraRule : uint8_t {
  kProduct,          // factors of a * b are those of a and of b
  kQuotient,         // a / b = a * b^-1; (a * b)^-1 = a^-1 * b^-1
  kSum,              // addends of a + b, a - b, -a are those of a and of b
  kCommonFactor,     // a * h + b * h = (a + b) * h
  kDistribute,       // (a + b) * c = a * c + b * c
  kSeparateSums,     // sum(a * h + b * g) = h * sum(a) + g * sum(b)
  kShift,            // a sum of a polynomial in h is updated by derivatives in h (Taylor)
  kExpOfSum,         // e^(a + h) = e^a * e^h
  kPowerOfConstant,  // c^a = e^(a * ln c), c > 0
  kExpOfLog,         // e^(log h) = h, e^(-log h) = 1 / h, e^(c log h) = h^c
  kLogOfProduct,     // log(a * h) = log a + log h
  kSelect,           // c ? a * h : b * h = (c ? a : b) * h; 0 has every factor
  kPositiveFactor,   // max(a * h, b * h) = max(a, b) * h, |a * h| = |a| * h, a * h < b * h, h >= 0
  kSharedAddend,     // max(a + h, b + h) = max(a, b) + h
  kRootOfProduct,    // sqrt(a * h) = sqrt(a) * sqrt(h), a, h >= 0
  kWidening,         // a cast to a wider type keeps every value
  kUnrounded,        // a value between two ops may keep more digits than its type has
  kExtremumBounds,   // x <= max x, so e^(x - max x) <= 1
  kMonotoneState,    // a running maximum never falls, nor does a sum of non-negative elements
  kFiniteState,      // a state that starts at infinity is clamped to the finite numbers
};
inline constexpr int kAlgebraRuleCount = static_cast<int>(AlgebraRule::kFiniteState) + 1;

/// A set of allowed laws. A value.
class AlgebraRules {
 public:
  /// Allows all laws.
  AlgebraRules() = default;
  AlgebraRules Without(AlgebraRule rule) const {
    AlgebraRules rules = *this;
    rules.off_ |= Bit(rule);
    return rules;
  }
  bool Has(AlgebraRule rule) const { return (off_ & Bit(rule)) == 0; }

 private:
  static uint32_t Bit(AlgebraRule rule) { return uint32_t{1} << static_cast<int>(rule); }
  uint32_t off_ = 0;
};

}  // namespace fusion
