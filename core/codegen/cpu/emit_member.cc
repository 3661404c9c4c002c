#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <variant>

#include "core/codegen/cpu/emitter.h"
#include "core/schedule/ir/access.h"

namespace fusion {

namespace {

bool Alike(const LoopRanges& a, const LoopRanges& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.begin == y.second.begin && x.second.end == y.second.end;
  });
}

}  // namespace

SizeCode SizeCode::operator+(const SizeCode& other) const {
  if (code_.empty() && other.code_.empty()) return SizeCode(number_ + other.number_);
  if (IsZero()) return other;
  return SizeCode(StrCat(ToString(), " + ", other.ToString()));
}

SizeCode SizeCode::operator*(const SizeCode& other) const {
  if (code_.empty() && other.code_.empty()) return SizeCode(number_ * other.number_);
  if (code_.empty() && number_ == 1) return other;
  if (other.code_.empty() && other.number_ == 1) return *this;
  return SizeCode(StrCat("(", ToString(), ") * (", other.ToString(), ")"));
}

WindowLengths UpTo(int64_t most) {
  if (most > static_cast<int64_t>(kMostWindowLengths)) return {1, 2, most};
  WindowLengths out;
  for (int64_t l = 1; l <= most; ++l) out.push_back(l);
  return out;
}

// Windows of the largest member. Windows of the dims in `out_any`, which vary, may have any length
// up to theirs.
std::vector<BlockWindows> CpuEmitter::WindowsOf(size_t phase, size_t segment,
                                                std::vector<bool>* out_any) const {
  const Segment& seg = most_->phases[phase].segments[segment];
  std::vector<BlockWindows> out = WindowsOfBlocks(most_->dims, seg.grid, seg.halos);
  std::vector<bool>& any = *out_any;
  any = varies_;
  for (const Halo& h : seg.halos) {
    for (const IndexExpr& e : h.reached) {
      for (const IndexExpr::Term& t : e.terms()) {
        if (any[static_cast<size_t>(t.axis)]) any[static_cast<size_t>(h.dim)] = true;
      }
    }
  }
  for (size_t d = 0; d < out.size(); ++d) {
    if (!any[d]) continue;
    out[d].lengths = UpTo(out[d].longest());
    out[d].clipped = true;
  }
  return out;
}

std::string CpuEmitter::TileCode(size_t phase, size_t segment, const GridDim& g) const {
  return TileVaries(g) ? StrCat(dim(g.dim).name, "_tile", phase, "_", segment) : StrCat(g.tile);
}

// `tile`: its TileCode.
SizeCode CpuEmitter::Tiles(const GridDim& g, const std::string& tile) const {
  const int64_t extent = dim(g.dim).extent;
  if (!Varies(g.dim)) return SizeCode((extent + g.tile - 1) / g.tile);
  if (g.tile == 1) return SizeCode(StrCat(extent));
  return SizeCode(StrCat("((", extent, " + ", tile, " - 1) / ", tile, ")"));
}

SizeCode CpuEmitter::TasksOf(size_t phase, size_t segment) const {
  SizeCode out(1);
  for (const GridDim& g : s_.phases[phase].segments[segment].grid) {
    out = out * Tiles(g, TileCode(phase, segment, g));
  }
  return out;
}

SizeCode CpuEmitter::TasksOf(size_t phase) const {
  SizeCode out(0);
  for (size_t i = 0; i < s_.phases[phase].segments.size(); ++i) out = out + TasksOf(phase, i);
  return out;
}

// The preferred unit for tiles of a grid dim: the rows of the innermost loop over it, or a vector
// if elements are contiguous along it.
int64_t CpuEmitter::StepOf(const Block& block, DimId d) const {
  int64_t step = 1;
  for (const Stmt& stmt : block) {
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
      step = std::max({step, loop->dim == d ? loop->tile : 1, StepOf(loop->body, d)});
    } else if (const auto* branch = std::get_if<IfStmt>(&stmt.node)) {
      step = std::max(step, StepOf(branch->body, d));
    } else if (const auto* each = std::get_if<EachStmt>(&stmt.node)) {
      if (!each->dims.empty() && each->dims.back() == d) step = std::max<int64_t>(step, lanes_);
    }
  }
  return step;
}

// True if products in a loop over `d` have its elements as rows and accept steps of any length: no
// layout and no inner tiling depends on them.
bool CpuEmitter::HasRows(const Block& block, DimId d) const {
  bool rows = false;
  return OnlyRows(block, d, &rows) && rows;
}

bool CpuEmitter::OnlyRows(const Block& block, DimId d, bool* rows) const {
  auto laid_out = [&](const Access& access) {
    const int blocked = buffer(access.buffer).layout.blocked;
    return blocked >= 0 && access.index[static_cast<size_t>(blocked)].CoefficientOf(d) != 0;
  };
  return std::all_of(block.begin(), block.end(), [&](const Stmt& stmt) {
    if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
      *rows |= mma->m == d;
      return mma->n != d && !laid_out(mma->a) && !laid_out(mma->b) && !laid_out(mma->c);
    }
    if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) {
      return loop->dim != d && OnlyRows(loop->body, d, rows);
    }
    if (const auto* copy = std::get_if<CopyStmt>(&stmt.node)) {
      return !laid_out(copy->target) && !laid_out(copy->source);
    }
    return std::get_if<IfStmt>(&stmt.node) == nullptr;
  });
}

std::string EvenStepFunction() {
  return R"c(// Steps of `most` at most that are equally long: 13 rows are 7 and 6, not 12 and 1.
AI i64 even_step(i64 extent, i64 most) {
  const i64 steps = max_i64((extent + most - 1) / most, 1);
  return (extent + steps - 1) / steps;
}

)c";
}

std::string RunTileFunction(int threads) {
  return StrCat(
      R"c(// The tile of a dim that is cut into `most` at most, where the others make `others` blocks: as long as
// possible, so that every one of )c",
      threads, R"c( threads has equally much to do; a multiple of `step`.
AI i64 run_tile(i64 extent, i64 most, i64 step, i64 others) {
  i64 tiles = (extent + most - 1) / most;
  if (tiles < 1 || others < 1) return most;
  if (tiles * others < 4 * )c",
      threads, R"c() {
    const i64 tasks = (tiles * others + )c",
      threads - 1, ") / ", threads, " * ", threads,
      R"c(;
    tiles = (tasks + others - 1) / others;
  }
  const i64 tile = ((extent + tiles - 1) / tiles + step - 1) / step * step;
  return min_i64(tile, most);
}

)c");
}

// Writes the choice of the tiles that vary between members. Long ones are chosen first.
void CpuEmitter::WriteTiles() {
  for (size_t p = 0; p < s_.phases.size(); ++p) {
    for (size_t i = 0; i < s_.phases[p].segments.size(); ++i) {
      const Segment& seg = s_.phases[p].segments[i];
      std::vector<GridDim> open;
      SizeCode others(1);
      for (const GridDim& g : seg.grid) {
        if (TileVaries(g)) {
          open.push_back(g);
        } else {
          others = others * Tiles(g, StrCat(g.tile));
        }
      }
      std::stable_sort(open.begin(), open.end(),
                       [](const GridDim& a, const GridDim& b) { return a.tile > b.tile; });
      for (size_t o = 0; o < open.size(); ++o) {
        SizeCode rest = others;
        for (size_t later = o + 1; later < open.size(); ++later) {
          rest = rest * Tiles(open[later], StrCat(open[later].tile));
        }
        const std::string tile = TileCode(p, i, open[o]);
        out_.Line("const i64 ", tile, " = run_tile(", dim(open[o].dim).extent, ", ", open[o].tile,
                  ", ", std::min(StepOf(seg.body, open[o].dim), open[o].tile), ", ",
                  rest.ToString(), ");");
        out_.Line("(void)", tile, ";");
        others = others * Tiles(open[o], tile);
        run_tiles_ = true;
      }
    }
  }
}

// `args`: the sizes come from `args->dims`, not from a parameter of the function.
void CpuEmitter::WriteSizes(bool args) {
  if (!IsMember()) return;
  if (args) out_.Line("const i64* const dims = args->dims;");
  out_.Line("(void)dims;");
  out_.Line(kSizesLine);
}

// The emitted code is right only for numbers in this order.
void CpuEmitter::WriteNeeds(const std::vector<int64_t>& ascending) {
  if (!IsMember()) return;
  for (size_t i = 0; i + 1 < ascending.size(); ++i) {
    out_.Line(kNeedsLine, ascending[i], " <= ", ascending[i + 1]);
  }
}

// Code that ignores a border outside a dim is right only while the border stays outside.
void CpuEmitter::WriteNeedsOutside(int64_t border, int64_t extent) {
  if (!IsMember()) return;
  if (border <= 0) {
    out_.Line(kNeedsLine, 0, " <= ", -border);
  } else if (border >= extent) {
    out_.Line(kNeedsLine, extent, " <= ", border);
  }
}

// Writes the first and last coordinate that an access walks along a dim, as two constants of these
// names.
void CpuEmitter::WriteReachRange(DimId d, const Access& access, const LoopRanges& walked,
                                 const std::string& begin, const std::string& last) {
  const int64_t extent = dim(d).extent;
  std::string from = "0";
  std::string to = StrCat(extent);
  if (auto range = walked.find(d); range != walked.end()) {
    from = StrCat(range->second.begin);
    to = StrCat(range->second.end);
  }
  for (const Guard& g : access.guards) {
    if (g.axis != d) continue;
    WriteNeedsOutside(g.begin, extent);
    WriteNeedsOutside(g.end, extent);
    if (g.begin > 0) from = StrCat("max_i64(", from, ", ", g.begin, ")");
    if (g.end < extent) to = StrCat("min_i64(", to, ", ", std::max<int64_t>(g.end, 0), ")");
  }
  out_.Line("const i64 ", begin, " = ", from, ";");
  out_.Line("const i64 ", last, " = ", to, " - 1;");
}

// Writes the range of accessed elements (reach) of one access. An access that walks no coordinate
// has none. One that begins before the first element is reported as too long. The code adds the
// terms at run time: their sum would be a polynomial of more terms than FitSize finds.
void CpuEmitter::WriteAccessReach(const Access& access, const LoopRanges& walked) {
  const Buffer& b = buffer(access.buffer);
  std::map<DimId, std::pair<std::string, std::string>> range;
  LinearCode first;
  LinearCode last;
  std::string constants;
  int64_t least = 0;  // of the member
  std::vector<std::string> walks;
  out_.Open("");
  for (size_t i = 0; i < access.index.size(); ++i) {
    const IndexExpr& e = access.index[i];
    const int64_t stride = b.layout.strides[i];
    if (e.indirect() >= 0) {
      // Indirect indices are clamped to the dim when they are read.
      walks.push_back(StrCat("0 < ", b.shape[i]));
      const std::string place = StrCat("n", i);
      out_.Line("const i64 ", place, " = ", b.shape[i], " - 1;");
      last.Add(place, stride);
      continue;
    }
    const int64_t constant = e.constant() * stride;
    if (constant != 0) constants += StrCat(constant < 0 ? " - " : " + ", std::abs(constant));
    least += constant;
    for (const IndexExpr::Term& t : e.terms()) {
      auto [it, fresh] = range.try_emplace(t.axis, StrCat("b", t.axis), StrCat("e", t.axis));
      const auto& [begin, end] = it->second;
      if (fresh) {
        WriteReachRange(t.axis, access, walked, begin, end);
        walks.push_back(StrCat(begin, " <= ", end));
      }
      const int64_t step = t.coefficient * stride;
      first.Add(step > 0 ? begin : end, step);
      last.Add(step > 0 ? end : begin, step);
      auto known = walked.find(t.axis);
      const IndexRange whole =
          Guarded(known != walked.end() ? known->second : IndexRange{0, dim(t.axis).extent}, t.axis,
                  access.guards);
      least += step * (step > 0 ? whole.begin : whole.end - 1);
    }
  }
  if (!walks.empty()) out_.Open("if (", StrJoin(walks, " && "), ")");
  // The ranges of single dims overestimate what is walked if a condition joins several dims.
  if (least >= 0) {
    out_.Line("if (", first.ToString(), constants, " < 0) return ",
              std::numeric_limits<int64_t>::max(), ";");
  }
  out_.Line("most = max_i64(most, ", last.ToString(), constants, " + 1);");
  if (!walks.empty()) out_.Close();
  out_.Close();
}

// The body of the function "reach", whose sizes are constants. Ends of ranges may be ordered
// differently in other members, so the code compares them at run time.
void CpuEmitter::WriteMemberReach() {
  std::vector<std::vector<std::pair<Access, LoopRanges>>> accesses(static_cast<size_t>(s_.params));
  std::vector<bool> whole(accesses.size(), false);
  ForEachParamAccess(s_, [&](BufferId param, const Access* access, const LoopRanges& walked) {
    const auto p = static_cast<size_t>(param);
    if (access == nullptr) {
      whole[p] = true;
      return;
    }
    auto same = [&](const auto& known) {
      return known.first == *access && Alike(known.second, walked);
    };
    if (std::any_of(accesses[p].begin(), accesses[p].end(), same)) return;
    accesses[p].emplace_back(*access, walked);
  });
  out_.Line("i64 most = 0;");
  out_.Open("switch (tensor)");
  for (size_t p = 0; p < accesses.size(); ++p) {
    out_.Open("case ", p, ":");
    if (whole[p]) {
      out_.Line("most = max_i64(most, ", StoredElements(buffer(static_cast<BufferId>(p))), ");");
    }
    for (const auto& [access, walked] : accesses[p]) WriteAccessReach(access, walked);
    out_.Line("break;");
    out_.Close();
  }
  out_.Close();
  out_.Line("return most;");
}

}  // namespace fusion
