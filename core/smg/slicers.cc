#include "core/smg/slicers.h"

namespace fusion {
namespace {

std::string OpName(const Smg& smg, int i) { return StrCat("op ", i, " ", smg.op(i).label); }

}  // namespace

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
  for (int i = 0; i < count; ++i) {
    const SmgOp& op = smg.op(i);
    if (op.Reduces(dim)) {
      verdict.reason = StrCat("reduced by ", OpName(smg, i));
      return verdict;
    }
    for (const SmgRead& read : op.reads) {
      if (CrossesAlong(read, smg, dim)) {
        verdict.reason = StrCat(OpName(smg, i), " reads %", read.value, " at other places along ",
                                smg.dim(dim).name);
        return verdict;
      }
    }
  }
  // An op that lacks the dim but feeds one that has it is done again in every block.
  std::vector<bool> feeds(smg.ops.size(), false);
  for (int i = count - 1; i >= 0; --i) {
    const SmgOp& op = smg.op(i);
    for (const SmgRead& read : op.reads) {
      if (read.producer < 0) continue;
      bool below = op.Has(dim) || feeds[static_cast<size_t>(i)];
      if (below && !smg.op(read.producer).Has(dim))
        feeds[static_cast<size_t>(read.producer)] = true;
    }
  }
  for (int i = 0; i < count; ++i) {
    if (feeds[static_cast<size_t>(i)]) verdict.recomputed.push_back(i);
  }
  verdict.sliceable = true;
  return verdict;
}

}  // namespace fusion
