#pragma once

#include <memory>
#include <vector>

#include "core/schedule/ir/group.h"
#include "core/smg/stream.h"

namespace fusion {

/// A part of the streamed dim along which products read params directly where elsewhere they read
/// others: pieces that lie side by side, each in a tensor of its own.
struct StreamedPart {
  int64_t begin = 0;
  int64_t end = 0;
  FusionGroup group;  // what the whole group computes there: the same ops, in the same order
};

/// A group in the form in which one of its dims is streamed through a block: equal in what it
/// writes, its ops and their roles as StreamAlong derived them. Views and dims are the group's.
struct StreamedGroup {
  FusionGroup group;
  std::vector<StreamOp> ops;  // by op of `group`
  DimId dim = -1;
  bool rewritten = false;         // not the ops of the original group
  std::vector<IndexExpr> needed;  // as Streamed::needed
  Streamed::Underflow underflow;
  /// One behind the other along all of `dim`; empty: it is the same everywhere.
  std::vector<StreamedPart> parts;

  bool IsState(int op) const { return group.smg.op(op).Reduces(dim); }
};

/// The streamed form of a group; null with the refusal in `why` (if given) if there is none. Its
/// certificate also says what tiles are left out, and why an input is read more than once. Pure.
std::shared_ptr<const StreamedGroup> StreamGroup(const FusionGroup& group, DimId dim,
                                                 Refusal* why = nullptr);

}  // namespace fusion
