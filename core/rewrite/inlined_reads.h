#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

// For passes that compute values where they are read.

/// What `from`, which computes one element after the other, computes for the element that `where`,
/// a read of its result by `op`, looks at: reads are added to `op`, the value over them is
/// returned, and nobody reads at `where` any more. Guards of `where` hold for them too. Empty, and
/// `op` is as it was, if no affine index says the same.
Expr AddAtPlace(const Program& program, const LoopOp& from, const Read& where, LoopOp* op);

/// Leaves out reads that nothing looks at, and reads each element once.
void DropReads(LoopOp* op);

/// Puts `value` in the place of what read `read` of `op` gives.
void ReplaceRead(size_t read, const Expr& value, LoopOp* op);

/// Who reads what of a program. Valid as long as that stays as it is.
class ProgramUses {
 public:
  explicit ProgramUses(const Program& program);

  /// The ops that read `v`, each once for each of its reads.
  const std::vector<LoopId>& ReadersOf(ValueId v) const { return readers_[static_cast<size_t>(v)]; }
  bool IsReturned(ValueId v) const { return returned_[static_cast<size_t>(v)]; }
  /// One read in one op is all that becomes of it.
  bool IsReadOnce(ValueId v) const { return !IsReturned(v) && ReadersOf(v).size() == 1; }
  /// How many reductions along all of dim `dim` of `v` follow, behind element-wise ops at most.
  int ReductionsAlong(ValueId v, int dim) const;

 private:
  using Seen = std::set<std::pair<ValueId, int>>;
  void CollectAlong(ValueId v, int dim, Seen* seen, std::set<LoopId>* found) const;

  const Program& program_;
  std::vector<std::vector<LoopId>> readers_;  // by value
  std::vector<bool> returned_;                // by value
};

/// A loop op that computes one element after the other.
bool IsMap(const LoopOp& op);

}  // namespace fusion
