#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/parse/lexer.h"

namespace fusion {

/// A dim that several iteration spaces share. In SMGs and schedules the axes of an IndexExpr are
/// DimIds.
using DimId = int;

/// The index at which one tensor dim is read or written: constant + sum of coefficient * axis
/// (+ the value of an index input). The owner of the expression defines the axis numbers: loop axes
/// of an op (LoopBody) or unified dims (SMG, schedule).
class IndexExpr {
 public:
  struct Term {
    int axis;
    int64_t coefficient;
    bool operator==(const Term&) const = default;
  };
  using Terms = absl::InlinedVector<Term, 2>;  // most have one or two

  IndexExpr() = default;
  IndexExpr(int64_t constant) : constant_(constant) {}  // NOLINT(google-explicit-constructor)
  // Out of line: if they are inlined, g++ 12 warns that unused elements of `terms_` are read.
  IndexExpr(const IndexExpr&);
  IndexExpr(IndexExpr&&) noexcept;
  IndexExpr& operator=(const IndexExpr&);
  IndexExpr& operator=(IndexExpr&&) noexcept;
  ~IndexExpr() = default;
  static IndexExpr Axis(int axis, int64_t coefficient = 1);
  /// The value of an element of the integer input `input`, which is read with its own index map.
  static IndexExpr Indirect(int input);

  int64_t constant() const { return constant_; }
  const Terms& terms() const { return terms_; }  // by ascending axis, no zero coefficients
  int indirect() const { return indirect_; }     // -1: none

  /// True for "1 * axis + 0".
  bool IsPlainAxis() const {
    return constant_ == 0 && indirect_ < 0 && terms_.size() == 1 && terms_[0].coefficient == 1;
  }
  bool IsConstant() const { return terms_.empty() && indirect_ < 0; }
  int64_t CoefficientOf(int axis) const;

  /// Sums and products abort for a second indirect index and for a scaled one: a dim has at most
  /// one indirect index, with coefficient 1.
  IndexExpr& operator+=(const IndexExpr& other);
  friend IndexExpr operator+(IndexExpr a, const IndexExpr& b) { return std::move(a += b); }
  /// Order of the terms of a mixed-radix number, most significant first: by descending coefficient,
  /// then ascending axis.
  static bool MajorFirst(const Term& a, const Term& b) {
    return a.coefficient != b.coefficient ? a.coefficient > b.coefficient : a.axis < b.axis;
  }

  friend IndexExpr operator*(const IndexExpr& a, int64_t factor);
  bool operator==(const IndexExpr&) const = default;

  /// Replaces every axis by an expression; keeps `indirect`.
  IndexExpr Substitute(const std::function<IndexExpr(int axis)>& axis) const;
  /// Value at a point (ignores `indirect`).
  int64_t At(const std::vector<int64_t>& point) const;

  /// "64*h + d + 32", "@in1" for an indirect index. `name(axis)` prints an axis.
  std::string ToString(const std::function<std::string(int)>& name) const;
  /// Inverse of ToString. `find(name)` returns the axis, or -1. InvalidArgument with the position.
  static absl::StatusOr<IndexExpr> Parse(Lexer& in,
                                         const std::function<int(std::string_view)>& find);

 private:
  int64_t constant_ = 0;
  int indirect_ = -1;
  Terms terms_;
};

/// Condition of a read: begin <= axis < end. An input is read only at points where all its guards
/// hold. At other points the value expression must not use it. Concat and pad are guarded reads.
struct Guard {
  int axis = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Guard&) const = default;
};

/// " where m in [0, 8] and n in [2, 4]" (the end is exclusive); "" without guards. `name(axis)`
/// prints an axis.
std::string GuardsToString(const std::vector<Guard>& guards,
                           const std::function<std::string(int)>& name);
/// Inverse of GuardsToString. `find(name)` returns the axis, or -1. InvalidArgument with the
/// position.
absl::StatusOr<std::vector<Guard>> ParseGuards(Lexer& in,
                                               const std::function<int(std::string_view)>& find);

/// The values begin <= v < end; empty if begin >= end.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
};

/// The part of `range`, coordinates along `axis`, in which every guard on that axis holds.
IndexRange Guarded(IndexRange range, int axis, const std::vector<Guard>& guards);

/// The range of indices that `e` accesses: the smallest range that contains every value of `e`, its
/// indirect part ignored. axis(a) is the range of axis a; `guards` restrict it further. Empty if
/// the range of an axis of `e` is empty.
IndexRange RangeOf(const IndexExpr& e, const std::function<IndexRange(int)>& axis,
                   const std::vector<Guard>& guards = {});

/// One IndexExpr per tensor dim.
using IndexMap = std::vector<IndexExpr>;

/// "[b, 64*h + d]"
std::string IndexMapToString(const IndexMap& map, const std::function<std::string(int)>& name);
/// Inverse of IndexMapToString; see IndexExpr::Parse.
absl::StatusOr<IndexMap> ParseIndexMap(Lexer& in, const std::function<int(std::string_view)>& find);

}  // namespace fusion
