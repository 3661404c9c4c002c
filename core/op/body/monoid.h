#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/body/expr.h"

namespace fusion {

/// How a reduction combines values: a monoid over a state of w = width() scalars. All functions are
/// expressions; backends generate code from them and the slicers analyse them.
///
///   identity[s]  the state of no elements, constants
///   lift[s]      the state of one element: the value in0 and, if used, its coordinate axis(0)
///   merge[s]     the state of two states, in0..in<w-1> and in<w>..in<2w-1>; associative
///   finish       the result for a state in0..in<w-1>
///
/// Two monoids are equal if their names and types are. Immutable value; any thread.
class Monoid {
 public:
  /// "sum", "prod", "max", "min": one state value. "argmax", "argmin" (first index of the extremum,
  /// i64) and "welford" (mean, M2, count -> M2): tuples. nullopt for an unknown name or a type for
  /// which the monoid is not defined.
  static std::optional<Monoid> Named(std::string_view name, DType type);
  /// `type` must be one for which the monoid is defined.
  static Monoid Sum(DType type) { return *Named("sum", type); }
  static Monoid Max(DType type) { return *Named("max", type); }
  static Monoid Min(DType type) { return *Named("min", type); }
  static Monoid Prod(DType type) { return *Named("prod", type); }

  const std::string& name() const { return name_; }
  /// Element type of the reduced values.
  DType type() const { return type_; }
  DType result_type() const { return finish_.type(); }
  /// Number of scalars of a state.
  int width() const { return static_cast<int>(identity_.size()); }
  const std::vector<Expr>& identity() const { return identity_; }
  const std::vector<Expr>& lift() const { return lift_; }
  const std::vector<Expr>& merge() const { return merge_; }
  const Expr& finish() const { return finish_; }

  /// The state is one scalar; lift and finish are the identity function.
  bool IsScalar() const { return width() == 1; }

  bool operator==(const Monoid& o) const { return name_ == o.name_ && type_ == o.type_; }

 private:
  std::string name_;
  DType type_ = DType::kF32;
  std::vector<Expr> identity_;
  std::vector<Expr> lift_;
  std::vector<Expr> merge_;
  Expr finish_;
};

}  // namespace fusion
