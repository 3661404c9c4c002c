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

/// Expressions in a normal form that does not see how they were written: sums of products of powers
/// of atoms, where an atom is a leaf or a function of normal forms. a * b - b * a is 0, e^a * e^b
/// is e^(a + b), 2^a is e^(a ln 2), min is -max of negatives. Float arithmetic is taken as exact:
/// coefficients that differ by no more than a few roundings of doubles are equal, so that the order
/// in which they were multiplied does not show. Numbers that a narrower type has rounded stay
/// apart: what differs by 1e-7 of a large value is no rounding of the result. Equal forms have
/// equal numbers. Not thread-safe.
class PolynomialPool {
 public:
  using Id = int;
  struct Monomial {
    double coefficient = 1;
    std::vector<std::pair<int, int>> powers;  // (atom, power), by atom; no power 0
  };
  using Polynomial = std::vector<Monomial>;
  struct Atom {
    ScalarOp op = ScalarOp::kInput;  // kMax: any number of args
    std::vector<Id> args;
    std::string leaf;  // kInput, kAxis, kWithin, kConst (infinities, bools): its text
  };

  /// `definition(i)`: what in<i> stands for in terms of other leaves; empty: nothing.
  explicit PolynomialPool(std::function<Expr(int)> definition)
      : definition_(std::move(definition)) {}

  /// The normal form of an expression.
  Id Of(const Expr& e);
  Id Add(Id a, Id b, double factor = 1);  // a + factor * b
  Id Multiply(Id a, Id b);

  const Polynomial& polynomial(Id id) const { return polynomials_[static_cast<size_t>(id)]; }
  const Atom& atom(int id) const { return atoms_[static_cast<size_t>(id)]; }

  /// The degree of each monomial in the leaves `of` (inside selects that of what is selected) and
  /// whether leaves of `others` occur beside them; empty if one of `of` is inside another function.
  using Degrees = std::set<std::pair<int, bool>>;
  std::optional<Degrees> DegreesIn(Id id, const std::set<std::string>& of,
                                   const std::set<std::string>& others);
  /// The leaves that occur.
  void CollectLeaves(Id id, std::set<std::string>* out) const;

  /// True if the value never exceeds some number, whatever the leaves are (NaN aside). False too
  /// where many choices inside each other would have to be tried.
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
  std::set<double> numbers_;  // that coefficients are, other than whole ones
  std::vector<Polynomial> polynomials_;
  std::unordered_map<std::string, Id> id_of_;
  std::vector<Atom> atoms_;
  std::unordered_map<std::string, int> atom_of_;
  std::unordered_map<const void*, Id> known_;
  std::vector<Expr> alive_;  // so that identities in known_ stay theirs
  int bound_steps_ = 0;      // left for the bound that is sought
};

}  // namespace fusion
