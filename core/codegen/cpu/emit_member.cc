#include "core/codegen/cpu/emitter.h"

namespace fusion {

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
  WindowLengths out;
  for (int64_t l = 1; l <= most; ++l) out.push_back(l);
  return out;
}

// Of the largest member; windows of dims that vary may have any length up to theirs.
std::vector<BlockWindows> CpuEmitter::WindowsOf(size_t phase, size_t segment) const {
  const Segment& seg = most_->phases[phase].segments[segment];
  std::vector<BlockWindows> out = WindowsOfBlocks(most_->dims, seg.grid, seg.halos);
  std::vector<bool> any = varies_;
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

SizeCode CpuEmitter::Tiles(const GridDim& g) const {
  const int64_t extent = dim(g.dim).extent;
  if (!Varies(g.dim)) return SizeCode((extent + g.tile - 1) / g.tile);
  if (g.tile == 1) return SizeCode(StrCat(extent));
  return SizeCode(StrCat("((", extent, " + ", g.tile - 1, ") / ", g.tile, ")"));
}

SizeCode CpuEmitter::TasksOf(const Segment& segment) const {
  SizeCode out(1);
  for (const GridDim& g : segment.grid) out = out * Tiles(g);
  return out;
}

SizeCode CpuEmitter::TasksOf(size_t phase) const {
  SizeCode out(0);
  for (const Segment& segment : s_.phases[phase].segments) out = out + TasksOf(segment);
  return out;
}

// `args`: they are those of the args, not a parameter of the function.
void CpuEmitter::WriteSizes(bool args) {
  if (!IsMember()) return;
  if (args) out_.Line("const i64* const dims = args->dims;");
  out_.Line("(void)dims;");
  out_.Line(kSizesLine);
}

// What is written for numbers in this order is right in this order only.
void CpuEmitter::WriteNeeds(const std::vector<int64_t>& ascending) {
  if (!IsMember()) return;
  for (size_t i = 0; i + 1 < ascending.size(); ++i) {
    out_.Line(kNeedsLine, ascending[i], " <= ", ascending[i + 1]);
  }
}

}  // namespace fusion
