#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/schedule/ir/schedule.h"
#include "core/smg/smg.h"

namespace fusion {

/// The type and memory layout of a value that is a kernel param.
struct TensorView {
  DType dtype = DType::kF32;
  Dims shape;
  Dims strides;           // in elements
  bool constant = false;  // weights only: known before the first run
  /// The dim along which the buffer may have memory for more elements than `shape` has (possibly
  /// 0 more). -1: none.
  int roomy = -1;
  /// The strides do not follow from the extents. Even if they are dense for these extents, they are
  /// not for others, so dims must not be merged.
  bool fixed = false;
  /// The value belongs to a program with open dims: other members of the family may have other
  /// strides.
  bool open = false;
};

/// The loop ops that one kernel computes: their SMG, with neighbouring dims merged where that is
/// equivalent, and the values that leave the kernel. Input of EnumerateChoices and Lower.
struct FusionGroup {
  Smg smg;
  std::vector<ValueId> outputs;                   // values written to memory, ascending
  std::unordered_map<ValueId, TensorView> views;  // of every kernel input and output
  bool loose = false;                             // as Streamed::loose
  bool flushes = false;  // products may set MmaStmt::flushes where their types allow it
  /// For derived forms (streamed, split): how they were derived, and what they assume of NaN and
  /// infinities. For people.
  std::vector<std::string> certificate;

  /// `v` must be a kernel input or output.
  const TensorView& view(ValueId v) const { return views.at(v); }
  bool IsOutput(ValueId v) const;
  /// Position of the op that writes `v`, or -1.
  int Writer(ValueId v) const;
  /// "MatMul+Add+Relu": op types in order, without copies.
  std::string Label() const;
};

/// Builds the group of `loops` (ascending). Both vectors have one entry for each value of the
/// program. `needed_outside[v]`: a loop op outside the group reads v, or the program returns it;
/// such values become outputs. `constant[v]`: v is known before the first run. Fails as BuildSmg
/// does.
absl::StatusOr<FusionGroup> MakeGroup(const Program& program, const std::vector<LoopId>& loops,
                                      const std::vector<bool>& needed_outside,
                                      const std::vector<bool>& constant);

/// Merges pairs of dims that every access walks as one (row-major neighbours). [8,128,768] x 3 and
/// [1024, 768] x 3 become the same group, and vectors run past the ends of short last dims.
void CoalesceDims(FusionGroup* group);

}  // namespace fusion
