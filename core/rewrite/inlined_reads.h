#pragma once

#include <set>
#include <utility>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

// Inlining of producers into their readers, for passes over programs. Per read: AddAtPlace,
// ReplaceRead, then DropReads.

/// Inlines `from`, an op without a reduction, into `op` at one read of its result. `where` is that
/// read, one of `op`'s. Adds the reads that are needed to `op`, with the guards of `where`, and
/// returns the value as an expression over them. `op` still has the read `where`; ReplaceRead
/// substitutes the value for it. Returns an empty Expr and leaves `op` unchanged if the reads of
/// `from` cannot be expressed there: it reads indirectly, it has a guard on an axis whose index in
/// `where` is not an axis plus a constant, or it does not write plain axes.
Expr AddAtPlace(const Program& program, const LoopOp& from, const Read& where, LoopOp* op);

/// Drops unused reads of `op` and merges equal ones. Renumbers the inputs of its value.
void DropReads(LoopOp* op);

/// Substitutes `value` for read `read` in the value of `op`.
void ReplaceRead(size_t read, const Expr& value, LoopOp* op);

/// The readers of each value of a program. `program` must outlive it and must not change meanwhile.
/// Const functions may run on any thread.
class ProgramUses {
 public:
  explicit ProgramUses(const Program& program);

  /// The ops that read `v`, ascending; an op with n reads of it occurs n times.
  const std::vector<LoopId>& ReadersOf(ValueId v) const { return readers_[static_cast<size_t>(v)]; }
  bool IsReturned(ValueId v) const { return returned_[static_cast<size_t>(v)]; }
  /// True if `v` is no output and exactly one read of one op uses it.
  bool IsReadOnce(ValueId v) const { return !IsReturned(v) && ReadersOf(v).size() == 1; }
  /// The number of reductions over the whole of dim `dim` of `v`, directly or through element-wise
  /// ops. Long chains are searched only in part, so the number may be too small.
  int ReductionsAlong(ValueId v, int dim) const;

 private:
  using Seen = std::set<std::pair<ValueId, int>>;
  void CollectAlong(ValueId v, int dim, Seen* seen, std::set<LoopId>* found) const;

  const Program& program_;
  std::vector<std::vector<LoopId>> readers_;  // by value
  std::vector<bool> returned_;                // by value
};

/// A loop op without a reduction.
bool IsMap(const LoopOp& op);

}  // namespace fusion
