#include "core/schedule/schedule.h"

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

int64_t StoredElements(const Buffer& buffer) {
  if (buffer.layout.blocked < 0) return SpanOf(buffer.shape, buffer.layout.strides);
  int64_t block = buffer.layout.block;
  int64_t elements = 1;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    bool blocked = static_cast<int>(d) == buffer.layout.blocked;
    elements *= blocked ? (buffer.shape[d] + block - 1) / block * block : buffer.shape[d];
  }
  return elements;
}

int64_t StoredOffset(const Buffer& buffer, const std::vector<int64_t>& index) {
  int64_t offset = 0;
  if (buffer.layout.blocked < 0) {
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * buffer.layout.strides[d];
    return offset;
  }
  auto blocked = static_cast<size_t>(buffer.layout.blocked);
  int64_t block = buffer.layout.block;
  offset = index[blocked] / block;
  for (size_t d = 0; d < index.size(); ++d) {
    if (d != blocked) offset = offset * buffer.shape[d] + index[d];
  }
  return offset * block + index[blocked] % block;
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
