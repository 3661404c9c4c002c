#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// A size that depends on symbols: a polynomial with integer coefficients. Sums of dims, strides
/// (products of dims) and offsets have this form. Value type. Two are equal iff they are equal for
/// every value of the symbols. Coefficients that leave the range of int64_t saturate.
class SizeExpr {
 public:
  /// coefficient * product of `symbols`. Symbols are ascending; a symbol occurs as often as its
  /// power.
  struct Term {
    int64_t coefficient = 0;
    std::vector<int> symbols;
    bool operator==(const Term&) const = default;
  };

  SizeExpr() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a size
  SizeExpr(int64_t constant);
  /// Adds up terms with equal symbols. The symbols of a term may be in any order.
  static SizeExpr Sum(std::vector<Term> terms);

  const std::vector<Term>& terms() const { return terms_; }
  bool is_static() const {
    return terms_.empty() || (terms_.size() == 1 && terms_[0].symbols.empty());
  }
  /// The symbol, if the expression is exactly one symbol; else -1.
  int AsSymbol() const;
  /// One more than the largest symbol.
  int symbols() const;

  SizeExpr operator-(const SizeExpr& other) const;
  bool operator==(const SizeExpr&) const = default;

  /// The size where symbol i is values[i]; nullopt if the magnitude of the size or of an
  /// intermediate result exceeds 2^62. `values` must have an element for every symbol.
  std::optional<int64_t> Evaluate(const std::vector<int64_t>& values) const;
  /// A lower bound of the size for symbol i in [least[i], most[i]] (both >= 0); nullopt if an
  /// intermediate result exceeds 2^62. Exact if no symbol occurs in both a positive and a
  /// negative term of the polynomial, either in the symbols themselves, or in the differences
  /// symbol - least, or in the differences most - symbol.
  std::optional<int64_t> LowerBound(const std::vector<int64_t>& least,
                                    const std::vector<int64_t>& most) const;

  /// "s0*s1*64 + s1 - 1", with `names[i]` for symbol i; symbols without a name are s<i>.
  std::string ToString(const std::vector<std::string>& names = {}) const;

 private:
  std::vector<Term> terms_;  // no zero coefficients; longest products first
};

/// Finds a polynomial with value values[i] where the symbols are points[i]. It has at most four
/// terms, of degree at most four, and fewer terms than there are points. nullopt if none is found.
///
/// The result can be wrong if the points are few or structured. It relies on two facts: sizes that
/// follow from shapes have few terms, and a wrong polynomial with as few terms agrees at more
/// points than it has terms only by coincidence. Prime coordinates make that unlikely. Counts steps
/// of the thread's job (core/base/threads/job.h).
std::optional<SizeExpr> FitSize(const std::vector<std::vector<int64_t>>& points,
                                const std::vector<int64_t>& values);

}  // namespace fusion
