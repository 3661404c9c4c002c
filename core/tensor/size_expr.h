#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// A size that depends on symbols: a polynomial with whole coefficients, as sums of dims, strides
/// (products of dims) and offsets are. Value type; equal iff equal for every value of the symbols.
class SizeExpr {
 public:
  /// coefficient * product of `symbols`, ascending, each as often as its power.
  struct Term {
    int64_t coefficient = 0;
    std::vector<int> symbols;
    bool operator==(const Term&) const = default;
  };

  SizeExpr() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a number is a size
  SizeExpr(int64_t constant);
  /// Terms of equal symbols are added up.
  static SizeExpr Sum(std::vector<Term> terms);

  const std::vector<Term>& terms() const { return terms_; }
  bool is_static() const {
    return terms_.empty() || (terms_.size() == 1 && terms_[0].symbols.empty());
  }
  /// The symbol that this is, with nothing else; -1: it is more, or less.
  int AsSymbol() const;
  /// One more than the largest symbol.
  int symbols() const;

  SizeExpr operator-(const SizeExpr& other) const;
  bool operator==(const SizeExpr&) const = default;

  /// The size where symbol i has values[i]; nullopt beyond 2^62 either way. `values` holds all
  /// symbols.
  std::optional<int64_t> Evaluate(const std::vector<int64_t>& values) const;
  /// No less than this is the size where symbol i lies in [least[i], most[i]], which are not
  /// negative. Exact where no symbol is in terms of both signs, whether symbols are counted from 0,
  /// from their least or back from their most.
  std::optional<int64_t> LowerBound(const std::vector<int64_t>& least,
                                    const std::vector<int64_t>& most) const;

  /// "s0*s1*64 + s1 - 1" with these names of the symbols, s<i> for those that have none.
  std::string ToString(const std::vector<std::string>& names = {}) const;

 private:
  std::vector<Term> terms_;  // no zero coefficients; longest products first
};

/// The polynomial of few terms that has values[i] where the symbols have points[i]; nullopt if
/// there is none of at most four terms, of degree four. Sizes that follow from shapes have few
/// terms; another polynomial of as few that agrees with one on more points than it has terms would
/// be an accident, which points that are prime keep away.
std::optional<SizeExpr> FitSize(const std::vector<std::vector<int64_t>>& points,
                                const std::vector<int64_t>& values);

}  // namespace fusion
