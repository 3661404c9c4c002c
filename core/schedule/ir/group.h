#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/schedule/ir/schedule.h"
#include "core/smg/smg.h"

namespace fusion {

/// How a value lies in memory when it is a kernel param.
struct TensorView {
  DType dtype = DType::kF32;
  Dims shape;
  Dims strides;           // elements
  bool constant = false;  // weights only: known before the first run
  /// The dim that there may be memory for more elements along, be it by chance for no more; -1:
  /// none.
  int roomy = -1;
  /// Strides stay what they are where dims have other extents: dims may lie densely by chance.
  bool fixed = false;
  /// Of a program that leaves dims open: other members of the family may have other strides.
  bool open = false;
};

/// A set of loop ops that one kernel shall compute: their SMG with neighbouring dims merged where
/// that changes nothing, and what leaves the kernel. What candidates are made from.
struct FusionGroup {
  Smg smg;
  std::vector<ValueId> outputs;                   // written to memory, ascending
  std::unordered_map<ValueId, TensorView> views;  // of every kernel input and output
  bool loose = false;                             // as Streamed::loose
  bool flushes = false;                           // as MmaStmt::flushes, where that can be
  /// Of a form that is derived from another: how, and what is assumed of NaN and infinities.
  std::vector<std::string> certificate;

  const TensorView& view(ValueId v) const { return views.at(v); }
  bool IsOutput(ValueId v) const;
  /// Position of the op that writes `v`, or -1.
  int Writer(ValueId v) const;
  /// "MatMul+Add+Relu": op types in order, without copies.
  std::string Label() const;
};

/// Builds the group of `loops` (ascending). A value is an output if something outside reads it or
/// the program returns it. `constant[value]` says which inputs are known before the first run.
/// Fails as BuildSmg does.
absl::StatusOr<FusionGroup> MakeGroup(const Program& program, const std::vector<LoopId>& loops,
                                      const std::vector<bool>& needed_outside,
                                      const std::vector<bool>& constant);

/// Merges pairs of dims that every access walks as one (row-major neighbours), so that [8,128,768]
/// x 3 and [1024, 768] are the same work and short last dims do not cut vectors.
void CoalesceDims(FusionGroup* group);

}  // namespace fusion
