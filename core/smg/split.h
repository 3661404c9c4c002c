#pragma once

#include <vector>

#include "core/smg/stream.h"

namespace fusion {

/// A partial result of a split SMG: one value a part.
struct SplitState {
  ValueId value = 0;  // above all values of the original
  Dims shape;         // the parts, then the dims of the whole result
  DType type = DType::kF32;
};

/// An SMG cut along a reduced dim: `partial` gives, for each of several equal parts of the dim, the
/// partial results of every reduction along it; `merge` makes the whole results of them and all
/// that is computed from those (split-K, split-KV).
struct Split {
  Refusal refusal;
  bool loose = false;                    // as Streamed::loose
  std::vector<std::string> certificate;  // as Streamed::certificate
  Smg partial;
  Smg merge;
  std::vector<SplitState> states;  // written by `partial`, read by `merge`
};

/// Derives how `dim` is split into `parts`, which must divide its extent into more than one place
/// each: by the form in which it is streamed. Partial results that depend on one another hold
/// relative to those of their own part, and are moved to the whole ones by the updates of that form
/// before they are merged. `outputs` as in StreamAlong; those that have the dim are written by
/// `partial`. Refused where streaming is, for reductions to several values, and where a guard or an
/// offset would have to be cut along the dim. Pure; any thread.
Split SplitAlong(const Smg& smg, const std::vector<ValueId>& outputs, DimId dim, int64_t parts);

}  // namespace fusion
