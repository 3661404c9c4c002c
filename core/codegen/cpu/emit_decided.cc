#include <unordered_map>

#include "core/codegen/cpu/emitter.h"
#include "core/codegen/cpu/full_tiles.h"

// Parts that element-wise regions leave out because the position of the tile decides them.

namespace fusion {

// Tiles in which a mask hides nothing are written without it.
void CpuEmitter::WriteRegion(Region* region) {
  if (region->each->IsPlaced()) return WriteLoops(region, 0, false);
  FullTiles full = FindFullTiles(*region->each, most_->dims);
  if (!full.everywhere.empty()) {
    out_.Open("if (",
              StrJoin(full.everywhere, " && ",
                      [this](const IndexExpr& e) { return AtLeastZeroEverywhere(e); }),
              ")");
    region->kept = std::move(full.kept);
    WriteLoops(region, 0, false);
    region->kept.clear();
    out_.Close();
    out_.Open("else");
  }
  WriteLoops(region, 0, false);
  if (!full.everywhere.empty()) out_.Close();
}

// Whether a sum is at least 0 at every point of the current windows.
std::string CpuEmitter::AtLeastZeroEverywhere(const IndexExpr& e) const {
  LinearCode least;
  least.Add(e.constant());
  for (const IndexExpr::Term& t : e.terms()) {
    const Window& w = window(t.axis);
    bool fixed = w.lengths.size() == 1;
    least.Add(t.coefficient > 0 || fixed ? w.begin : w.end, t.coefficient);
    if (t.coefficient < 0) least.Add(t.coefficient * (fixed ? w.Longest() - 1 : -1));
  }
  return StrCat(least.ToString(), " >= 0");
}

// For each op of the region: the argument that it merely passes on, because the current segment
// decides its condition; -1: it does more; -2: its value is not used. Without this a concat of n
// inputs would compute all of them in each of its n segments.
std::vector<int> CpuEmitter::DecidedSelects(const Region& region) const {
  std::vector<int> wanted;
  if (region.scattered) wanted.push_back(region.each->place);
  for (const ElementOp& op : region.each->ops) {
    const bool effect = op.kind == ElementOp::kStore || op.kind == ElementOp::kReduce;
    if (effect) wanted.insert(wanted.end(), op.args.begin(), op.args.end());
  }
  std::vector<int> passes = DecidedSelects(region, wanted);
  for (size_t i = 0; i < passes.size(); ++i) {
    const ElementOp& op = region.each->ops[i];
    if (op.kind == ElementOp::kStore || op.kind == ElementOp::kReduce) passes[i] = -1;
  }
  return passes;
}

std::vector<int> CpuEmitter::DecidedSelects(const Region& region,
                                            const std::vector<int>& wanted) const {
  const std::vector<ElementOp>& ops = region.each->ops;
  std::unordered_map<int, size_t> at;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == ElementOp::kLoad || ops[i].kind == ElementOp::kCompute) {
      at[ops[i].result] = i;
    }
  }
  std::vector<int> passes(ops.size(), -2);
  std::vector<bool> needed(ops.size(), false);
  auto need = [&](int value) { needed[at.at(value)] = true; };
  for (int value : wanted) need(value);
  for (size_t i = ops.size(); i-- > 0;) {
    const ElementOp& op = ops[i];
    if (!needed[i]) continue;
    passes[i] = -1;
    for (const Access& a : op.access) {
      for (const IndexExpr& e : a.index) {
        if (e.indirect() >= 0) need(e.indirect());
      }
    }
    if (auto kept = region.kept.find(op.result); kept != region.kept.end()) {
      passes[i] = op.args[static_cast<size_t>(kept->second)];
      need(passes[i]);
      continue;
    }
    if (op.kind == ElementOp::kCompute && op.op == ScalarOp::kSelect) {
      const ElementOp& condition = ops[at.at(op.args[0])];
      auto range = region.range.find(condition.axis);
      if (condition.kind == ElementOp::kCompute && condition.op == ScalarOp::kWithin &&
          range != region.range.end()) {
        int64_t first = range->second.first;
        passes[i] = op.args[first >= condition.integer && first < condition.end ? 1 : 2];
        need(passes[i]);
        continue;
      }
    }
    for (int v : op.args) need(v);
  }
  return passes;
}

}  // namespace fusion
