#pragma once

#include <functional>
#include <optional>

#include "core/op/body/loop_body.h"

namespace fusion {

/// A reduction that takes from each point of the axes it sums up one value at one place of its
/// result at most, as scatters with a reduction do:
///
///   y[i, r] = sum over j of select(index[j] == i, update[j, r], 0)
///
/// Walking i as well costs as many steps as the result has elements for each update. Whoever walks
/// the other axes alone and adds at the place that each point names computes the same.
struct IndexedReduction {
  /// A number made of axes as a mixed-radix number of its digits (see IsPlace).
  IndexExpr at;
  /// i64: which value of `at` takes the update; no axis of `at` changes it. There may be none such.
  Expr place;
  Expr value;  // the update
};

/// `value` is reduced by `reduce`. `moves(input, axis)` says whether other elements of an input are
/// read for other coordinates of an axis. nullopt: it is no such reduction.
std::optional<IndexedReduction> IndexedReductionOf(
    const Expr& value, const Monoid& reduce, const std::function<bool(int input, int axis)>& moves);

/// The same of a loop body, whose axes of `at` are written as they are, with extents that are known
/// and make `at` a place.
std::optional<IndexedReduction> IndexedReductionOf(const LoopBody& body);

/// Whether the update of a reduction of `body` is the same wherever it goes.
bool UpdateIsFixed(const LoopBody& body, const IndexedReduction& indexed);

/// Whether `at` gives each point of its axes a number of its own, from its constant on without
/// gaps: a * (extents of b and c) + b * (extent of c) + c.
bool IsPlace(const IndexExpr& at, const std::function<int64_t(int axis)>& extent);

}  // namespace fusion
