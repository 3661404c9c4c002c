#pragma once

#include <unordered_map>
#include <vector>

#include "core/algebra/leaves.h"
#include "core/base/refusal.h"

namespace fusion {

/// One term of the sum that an expression was separated into: `rest` times the product of
/// `factors`.
struct Term {
  /// The part that varies along the dim. Empty: 1. May contain running exponents. Contains states
  /// only if no law could separate them (Separator::obstacle).
  Expr rest;
  std::vector<Expr> factors;  // over states and fixed leaves
  std::vector<int> running;   // kRunning leaves i in `rest`, each a factor e^in<i> of the term
  /// A mask: where it is false the term is 0, even if its factors are infinite or NaN. Empty: no
  /// mask.
  Expr present = {};

  bool HasRest() const { return !rest.empty(); }
};

/// An expression as a sum: `free` contains no states, each of `states` contains nothing that varies
/// along the dim.
struct Addends {
  Expr free;  // empty: 0
  std::vector<Expr> states;
  /// Where it is false the sum is infinite whatever `states` are. Empty: no such mask.
  Expr present = {};
  bool mixed = false;  // no such form was found; the other fields mean nothing
};

/// Separates expressions over Leaves into parts that vary along the dim and parts that depend on
/// states, by the laws of AlgebraRules. Arithmetic counts as exact. Not thread-safe.
class Separator {
 public:
  /// `leaves` must outlive this object, which adds running exponents to it.
  explicit Separator(Leaves* leaves) : leaves_(*leaves) {}

  /// `e` as a sum of terms: terms with equal factors are merged. An expression without states is
  /// one term. Never fails: what no law separates becomes a rest with states, and sets obstacle().
  /// Memoised.
  std::vector<Term> Separate(const Expr& e);
  /// `e` as a sum of a part without states and parts without slices; Addends::mixed if the laws do
  /// not give such a sum.
  Addends SeparateSum(const Expr& e);

  /// Why the last expression with states in a rest could not be separated. Empty if there was no
  /// such expression.
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
  int sum_steps_ = 0;  // budget left of the current SeparateSum
};

/// The product of a term's rest and factors.
Expr Whole(const Term& term, DType type);

/// d e / d in<leaf>, simplified where an argument is 0 or 1. Empty if `e` has no
/// derivative made of sums and products alone: in<leaf> is inside another function.
Expr Derivative(const Expr& e, int leaf);

}  // namespace fusion
