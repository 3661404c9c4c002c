#pragma once

#include <memory>
#include <vector>

#include "core/schedule/ir/group.h"
#include "core/smg/stream.h"

namespace fusion {

/// A part [begin, end) of the streamed dim. Inputs concatenated along that dim have one part each:
/// in it, products read that input in place. See StreamedGroup::parts.
struct StreamedPart {
  int64_t begin = 0;
  int64_t end = 0;
  FusionGroup group;  // what the group computes in this part: the same ops in the same order
};

/// A group in a form that streams one of its dims through a block (StreamAlong). It writes the same
/// values; dims and views are those of the original group.
struct StreamedGroup {
  FusionGroup group;
  std::vector<StreamOp> ops;  // the role of each op of `group`
  DimId dim = -1;
  bool rewritten = false;         // the ops differ from those of the original group
  std::vector<IndexExpr> needed;  // as Streamed::needed
  Streamed::Underflow underflow;
  /// The parts of `dim` in order, without gaps. Empty: no parts, `group` applies everywhere.
  std::vector<StreamedPart> parts;

  /// True if `op` accumulates a partial result along `dim`.
  bool IsState(int op) const { return group.smg.op(op).Reduces(dim); }
};

/// The streamed form of a group. Null if there is none; `*why` then has the refusal (may be null).
/// The certificate also says which tiles are skipped, and why an input is read more than once.
/// Pure.
std::shared_ptr<const StreamedGroup> StreamGroup(const FusionGroup& group, DimId dim,
                                                 Refusal* why = nullptr);

}  // namespace fusion
