#include "core/schedule/ir/schedule.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace fusion {

bool ElementOp::DoesTheSame(const ElementOp& other) const {
  // Zeros of both signs are equal, but not the same; NaN is not equal, but the same.
  return kind == other.kind && args == other.args && op == other.op && type == other.type &&
         std::bit_cast<uint64_t>(real) == std::bit_cast<uint64_t>(other.real) &&
         integer == other.integer && end == other.end && axis == other.axis &&
         access == other.access && monoid == other.monoid;
}

int64_t Schedule::Tasks(size_t phase) const {
  int64_t total = 0;
  for (const Segment& segment : phases[phase].segments) {
    int64_t tasks = 1;
    for (const GridDim& g : segment.grid) tasks *= (dim(g.dim).extent + g.tile - 1) / g.tile;
    total += tasks;
  }
  return total;
}

std::optional<int64_t> ColumnPack(DType rows, DType columns) {
  if (rows == DType::kF32 && (columns == DType::kF32 || columns == DType::kI8)) return 1;
  const bool takes = rows == DType::kF32 || rows == DType::kBF16;
  if (takes && columns == DType::kBF16) return 2;
  if (rows == DType::kU8 && columns == DType::kI8) return 4;
  return std::nullopt;
}

DType SumType(DType rows) { return rows == DType::kU8 ? DType::kI32 : DType::kF32; }

int BufferLayout::PackedDim(int rank) const {
  if (pack <= 1) return -1;
  return blocked == rank - 1 ? rank - 2 : rank - 1;
}

Dims StoredDims(const Buffer& buffer) {
  const BufferLayout& layout = buffer.layout;
  const int packed = layout.PackedDim(buffer.rank());
  auto pieces = [&](int d, int64_t of) {
    return (buffer.shape[static_cast<size_t>(d)] + of - 1) / of;
  };
  Dims stored = {pieces(layout.blocked, layout.block)};
  for (int d = 0; d < buffer.rank(); ++d) {
    if (d != layout.blocked) stored.push_back(pieces(d, d == packed ? layout.pack : 1));
  }
  stored.push_back(layout.block);
  if (layout.pack > 1) stored.push_back(layout.pack);
  return stored;
}

int64_t StoredElements(const Buffer& buffer) {
  if (buffer.layout.blocked < 0) return SpanOf(buffer.shape, buffer.layout.strides);
  return NumElements(StoredDims(buffer));
}

int64_t StoredBytes(const Buffer& buffer) {
  return StoredElements(buffer) * DTypeBytes(buffer.dtype);
}

int64_t ParamBytes(const Schedule& schedule) {
  int64_t bytes = 0;
  for (BufferId p = 0; p < schedule.params; ++p) bytes += StoredBytes(schedule.buffer(p));
  return bytes;
}

int64_t StoredOffset(const Buffer& buffer, const std::vector<int64_t>& index) {
  int64_t offset = 0;
  if (buffer.layout.blocked < 0) {
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * buffer.layout.strides[d];
    return offset;
  }
  const BufferLayout& layout = buffer.layout;
  const int packed = layout.PackedDim(buffer.rank());
  const int64_t in_block = index[static_cast<size_t>(layout.blocked)];
  const int64_t in_pack = packed < 0 ? 0 : index[static_cast<size_t>(packed)];
  const Dims stored = StoredDims(buffer);
  offset = in_block / layout.block;
  size_t at = 1;  // of `stored`
  for (int d = 0; d < buffer.rank(); ++d) {
    if (d == layout.blocked) continue;
    const int64_t i = index[static_cast<size_t>(d)];
    offset = offset * stored[at++] + (d == packed ? i / layout.pack : i);
  }
  return (offset * layout.block + in_block % layout.block) * layout.pack + in_pack % layout.pack;
}

bool Schedule::SkipsMasked() const {
  std::function<bool(const Block&)> skips = [&](const Block& block) {
    return std::any_of(block.begin(), block.end(), [&](const Stmt& stmt) {
      if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) return skips(loop->body);
      return std::holds_alternative<IfStmt>(stmt.node);
    });
  };
  for (const Phase& phase : phases) {
    for (const Segment& segment : phase.segments) {
      if (skips(segment.body)) return true;
    }
  }
  return false;
}

}  // namespace fusion
