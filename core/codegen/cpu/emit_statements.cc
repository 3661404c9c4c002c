#include <algorithm>
#include <limits>
#include <set>

#include "core/codegen/cpu/emitter.h"
#include "core/schedule/ir/access.h"

namespace fusion {

absl::Status CpuEmitter::Write(const Block& block) {
  for (const Stmt& stmt : block) {
    RETURN_IF_ERROR(std::visit([&](const auto& node) { return Write(node); }, stmt.node));
  }
  return absl::OkStatus();
}

absl::Status CpuEmitter::Write(const LoopStmt& loop) {
  Window outer = window(loop.dim);
  Window inner;
  inner.depth = outer.depth + 1;
  // Tiles of one have one length, whatever the window.
  inner.any = outer.any && loop.tile > 1;
  inner.lengths = outer.any ? UpTo(std::min(loop.tile, outer.Longest()))
                            : TileLengths(outer.lengths, loop.tile);
  std::string name = TileName(loop.dim, outer.depth);
  inner.begin = name;
  std::string begin = outer.begin;
  std::string end = outer.end;
  // All of a dim: which coordinates the loop leaves is known.
  const bool known = outer.begin == "0" && !outer.any && outer.lengths.size() == 1 &&
                     loop.begin < loop.end && loop.end <= outer.Longest();
  if (loop.end >= 0 && known) {
    begin = StrCat(loop.begin);
    end = StrCat(loop.end);
    inner.lengths = TileLengths({loop.end - loop.begin}, loop.tile);
  } else if (loop.end >= 0) {
    begin = StrCat("max_i64(", begin, ", ", loop.begin, ")");
    end = StrCat("min_i64(", end, ", ", loop.end, ")");
    inner.lengths = UpTo(std::min(loop.tile, outer.Longest()));
    inner.any = inner.any || inner.Longest() > static_cast<int64_t>(kMostWindowLengths);
  }
  std::string step = StrCat(loop.tile);
  if (IsMember() && inner.any && loop.end < 0 && HasRows(loop.body, loop.dim)) {
    step = StrCat(name, "_step");
    out_.Line("const i64 ", step, " = even_step((", end, ") - (", begin, "), ", loop.tile, ");");
    even_steps_ = true;
  }
  out_.Open("for (i64 ", name, " = ", begin, "; ", name, " < ", end, "; ", name, " += ", step, ")");
  if (inner.lengths.size() > 1) {
    inner.end = StrCat(name, "_end");
    out_.Line("const i64 ", inner.end, " = min_i64(", name, " + ", step, ", ", end, ");");
  } else {
    inner.end = StrCat(name, " + ", inner.Longest());
  }
  window(loop.dim) = inner;
  FindRowsAhead(loop);
  FindColumnsAhead(loop, end);
  RETURN_IF_ERROR(Write(loop.body));
  window(loop.dim) = outer;
  out_.Close();
  return absl::OkStatus();
}

absl::Status CpuEmitter::Write(const IfStmt& branch) {
  // Each function at the end of the windows where it is largest.
  std::string test = StrJoin(branch.somewhere, " && ", [this](const IndexExpr& e) {
    LinearCode largest;
    largest.Add(e.constant());
    for (const IndexExpr::Term& t : e.terms()) {
      const Window& w = window(t.axis);
      bool rises = t.coefficient > 0;
      largest.Add(rises ? w.end : w.begin, t.coefficient);
      if (rises) largest.Add(-t.coefficient);
    }
    return StrCat(largest.ToString(), " >= 0");
  });
  if (branch.first >= 0) test = StrCat("(", test, ") || ", window(branch.first).begin, " == 0");
  if (branch.watched >= 0) {
    Access watched{.buffer = branch.watched, .index = {}};
    // Not "<", so that NaN is looked at.
    test = StrCat("(", test, ") || !(*(", Address(watched), ") >= ", HexDouble(branch.least), ")");
  }
  if (branch.watched >= 0) SayStep("test of a tile");
  out_.Open("if (", test, ")");
  RETURN_IF_ERROR(Write(branch.body));
  out_.Close();
  return absl::OkStatus();
}

absl::Status CpuEmitter::Write(const AllocStmt& alloc) {
  const Buffer& b = buffer(alloc.buffer);
  std::vector<std::string>& origin = origin_[static_cast<size_t>(alloc.buffer)];
  origin.clear();
  for (DimId d : b.dims) origin.push_back(window(d).begin);
  std::string tile =
      StrJoin(b.dims, ", ", [&](DimId d) { return StrCat(dim(d).name, ":", window(d).Longest()); });
  if (b.level == Level::kAcc) {
    int64_t elements = 1;
    for (size_t i = 0; i < b.dims.size(); ++i) {
      int64_t extent = std::max<int64_t>(window(b.dims[i]).Longest(), 1);
      bool last = i + 1 == b.dims.size();
      elements *= last ? (extent + lanes_ - 1) / lanes_ * lanes_ : extent;
    }
    ScratchSlot& slot = scratch_.slots[static_cast<size_t>(alloc.buffer)];
    slot.strides.assign(b.dims.size(), 0);
    int64_t step = 1;
    for (size_t i = b.dims.size(); i-- > 0;) {
      slot.strides[i] = step;
      int64_t extent = std::max<int64_t>(window(b.dims[i]).Longest(), 1);
      step *= i + 1 == b.dims.size() ? (extent + lanes_ - 1) / lanes_ * lanes_ : extent;
    }
    const std::string memory = guard_ ? StrCat(b.name, "_memory") : b.name;
    out_.Line("alignas(64) ", MemoryTypeName(b.dtype), " ", memory, "[", elements,
              "];  // accumulators [", tile, "]");
    if (guard_) DeclareBuffer(alloc.buffer, memory, StrCat(elements), "");
    return absl::OkStatus();
  }
  const ScratchSlot& slot = scratch_.slots[static_cast<size_t>(alloc.buffer)];
  DeclareBuffer(alloc.buffer, StrCat("(scratch + ", slot.offset, ")"),
                StrCat(slot.bytes / DTypeBytes(b.dtype)), StrCat("staged [", tile, "]"));
  return absl::OkStatus();
}

absl::Status CpuEmitter::Write(const InitStmt& init) {
  if (init.buffers.size() != 1) {
    return Unimplemented("unimplemented: ", init.monoid, " states on the cpu backend");
  }
  const Buffer& b = buffer(init.buffers[0]);
  SayStep(StrCat("identity of ", init.monoid));
  auto monoid = Monoid::Named(init.monoid, b.dtype);
  const Expr& identity = monoid->identity()[0];
  const ScratchSlot& slot = scratch_.slots[static_cast<size_t>(init.buffers[0])];
  std::string value = ElementLiteral(b.dtype, IsFloat(b.dtype) ? identity.value() : 0,
                                     IsFloat(b.dtype) ? 0 : identity.integer());
  int64_t elements = slot.bytes / DTypeBytes(b.dtype);
  int64_t points = 1;
  for (int64_t e : slot.extents) points *= e;
  if (points == 1) {
    out_.Line(b.name, "[0] = ", value, ";");
  } else {
    // Of a member what is used now, which may be far less than there is room for.
    std::string count = StrCat(elements);
    const bool part = IsMember() && window(b.dims[0]).lengths.size() > 1 && b.layout.blocked < 0;
    if (part) {
      const Window& w = window(b.dims[0]);
      count = StrCat("(", w.end, " - (", w.begin, ")) * ", slot.strides[0]);
    }
    out_.Line("for (i64 i = 0; i < ", count, "; ++i) ", b.name, "[i] = ", value,
              ";  // identity of ", init.monoid);
  }
  return absl::OkStatus();
}

absl::Status CpuEmitter::Write(const MergeStmt&) {
  return Unimplemented("unimplemented: merge on the cpu backend");
}

}  // namespace fusion
