#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/op/body/expr.h"

namespace fusion {

/// Interned normal forms of expressions, independent of how these were written: sums of products of
/// powers of atoms, where an atom is a leaf or a function of normal forms. a * b - b * a is 0,
/// e^a * e^b is e^(a + b), 2^a is e^(a ln 2), min is -max of negatives. Equal forms have the same
/// Id.
///
/// Float arithmetic counts as exact. Coefficients that differ by a few roundings of doubles count
/// as equal, so the order of multiplications does not matter. Coefficients that differ by a
/// rounding of a narrower type (1e-7 relative) stay different: for large values that difference is
/// not a rounding error of the result. Not thread-safe.
class PolynomialPool {
 public:
  using Id = int;
  struct Monomial {
    double coefficient = 1;
    std::vector<std::pair<int, int>> powers;  // (atom, power), sorted by atom; powers are not 0
  };
  using Polynomial = std::vector<Monomial>;
  struct Atom {
    ScalarOp op = ScalarOp::kInput;  // kMax: any number of args
    std::vector<Id> args;
    std::string leaf;  // kInput, kAxis, kWithin, kConst (infinities, bools): its text
  };

  /// `definition(i)`: the definition of in<i> over other leaves; empty if it has none.
  explicit PolynomialPool(std::function<Expr(int)> definition)
      : definition_(std::move(definition)) {}

  /// The normal form of an expression.
  Id Of(const Expr& e);
  Id Add(Id a, Id b, double factor = 1);  // a + factor * b
  Id Multiply(Id a, Id b);

  const Polynomial& polynomial(Id id) const { return polynomials_[static_cast<size_t>(id)]; }
  const Atom& atom(int id) const { return atoms_[static_cast<size_t>(id)]; }

  /// For each monomial (for a select, of its branches): the degree in the leaves `of`, and whether
  /// leaves of `others` occur in it too. nullopt if one of `of` is inside another function. Leaves
  /// are given by their text, as in Atom::leaf.
  using Degrees = std::set<std::pair<int, bool>>;
  std::optional<Degrees> DegreesIn(Id id, const std::set<std::string>& of,
                                   const std::set<std::string>& others);
  /// Adds the leaves that occur in a form, by their text, to `out`.
  void CollectLeaves(Id id, std::set<std::string>* out) const;

  /// True if the value never exceeds some number, whatever the leaves are (NaN aside). False if
  /// that is unknown, or if nested max and select would need too many cases.
  bool IsBoundedAbove(Id id);

 private:
  Id Constant(double value);
  Id OfNode(const Expr& e);
  Id OfPower(const Expr& e);
  Id Exponential(Id exponent);
  Id Logarithm(Id argument);
  Id Maximum(Id a, Id b);
  Id Power(Id base, int power);
  Id Single(int atom, int power = 1, double coefficient = 1);
  double Representative(double value);
  Id Intern(Polynomial p);
  int InternAtom(Atom atom);
  Monomial Times(const Monomial& a, const Monomial& b);
  std::optional<Degrees> DegreesOf(const Monomial& m, const std::set<std::string>& of,
                                   const std::set<std::string>& others);
  bool BoundedAbove(Id id, int depth);
  bool BoundedTerm(const Monomial& m, int depth);

  std::function<Expr(int)> definition_;
  std::set<double> numbers_;  // representatives of coefficients that are not integers
  std::vector<Polynomial> polynomials_;
  std::unordered_map<std::string, Id> id_of_;
  std::vector<Atom> atoms_;
  std::unordered_map<std::string, int> atom_of_;
  std::unordered_map<const void*, Id> known_;
  std::vector<Expr> alive_;  // keeps the keys of known_ (node addresses) valid
  int bound_steps_ = 0;      // budget left of the current IsBoundedAbove
};

}  // namespace fusion
