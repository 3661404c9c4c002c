#pragma once

#include "core/op/op_def.h"

namespace fusion {

/// The order of TopK along a row: descending or ascending, equal elements by position. NaN is
/// larger than any number.

/// Sort key of an element. Elements are ordered by `value`, those of equal value by ascending
/// `place` (i64). `value` is never NaN. `place` modulo the extent of the row is the coordinate of
/// the element.
struct RankKey {
  Expr value;
  Expr place;
};
/// The key of element `x` at `coordinate` (i64) of a row of `extent` elements.
RankKey RankKeyOf(bool largest, const Expr& x, const Expr& coordinate, int64_t extent);

/// bool: an element with key `a` precedes one with key `b`.
Expr ComesBefore(bool largest, const RankKey& a, const RankKey& b);

/// A loop over input 0 that reduces attribute "axis" to extent 1, to find the next element in the
/// order that attribute "largest" selects.
struct RestLoop {
  LoopBody body;  // value and reduction are not set
  RankKey key;    // of the current element
  Expr rest;      // bool: it comes after the element that was found before
};
/// Inputs `previous` and `previous + 1`, if the call has them, hold value and place of the key that
/// was found before in each row. All inputs from 1 on have extent 1 along "axis". InvalidArgument
/// unless they fit, Unimplemented for a symbolic dim along "axis".
absl::StatusOr<RestLoop> LoopOverRest(const OpCall& call, int previous);

/// The attributes "axis" (absent: 0) and "largest" (absent: 1).
std::vector<ParamSpec> RankParams();
bool RanksLargestFirst(const OpCall& call);

/// Extent of input 0 along `axis`; InvalidArgument for bool, Unimplemented for a symbolic dim.
absl::StatusOr<int64_t> RankedExtent(const OpCall& call, int axis);

}  // namespace fusion
