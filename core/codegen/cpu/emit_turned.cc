#include <algorithm>
#include <set>

#include "core/base/contains.h"
#include "core/codegen/cpu/emitter.h"

// Element-wise regions whose lanes run along another dim than the one along which a tensor is
// dense: vectors are loaded and stored as they are in memory, and transposed in registers.

namespace fusion {
namespace {

// With fewer points than the lanes of a vector divided by this, a transposition does not pay: it
// would move mostly unused lanes. Chosen, not measured.
constexpr int64_t kLeastPart = 4;

const Access* PlainAccess(const ElementOp& op) {
  if (op.kind != ElementOp::kLoad && op.kind != ElementOp::kStore) return nullptr;
  const Access& a = op.access[0];
  const bool indirect = std::any_of(a.index.begin(), a.index.end(),
                                    [](const IndexExpr& e) { return e.indirect() >= 0; });
  return a.guards.empty() && !indirect ? &a : nullptr;
}

}  // namespace

void CpuEmitter::PlanTurns(Region* region) const {
  // Of a member of a family nothing may follow from how far apart elements are.
  if (region->vector < 0 || region->folds || IsMember()) return;
  if (window(region->vector).Longest() < lanes_ / kLeastPart) return;
  std::set<BufferId> loaded;
  for (const ElementOp& op : region->each->ops) {
    if (op.kind == ElementOp::kLoad) loaded.insert(op.access[0].buffer);
  }
  for (DimId d : region->outer) {
    if (window(d).Longest() < lanes_ / kLeastPart || !Borders(*region->each, d).empty()) continue;
    std::vector<size_t> turns;
    for (size_t i = 0; i < region->each->ops.size(); ++i) {
      const ElementOp& op = region->each->ops[i];
      const Access* a = PlainAccess(op);
      if (a == nullptr || buffer(a->buffer).dtype != DType::kF32) continue;
      const int64_t across = StepAlong(*a, region->vector);
      // Elements that are stored past the end of a block must not be read in it.
      const bool late = op.kind == ElementOp::kStore && loaded.count(a->buffer) != 0;
      if (across != 0 && across != 1 && StepAlong(*a, d) == 1 && !late) turns.push_back(i);
    }
    if (turns.size() <= region->turns.size()) continue;
    region->turned = d;
    region->turns = std::move(turns);
  }
  std::erase(region->outer, region->turned);
}

// The vectors, one for each point of a block, that op `op` loads or stores; "": it is not
// transposed.
std::string CpuEmitter::TurnedName(const Region& region, size_t op) const {
  return Contains(region.turns, op) ? StrCat("turned", op) : "";
}

// Blocks of W points along the turned dim: loads, the region's body for each point, stores.
void CpuEmitter::WriteTurned(const Region& region, const Lanes& lanes) {
  const std::vector<int> passes = DecidedSelects(region);
  const Window& w = window(region.turned);
  const std::string name = dim(region.turned).name;
  const std::string at = StrCat(name, "_at");
  const bool whole =
      std::all_of(w.lengths.begin(), w.lengths.end(), [&](int64_t l) { return l % lanes_ == 0; });
  const std::string points = whole ? "W" : StrCat(name, "_points");
  const std::string count = lanes.count.empty() ? "W" : lanes.count;
  out_.Open("for (i64 ", at, " = ", w.begin, "; ", at, " < ", w.end, "; ", at, " += W)");
  if (!whole) out_.Line("const i64 ", points, " = min_i64(W, ", w.end, " - ", at, ");");

  // Vector j of a block lies along the turned dim, at lane j.
  auto along = [&](size_t i, const std::function<void(const std::string& place)>& each) {
    std::string& point = point_[static_cast<size_t>(region.vector)];
    const std::string first = point;
    const std::string lane = StrCat(first, "_lane");
    point_[static_cast<size_t>(region.turned)] = at;
    out_.Line("#pragma GCC unroll 16");
    out_.Open("for (int j = 0; j < ", count, "; ++j)");
    out_.Line("const i64 ", lane, " = ", first, " + j;");
    point = lane;
    each(Address(region.each->ops[i].access[0]));
    point = first;
    out_.Close();
  };
  for (size_t i : region.turns) {
    if (passes[i] == -2) continue;
    const std::string turned = TurnedName(region, i);
    out_.Line("vf ", turned, "[W] = {};");
    if (region.each->ops[i].kind != ElementOp::kLoad) continue;
    along(i, [&](const std::string& place) {
      out_.Line(
          turned, "[j] = ",
          whole ? StrCat("load_f32(", place, ")") : StrCat("loadn_f32(", place, ", ", points, ")"),
          ";");
    });
    out_.Line("transpose_f32(", turned, ");");
  }
  out_.Open("for (i64 u = 0; u < ", points, "; ++u)");
  out_.Line("const i64 ", name, " = ", at, " + u;");
  point_[static_cast<size_t>(region.turned)] = name;
  WriteBody(region, lanes);
  out_.Close();
  for (size_t i : region.turns) {
    if (region.each->ops[i].kind != ElementOp::kStore) continue;
    const std::string turned = TurnedName(region, i);
    out_.Line("transpose_f32(", turned, ");");
    along(i, [&](const std::string& place) {
      out_.Line(whole ? StrCat("store_f32(", place, ", ", turned, "[j]);")
                      : StrCat("storen_f32(", place, ", ", turned, "[j], ", points, ");"));
    });
  }
  point_[static_cast<size_t>(region.turned)].clear();
  out_.Close();
}

}  // namespace fusion
