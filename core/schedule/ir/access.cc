#include "core/schedule/ir/access.h"

#include <algorithm>
#include <map>

namespace fusion {

IndexMap PlainIndex(const std::vector<DimId>& dims) {
  IndexMap index;
  index.reserve(dims.size());
  for (DimId d : dims) index.push_back(IndexExpr::Axis(d));
  return index;
}

bool Names(const IndexMap& index, DimId d) {
  return std::any_of(index.begin(), index.end(),
                     [d](const IndexExpr& e) { return e.CoefficientOf(d) != 0; });
}

bool ReadsWindows(const SmgOp& op, const SmgRead& read) {
  return std::any_of(read.index.begin(), read.index.end(), [&](const IndexExpr& e) {
    bool kept = false;
    bool reduced = false;
    for (const IndexExpr::Term& t : e.terms()) (op.Reduces(t.axis) ? reduced : kept) = true;
    return kept && reduced;
  });
}

Dims ElementStrides(const Buffer& buffer, const Dims& lengths) {
  const BufferLayout& layout = buffer.layout;
  if (layout.blocked < 0) return buffer.IsLocal() ? RowMajorStrides(lengths) : layout.strides;
  // [blocked / block][others][block], [blocked / block][others / pack][block][pack]
  auto blocked = static_cast<size_t>(layout.blocked);
  const int packed = layout.PackedDim(static_cast<int>(lengths.size()));
  Dims strides(lengths.size(), 0);
  int64_t step = layout.block;
  for (size_t i = lengths.size(); i-- > 0;) {
    if (i == blocked) continue;
    strides[i] = step;
    const int64_t pack = static_cast<int>(i) == packed ? layout.pack : 1;
    step *= (lengths[i] + pack - 1) / pack * pack;
  }
  strides[blocked] = step;
  return strides;
}

int64_t StrideAlong(const IndexMap& index, const Dims& strides, DimId d,
                    const BufferLayout& layout) {
  int64_t stride = 0;
  for (size_t i = 0; i < index.size(); ++i) {
    const bool blocked = static_cast<int>(i) == layout.blocked;
    stride += index[i].CoefficientOf(d) * (blocked ? layout.pack : strides[i]);
  }
  return stride;
}

int64_t StrideAlong(const Schedule& schedule, const Access& access, const Dims& windows, DimId d) {
  if (!Names(access.index, d)) return 0;
  const Buffer& b = schedule.buffer(access.buffer);
  if (!b.IsLocal()) {
    if (b.layout.blocked < 0) return StrideAlong(access.index, b.layout.strides, d);
    return StrideAlong(access.index, ElementStrides(b, b.shape), d, b.layout);
  }
  Dims lengths;
  lengths.reserve(b.dims.size());
  for (DimId dim : b.dims) lengths.push_back(windows[static_cast<size_t>(dim)]);
  // Rows may be padded, so that those of one element do not lie next to each other either.
  if (b.layout.blocked < 0 && lengths.size() > 1)
    lengths.back() = std::max<int64_t>(lengths.back(), 2);
  return StrideAlong(access.index, ElementStrides(b, lengths), d, b.layout);
}

bool MovesAlong(const EachStmt& each, int value, DimId d) {
  std::map<int, bool> moves;  // by value, in the order of the steps
  for (const ElementOp& op : each.ops) {
    if (op.kind != ElementOp::kLoad && op.kind != ElementOp::kCompute) continue;
    bool own = op.axis == d && op.kind == ElementOp::kCompute;
    for (int v : op.args) own |= moves[v];
    for (const Access& a : op.access) {
      own |= Names(a.index, d);
      for (const Guard& g : a.guards) own |= g.axis == d;
      for (const IndexExpr& e : a.index) {
        if (e.indirect() >= 0) own |= moves[e.indirect()];
      }
    }
    moves[op.result] = own;
  }
  return moves[value];
}

bool IsDense(const Buffer& buffer) {
  return buffer.layout.blocked < 0 && buffer.layout.strides == RowMajorStrides(buffer.shape);
}

namespace {

using VisitAccess = std::function<void(const Access& access, bool writes, const LoopRanges&)>;

void VisitAll(const Block& block, const VisitAccess& visit_at, LoopRanges* walked) {
  const auto visit = [&](const Access& access, bool writes) { visit_at(access, writes, *walked); };
  for (const Stmt& stmt : block) {
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
      LoopRanges outer;
      if (loop->end >= 0) {
        outer = *walked;
        IndexRange range{loop->begin, loop->end};
        if (auto known = walked->find(loop->dim); known != walked->end()) {
          range = {std::max(range.begin, known->second.begin),
                   std::min(range.end, known->second.end)};
        }
        walked->insert_or_assign(loop->dim, range);
      }
      VisitAll(loop->body, visit_at, walked);
      if (loop->end >= 0) *walked = std::move(outer);
    } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
      VisitAll(branch->body, visit_at, walked);
    } else if (const auto* each = std::get_if<EachStmt>(&stmt.node)) {
      for (const ElementOp& op : each->ops) {
        for (const Access& a : op.access) visit(a, op.kind != ElementOp::kLoad);
      }
    } else if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
      visit(mma->a, false);
      visit(mma->b, false);
      visit(mma->c, true);
    } else if (const auto* copy = std::get_if<CopyStmt>(&stmt.node)) {
      visit(copy->source, false);
      visit(copy->target, true);
    } else if (const auto* merge = std::get_if<MergeStmt>(&stmt.node)) {
      for (const Access& a : merge->source) visit(a, false);
      for (const Access& a : merge->target) visit(a, true);
    }
  }
}

}  // namespace

void ForEachAccess(const Block& block,
                   const std::function<void(const Access& access, bool writes)>& visit) {
  LoopRanges walked;
  VisitAll(
      block, [&](const Access& access, bool writes, const LoopRanges&) { visit(access, writes); },
      &walked);
}

namespace {

// Elements from the first one of a param on that an access may touch.
int64_t ReachOf(const Schedule& schedule, const Access& access, const LoopRanges& walked) {
  const Buffer& b = schedule.buffer(access.buffer);
  auto whole = [&](DimId d) {
    auto range = walked.find(d);
    return range == walked.end() ? IndexRange{0, schedule.dim(d).extent} : range->second;
  };
  int64_t last = 0;
  for (size_t i = 0; i < access.index.size(); ++i) {
    const IndexExpr& e = access.index[i];
    // What a tensor holds is clamped to the dim where it is read.
    const IndexRange range =
        e.indirect() >= 0 ? IndexRange{0, b.shape[i]} : RangeOf(e, whole, access.guards);
    if (range.empty()) return 0;
    last += (range.end - 1) * b.layout.strides[i];
  }
  return last + 1;
}

using VisitParam = std::function<void(BufferId, const Access*, const LoopRanges&)>;

void VisitCalled(const Schedule& schedule, const Block& block, const VisitParam& visit) {
  for (const Stmt& stmt : block) {
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
      VisitCalled(schedule, loop->body, visit);
    } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
      VisitCalled(schedule, branch->body, visit);
    } else if (const auto* call = std::get_if<CallStmt>(&stmt.node)) {
      for (const auto* list : {&call->inputs, &call->outputs}) {
        for (BufferId id : *list) {
          const BufferId memory = schedule.MemoryOf(id);
          if (memory < schedule.params) visit(memory, nullptr, {});
        }
      }
    }
  }
}

}  // namespace

void ForEachParamAccess(const Schedule& schedule, const VisitParam& visit) {
  auto add = [&](const Access& access, bool /*writes*/, const LoopRanges& walked) {
    const BufferId memory = schedule.MemoryOf(access.buffer);
    if (memory >= schedule.params) return;
    // Under another shape it is dense, and as long.
    const bool own = memory == access.buffer && schedule.buffer(memory).layout.blocked < 0;
    visit(memory, own ? &access : nullptr, walked);
  };
  for (const Phase& phase : schedule.phases) {
    for (const Segment& segment : phase.segments) {
      LoopRanges walked;
      VisitAll(segment.body, add, &walked);
      VisitCalled(schedule, segment.body, visit);
    }
  }
}

std::vector<int64_t> ReachOfParams(const Schedule& schedule) {
  std::vector<int64_t> reach(static_cast<size_t>(schedule.params), 0);
  ForEachParamAccess(schedule, [&](BufferId param, const Access* access, const LoopRanges& walked) {
    const int64_t own = access != nullptr ? ReachOf(schedule, *access, walked)
                                          : StoredElements(schedule.buffer(param));
    int64_t& most = reach[static_cast<size_t>(param)];
    most = std::max(most, own);
  });
  return reach;
}

}  // namespace fusion
