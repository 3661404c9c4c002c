#include "core/schedule/tiles/tiles_text.h"

#include <algorithm>

#include "core/base/contains.h"
#include "core/schedule/memory/block_windows.h"

namespace fusion {
namespace {

// Whether some product in `block` sums over `d`.
bool SumsOver(const Block& block, DimId d) {
  return std::any_of(block.begin(), block.end(), [&](const Stmt& stmt) {
    if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) return Contains(mma->over, d);
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) return SumsOver(loop->body, d);
    if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) return SumsOver(branch->body, d);
    return false;
  });
}

// The largest product of windows, rows x columns.
struct Accumulators {
  int64_t rows = 0;
  int64_t columns = 0;
  DType row_type = DType::kF32;
  DType column_type = DType::kF32;

  std::string ToString() const {
    std::string operands;
    if (row_type != DType::kF32) StrAppend(&operands, StrCat(" of ", DTypeName(row_type)));
    if (row_type != column_type) {
      StrAppend(&operands, StrCat(" by columns of ", DTypeName(column_type)));
    }
    return StrCat("accumulates ", rows, "x", columns, operands);
  }
};
void FindAccumulators(const Schedule& s, const Block& block, std::vector<int64_t> window,
                      Accumulators* most) {
  for (const Stmt& stmt : block) {
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
      std::vector<int64_t> inner = window;
      int64_t& w = inner[static_cast<size_t>(loop->dim)];
      w = std::min(w, loop->tile);
      FindAccumulators(s, loop->body, std::move(inner), most);
    } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
      FindAccumulators(s, branch->body, window, most);
    } else if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
      int64_t m = mma->m >= 0 ? window[static_cast<size_t>(mma->m)] : 1;
      int64_t n = window[static_cast<size_t>(mma->n)];
      if (m * n <= most->rows * most->columns) continue;
      *most = {m, n, s.buffer(mma->a.buffer).dtype, s.buffer(mma->b.buffer).dtype};
    }
  }
}

std::string SegmentText(const Schedule& s, const Segment& segment) {
  Dims window = LongestWindows(s.dims, segment.grid, segment.halos);
  std::vector<std::string> parts;
  std::vector<std::string> tiles;
  for (const GridDim& g : segment.grid) {
    if (g.tile < s.dim(g.dim).extent) tiles.push_back(StrCat(s.dim(g.dim).name, ":", g.tile));
  }
  if (!tiles.empty()) parts.push_back(StrJoin(tiles, " "));
  for (const Halo& h : segment.halos) {
    parts.push_back(StrCat("halo ", s.dim(h.dim).name, ":", window[static_cast<size_t>(h.dim)]));
  }
  for (const Stmt& stmt : segment.body) {
    const auto* loop = std::get_if<LoopStmt>(&stmt.node);
    if (loop == nullptr || !SumsOver(loop->body, loop->dim)) continue;
    const std::string part = loop->end < 0 ? "" : StrCat(" from ", loop->begin, " to ", loop->end);
    parts.push_back(StrCat("streams ", s.dim(loop->dim).name, ":", loop->tile, part));
  }
  Accumulators most;
  FindAccumulators(s, segment.body, std::move(window), &most);
  if (most.rows > 0) parts.push_back(most.ToString());
  return parts.empty() ? "whole" : StrJoin(parts, ", ");
}

}  // namespace

std::string TilesText(const Schedule& schedule) {
  std::vector<std::string> parts;
  for (const Phase& phase : schedule.phases) {
    for (const Segment& segment : phase.segments) parts.push_back(SegmentText(schedule, segment));
  }
  return StrJoin(parts, "; ");
}

}  // namespace fusion
