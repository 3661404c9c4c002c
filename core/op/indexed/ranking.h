#pragma once

#include "core/op/op_def.h"

namespace fusion {

/// The order in which TopK gives the elements of a row: the largest first, or the smallest; equal
/// ones as they stand. NaN counts as larger than any number.

/// Where an element stands in that order, said without NaN: by `value`, elements of one value by
/// `place` (i64), the lowest first. `place` modulo the extent of the row is the coordinate.
struct RankKey {
  Expr value;
  Expr place;
};
RankKey RankKeyOf(bool largest, const Expr& x, const Expr& coordinate, int64_t extent);

/// bool: an element of key `a` comes before one of key `b`.
Expr ComesBefore(bool largest, const RankKey& a, const RankKey& b);

/// A loop over input 0 that leaves one element along the attribute "axis", to find what comes next
/// in the order that the attribute "largest" chooses.
struct RestLoop {
  LoopBody body;  // without value and reduction
  RankKey key;    // of the element at hand
  Expr rest;      // bool: it comes after what was found before
};
/// Inputs `previous` and `previous + 1`, if present, hold value and place of the key that was found
/// before in each row; inputs between are read as they are. InvalidArgument unless they fit,
/// Unimplemented for a symbolic dim along "axis".
absl::StatusOr<RestLoop> LoopOverRest(const OpCall& call, int previous);

/// The attributes of the ops that look along a row: "axis" and "largest" (absent: 0 and 1).
std::vector<ParamSpec> RankParams();
bool RanksLargestFirst(const OpCall& call);

/// Extent of input 0 along `axis`; InvalidArgument for bool, Unimplemented for a symbolic dim.
absl::StatusOr<int64_t> RankedExtent(const OpCall& call, int axis);

}  // namespace fusion
