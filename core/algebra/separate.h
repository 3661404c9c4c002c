#pragma once

#include <unordered_map>
#include <vector>

#include "core/algebra/leaves.h"
#include "core/base/refusal.h"

namespace fusion {

/// One term of a sum that an expression was separated into: rest * product of `factors`.
struct Term {
  /// Empty: the term is the product of its factors alone. May hold running exponents; holds states
  /// where nothing could separate them.
  Expr rest;
  std::vector<Expr> factors;  // over states and fixed leaves
  std::vector<int> running;   // leaves of exponents in `rest`, each a factor e^in<i> of the term
  /// Where this is false the term is 0 whatever its factors are, even where they are infinite or
  /// NaN: a mask over what they scale. Empty: they count everywhere.
  Expr present = {};

  bool HasRest() const { return !rest.empty(); }
};

/// An expression as a sum: `free` has no states, `states` nothing that varies along the dim.
struct Addends {
  Expr free;  // empty: 0
  std::vector<Expr> states;
  /// Where this is false the sum is an infinity whatever all of `states` are. Empty: they count
  /// everywhere.
  Expr present = {};
  bool mixed = false;  // no such form was found
};

/// Takes expressions over Leaves apart into what varies along the dim and what depends on states,
/// by the laws of AlgebraRules. Arithmetic is taken as exact. Not thread-safe.
class Separator {
 public:
  /// `leaves` outlives this object; running exponents are added to it.
  explicit Separator(Leaves* leaves) : leaves_(*leaves) {}

  /// `e` as a sum of terms, as few as the laws allow. A value without states is one term.
  std::vector<Term> Separate(const Expr& e);
  Addends SeparateSum(const Expr& e);

  /// Why the last expression that kept states in a rest could not be taken apart. Empty if there
  /// was none.
  const Refusal& obstacle() const { return obstacle_; }

 private:
  bool Has(AlgebraRule rule) const { return leaves_.rules().Has(rule); }
  std::vector<Term> Node(const Expr& e);
  std::vector<Term> Product(const Expr& e);
  std::vector<Term> Quotient(const Expr& numerator, const Expr& denominator, DType type);
  std::vector<Term> Sum(const Expr& e);
  std::vector<Term> Choice(const Expr& e);
  std::vector<Term> Extremum(const Expr& e);
  std::vector<Term> Absolute(const Expr& e);
  std::vector<Term> Root(const Expr& e);
  std::vector<Term> Exponential(const Expr& exponent, const Expr& original);
  std::vector<Term> Widened(const Expr& e);
  Expr Condition(const Expr& e);
  std::vector<Term> Mixed(const Expr& e, RefusalCode code = RefusalCode::kNotSeparable);
  int Running(const Expr& exponent, DType type);
  bool SameFactors(const Term& a, const Term& b);
  bool TakeOff(const Term& part, Term* whole);
  void Mask(const Expr& condition, Term* term);
  std::vector<Term> Joined(std::vector<Term> terms, DType type);
  bool Same(const Expr& a, const Expr& b) { return leaves_.AreEqual(a, b); }
  Expr Product(const std::vector<Expr>& factors, DType type);
  static Expr Negated(const Expr& e);
  bool SumParts(const Expr& e, double sign, Addends* out);
  bool ScaledSum(const Expr& e, double sign, bool first, Addends* out);
  bool SharedSum(const Expr& e, double sign, bool first, Addends* out);
  bool SumOfLogs(const Expr& e, double sign, Addends* out);
  static void AddFree(const Expr& e, double sign, Addends* out);
  static void AddState(const Expr& e, double sign, Addends* out);

  Leaves& leaves_;
  std::unordered_map<const void*, std::vector<Term>> known_;
  std::vector<Expr> alive_;
  Refusal obstacle_;
  bool in_sum_ = false;
  int sum_steps_ = 0;  // left for the sum that is being taken apart
};

/// The product of a term's rest and factors.
Expr Whole(const Term& term, DType type);

/// d e / d in<leaf>, simplified where an argument is 0 or 1. Empty if `e` has no derivative that is
/// again made of sums and products: in<leaf> is inside another function.
Expr Derivative(const Expr& e, int leaf);

}  // namespace fusion
