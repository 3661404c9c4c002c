#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/ir/sum_order.h"
#include "core/schedule/lower/nest_values.h"

namespace fusion {
namespace {

// Rows per register block, so that a window of 64 is tiled 11+11+11+11+11+9 and not 12x5+4.
int64_t BalancedRows(int64_t rows, int64_t most) {
  int64_t blocks = (rows + most - 1) / most;
  return blocks <= 1 ? most : (rows + blocks - 1) / blocks;
}

// The row dim of register blocks: the longest one; -1: a product of one row.
DimId LongestRow(const ProductSides& sides, const NestContext& at) {
  DimId best = -1;
  for (DimId d : sides.rows) {
    if (best < 0 || at.window(d) >= at.window(best)) best = d;
  }
  return best;
}

// The output dims of a product with those of the register block last.
std::vector<DimId> BlockOrder(const SmgOp& op, DimId m, DimId n) {
  std::vector<DimId> order;
  for (DimId d : op.OutputDims()) {
    if (d != m && d != n) order.push_back(d);
  }
  if (m >= 0) order.push_back(m);
  order.push_back(n);
  return order;
}

class ProductNest {
 public:
  ProductNest(const Nest& nest, NestContext* at)
      : nest_(nest), at_(*at), first_(nest.products[0]), block_(at->roles.ChoiceOf(first_).block) {}

  absl::StatusOr<NestCode> Run() {
    NestCode out;
    out.product = true;
    out.dims = nest_.dims;
    accumulate_ = at_.choice.temporal >= 0 && at_.op(first_).Reduces(at_.choice.temporal);
    ASSIGN_OR_RETURN(sides_, at_.roles.SidesOf(first_));
    n_ = ColumnDim(first_, sides_);
    m_ = RowDim(sides_);
    std::vector<MmaStmt> products;
    Block inner;
    for (int i : nest_.products) {
      ASSIGN_OR_RETURN(MmaStmt mma, Operands(i, &out));
      mma.c = Target(i, &inner);
      accumulators_.push_back(mma.c.buffer);
      products.push_back(std::move(mma));
    }
    for (MmaStmt& mma : products) inner.push_back(Stmt{std::move(mma)});
    // Sums over the temporal loop are whole behind it only.
    if (!accumulate_) RETURN_IF_ERROR(Finish(&inner));
    Append(Loops(std::move(inner)), &out.code);
    return out;
  }

 private:
  DimId ColumnDim(int i, const ProductSides& sides) const {
    BufferId state = at_.locals.Of(i);
    if (state >= 0) return at_.buffer(state).dims.back();
    int producer = at_.op(i).reads[static_cast<size_t>(sides.b)].producer;
    BufferId b = producer < 0 ? -1 : at_.locals.Of(producer);
    return at_.roles.ColumnDim(i, sides, b < 0 ? nullptr : &at_.buffer(b));
  }

  DimId RowDim(const ProductSides& sides) const { return LongestRow(sides, at_); }
  std::vector<DimId> TileOrder(int i) const { return BlockOrder(at_.op(i), m_, n_); }

  // ---- operands ----

  Access OperandAccess(int i, int r) const {
    const SmgRead& read = at_.op(i).reads[static_cast<size_t>(r)];
    auto packed = at_.params.packed.find({i, r});
    if (packed != at_.params.packed.end()) {
      const LoweredParam& param = at_.lowered.params[static_cast<size_t>(packed->second)];
      return {.buffer = packed->second, .index = PlainIndex(param.dims), .guards = {}};
    }
    if (read.producer < 0) {
      return {.buffer = at_.params.inputs.at(read.value), .index = read.index, .guards = {}};
    }
    // A window of an intermediate is read where its coordinates lie in the producer's buffer.
    BufferId b = at_.locals.Of(read.producer);
    std::map<DimId, IndexExpr> moved;
    auto coordinates = ProducerCoordinates(at_.group.smg, read);
    FUSION_CHECK(coordinates.has_value(), "PlanNests refuses reads without coordinates");
    for (const auto& [d, at] : *coordinates) moved[d] = at;
    IndexMap index;
    for (DimId d : at_.buffer(b).dims) {
      auto at = moved.find(d);
      index.push_back(at == moved.end() ? IndexExpr::Axis(d) : at->second);
    }
    return {.buffer = b, .index = std::move(index), .guards = {}};
  }

  // Product i without its target; copies of operands go to `out`.
  absl::StatusOr<MmaStmt> Operands(int i, NestCode* out) {
    ASSIGN_OR_RETURN(ProductSides sides, at_.roles.SidesOf(i));
    if (ColumnDim(i, sides) != n_ || RowDim(sides) != m_) {
      return RefusalStatus(RefusalCode::kRoles, at_.op(i).label, " and ", at_.op(first_).label,
                           " share a nest but not their columns");
    }
    const RegisterBlock& block = at_.roles.ChoiceOf(i).block;
    if (block.m != block_.m || block.n != block_.n) {
      return RefusalStatus(RefusalCode::kRoles, at_.op(i).label, " and ", at_.op(first_).label,
                           " share a nest but not their register block");
    }
    sides.over = SumOrder(i, sides);
    MmaStmt mma{.a = OperandAccess(i, sides.a),
                .b = OperandAccess(i, sides.b),
                .m = m_,
                .n = n_,
                .over = sides.over,
                .accumulate = accumulate_};
    const std::optional<int64_t> pack =
        ColumnPack(at_.buffer(mma.a.buffer).dtype, at_.buffer(mma.b.buffer).dtype);
    if (!pack || !HoldsPacks(sides.over.back(), *pack)) {
      return RefusalStatus(RefusalCode::kRoles, at_.op(i).label,
                           " has no columns of that type in packs on that side");
    }
    // Columns must be contiguous along n, and lie in packs if they are narrow.
    const ProductChoice& choice = at_.roles.ChoiceOf(i);
    if (at_.buffer(mma.b.buffer).layout.pack != *pack ||
        StrideAlong(at_.lowered.schedule, mma.b, at_.windows, n_) != *pack) {
      mma.b = Staged(mma.b, sides.ColumnOperandDims(n_),
                     Panels(sides.ColumnOperandDims(n_), choice.block.n, *pack), out);
    }
    if (at_.buffer(mma.a.buffer).dtype != DType::kF32) {
      // Neighbours of a pack are one load.
      const DimId along = sides.over.back();
      if (choice.stage_rows || StrideAlong(at_.lowered.schedule, mma.a, at_.windows, along) != 1) {
        mma.a = Staged(mma.a, sides.RowOperandDims(along), BufferLayout(), out);
      }
    } else if (choice.stage_rows && m_ >= 0) {
      DimId slice = SliceOf(sides, mma.a);
      // Short rows do not evict each other, and lie as they lay: a copy of whole vectors.
      std::vector<DimId> dims = sides.RowOperandDims(slice < 0 ? m_ : slice);
      int64_t rows = BalancedRows(at_.window(m_), block_.m);
      mma.a = Staged(mma.a, dims, slice < 0 ? Panels(dims, rows) : BufferLayout(), out);
    }
    mma.flushes = at_.group.flushes && at_.buffer(mma.a.buffer).dtype == DType::kBF16;
    at_.locals.Use(mma.a.buffer);
    at_.locals.Use(mma.b.buffer);
    return mma;
  }

  // The summed dims of product i in the order of LeastJumps. Packed or copied columns are stored in
  // that order too.
  std::vector<DimId> SumOrder(int i, const ProductSides& sides) {
    // Equal bits need equal sums; copied rows lie in the order that they are in.
    if (at_.lowered.schedule.bitwise || at_.device.explicit_memory ||
        at_.roles.ChoiceOf(i).stage_rows) {
      return sides.over;
    }
    // Narrow elements lie in packs along the last dim.
    if (*FactorTypes(at_.op(i)) != std::array{DType::kF32, DType::kF32}) return sides.over;
    // All members of a family have one order: it must not follow from strides that vary.
    for (const SmgRead& read : at_.op(i).reads) {
      if (read.producer < 0 && at_.group.view(read.value).open) return sides.over;
    }
    const Schedule& s = at_.lowered.schedule;
    const Access rows = OperandAccess(i, sides.a);
    const Access columns = OperandAccess(i, sides.b);
    auto packed = at_.params.packed.find({i, sides.b});
    const bool is_packed = packed != at_.params.packed.end();
    std::vector<SumDim> dims;
    for (DimId d : sides.over) {
      dims.push_back({d, static_cast<double>(at_.window(d)), StrideAlong(s, rows, at_.windows, d),
                      StrideAlong(s, columns, at_.windows, d)});
    }
    const bool copied = StrideAlong(s, columns, at_.windows, n_) != 1;
    std::vector<DimId> order;
    for (const SumDim& d : LeastJumps(std::move(dims), is_packed || copied)) order.push_back(d.dim);
    if (is_packed) ReorderPacked(packed->second, order, &at_.lowered);
    return order;
  }

  // The summed dim that the operand comes in slices of, where its neighbours lie next to each
  // other; -1: there is none.
  DimId SliceOf(const ProductSides& sides, const Access& operand) const {
    DimId d = at_.choice.temporal;
    bool sliced =
        d >= 0 && Contains(sides.over, d) && at_.window(d) < at_.choice.MostOf(at_.group.smg, d);
    bool contiguous = sliced && StrideAlong(at_.lowered.schedule, operand, at_.windows, d) == 1;
    return contiguous ? d : -1;
  }

  // Whether a block's part of `d` begins where a pack does.
  bool HoldsPacks(DimId d, int64_t pack) const {
    const bool sliced =
        d == at_.choice.temporal && at_.window(d) < at_.choice.MostOf(at_.group.smg, d);
    return !sliced || at_.choice.temporal_tile % pack == 0;
  }

  // The last dim in blocks.
  static BufferLayout Panels(const std::vector<DimId>& dims, int64_t block, int64_t pack = 1) {
    return {.blocked = static_cast<int>(dims.size()) - 1, .block = block, .pack = pack};
  }

  // A copy of an operand with these dims.
  Access Staged(Access source, const std::vector<DimId>& dims, BufferLayout layout, NestCode* out) {
    BufferId staged =
        at_.locals.Add(dims, at_.buffer(source.buffer).dtype, Level::kStaged, std::move(layout));
    at_.locals.Use(source.buffer);
    at_.locals.Use(staged);
    const bool once = IsAlikeInAllTiles(source, dims);
    if (once) at_.locals.KeepAcrossSections(staged);
    Access target{.buffer = staged, .index = PlainIndex(dims), .guards = {}};
    (once ? out->once : out->code)
        .push_back(Stmt{CopyStmt{.target = target, .source = std::move(source), .dims = dims}});
    return target;
  }

  // True if a copy inside the temporal loop is loop-invariant: it copies a param and no tile reads
  // another part of it. With explicit memory, room on chip counts for more.
  bool IsAlikeInAllTiles(const Access& source, const std::vector<DimId>& dims) const {
    return at_.choice.temporal >= 0 && IsInsideLoop(at_.locals.section()) &&
           !at_.device.explicit_memory && at_.buffer(source.buffer).level == Level::kGlobal &&
           !Contains(dims, at_.choice.temporal);
  }

  // ---- results ----

  // Where product i goes: the accumulators of a register block, allocated in `inner`, or a sum over
  // the temporal loop.
  Access Target(int i, Block* inner) {
    std::vector<DimId> dims = {n_};
    BufferId target = -1;
    if (accumulate_) {
      target = at_.locals.Of(i);
      if (target < 0) {
        target = at_.locals.Add(TileOrder(i), at_.op(i).reduce->type(), Level::kStaged);
        at_.locals.Hold(i, target);
      }
      dims = at_.buffer(target).dims;
      at_.locals.UseAsFold(target, "sum");
      at_.locals.KeepAcrossSections(target);
    } else {
      if (m_ >= 0) dims.insert(dims.begin(), m_);
      target = at_.locals.Add(dims, at_.op(i).reduce->type(), Level::kAcc);
      inner->push_back(Stmt{AllocStmt{target}});
    }
    return {.buffer = target, .index = PlainIndex(dims), .guards = {}};
  }

  // The epilogue on the accumulators of a register block.
  absl::Status Finish(Block* inner) {
    std::vector<DimId> order = TileOrder(first_);
    NestValues values(nest_, accumulators_, &at_);
    ASSIGN_OR_RETURN(std::vector<ElementOp> steps, values.Finish(order));
    if (!steps.empty()) inner->push_back(Stmt{EachStmt{.dims = order, .ops = std::move(steps)}});
    return absl::OkStatus();
  }

  // What a block reads of an operand.
  double Bytes(int read) const {
    const SmgRead& r = at_.op(first_).reads[static_cast<size_t>(read)];
    const std::array<DType, 2> types = *FactorTypes(at_.op(first_));
    auto bytes = static_cast<double>(DTypeBytes(types[static_cast<size_t>(read)]));
    for (const IndexExpr& e : r.index) {
      double length = 1;
      for (const IndexExpr::Term& t : e.terms()) {
        length += static_cast<double>(std::abs(t.coefficient) *
                                      std::max<int64_t>(at_.window(t.axis) - 1, 0));
      }
      bytes *= length;
    }
    return bytes;
  }

  // Cost of reading this many bytes again: they are in the nearest cache that holds them.
  double SecondsToReadAgain(double bytes) const {
    const std::vector<MemoryLevel>& levels = at_.device.levels;
    auto holds = [&](const MemoryLevel& l) {
      return l.bytes == 0 || static_cast<double>(l.UsableBytes()) >= bytes;
    };
    auto level = std::find_if(levels.begin(), levels.end(), holds);
    return bytes / (level == levels.end() ? levels.back() : *level).bytes_per_s;
  }

  // True if the loop over blocks of columns is outside those over further row dims: then rows are
  // read again for each block of columns, else columns for each such row.
  bool ColumnsOutside() const {
    if (at_.device.explicit_memory) return false;
    // All members of a family have one order.
    for (const auto& [value, view] : at_.group.views) {
      if (view.open) return false;
    }
    double rows = 1;
    for (DimId d : sides_.rows) {
      if (d != m_) rows *= static_cast<double>(std::max<int64_t>(at_.window(d), 1));
    }
    const double columns =
        std::ceil(static_cast<double>(at_.window(n_)) / static_cast<double>(block_.n));
    return (columns - 1) * SecondsToReadAgain(Bytes(sides_.a)) <
           (rows - 1) * SecondsToReadAgain(Bytes(sides_.b));
  }

  Block Loops(Block inner) const {
    auto wrap = [&](DimId d, int64_t tile) {
      // Without points there is no loop to leave out: the product would read a point that does not
      // exist.
      int64_t length = at_.window(d);
      if (length <= tile && (tile > 1 || length > 0)) return;
      inner = LoopOver(d, tile, std::move(inner));
    };
    const std::vector<DimId> order = TileOrder(first_);
    const bool columns_outside = ColumnsOutside();
    auto wrap_others = [&](bool within_columns) {
      for (size_t k = order.size(); k-- > 0;) {
        if (order[k] == m_ || order[k] == n_) continue;
        if ((columns_outside && Contains(sides_.rows, order[k])) == within_columns) {
          wrap(order[k], 1);
        }
      }
    };
    if (m_ >= 0) wrap(m_, BalancedRows(at_.window(m_), block_.m));
    wrap_others(/*within_columns=*/true);
    wrap(n_, block_.n);
    wrap_others(/*within_columns=*/false);
    return inner;
  }

  const Nest& nest_;
  NestContext& at_;
  int first_;            // product
  RegisterBlock block_;  // of all products
  ProductSides sides_;   // of the first one
  bool accumulate_ = false;
  DimId m_ = -1;  // rows of register blocks
  DimId n_ = -1;  // columns
  std::vector<BufferId> accumulators_;
};

}  // namespace

absl::Status DeclareState(int i, NestContext* at) {
  if (at->locals.Of(i) >= 0) return absl::OkStatus();
  const SmgOp& op = at->op(i);
  std::vector<DimId> dims = op.OutputDims();
  DType type = op.reduce->result_type();
  if (at->kind(i) == OpClass::kProduct) {
    ASSIGN_OR_RETURN(ProductSides sides, at->roles.SidesOf(i));
    dims = BlockOrder(op, LongestRow(sides, *at), at->roles.ColumnDim(i, sides, nullptr));
    type = op.reduce->type();
  }
  BufferId b = at->locals.Add(dims, type, Level::kStaged);
  at->locals.Hold(i, b);
  at->locals.UseAsFold(b, op.reduce->name());
  at->locals.KeepAcrossSections(b);
  return absl::OkStatus();
}

absl::StatusOr<NestCode> LowerProductNest(const Nest& nest, NestContext* at) {
  return ProductNest(nest, at).Run();
}

}  // namespace fusion
