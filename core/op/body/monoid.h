#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/op/body/expr.h"

namespace fusion {

/// How a reduction combines values: a monoid over a tuple of state values, all expressions, so that
/// every backend derives its code and the slicers can reason about it.
///
///   identity[s]           constant: the state of nothing
///   lift[s]               of the reduced value (in0) and, if needed, its coordinate (axis(0)): the
///   state of one element merge[s]              of two states: in0..in<w-1> and in<w>..in<2w-1>;
///   associative finish                of a state in0..in<w-1>: the result
///
/// Equality and the text form go by name and type. Immutable value; any thread.
class Monoid {
 public:
  /// "sum", "prod", "max", "min": one state value. "argmax", "argmin" (first index of the extremum,
  /// i64) and "welford" (mean, M2, count -> M2): tuples. nullopt for an unknown name or a type the
  /// monoid is not defined on.
  static std::optional<Monoid> Named(std::string_view name, DType type);
  static Monoid Sum(DType type) { return *Named("sum", type); }
  static Monoid Max(DType type) { return *Named("max", type); }
  static Monoid Min(DType type) { return *Named("min", type); }
  static Monoid Prod(DType type) { return *Named("prod", type); }

  const std::string& name() const { return name_; }
  /// Type of the values that are reduced.
  DType type() const { return type_; }
  DType result_type() const { return finish_.type(); }
  int width() const { return static_cast<int>(identity_.size()); }
  const std::vector<Expr>& identity() const { return identity_; }
  const std::vector<Expr>& lift() const { return lift_; }
  const std::vector<Expr>& merge() const { return merge_; }
  const Expr& finish() const { return finish_; }

  /// One state value, lift and finish are the identity: the state is the result.
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
