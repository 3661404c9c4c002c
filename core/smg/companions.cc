#include "core/smg/companions.h"

#include <algorithm>

namespace fusion {
namespace {

IndexExpr Renamed(const IndexExpr& e, DimId from, DimId to) {
  IndexExpr out = e + IndexExpr::Axis(from, -e.CoefficientOf(from));
  return out + IndexExpr::Axis(to, e.CoefficientOf(from));
}

// The SMG with dim `from` renamed to `to`. No op may have both.
Smg WithDimRenamed(const Smg& smg, DimId from, DimId to) {
  Smg out = smg;
  for (SmgOp& op : out.ops) {
    for (std::vector<DimId>* list : {&op.dims, &op.reduced}) {
      std::replace(list->begin(), list->end(), from, to);
    }
    for (SmgRead& read : op.reads) {
      for (IndexExpr& e : read.index) e = Renamed(e, from, to);
      for (Guard& g : read.guards) g.axis = g.axis == from ? to : g.axis;
    }
    for (IndexExpr& e : op.write) e = Renamed(e, from, to);
    op.value = op.value.MapLeaves([&](const Expr& leaf) -> Expr {
      if (leaf.op() == ScalarOp::kAxis && leaf.index() == from) return Expr::Axis(to);
      if (leaf.op() == ScalarOp::kWithin && leaf.index() == from) {
        return Expr::Within(to, leaf.integer(), leaf.end());
      }
      return leaf;
    });
  }
  return out;
}

// A dim of equal extent that reads some input at the same indices as `dim` in another op; -1: none.
DimId Companion(const Smg& smg, DimId dim) {
  for (DimId other = 0; other < static_cast<DimId>(smg.dims.size()); ++other) {
    if (other == dim || smg.dim(other).extent != smg.dim(dim).extent) continue;
    bool apart = std::none_of(smg.ops.begin(), smg.ops.end(),
                              [&](const SmgOp& op) { return op.Has(dim) && op.Has(other); });
    if (!apart) continue;
    for (const SmgOp& a : smg.ops) {
      for (const SmgRead& x : a.reads) {
        if (x.producer >= 0 || !a.Has(other)) continue;
        IndexMap renamed = x.index;
        for (IndexExpr& e : renamed) e = Renamed(e, other, dim);
        if (renamed == x.index) continue;
        for (const SmgOp& b : smg.ops) {
          for (const SmgRead& y : b.reads) {
            bool same = y.producer < 0 && y.value == x.value && y.index == renamed &&
                        x.guards.empty() && y.guards.empty();
            if (same) return other;
          }
        }
      }
    }
  }
  return -1;
}

}  // namespace

std::optional<Smg> WithCompanions(const Smg& smg, DimId dim) {
  std::optional<Smg> out;
  for (;;) {
    const Smg& now = out.has_value() ? *out : smg;
    DimId other = Companion(now, dim);
    if (other < 0) return out;
    out = WithDimRenamed(now, other, dim);
  }
}

}  // namespace fusion
