#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/algebra/polynomial.h"
#include "core/algebra/rules.h"

namespace fusion {

/// A leaf of an expression, classified by how it changes while one dim is processed tile by tile.
struct Leaf {
  enum Kind : uint8_t {
    kFixed,    // constant along the dim
    kSlice,    // varies along the dim
    kState,    // the partial result of a reduction along the dim: changes from tile to tile
    kRunning,  // an exponent over states (`element`) that stays inside an expression
    kCentre,   // a value over states (`element`) in which an expression is a polynomial
  };
  Kind kind = kFixed;
  /// kState: the reduced expression. kRunning, kCentre: the value, over states and fixed leaves.
  /// kFixed, kSlice: the element-wise definition of the leaf; empty if it is unknown.
  Expr element;
  std::string monoid;  // kState: how it is reduced: "sum", "max", "min", "prod", ...
  /// kState: it is also rescaled when other states change, so its Course is unknown.
  bool updated = false;
  /// kState: number of elements that the complete reduction folds.
  double points = 1;
};

/// Monotonicity of a value from tile to tile: it never falls (kRises), never rises (kFalls).
enum class Course : uint8_t { kConstant, kRises, kFalls, kUnknown };

/// The leaves of the expressions of a group, and properties of expressions over them: in<i> stands
/// for leaf(i). Results are memoised. Not thread-safe.
class Leaves {
 public:
  /// `extents`: size of each axis. `dim`: the axis that is processed tile by tile; coordinates
  /// along it vary, others are fixed.
  Leaves(std::vector<int64_t> extents, int dim, const AlgebraRules& rules)
      : extents_(std::move(extents)),
        dim_(dim),
        rules_(rules),
        pool_([this](int i) { return DefinitionOf(i); }) {}
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;

  /// Adds a leaf and returns in<i>.
  Expr Add(Leaf leaf, DType type);
  const Leaf& leaf(int index) const { return leaves_[static_cast<size_t>(index)]; }
  int size() const { return static_cast<int>(leaves_.size()); }
  const AlgebraRules& rules() const { return rules_; }
  int64_t extent(int axis) const { return extents_[static_cast<size_t>(axis)]; }

  /// The element-wise definition of a leaf of kind kFixed or kSlice; empty if it is unknown or the
  /// leaf has another kind.
  Expr DefinitionOf(int index) const {
    const Leaf& l = leaf(index);
    return l.kind == Leaf::kFixed || l.kind == Leaf::kSlice ? l.element : Expr();
  }

  /// `e`; if it is a leaf with a definition, that definition, resolved likewise.
  Expr Resolved(const Expr& e) const {
    Expr definition = e.op() == ScalarOp::kInput ? DefinitionOf(e.index()) : Expr();
    return definition.empty() ? e : Resolved(definition);
  }

  /// True if `e` depends on something that varies along the dim: a slice or a coordinate.
  bool HasSlice(const Expr& e) { return (Dependence(e) & kOnSlice) != 0; }
  /// True if `e` depends on states, directly or through running exponents or centres.
  bool HasState(const Expr& e) { return (Dependence(e) & kOnState) != 0; }

  /// True if `e` is known to be never negative (NaN aside). False if unknown, as for all the
  /// predicates below.
  bool IsNonNegative(const Expr& e) { return Memoised(e, &non_negative_, &Leaves::NonNegative); }
  /// The course of an expression over states and fixed leaves.
  Course CourseOf(const Expr& e) { return Memoised(e, &courses_, &Leaves::FindCourse); }
  /// True if the state of a maximum occurs in `e`. It starts far below every element, so the value
  /// may cross 0, where a reciprocal has a pole and is not monotone.
  bool BeginsBelowZero(const Expr& e) const;
  /// True if `e` never exceeds some number. Uses that no element exceeds its maximum
  /// (AlgebraRule::kExtremumBounds).
  bool IsBoundedAbove(const Expr& e);
  /// True if `e` is a polynomial in the leaves `distances` (indices), and the varying leaves of
  /// `elements` occur as factors in its terms of highest degree only.
  bool IsOfDistances(const Expr& e, const std::vector<int>& distances,
                     const std::vector<Expr>& elements);
  /// (a, b) if `e` is a + b * in<leaf> with constants a and b; else nullopt.
  std::optional<std::pair<double, double>> LineIn(const Expr& e, int leaf);
  /// True if two expressions have the same normal form (PolynomialPool), so the same value.
  bool AreEqual(const Expr& a, const Expr& b) { return pool_.Of(a) == pool_.Of(b); }

 private:
  enum : uint8_t { kOnSlice = 1, kOnState = 2 };
  uint8_t Dependence(const Expr& e) { return Memoised(e, &dependence_, &Leaves::FindDependence); }
  uint8_t FindDependence(const Expr& e);
  bool NonNegative(const Expr& e);
  Course FindCourse(const Expr& e);

  // Subexpressions are shared: each node is evaluated once.
  template <typename T>
  T Memoised(const Expr& e, std::unordered_map<const void*, T>* known,
             T (Leaves::*find)(const Expr&)) {
    auto at = known->find(e.id());
    if (at != known->end()) return at->second;
    T value = (this->*find)(e);
    known->emplace(e.id(), value);
    alive_.push_back(e);
    return value;
  }

  std::vector<int64_t> extents_;  // by axis
  int dim_;
  AlgebraRules rules_;
  std::vector<Leaf> leaves_;
  PolynomialPool pool_;
  std::unordered_map<const void*, uint8_t> dependence_;
  std::unordered_map<const void*, bool> non_negative_;
  std::unordered_map<const void*, Course> courses_;
  std::vector<Expr> alive_;  // keeps the keys (node addresses) of these maps valid
};

}  // namespace fusion
