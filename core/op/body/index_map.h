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

/// A dim that several iteration spaces share (SMG, schedule): what an IndexExpr's axes are there.
using DimId = int;

/// constant + sum of coefficient * axis (+ the value of an index input): where one tensor dim is
/// read or written. What an axis number means is the owner's business: an op's loop axes (LoopBody)
/// or unified dims (SMG, schedule).
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
  // Out of line: where they are inlined, g++ 12 takes unused places of `terms_` for read.
  IndexExpr(const IndexExpr&);
  IndexExpr(IndexExpr&&) noexcept;
  IndexExpr& operator=(const IndexExpr&);
  IndexExpr& operator=(IndexExpr&&) noexcept;
  ~IndexExpr() = default;
  static IndexExpr Axis(int axis, int64_t coefficient = 1);
  /// The integer element of input `input`, read where that input's own index map says.
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

  IndexExpr& operator+=(const IndexExpr& other);
  friend IndexExpr operator+(IndexExpr a, const IndexExpr& b) { return std::move(a += b); }
  /// The order of the digits of a number: by descending coefficient, then ascending axis.
  static bool MajorFirst(const Term& a, const Term& b) {
    return a.coefficient != b.coefficient ? a.coefficient > b.coefficient : a.axis < b.axis;
  }

  friend IndexExpr operator*(const IndexExpr& a, int64_t factor);
  bool operator==(const IndexExpr&) const = default;

  /// Every axis replaced by an expression.
  IndexExpr Substitute(const std::function<IndexExpr(int axis)>& axis) const;
  /// Value at a point (ignores `indirect`).
  int64_t At(const std::vector<int64_t>& point) const;

  /// "64*h + d + 32", "@in1" for an indirect index. `name(axis)` prints an axis.
  std::string ToString(const std::function<std::string(int)>& name) const;
  /// Inverse of ToString. `find(name)` gives the axis, or -1.
  static absl::StatusOr<IndexExpr> Parse(Lexer& in,
                                         const std::function<int(std::string_view)>& find);

 private:
  int64_t constant_ = 0;
  int indirect_ = -1;
  Terms terms_;
};

/// An input is only read where every guard holds (begin <= axis < end); elsewhere the value
/// expression must not use it. Concat and pad are guarded reads.
struct Guard {
  int axis = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Guard&) const = default;
};

/// " where m in [0, 8] and n in [2, 4]", empty without guards. `name(axis)` prints an axis.
std::string GuardsToString(const std::vector<Guard>& guards,
                           const std::function<std::string(int)>& name);
/// Inverse of GuardsToString. `find(name)` gives the axis, or -1.
absl::StatusOr<std::vector<Guard>> ParseGuards(Lexer& in,
                                               const std::function<int(std::string_view)>& find);

/// The values begin <= v < end; empty if begin >= end.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
};

/// What is left of the coordinates `range` of `axis` where every guard on it holds.
IndexRange Guarded(IndexRange range, int axis, const std::vector<Guard>& guards);

/// The smallest range that holds every value of `e` (without its indirect part), where axis a runs
/// over axis(a) as far as `guards` let it; empty if an axis of `e` does not run at all.
IndexRange RangeOf(const IndexExpr& e, const std::function<IndexRange(int)>& axis,
                   const std::vector<Guard>& guards = {});

/// One IndexExpr per tensor dim.
using IndexMap = std::vector<IndexExpr>;

/// "[b, 64*h + d]"
std::string IndexMapToString(const IndexMap& map, const std::function<std::string(int)>& name);
absl::StatusOr<IndexMap> ParseIndexMap(Lexer& in, const std::function<int(std::string_view)>& find);

}  // namespace fusion
