#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/algebra/polynomial.h"
#include "core/algebra/rules.h"

namespace fusion {

/// What a leaf of an expression is to somebody who walks one dim tile by tile.
struct Leaf {
  enum Kind : uint8_t {
    kFixed,    // the same along the dim
    kSlice,    // varies along the dim
    kState,    // the partial result of a reduction along the dim: changes from tile to tile
    kRunning,  // an exponent made from states that stays inside an expression: `element`
    kCentre,   // what an expression is a polynomial in, made from states: `element`
  };
  Kind kind = kFixed;
  /// kState: what is reduced, and how. kRunning, kCentre: the value, over states and fixed leaves.
  /// kFixed, kSlice: what it was computed from, element by element; empty if nothing is known.
  Expr element;
  std::string monoid;
  /// kState: also multiplied when other states change, so that nothing is known of its course.
  bool updated = false;
  /// kState: how many elements the whole of it folds.
  double points = 1;
};

/// How a value goes on from tile to tile.
enum class Course : uint8_t { kConstant, kRises, kFalls, kUnknown };

/// The leaves of the expressions of a group, in<i> being leaves[i], and what follows from them. Not
/// thread-safe.
class Leaves {
 public:
  /// `extents`: how many places each axis has. `dim`: the axis that is walked; coordinates along it
  /// vary, others are fixed.
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

  /// What a fixed or varying leaf was computed from, element by element; empty if nothing is known.
  Expr DefinitionOf(int index) const {
    const Leaf& l = leaf(index);
    return l.kind == Leaf::kFixed || l.kind == Leaf::kSlice ? l.element : Expr();
  }

  /// The expression itself in place of a leaf that is known to stand for it.
  Expr Resolved(const Expr& e) const {
    Expr definition = e.op() == ScalarOp::kInput ? DefinitionOf(e.index()) : Expr();
    return definition.empty() ? e : Resolved(definition);
  }

  /// Whether an expression depends on something that varies along the dim.
  bool HasSlice(const Expr& e) { return (Dependence(e) & kOnSlice) != 0; }
  /// ... on states, be it through running exponents or centres.
  bool HasState(const Expr& e) { return (Dependence(e) & kOnState) != 0; }

  /// True if never negative (NaN aside).
  bool IsNonNegative(const Expr& e) { return Memoised(e, &non_negative_, &Leaves::NonNegative); }
  /// Of an expression of states and fixed leaves.
  Course CourseOf(const Expr& e) { return Memoised(e, &courses_, &Leaves::FindCourse); }
  /// True if a maximum occurs in `e`, which begins far below every element: where a reciprocal has
  /// its pole it does not keep its course.
  bool BeginsBelowZero(const Expr& e) const;
  /// True if an expression never exceeds some number, using that no element exceeds its maximum.
  bool IsBoundedAbove(const Expr& e);
  /// True if `e` is a polynomial in the leaves `distances` that `elements` do not occur in beside
  /// them, but perhaps as factors of what has the highest degree.
  bool IsOfDistances(const Expr& e, const std::vector<int>& distances,
                     const std::vector<Expr>& elements);
  /// (a, b) if `e` is a + b * in<leaf> with numbers a and b.
  std::optional<std::pair<double, double>> LineIn(const Expr& e, int leaf);
  /// True if two expressions are equal as numbers.
  bool AreEqual(const Expr& a, const Expr& b) { return pool_.Of(a) == pool_.Of(b); }

 private:
  enum : uint8_t { kOnSlice = 1, kOnState = 2 };
  uint8_t Dependence(const Expr& e) { return Memoised(e, &dependence_, &Leaves::FindDependence); }
  uint8_t FindDependence(const Expr& e);
  bool NonNegative(const Expr& e);
  Course FindCourse(const Expr& e);

  // Expressions are shared inside and among each other: each is looked at once.
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
  std::vector<Expr> alive_;  // so that identities in these stay theirs
};

}  // namespace fusion
