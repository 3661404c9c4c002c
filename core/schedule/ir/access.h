#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// The index map that is the coordinates of `dims`, in that order.
IndexMap PlainIndex(const std::vector<DimId>& dims);

/// True if a term of `index` has the coordinate of `d`. Indirect indices are not followed.
bool Names(const IndexMap& index, DimId d);

/// True if a read of `op` slides windows: one index sums a dim that the op keeps and one that it
/// reduces (`stride * oh + dilation * kh`).
bool ReadsWindows(const SmgOp& op, const SmgRead& read);

/// Distance between neighbours of each dim, in elements, for a buffer whose dims are `lengths`
/// long. Strided params and workspace: their strides. Blocked dim: from one block to the next.
/// Packed dim: from one pack to the next, divided by the pack's length. Local buffers: dense, last
/// dim fastest (a backend may pad rows).
Dims ElementStrides(const Buffer& buffer, const Dims& lengths);

/// Distance in elements, in a buffer with these strides, that a step of one along `d` moves an
/// access; 0: it does not move. `layout`: that of the buffer; neighbours in a block are one pack
/// apart.
int64_t StrideAlong(const IndexMap& index, const Dims& strides, DimId d,
                    const BufferLayout& layout = {});

/// The same for an access. `windows`: by dim of the schedule, the length of its current window.
/// Backends may pad rows of local buffers, so their last dim counts as at least two elements long.
int64_t StrideAlong(const Schedule& schedule, const Access& access, const Dims& windows, DimId d);

/// True if the value numbered `value` of the steps of `each` may depend on the coordinate of `d`.
bool MovesAlong(const EachStmt& each, int value, DimId d);

/// True if a param or workspace buffer is dense and row-major. False for blocked layouts.
bool IsDense(const Buffer& buffer);

/// Calls `visit` for every access of the statements of a block and of the blocks inside. InitStmt
/// and CallStmt, which take whole buffers, have no accesses.
void ForEachAccess(const Block& block,
                   const std::function<void(const Access& access, bool writes)>& visit);

/// The dims that loops restrict (LoopStmt::begin, end) and their ranges of coordinates.
using LoopRanges = std::map<DimId, IndexRange>;

/// Calls `visit` for every access to a param, with the ranges to which the loops around it restrict
/// dims. `access` is null where the whole param counts as accessed: by a CallStmt, under another
/// shape (Buffer::same_as), or if the param is blocked.
void ForEachParamAccess(
    const Schedule& schedule,
    const std::function<void(BufferId param, const Access* access, const LoopRanges&)>& visit);

/// The range of accessed elements (reach) of each param: every access lies in its first `reach`
/// elements of memory. 0: never accessed. In a schedule that passes Verify at most
/// StoredElements(param).
std::vector<int64_t> ReachOfParams(const Schedule& schedule);

}  // namespace fusion
