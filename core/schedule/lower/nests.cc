#include "core/schedule/lower/nests.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/graph/program/half_precision.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

// A value that costs more than this (additions) to compute is kept rather than recomputed in a
// later nest: storing and loading it again costs about two.
constexpr double kRecomputeLimit = 6;

// In any order; neither names a dim twice.
bool SameDims(const std::vector<DimId>& a, const std::vector<DimId>& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](DimId d) { return Contains(b, d); });
}

class Planner {
 public:
  Planner(const FusionGroup& group, const StreamedGroup* streamed)
      : group_(group),
        smg_(group.smg),
        streamed_(streamed),
        temporal_(streamed == nullptr ? -1 : streamed->dim),
        count_(smg_.ops.size()) {}

  absl::StatusOr<NestPlan> Run() {
    for (size_t i = 0; i < count_; ++i) {
      const SmgOp& op = smg_.ops[i];
      plan_.classes.push_back(Classify(group_, static_cast<int>(i)));
      const std::optional<IndexedReduction> indexed = IndexedReductionOf(smg_, op);
      placed_.push_back(indexed ? indexed->at.terms().size() : 0);
      for (const SmgRead& read : op.reads) {
        if (read.relation == SmgRead::kAliased) {
          return RefusalStatus(RefusalCode::kAlias, op.label, " reads %", read.value,
                               " along other dims than it is written");
        }
      }
    }
    RETURN_IF_ERROR(CheckShifts());
    Sections();
    Stages();
    plan_.kept.assign(count_, false);
    for (size_t i = 0; i < count_; ++i) {
      plan_.kept[i] = Accumulates(static_cast<int>(i)) || RoleOf(i) == StreamRole::kBefore;
    }
    // Placing roots can find that an accumulator is needed outside its nest; then it is kept and
    // placing starts again.
    for (size_t attempt = 0; attempt <= count_; ++attempt) {
      DecideKept();
      if (PlaceAll()) return std::move(plan_);
    }
    return Internal("no order of loop nests found for ", group_.Label());
  }

 private:
  const SmgOp& op(int i) const { return smg_.op(i); }
  OpClass kind(int i) const { return plan_.classes[static_cast<size_t>(i)]; }
  bool kept(int i) const { return plan_.kept[static_cast<size_t>(i)]; }

  // A shifted read is inlined by substituting coordinates, which must exist dim by dim.
  absl::Status CheckShifts() const {
    for (const SmgOp& o : smg_.ops) {
      for (const SmgRead& read : o.reads) {
        if (read.relation != SmgRead::kShifted) continue;
        if (!ProducerCoordinates(smg_, read)) {
          return RefusalStatus(RefusalCode::kShift, o.label,
                               " reads across parts of a merged dim of %", read.value);
        }
      }
    }
    return absl::OkStatus();
  }

  StreamRole RoleOf(size_t i) const {
    return streamed_ == nullptr ? StreamRole::kPlain : streamed_->ops[i].role;
  }
  bool IsState(int i) const { return streamed_ != nullptr && streamed_->IsState(i); }

  // Ops with the streamed dim are inside its loop. Ops after a partial result are inside only if
  // the loop needs them for every tile.
  void Sections() {
    section_.assign(count_, 0);
    if (temporal_ < 0) return;
    std::vector<bool> after(count_, false);
    for (size_t i = 0; i < count_; ++i) {
      const SmgOp& o = smg_.ops[i];
      for (const SmgRead& read : o.reads) {
        if (read.producer < 0) continue;
        auto p = static_cast<size_t>(read.producer);
        if (after[p] || smg_.ops[p].Reduces(temporal_)) after[i] = true;
      }
      section_[i] = o.Has(temporal_) ? 1 : after[i] ? 2 : 0;
    }
    std::vector<bool> feeds(count_, false);
    for (size_t i = count_; i-- > 0;) {
      const SmgOp& o = smg_.ops[i];
      bool inside = o.Has(temporal_) || RoleOf(i) != StreamRole::kPlain || feeds[i];
      if (inside && after[i]) section_[i] = 1;
      for (const SmgRead& read : o.reads) {
        if (inside && read.producer >= 0) feeds[static_cast<size_t>(read.producer)] = true;
      }
    }
  }

  // stage: how many barriers (reductions, products) lie below. The result of a barrier is available
  // one stage later.
  void Stages() {
    stage_.assign(count_, 0);
    product_stage_.assign(count_, -1);
    for (size_t i = 0; i < count_; ++i) {
      for (const SmgRead& read : smg_.ops[i].reads) {
        if (read.producer < 0) continue;
        auto p = static_cast<size_t>(read.producer);
        stage_[i] = std::max(stage_[i], ValueStage(read.producer));
        int below = plan_.classes[p] == OpClass::kProduct     ? stage_[p]
                    : plan_.classes[p] == OpClass::kPointwise ? product_stage_[p]
                                                              : -1;
        product_stage_[i] = std::max(product_stage_[i], below);
      }
    }
  }
  int ValueStage(int i) const {
    int stage = stage_[static_cast<size_t>(i)];
    return kind(i) == OpClass::kPointwise ? stage : stage + 1;
  }

  // A product summed up over the tiles of the temporal loop: its sum lives in a buffer and is whole
  // after the loop.
  bool Accumulates(int i) const {
    return temporal_ >= 0 && kind(i) == OpClass::kProduct && op(i).Reduces(temporal_);
  }

  void DecideKept() {
    for (bool changed = true; changed;) {
      changed = false;
      Cones();
      for (size_t c = 0; c < count_; ++c) {
        for (const SmgRead& read : smg_.ops[c].reads) {
          int p = read.producer;
          if (p < 0 || kept(p) || kind(p) == OpClass::kReduction) continue;
          if (!MustKeep(p, static_cast<int>(c), read)) continue;
          plan_.kept[static_cast<size_t>(p)] = true;
          changed = true;
        }
      }
    }
  }

  // What computing a pointwise value in place involves, down to kept values and params.
  void Cones() {
    cone_acc_.assign(count_, false);
    cone_cost_.assign(count_, 0);
    for (size_t i = 0; i < count_; ++i) {
      if (plan_.classes[i] != OpClass::kPointwise) {
        cone_acc_[i] = plan_.classes[i] == OpClass::kProduct && !kept(static_cast<int>(i));
        continue;
      }
      cone_cost_[i] = smg_.ops[i].value.Cost();
      for (const SmgRead& read : smg_.ops[i].reads) {
        if (read.producer < 0 || kept(read.producer)) continue;
        auto p = static_cast<size_t>(read.producer);
        cone_acc_[i] = cone_acc_[i] || cone_acc_[p];
        cone_cost_[i] += cone_cost_[p];
      }
    }
  }

  bool MustKeep(int p, int c, const SmgRead& read) const {
    auto at = static_cast<size_t>(p);
    bool acc = cone_acc_[at];
    if (kind(c) == OpClass::kProduct) return true;
    if (section_[at] != section_[static_cast<size_t>(c)]) return true;
    if (acc && (kind(c) == OpClass::kReduction || read.relation == SmgRead::kShifted)) return true;
    if (stage_[static_cast<size_t>(c)] > ValueStage(p) &&
        (acc || cone_cost_[at] >= kRecomputeLimit)) {
      return true;
    }
    // A value with fewer dims than its reader would be recomputed along the others, except along
    // the dims of a looked-up place.
    bool fewer = op(c).dims.size() - placed_[static_cast<size_t>(c)] > op(p).OutputDims().size();
    return fewer && (acc || cone_cost_[at] >= 1);
  }

  // ---- placing ----

  // The buffers and accumulators that computing op i's value in place reads.
  struct Leaves {
    std::set<int> kept;        // ops whose buffer is read at the reader's own coordinates
    std::set<int> kept_moved;  // read at other coordinates
    std::set<int> accumulators;
    std::set<std::pair<int, bool>> seen;  // ops collected already, and whether they were moved
  };

  void Collect(int i, bool moved, Leaves* out) const {
    if (!out->seen.insert({i, moved}).second) return;
    for (const SmgRead& read : op(i).reads) {
      if (read.producer < 0) continue;
      bool shift = moved || read.relation == SmgRead::kShifted;
      int p = read.producer;
      if (kept(p) || kind(p) == OpClass::kReduction) {
        (shift ? out->kept_moved : out->kept).insert(p);
      } else if (kind(p) == OpClass::kProduct) {
        out->accumulators.insert(p);
      } else {
        Collect(p, shift, out);
      }
    }
  }

  struct Root {
    enum Kind : uint8_t { kKeep, kReduce, kStore, kProduct, kUpdate };
    Kind kind;
    int op;
  };

  bool PlaceAll() {
    plan_.before.clear();
    plan_.inside.clear();
    plan_.after.clear();
    for (int section = 0; section < 3; ++section) {
      nests_ = section == 0 ? &plan_.before : section == 1 ? &plan_.inside : &plan_.after;
      ready_.assign(count_, -1);
      product_nest_.assign(count_, -1);
      old_use_.assign(count_, -1);
      for (const Root& root : Roots(section)) {
        if (!Place(root)) return false;
      }
    }
    return true;
  }

  // True if op i needs accumulators of the last products below it.
  bool DependsOnLastProducts(int i) const {
    auto at = static_cast<size_t>(i);
    return product_stage_[at] >= 0 && product_stage_[at] == stage_[at] - 1;
  }

  // Roots in an order that puts everything an epilogue needs before the product whose epilogue it
  // is.
  std::vector<Root> Roots(int section) const {
    struct Keyed {
      int stage;
      int phase;
      int op;
      Root root;
    };
    std::vector<Keyed> keyed;
    std::vector<int> turn = SequentialPhases();
    for (int i = 0; i < static_cast<int>(count_); ++i) {
      bool whole_after = IsState(i);
      if (whole_after && section == 2 && group_.IsOutput(op(i).output)) {
        keyed.push_back({0, 0, i, {Root::kStore, i}});
      }
      if (section_[static_cast<size_t>(i)] != section) continue;
      int stage = stage_[static_cast<size_t>(i)];
      int late = DependsOnLastProducts(i) ? 2 : 0;
      if (RoleOf(static_cast<size_t>(i)) == StreamRole::kBefore) {
        keyed.push_back({-1, 0, i, {Root::kKeep, i}});
        continue;
      }
      if (RoleOf(static_cast<size_t>(i)) == StreamRole::kUpdate) {
        // At the stage of its state, but before it: placing keeps the order of the roots.
        int target = streamed_->ops[static_cast<size_t>(i)].target;
        keyed.push_back({turn[static_cast<size_t>(target)], 3, i, {Root::kUpdate, i}});
        continue;
      }
      if (IsState(i)) {
        stage = turn[static_cast<size_t>(i)];
        bool product = kind(i) == OpClass::kProduct;
        keyed.push_back({stage + (product ? 1 : 0),
                         product ? 1 : 4,
                         i,
                         {product ? Root::kProduct : Root::kReduce, i}});
        continue;
      }
      switch (kind(i)) {
        case OpClass::kProduct:
          keyed.push_back({stage + 1, 1, i, {Root::kProduct, i}});
          if (kept(i)) keyed.push_back({stage + 1, 2, i, {Root::kKeep, i}});
          break;
        case OpClass::kReduction:
          keyed.push_back({stage, late, i, {Root::kReduce, i}});
          break;
        case OpClass::kPointwise:
          if (kept(i)) keyed.push_back({stage, late, i, {Root::kKeep, i}});
          break;
      }
      if (group_.IsOutput(op(i).output) && !whole_after) {
        int ready = kind(i) == OpClass::kPointwise ? stage : stage + 1;
        int phase = kind(i) == OpClass::kPointwise ? late : kind(i) == OpClass::kProduct ? 2 : 0;
        keyed.push_back({ready, phase, i, {Root::kStore, i}});
      }
    }
    std::sort(keyed.begin(), keyed.end(), [](const Keyed& a, const Keyed& b) {
      return std::tie(a.stage, a.phase, a.op, a.root.kind) <
             std::tie(b.stage, b.phase, b.op, b.root.kind);
    });
    std::vector<Root> roots;
    roots.reserve(keyed.size());
    for (const Keyed& k : keyed) roots.push_back(k.root);
    return roots;
  }

  // By op: the stage at which a state takes its tile, which is not before others are updated from
  // it.
  std::vector<int> SequentialPhases() const {
    std::vector<int> turn = stage_;
    for (size_t i = 0; i < count_; ++i) {
      if (RoleOf(i) != StreamRole::kUpdate) continue;
      int at = stage_[static_cast<size_t>(streamed_->ops[i].target)];
      for (const SmgRead& read : smg_.ops[i].reads) {
        if (read.producer < 0) continue;
        int& t = turn[static_cast<size_t>(read.producer)];
        t = std::max(t, at);
      }
    }
    return turn;
  }

  Leaves LeavesOf(const Root& root) const {
    Leaves leaves;
    bool barrier = kind(root.op) != OpClass::kPointwise;
    if (root.kind == Root::kStore && (kept(root.op) || kind(root.op) == OpClass::kReduction)) {
      leaves.kept.insert(root.op);
    } else if (barrier && (root.kind == Root::kStore || root.kind == Root::kKeep)) {
      leaves.accumulators.insert(root.op);
    } else {
      Collect(root.op, false, &leaves);
    }
    return leaves;
  }

  // First nest that may hold a root with these leaves. Values kept by the same nest are at hand in
  // registers.
  int Earliest(const Leaves& leaves, const std::vector<DimId>& dims) const {
    int earliest = 0;
    for (int p : leaves.kept) {
      int ready = ready_[static_cast<size_t>(p)];
      if (ready < 0) continue;  // of an earlier section
      bool same_nest = kind(p) != OpClass::kReduction && !IsState(p) &&
                       SameDims((*nests_)[static_cast<size_t>(ready)].dims, dims);
      earliest = std::max(earliest, same_nest ? ready : ready + 1);
    }
    for (int p : leaves.kept_moved)
      earliest = std::max(earliest, ready_[static_cast<size_t>(p)] + 1);
    return earliest;
  }

  bool Place(const Root& root) {
    Leaves leaves = LeavesOf(root);
    std::vector<DimId> dims =
        root.kind == Root::kReduce ? op(root.op).dims : op(root.op).OutputDims();
    int earliest = Earliest(leaves, dims);
    if (root.kind == Root::kReduce || root.kind == Root::kProduct) {
      // A partial result is updated only after all readers of its old value.
      earliest = std::max(earliest, old_use_[static_cast<size_t>(root.op)] + 1);
    }
    if (root.kind == Root::kUpdate) {
      int target = streamed_->ops[static_cast<size_t>(root.op)].target;
      earliest = std::max(earliest, old_use_[static_cast<size_t>(target)]);
    }
    int nest = -1;
    if (!leaves.accumulators.empty()) {
      nest = product_nest_[static_cast<size_t>(*leaves.accumulators.begin())];
      bool together = nest >= earliest;
      for (int p : leaves.accumulators) {
        together &= product_nest_[static_cast<size_t>(p)] == nest;
      }
      if (!together) {
        for (int p : leaves.accumulators) plan_.kept[static_cast<size_t>(p)] = true;
        return false;
      }
    } else {
      bool product = root.kind == Root::kProduct;
      for (size_t i = static_cast<size_t>(earliest); i < nests_->size() && nest < 0; ++i) {
        const Nest& n = (*nests_)[i];
        bool joins = !n.products.empty() == product && SameDims(n.dims, dims) && !IsPlaced(n) &&
                     (!product || CanJoin(n, root.op)) &&
                     (root.kind != Root::kReduce || FoldsAlike(n, root.op));
        if (joins) nest = static_cast<int>(i);
      }
      if (nest < 0) {
        nest = static_cast<int>(nests_->size());
        nests_->push_back({.dims = dims});
      }
    }
    Nest& n = (*nests_)[static_cast<size_t>(nest)];
    auto at = static_cast<size_t>(root.op);
    switch (root.kind) {
      case Root::kProduct:
        n.products.push_back(root.op);
        product_nest_[at] = nest;
        if (IsState(root.op)) ready_[at] = nest;
        break;
      case Root::kReduce:
        n.reduce.push_back(root.op);
        ready_[at] = nest;
        break;
      case Root::kKeep:
        n.keep.push_back(root.op);
        ready_[at] = nest;
        break;
      case Root::kStore:
        n.store.push_back(root.op);
        break;
      case Root::kUpdate:
        n.update.push_back(root.op);
        break;
    }
    if (streamed_ != nullptr && RoleOf(at) != StreamRole::kPlain) {
      for (const SmgRead& read : op(root.op).reads) {
        if (read.producer < 0 || !IsState(read.producer)) continue;
        int& last = old_use_[static_cast<size_t>(read.producer)];
        last = std::max(last, nest);
      }
    }
    return true;
  }

  // Reductions share a nest if they fold the same dims. One at places has its own.
  bool FoldsAlike(const Nest& nest, int reduction) const {
    if (IsPlaced(reduction)) return false;
    return nest.reduce.empty() || SameDims(op(nest.reduce[0]).reduced, op(reduction).reduced);
  }
  bool IsPlaced(int i) const { return placed_[static_cast<size_t>(i)] > 0; }
  bool IsPlaced(const Nest& nest) const { return !nest.reduce.empty() && IsPlaced(nest.reduce[0]); }

  // Products share a nest if they walk the same rows and columns: gate and up of a gated MLP.
  bool CanJoin(const Nest& nest, int product) const {
    const SmgOp& mine = op(product);
    const SmgOp& theirs = op(nest.products[0]);
    if (temporal_ >= 0 && mine.Reduces(temporal_) != theirs.Reduces(temporal_)) return false;
    // Register blocks follow from the unit that multiplies, and those of a nest are one.
    if (UnitType(mine) != UnitType(theirs)) return false;
    ProductDims a = SplitProductDims(mine);
    ProductDims b = SplitProductDims(theirs);
    return SameDims(a.first, b.first) && SameDims(a.second, b.second);
  }

  // The narrowest type of a product that some device has a unit for.
  static DType UnitType(const SmgOp& product) {
    const std::array<DType, 2> types = *FactorTypes(product);
    if (SumType(types[0]) == DType::kI32 || SumType(types[1]) == DType::kI32) return DType::kI8;
    return types[0] == types[1] ? types[0] : DType::kF32;
  }

  const FusionGroup& group_;
  const Smg& smg_;
  const StreamedGroup* streamed_;
  DimId temporal_;
  size_t count_;
  NestPlan plan_;
  std::vector<int> section_;
  std::vector<int> stage_;
  std::vector<int> product_stage_;  // latest product that op i reads, maybe through pointwise ops
  std::vector<bool> cone_acc_;
  std::vector<double> cone_cost_;
  std::vector<Nest>* nests_ = nullptr;
  std::vector<int> ready_;
  std::vector<int> product_nest_;
  std::vector<int> old_use_;    // last nest that reads a state as it is before the tile
  std::vector<size_t> placed_;  // by op: dims of the places that it reduces at; 0: it does not
};

// A product of one row with a matrix param whose summed elements are contiguous.
bool IsFoldOfRows(const FusionGroup& group, const SmgOp& op) {
  const ProductDims dims = SplitProductDims(op);
  if (!dims.first.empty() && !dims.second.empty()) return false;
  const SmgRead& matrix = op.reads[dims.first.empty() ? 1 : 0];
  if (matrix.producer >= 0) return false;
  const TensorView& view = group.view(matrix.value);
  return !view.constant && std::any_of(dims.over.begin(), dims.over.end(), [&](DimId d) {
    return StrideAlong(matrix.index, view.strides, d) == 1;
  });
}

}  // namespace

std::optional<IndexedReduction> IndexedReductionOf(const Smg& smg, const SmgOp& op) {
  if (!op.reduce) return std::nullopt;
  auto moves = [&](int input, int dim) {
    const SmgRead& read = op.reads[static_cast<size_t>(input)];
    auto moves_at = [&](const auto& self, const SmgRead& r) -> bool {
      return Names(r.index, dim) ||
             std::any_of(r.guards.begin(), r.guards.end(),
                         [&](const Guard& g) { return g.axis == dim; }) ||
             std::any_of(r.index.begin(), r.index.end(), [&](const IndexExpr& e) {
               return e.indirect() >= 0 && self(self, op.reads[static_cast<size_t>(e.indirect())]);
             });
    };
    return moves_at(moves_at, read);
  };
  std::optional<IndexedReduction> out = IndexedReductionOf(op.value, *op.reduce, moves);
  if (!out || !IsPlace(out->at, [&](int d) { return smg.dim(d).extent; })) return std::nullopt;
  const bool kept = std::none_of(out->at.terms().begin(), out->at.terms().end(),
                                 [&](const auto& t) { return op.Reduces(t.axis); });
  return kept ? out : std::nullopt;
}

ProductDims SplitProductDims(const SmgOp& op) {
  ProductDims out;
  for (DimId d : op.dims) {
    bool first = Names(op.reads[0].index, d);
    bool second = Names(op.reads[1].index, d);
    if (op.Reduces(d)) {
      out.over.push_back(d);
    } else if (first && second) {
      out.batch.push_back(d);
    } else {
      (first ? out.first : out.second).push_back(d);
    }
  }
  return out;
}

std::optional<std::array<DType, 2>> FactorTypes(const SmgOp& op) {
  const bool sum =
      op.reduce && op.reduce->name() == "sum" && op.reads.size() == 2 && !op.reduced.empty();
  if (!sum) return std::nullopt;
  const DType type = op.reduce->type();
  if (type != DType::kF32 && type != DType::kI32) return std::nullopt;
  return FactorTypes(op.value, type);
}

OpClass Classify(const FusionGroup& group, int i) {
  const SmgOp& op = group.smg.op(i);
  if (!op.reduce) return OpClass::kPointwise;
  const auto types = FactorTypes(op);
  if (!types) return OpClass::kReduction;
  for (const SmgRead& read : op.reads) {
    if (!read.guards.empty() || read.relation == SmgRead::kAliased) return OpClass::kReduction;
    for (const IndexExpr& e : read.index) {
      if (e.indirect() >= 0) return OpClass::kReduction;
    }
  }
  for (DimId d : op.reduced) {
    if (!Names(op.reads[0].index, d) || !Names(op.reads[1].index, d)) return OpClass::kReduction;
  }
  // An operand that has dims of its own for columns, of a type that columns have beside such rows.
  const ProductDims dims = SplitProductDims(op);
  auto multiplies = [&](DType rows, DType columns) {
    return ColumnPack(rows, columns).has_value() && SumType(rows) == op.reduce->type();
  };
  const bool first = !dims.first.empty() && multiplies((*types)[1], (*types)[0]);
  const bool second = !dims.second.empty() && multiplies((*types)[0], (*types)[1]);
  return (first || second) && !IsFoldOfRows(group, op) ? OpClass::kProduct : OpClass::kReduction;
}

absl::StatusOr<NestPlan> PlanNests(const FusionGroup& group, const StreamedGroup* streamed) {
  return Planner(group, streamed).Run();
}

}  // namespace fusion
