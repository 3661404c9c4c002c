#pragma once

#include <memory>
#include <vector>

#include "core/schedule/group.h"
#include "core/smg/stream.h"

namespace fusion {

/// A group in the form in which one of its dims is streamed through a block: equal in what it
/// writes, its ops and their roles as StreamAlong derived them. Views and dims are the group's.
struct StreamedGroup {
  FusionGroup group;
  std::vector<StreamOp> ops;  // by op of `group`
  DimId dim = -1;
  bool rewritten = false;         // not the ops of the original group
  std::vector<IndexExpr> needed;  // as Streamed::needed
  Streamed::Underflow underflow;

  bool IsState(int op) const { return group.smg.op(op).Reduces(dim); }
};

/// The streamed form of a group; null with the refusal in `why` (if given) if there is none. Its
/// certificate also says what tiles are left out, and why an input is read more than once. Pure.
std::shared_ptr<const StreamedGroup> StreamGroup(const FusionGroup& group, DimId dim,
                                                 Refusal* why = nullptr);

}  // namespace fusion
