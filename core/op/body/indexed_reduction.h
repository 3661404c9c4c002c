#pragma once

#include <functional>
#include <optional>

#include "core/op/body/loop_body.h"

namespace fusion {

/// A reduction in which each point of the remaining axes updates at most one element of the result,
/// such as a scatter with a reduction:
///
///   y[i, r] = sum over j of select(index[j] == i, update[j, r], 0)
///
/// A loop over i as well compares every update with every element of the result. The same result
/// comes from a loop over the other axes only that adds each update at its place.
struct IndexedReduction {
  /// The place as a function of the axes of the result, i above: a mixed-radix number (IsPlace).
  IndexExpr at;
  /// i64: the update goes to the point at which `at` has this value; to none if there is no such
  /// point. It does not depend on the axes of `at`.
  Expr place;
  Expr value;  // the update
};

/// Recognises the form above in `value`, reduced by `reduce`. `moves(input, axis)` returns whether
/// the element that is read of `input` depends on `axis`. nullopt: another form.
std::optional<IndexedReduction> IndexedReductionOf(
    const Expr& value, const Monoid& reduce, const std::function<bool(int input, int axis)>& moves);

/// The same for a loop body. nullopt also unless each axis of `at` is itself an index of `write`
/// and has a static extent, and IsPlace(at).
std::optional<IndexedReduction> IndexedReductionOf(const LoopBody& body);

/// Whether the update does not depend on the axes of `indexed.at`.
bool UpdateIsFixed(const LoopBody& body, const IndexedReduction& indexed);

/// Whether `at` numbers the points of its axes distinctly and without gaps, from its constant on.
/// For axes a, b, c: a * (extent of b * extent of c) + b * (extent of c) + c.
bool IsPlace(const IndexExpr& at, const std::function<int64_t(int axis)>& extent);

}  // namespace fusion
