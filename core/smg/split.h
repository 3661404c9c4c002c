#pragma once

#include <vector>

#include "core/smg/stream.h"

namespace fusion {

/// A partial result of a split SMG: a tensor with one element of the result per part.
struct SplitState {
  ValueId value = 0;  // a new value, numbered above those of the original SMG
  Dims shape;         // the number of parts, then the dims of the whole result
  DType type = DType::kF32;
};

/// An SMG split along a reduced dim (split-K, split-KV). `partial` computes, for each of several
/// equal parts of the dim, the partial result of every reduction along it. `merge` merges these to
/// the whole results and computes everything that depends on them.
struct Split {
  Refusal refusal;                       // empty: the split succeeded
  bool loose = false;                    // as Streamed::loose
  std::vector<std::string> certificate;  // as Streamed::certificate
  Smg partial;
  Smg merge;
  std::vector<SplitState> states;  // written by `partial`, read by `merge`
};

/// Splits `dim` into `parts` equal parts, by way of its streamed form (StreamAlong). Partial
/// results that depend on other partial results are relative to those of their own part; before the
/// merge, the updates of the streamed form rescale them to the whole results. `outputs` as in
/// StreamAlong; an output that has the dim is written by `partial`. `partial` and `merge` number
/// dims anew; names of dims stay.
///
/// Refused where StreamAlong refuses; if nothing is reduced along the dim; if `parts` is below 2,
/// does not divide the extent, or leaves one coordinate per part; for reductions to several values;
/// and if a guard or an offset along the dim would have to be split. Pure; any thread.
Split SplitAlong(const Smg& smg, const std::vector<ValueId>& outputs, DimId dim, int64_t parts);

}  // namespace fusion
