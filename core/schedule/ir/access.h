#pragma once

#include <functional>
#include <map>
#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// The index of the element at the current coordinates of `dims`.
IndexMap PlainIndex(const std::vector<DimId>& dims);

/// True if an index depends on the coordinate of `d` (not through an indirect index).
bool Names(const IndexMap& index, DimId d);

/// True if a read of `op` slides windows: some index moves with a dim that the op keeps and with
/// one that it reduces.
bool ReadsWindows(const SmgOp& op, const SmgRead& read);

/// Elements between neighbours of each dim of a buffer whose dims are `lengths` long. Strided
/// params and workspace: as they say. Blocked dims: from one block to the next. Dims in packs: of a
/// pack to the next one, divided by how many lie in it. Local buffers: dense, last dim fastest (a
/// backend may pad rows).
Dims ElementStrides(const Buffer& buffer, const Dims& lengths);

/// Elements that a step along `d` moves an index into dims that lie `strides` elements apart; 0: it
/// stays. `layout`: of the buffer; neighbours within a block are as far apart as a pack is long.
int64_t StrideAlong(const IndexMap& index, const Dims& strides, DimId d,
                    const BufferLayout& layout = {});

/// The same for an access, where the window of each dim of the schedule is `windows` long. Rows of
/// local buffers may be padded: those of one element count as padded.
int64_t StrideAlong(const Schedule& schedule, const Access& access, const Dims& windows, DimId d);

/// True if a value of the steps of `each` may be another one for other coordinates of `d`.
bool MovesAlong(const EachStmt& each, int value, DimId d);

/// True if elements lie without gaps in the order of their indices; of a param or workspace.
bool IsDense(const Buffer& buffer);

/// Calls `visit` for the accesses of all statements of a block, those within them included, but not
/// for a CallStmt, which takes whole params.
void ForEachAccess(const Block& block,
                   const std::function<void(const Access& access, bool writes)>& visit);

/// The coordinates of dims that loops restrict to some.
using LoopRanges = std::map<DimId, IndexRange>;

/// Calls `visit` for every access to a param, with what the loops around it restrict dims to. Of a
/// param that is accessed as a whole, or under another shape, the access is null.
void ForEachParamAccess(
    const Schedule& schedule,
    const std::function<void(BufferId param, const Access* access, const LoopRanges&)>& visit);

/// By param: elements of its memory, from the first one on, within which every access lies. 0:
/// none is accessed. At most what the param's shape says (Verify).
std::vector<int64_t> ReachOfParams(const Schedule& schedule);

}  // namespace fusion
