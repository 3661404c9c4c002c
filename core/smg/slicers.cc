#include "core/smg/slicers.h"

#include <algorithm>

namespace fusion {
namespace {

// Why a read of an intermediate needs `dim` whole; "" if it does not.
std::string ReadsAcross(const Smg& smg, int reader, const SmgRead& read, DimId dim) {
  if (!CrossesAlong(read, smg, dim)) return "";
  auto coordinates = ProducerCoordinates(smg, read);
  bool itself = !coordinates || std::any_of(coordinates->begin(), coordinates->end(),
                                            [&](const auto& at) { return at.first == dim; });
  if (!itself) return "";
  return StrCat(OpName(smg, reader), " reads %", read.value, " at other places along ",
                smg.dim(dim).name);
}

// Why blocks along `dim` cannot compute their part of a halo; "" if they can.
std::string KeepsHaloWhole(const Smg& smg, DimId dim, const Halo& halo) {
  for (int i = 0; i < static_cast<int>(smg.ops.size()); ++i) {
    const SmgOp& op = smg.op(i);
    const std::string& name = smg.dim(halo.dim).name;
    if (op.Reduces(halo.dim)) {
      return StrCat(OpName(smg, i), " reduces the whole of ", name, ", which blocks along ",
                    smg.dim(dim).name, " have a part of");
    }
    if (op.Has(halo.dim) && op.Has(dim)) {
      return StrCat(OpName(smg, i), " has both ", smg.dim(dim).name, " and ", name,
                    ", which is read at other places along it");
    }
  }
  return "";
}

}  // namespace

bool SpatialVerdict::Overlaps() const {
  return std::any_of(reach.begin(), reach.end(), [](const HaloReach& r) { return r.extra > 0; });
}

bool SpatialVerdict::Slides() const {
  return std::any_of(reach.begin(), reach.end(),
                     [](const HaloReach& r) { return r.extra > 0 || r.step > 1; });
}

bool CrossesAlong(const SmgRead& read, const Smg& smg, DimId dim) {
  if (read.producer < 0 || read.relation == SmgRead::kAligned) return false;
  auto coordinates = ProducerCoordinates(smg, read);
  if (!coordinates) return smg.op(read.producer).Has(dim);
  for (const auto& [d, at] : *coordinates) {
    bool together = at == IndexExpr::Axis(d);
    if (!together && (d == dim || at.CoefficientOf(dim) != 0)) return true;
  }
  return false;
}

SpatialVerdict SliceSpatially(const Smg& smg, DimId dim) {
  SpatialVerdict verdict;
  auto count = static_cast<int>(smg.ops.size());
  bool crosses = false;
  for (int i = 0; i < count; ++i) {
    const SmgOp& op = smg.op(i);
    if (op.Reduces(dim)) {
      verdict.reason = StrCat("reduced by ", OpName(smg, i));
      return verdict;
    }
    for (const SmgRead& read : op.reads) {
      verdict.reason = ReadsAcross(smg, i, read, dim);
      if (!verdict.reason.empty()) return verdict;
      crosses = crosses || CrossesAlong(read, smg, dim);
    }
  }
  if (crosses) {
    std::optional<std::vector<Halo>> halos = HalosOf(smg, {dim});
    if (!halos.has_value()) {
      verdict.reason = StrCat("halos of blocks along ", smg.dim(dim).name, " reach for each other");
      return verdict;
    }
    for (const Halo& halo : *halos) {
      verdict.reason = KeepsHaloWhole(smg, dim, halo);
      if (!verdict.reason.empty()) return verdict;
    }
    verdict.reach = ReachOf(smg, dim, *halos);
    verdict.halos = *std::move(halos);
  }
  // An op that lacks the dim but feeds one that has it is recomputed by every block, unless a block
  // computes only its part of a halo.
  auto has_part = [&](const SmgOp& op) {
    return op.Has(dim) || std::any_of(verdict.halos.begin(), verdict.halos.end(),
                                      [&](const Halo& h) { return op.Has(h.dim); });
  };
  std::vector<bool> feeds(smg.ops.size(), false);
  for (int i = count - 1; i >= 0; --i) {
    const SmgOp& op = smg.op(i);
    for (const SmgRead& read : op.reads) {
      if (read.producer < 0) continue;
      bool below = has_part(op) || feeds[static_cast<size_t>(i)];
      if (below && !has_part(smg.op(read.producer)))
        feeds[static_cast<size_t>(read.producer)] = true;
    }
  }
  for (int i = 0; i < count; ++i) {
    if (feeds[static_cast<size_t>(i)]) verdict.recomputed.push_back(i);
  }
  verdict.sliceable = true;
  return verdict;
}

std::string SpatialText(const Smg& smg, DimId dim, const SpatialVerdict& verdict) {
  if (!verdict.sliceable) return StrCat("no: ", verdict.reason);
  std::vector<std::string> parts;
  if (!verdict.recomputed.empty()) {
    parts.push_back(StrCat("recomputes op ", StrJoin(verdict.recomputed, ", op ")));
  }
  for (const HaloReach& r : verdict.reach) {
    std::string offset = r.extra == 0  ? ""
                         : r.extra < 0 ? StrCat(" - ", -r.extra)
                                       : StrCat(" + ", r.extra);
    parts.push_back(StrCat("halo ", smg.dim(r.dim).name, " ",
                           r.step == 1 ? "" : StrCat(r.step, "*"), smg.dim(dim).name, offset));
  }
  return parts.empty() ? "free" : StrJoin(parts, ", ");
}

}  // namespace fusion
