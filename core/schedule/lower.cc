#include "core/schedule/lower.h"

#include <algorithm>
#include <set>

#include "core/schedule/region.h"

namespace fusion {
namespace {

bool Contains(const std::vector<DimId>& list, DimId d) {
  return std::find(list.begin(), list.end(), d) != list.end();
}

IndexMap PlainIndex(const std::vector<DimId>& dims) {
  IndexMap index;
  for (DimId d : dims) index.push_back(IndexExpr::Axis(d));
  return index;
}

// The sides of a product as the choice assigns them.
struct Sides {
  int a = 0;  // read that gives rows
  int b = 1;  // read that gives columns
  std::vector<DimId> rows;
  std::vector<DimId> columns;
  std::vector<DimId> batch;
  std::vector<DimId> over;
};

class Lowering {
 public:
  Lowering(const FusionGroup& group, const Choice& choice, const DeviceSpec& device, bool bitwise)
      : group_(group), smg_(group.smg), choice_(choice), device_(device) {
    out_.schedule.bitwise = bitwise;
    out_.schedule.label = group.Label();
  }

  absl::StatusOr<Lowered> Run() {
    ASSIGN_OR_RETURN(plan_, PlanNests(group_, choice_.temporal));
    Schedule& s = out_.schedule;
    for (const SmgDim& d : smg_.dims) {
      s.dims.push_back({d.name, d.extent});
      window_.push_back(d.extent);
    }
    for (const GridDim& g : choice_.grid)
      window_[static_cast<size_t>(g.dim)] = std::min(g.tile, s.dim(g.dim).extent);
    RETURN_IF_ERROR(DeclareParams());
    buffer_of_.assign(smg_.ops.size(), -1);
    ASSIGN_OR_RETURN(Block body, EmitBlock());
    Segment segment{.grid = choice_.grid, .body = std::move(body)};
    Phase phase;
    phase.segments.push_back(std::move(segment));
    s.phases.push_back(std::move(phase));
    FindAliases();
    return std::move(out_);
  }

 private:
  const SmgOp& op(int i) const { return smg_.op(i); }
  OpClass kind(int i) const { return plan_.classes[static_cast<size_t>(i)]; }
  int64_t window(DimId d) const { return window_[static_cast<size_t>(d)]; }

  // ---- params ----

  Sides SidesOf(int i) const {
    ProductDims dims = SplitProductDims(op(i));
    Sides sides;
    sides.rows = dims.first;
    sides.columns = dims.second;
    auto it = choice_.products.find(i);
    if (it != choice_.products.end() && it->second.swap) {
      std::swap(sides.a, sides.b);
      std::swap(sides.rows, sides.columns);
    }
    sides.batch = dims.batch;
    sides.over = dims.over;
    return sides;
  }

  const ProductChoice& ChoiceOf(int i) const {
    static const ProductChoice kDefault{.block = {4, 16}};
    auto it = choice_.products.find(i);
    return it == choice_.products.end() ? kDefault : it->second;
  }

  BufferId AddParam(const TensorView& view, ValueId value, ParamKind kind) {
    Schedule& s = out_.schedule;
    s.buffers.push_back({.name = StrCat("p", s.params),
                         .level = Level::kGlobal,
                         .dtype = view.dtype,
                         .kind = kind,
                         .shape = view.shape,
                         .layout = {.strides = view.strides}});
    out_.params.push_back({.value = value, .output = kind == ParamKind::kOutput});
    return s.params++;
  }

  bool IsPackedRead(int i, int r) const {
    if (kind(i) != OpClass::kProduct) return false;
    const SmgRead& read = op(i).reads[static_cast<size_t>(r)];
    return read.producer < 0 && SidesOf(i).b == r && group_.view(read.value).constant;
  }

  absl::Status DeclareParams() {
    for (int i = 0; i < static_cast<int>(smg_.ops.size()); ++i) {
      for (int r = 0; r < static_cast<int>(op(i).reads.size()); ++r) {
        const SmgRead& read = op(i).reads[static_cast<size_t>(r)];
        if (read.producer >= 0) continue;
        if (IsPackedRead(i, r)) {
          RETURN_IF_ERROR(DeclarePacked(i, r));
        } else if (param_of_.count(read.value) == 0) {
          const TensorView& view = group_.view(read.value);
          param_of_[read.value] =
              AddParam(view, read.value, view.constant ? ParamKind::kWeight : ParamKind::kInput);
        }
      }
    }
    for (ValueId v : group_.outputs)
      output_of_[v] = AddParam(group_.view(v), v, ParamKind::kOutput);
    return absl::OkStatus();
  }

  // The columns operand of product i as [batch.., over.., other columns.., n] in blocks of n.
  absl::Status DeclarePacked(int i, int r) {
    const SmgRead& read = op(i).reads[static_cast<size_t>(r)];
    Sides sides = SidesOf(i);
    DimId n = ColumnDim(i, sides);
    std::vector<DimId> dims;
    for (const std::vector<DimId>* list : {&sides.batch, &sides.over, &sides.columns}) {
      for (DimId d : *list) {
        if (d != n) dims.push_back(d);
      }
    }
    dims.push_back(n);
    if (!HoldsPanels(i, n)) {
      return FailedPrecondition("columns: ", smg_.dim(n).name, " is cut inside panels of ",
                                ChoiceOf(i).block.n);
    }
    Schedule& s = out_.schedule;
    Buffer b{
        .name = StrCat("p", s.params),
        .level = Level::kGlobal,
        .dtype = group_.view(read.value).dtype,
        .kind = ParamKind::kWeight,
        .layout = {.blocked = static_cast<int>(dims.size()) - 1, .block = ChoiceOf(i).block.n}};
    for (DimId d : dims) b.shape.push_back(s.dim(d).extent);
    s.buffers.push_back(std::move(b));
    out_.params.push_back(
        {.value = read.value, .packed = true, .source = read.index, .dims = dims});
    packed_of_[{i, r}] = s.params++;
    return absl::OkStatus();
  }

  // ---- strides ----

  // Elements between neighbours along `d` in an access; 0 if it does not move.
  int64_t StrideOf(const Access& a, DimId d) const {
    const Buffer& b = out_.schedule.buffer(a.buffer);
    int64_t stride = 0;
    if (b.IsLocal()) {
      int64_t step = 1;
      for (size_t i = b.dims.size(); i-- > 0;) {
        stride += a.index[i].CoefficientOf(d) * step;
        step *= std::max<int64_t>(window(b.dims[i]), 1);
      }
      return stride;
    }
    if (b.layout.blocked >= 0) {
      return a.index[static_cast<size_t>(b.layout.blocked)].CoefficientOf(d);
    }
    for (size_t i = 0; i < a.index.size(); ++i) {
      stride += a.index[i].CoefficientOf(d) * b.layout.strides[i];
    }
    return stride;
  }

  Access OperandAccess(int i, int r) const {
    const SmgRead& read = op(i).reads[static_cast<size_t>(r)];
    auto packed = packed_of_.find({i, r});
    if (packed != packed_of_.end()) {
      return {.buffer = packed->second,
              .index = PlainIndex(out_.params[static_cast<size_t>(packed->second)].dims),
              .guards = {}};
    }
    if (read.producer < 0) {
      return {.buffer = param_of_.at(read.value), .index = read.index, .guards = {}};
    }
    BufferId b = buffer_of_[static_cast<size_t>(read.producer)];
    return {.buffer = b, .index = PlainIndex(out_.schedule.buffer(b).dims), .guards = {}};
  }

  // Tiles along `d` of tasks, or of the temporal loop, begin where a panel of packed columns does.
  bool HoldsPanels(int i, DimId d) const {
    int64_t extent = out_.schedule.dim(d).extent;
    int64_t tile = d == choice_.temporal ? choice_.temporal_tile : extent;
    for (const GridDim& g : choice_.grid) tile = g.dim == d ? g.tile : tile;
    return tile >= extent || tile % ChoiceOf(i).block.n == 0;
  }

  // The column dim that vectors run along: where the operand is contiguous, else the last one; of
  // packed columns the last one that tasks do not cut inside a panel.
  DimId ColumnDim(int i, const Sides& sides) const {
    const SmgRead& read = op(i).reads[static_cast<size_t>(sides.b)];
    if (IsPackedRead(i, sides.b)) {
      auto whole = std::find_if(sides.columns.rbegin(), sides.columns.rend(),
                                [&](DimId d) { return HoldsPanels(i, d); });
      return whole == sides.columns.rend() ? sides.columns.back() : *whole;
    }
    if (read.producer < 0 && !group_.view(read.value).constant) {
      const TensorView& view = group_.view(read.value);
      for (DimId d : sides.columns) {
        int64_t stride = 0;
        for (size_t t = 0; t < read.index.size(); ++t) {
          stride += read.index[t].CoefficientOf(d) * view.strides[t];
        }
        if (stride == 1) return d;
      }
    }
    if (read.producer >= 0 && buffer_of_[static_cast<size_t>(read.producer)] >= 0) {
      const Buffer& b = out_.schedule.buffer(buffer_of_[static_cast<size_t>(read.producer)]);
      if (!b.dims.empty() && Contains(sides.columns, b.dims.back())) return b.dims.back();
    }
    return sides.columns.back();
  }

  DimId RowDim(const Sides& sides) const {
    DimId best = -1;
    for (DimId d : sides.rows) {
      if (best < 0 || window(d) >= window(best)) best = d;
    }
    return best;
  }

  // ---- local buffers ----

  struct LocalUse {
    int section = 0;
    int first = 0;  // nest within the section
    int last = 0;
    bool other_sections = false;
    std::string init;  // monoid, for reductions
  };

  BufferId NewLocal(const std::vector<DimId>& dims, DType dtype, Level level, int64_t block = 0,
                    int blocked = -1) {
    Schedule& s = out_.schedule;
    s.buffers.push_back({.name = StrCat("t", s.buffers.size() - static_cast<size_t>(s.params)),
                         .level = level,
                         .dtype = dtype,
                         .dims = dims,
                         .layout = {.blocked = blocked, .block = block}});
    return static_cast<BufferId>(s.buffers.size()) - 1;
  }

  void Use(BufferId b) {
    if (out_.schedule.buffer(b).level != Level::kStaged)
      return;  // accumulators are allocated at their product
    auto [it, fresh] = uses_.try_emplace(b, LocalUse{section_, nest_, nest_, false, ""});
    if (fresh) return;
    if (it->second.section != section_) {
      it->second.other_sections = true;
    } else {
      it->second.last = std::max(it->second.last, nest_);
    }
  }

  // ---- blocks ----

  // One nest's code, before wrapping and allocation.
  struct Piece {
    Block code;
    std::vector<DimId> dims;
    std::vector<DimId> reduced;
    DimId vector = -1;
    bool product = false;
  };

  absl::StatusOr<Block> EmitBlock() {
    std::vector<Piece> sections[3];
    const std::vector<Nest>* lists[3] = {&plan_.before, &plan_.inside, &plan_.after};
    for (section_ = 0; section_ < 3; ++section_) {
      if (section_ == 1 && choice_.temporal >= 0) {
        window_[static_cast<size_t>(choice_.temporal)] = choice_.temporal_tile;
      }
      last_uses_ = LastUses(*lists[section_]);
      for (nest_ = 0; nest_ < static_cast<int>(lists[section_]->size()); ++nest_) {
        const Nest& nest = (*lists[section_])[static_cast<size_t>(nest_)];
        ASSIGN_OR_RETURN(Piece piece, nest.products.empty() ? EmitPlain(nest) : EmitProducts(nest));
        sections[section_].push_back(std::move(piece));
      }
      if (section_ == 1 && choice_.temporal >= 0) {
        window_[static_cast<size_t>(choice_.temporal)] = out_.schedule.dim(choice_.temporal).extent;
      }
    }
    Block body;
    AllocShared(&body);
    Append(Assemble(0, std::move(sections[0])), &body);
    if (choice_.temporal >= 0) {
      LoopStmt loop{.dim = choice_.temporal, .tile = choice_.temporal_tile};
      loop.body = Assemble(1, std::move(sections[1]));
      body.push_back(Stmt{std::move(loop)});
    }
    Append(Assemble(2, std::move(sections[2])), &body);
    return body;
  }

  static void Append(Block from, Block* to) {
    for (Stmt& s : from) to->push_back(std::move(s));
  }

  void Allocate(BufferId b, Block* block) const {
    block->push_back(Stmt{AllocStmt{b}});
    const LocalUse& use = uses_.at(b);
    if (!use.init.empty()) block->push_back(Stmt{InitStmt{{b}, use.init}});
  }

  // Buffers that live across sections, and sums over the temporal loop.
  void AllocShared(Block* body) {
    for (auto& [b, use] : uses_) {
      if (use.other_sections) Allocate(b, body);
    }
  }

  // Puts the nests of a section in order, wraps runs of plain nests into loops over their common
  // rows, and allocates each buffer as far inside as its uses allow.
  Block Assemble(int section, std::vector<Piece> pieces) {
    Block block;
    for (size_t i = 0; i < pieces.size();) {
      std::vector<DimId> common;
      size_t end = WrapEnd(pieces, i, &common);
      for (const auto& [b, use] : uses_) {
        bool inner = use.section == section && !use.other_sections &&
                     use.first >= static_cast<int>(i) && use.last < static_cast<int>(end);
        bool here = use.section == section && !use.other_sections &&
                    use.first >= static_cast<int>(i) && use.first < static_cast<int>(end);
        if (here && !(inner && end - i > 1)) Allocate(b, &block);
      }
      if (end - i == 1) {
        Append(std::move(pieces[i].code), &block);
        ++i;
        continue;
      }
      Block inside;
      for (const auto& [b, use] : uses_) {
        bool inner = use.section == section && !use.other_sections &&
                     use.first >= static_cast<int>(i) && use.last < static_cast<int>(end);
        if (inner) Allocate(b, &inside);
      }
      DimId vector = -1;
      for (; i < end; ++i) {
        vector = pieces[i].vector;
        Append(std::move(pieces[i].code), &inside);
      }
      Append(WrapIn(common, vector, std::move(inside)), &block);
    }
    return block;
  }

  // The run of plain nests from `begin` that share rows; `common` gets the dims they can all be cut
  // along.
  size_t WrapEnd(const std::vector<Piece>& pieces, size_t begin, std::vector<DimId>* common) const {
    if (pieces[begin].product) return begin + 1;
    size_t end = begin;
    std::vector<DimId> shared = pieces[begin].dims;
    for (; end < pieces.size() && !pieces[end].product; ++end) {
      std::vector<DimId> next;
      for (DimId d : shared) {
        if (Contains(pieces[end].dims, d) && !Contains(pieces[end].reduced, d)) next.push_back(d);
      }
      if (next.empty()) break;
      shared = std::move(next);
    }
    if (end - begin < 2) return begin + 1;
    *common = shared;
    return end;
  }

  Block WrapIn(const std::vector<DimId>& common, DimId vector, Block inside) const {
    int64_t lanes = device_.vector_bytes / 4;
    for (size_t i = common.size(); i-- > 0;) {
      DimId d = common[i];
      int64_t tile = d == vector ? lanes : 1;
      if (window(d) <= tile) continue;
      LoopStmt loop{.dim = d, .tile = tile};
      loop.body = std::move(inside);
      inside = Block();
      inside.push_back(Stmt{std::move(loop)});
    }
    return inside;
  }

  // ---- plain nests ----

  // Last nest of a section that reads each op's value from its buffer.
  std::vector<int> LastUses(const std::vector<Nest>& nests) const {
    std::vector<int> last(smg_.ops.size(), -1);
    std::function<void(int, int)> reads = [&](int i, int nest) {
      for (const SmgRead& read : op(i).reads) {
        if (read.producer < 0) continue;
        auto p = static_cast<size_t>(read.producer);
        last[p] = std::max(last[p], nest);
        if (kind(read.producer) == OpClass::kPointwise && !plan_.kept[p])
          reads(read.producer, nest);
      }
    };
    for (size_t n = 0; n < nests.size(); ++n) {
      auto at = static_cast<int>(n);
      for (const std::vector<int>* list : {&nests[n].products, &nests[n].reduce, &nests[n].keep}) {
        for (int i : *list) reads(i, at);
      }
      for (int i : nests[n].store) {
        last[static_cast<size_t>(i)] = std::max(last[static_cast<size_t>(i)], at);
        if (kind(i) == OpClass::kPointwise && !plan_.kept[static_cast<size_t>(i)]) reads(i, at);
      }
    }
    return last;
  }

  RegionBuilder Region(const Nest* accumulators) {
    return RegionBuilder(
        group_, out_.schedule,
        [this, accumulators](int i) -> std::optional<BufferId> {
          if (accumulators != nullptr) {
            for (size_t p = 0; p < accumulators->products.size(); ++p) {
              if (accumulators->products[p] == i) return acc_[p];
            }
          }
          BufferId b = buffer_of_[static_cast<size_t>(i)];
          if (b < 0) return std::nullopt;
          return b;
        },
        [this](ValueId v) { return param_of_.at(v); });
  }

  std::vector<DimId> InOrder(const std::vector<DimId>& order,
                             const std::vector<DimId>& wanted) const {
    std::vector<DimId> out;
    for (DimId d : order) {
      if (Contains(wanted, d)) out.push_back(d);
    }
    return out;
  }

  // A buffer of an operand that dies in this nest and is read at plain coordinates only may take
  // the result.
  BufferId InPlace(int i, const std::vector<ElementOp>& ops) const {
    std::vector<DimId> dims = op(i).OutputDims();
    for (size_t p = 0; p < buffer_of_.size(); ++p) {
      BufferId b = buffer_of_[p];
      if (b < 0 || plan_.classes[p] == OpClass::kReduction || last_uses_[p] != nest_) continue;
      auto use = uses_.find(b);
      if (use == uses_.end() || use->second.section != section_ || use->second.other_sections)
        continue;
      const Buffer& buffer = out_.schedule.buffer(b);
      DType type = plan_.classes[static_cast<size_t>(i)] == OpClass::kPointwise ? op(i).value.type()
                                                                                : DType::kF32;
      if (buffer.dtype != type || buffer.dims.size() != dims.size() || buffer.layout.blocked >= 0) {
        continue;
      }
      bool same =
          std::all_of(dims.begin(), dims.end(), [&](DimId d) { return Contains(buffer.dims, d); });
      bool read = false;
      for (const ElementOp& e : ops) {
        for (const Access& a : e.access) {
          if (a.buffer != b) continue;
          read = true;
          same &= e.kind == ElementOp::kLoad && a.index == PlainIndex(buffer.dims);
        }
      }
      // Another op must not keep its value in the same buffer from here on.
      for (size_t q = 0; q < buffer_of_.size(); ++q) {
        same &= q == p || buffer_of_[q] != b || last_uses_[q] < nest_;
      }
      if (same && read) return b;
    }
    return -1;
  }

  // The values of a nest, computed but not stored yet.
  struct NestValues {
    std::vector<std::pair<int, int>> kept;  // (op, value)
    std::vector<std::pair<int, int>> reduced;
    std::vector<std::pair<int, int>> stored;
  };

  NestValues ComputeValues(const Nest& nest, RegionBuilder* region) const {
    NestValues values;
    for (int i : nest.keep) {
      int value = kind(i) == OpClass::kPointwise ? region->Compute(i) : region->Value(i);
      values.kept.emplace_back(i, value);
      region->Remember(i, value);
    }
    for (int i : nest.reduce) values.reduced.emplace_back(i, region->Compute(i));
    for (int i : nest.store) values.stored.emplace_back(i, region->Value(i));
    return values;
  }

  // Folds and stores the values of a nest; buffers for kept values are made as they come, laid out
  // in `order`.
  absl::StatusOr<std::vector<ElementOp>> FinishRegion(const NestValues& values,
                                                      RegionBuilder* region,
                                                      const std::vector<DimId>& order) {
    for (const auto& [i, value] : values.reduced) {
      BufferId& b = buffer_of_[static_cast<size_t>(i)];
      if (b < 0) {
        b = NewLocal(InOrder(order, op(i).OutputDims()), op(i).reduce->result_type(),
                     Level::kStaged);
      }
      region->Reduce(value, op(i).reduce->name(), b, PlainIndex(out_.schedule.buffer(b).dims));
      Use(b);
      uses_.at(b).init = op(i).reduce->name();
    }
    for (const auto& [i, value] : values.stored) {
      region->Store(value, output_of_.at(op(i).output), op(i).write);
    }
    RETURN_IF_ERROR(region->status());
    std::vector<ElementOp> steps = region->Take();
    for (const auto& [i, value] : values.kept) {
      BufferId b = InPlace(i, steps);
      if (b < 0) {
        DType type =
            kind(i) == OpClass::kPointwise ? op(i).value.type() : op(i).reduce->result_type();
        b = NewLocal(InOrder(order, op(i).OutputDims()), type, Level::kStaged);
      }
      buffer_of_[static_cast<size_t>(i)] = b;
      ElementOp store;
      store.kind = ElementOp::kStore;
      store.args = {value};
      store.type = out_.schedule.buffer(b).dtype;
      store.access = {{.buffer = b, .index = PlainIndex(out_.schedule.buffer(b).dims)}};
      steps.push_back(std::move(store));
    }
    for (const ElementOp& e : steps) {
      for (const Access& a : e.access) Use(a.buffer);
    }
    return steps;
  }

  // Which dim should vectors run along? Contiguous accesses count for it, strided ones and folding
  // against it.
  DimId VectorDim(const Nest& nest, const std::vector<ElementOp>& loads, const NestValues& values,
                  const std::vector<DimId>& dims) const {
    DimId best = -1;
    double best_score = 0;
    auto count = [](int64_t stride, double weight) {
      return stride == 1 ? weight : stride == 0 ? 0 : -weight;
    };
    for (DimId d : dims) {
      double score = 0;
      for (const ElementOp& e : loads) {
        for (const Access& a : e.access) score += count(StrideOf(a, d), 1.0);
      }
      for (const auto& [i, value] : values.stored) {
        score +=
            count(StrideOf({.buffer = output_of_.at(op(i).output), .index = op(i).write}, d), 1.5);
      }
      for (int i : nest.reduce) score -= op(i).Reduces(d) ? 0.5 : 0;
      if (window(d) < device_.vector_bytes / 8) score -= 2;
      if (best < 0 || score >= best_score) {
        best = d;
        best_score = score;
      }
    }
    return best;
  }

  absl::StatusOr<Piece> EmitPlain(const Nest& nest) {
    Piece piece;
    std::vector<DimId> dims = InOrder(AllDims(), nest.dims);
    for (int i : nest.reduce) {
      for (DimId d : op(i).reduced) piece.reduced.push_back(d);
    }
    RegionBuilder region = Region(nullptr);
    NestValues values = ComputeValues(nest, &region);
    piece.vector = VectorDim(nest, region.steps(), values, dims);
    if (piece.vector >= 0) {
      std::erase(dims, piece.vector);
      dims.push_back(piece.vector);
    }
    ASSIGN_OR_RETURN(std::vector<ElementOp> steps, FinishRegion(values, &region, dims));
    piece.dims = dims;
    piece.code.push_back(Stmt{EachStmt{.dims = dims, .ops = std::move(steps)}});
    return piece;
  }

  std::vector<DimId> AllDims() const {
    std::vector<DimId> all;
    for (DimId d = 0; d < static_cast<DimId>(smg_.dims.size()); ++d) all.push_back(d);
    return all;
  }

  // ---- product nests ----

  absl::StatusOr<Piece> EmitProducts(const Nest& nest) {
    Piece piece;
    piece.product = true;
    piece.dims = nest.dims;
    int first = nest.products[0];
    Sides sides = SidesOf(first);
    if (sides.columns.empty()) {
      return FailedPrecondition("roles: ", op(first).label, " has no columns on that side");
    }
    DimId n = ColumnDim(first, sides);
    DimId m = RowDim(sides);
    RegisterBlock block = ChoiceOf(first).block;
    bool accumulate = choice_.temporal >= 0 && op(first).Reduces(choice_.temporal);

    std::vector<MmaStmt> products;
    acc_.clear();
    Block inner;
    for (int i : nest.products) {
      Sides mine = SidesOf(i);
      if (ColumnDim(i, mine) != n || RowDim(mine) != m) {
        return FailedPrecondition("roles: ", op(i).label, " and ", op(first).label,
                                  " share a nest but not their columns");
      }
      MmaStmt mma{.a = OperandAccess(i, mine.a),
                  .b = OperandAccess(i, mine.b),
                  .m = m,
                  .n = n,
                  .over = mine.over,
                  .accumulate = accumulate};
      StageColumns(i, mine, n, &mma, &piece.code);
      if (ChoiceOf(i).stage_rows && m >= 0) StageRows(mine, m, block.m, &mma, &piece.code);
      Use(mma.a.buffer);
      Use(mma.b.buffer);
      std::vector<DimId> tile = {n};
      if (m >= 0) tile.insert(tile.begin(), m);
      BufferId target = -1;
      if (accumulate) {
        std::vector<DimId> order = TileOrder(i, m, n);
        target = NewLocal(order, DType::kF32, Level::kStaged);
        buffer_of_[static_cast<size_t>(i)] = target;
        Use(target);
        uses_.at(target).init = "sum";
        uses_.at(target).other_sections = true;
        mma.c = {.buffer = target, .index = PlainIndex(order), .guards = {}};
      } else {
        target = NewLocal(tile, DType::kF32, Level::kAcc);
        inner.push_back(Stmt{AllocStmt{target}});
        mma.c = {.buffer = target, .index = PlainIndex(tile), .guards = {}};
      }
      acc_.push_back(target);
      products.push_back(std::move(mma));
    }
    for (MmaStmt& mma : products) inner.push_back(Stmt{std::move(mma)});
    if (!accumulate) {
      std::vector<DimId> order = TileOrder(first, m, n);
      RegionBuilder region = Region(&nest);
      NestValues values = ComputeValues(nest, &region);
      ASSIGN_OR_RETURN(std::vector<ElementOp> steps, FinishRegion(values, &region, order));
      if (!steps.empty()) inner.push_back(Stmt{EachStmt{.dims = order, .ops = std::move(steps)}});
    }
    Append(ProductLoops(first, m, n, block, std::move(inner)), &piece.code);
    return piece;
  }

  std::vector<DimId> TileOrder(int i, DimId m, DimId n) const {
    std::vector<DimId> order;
    for (DimId d : op(i).OutputDims()) {
      if (d != m && d != n) order.push_back(d);
    }
    if (m >= 0) order.push_back(m);
    order.push_back(n);
    return order;
  }

  Block ProductLoops(int i, DimId m, DimId n, RegisterBlock block, Block inner) const {
    auto wrap = [&](DimId d, int64_t tile) {
      // Without points there is no loop to leave out: the product would read a point that does not
      // exist.
      if (window(d) <= tile && (tile > 1 || window(d) > 0)) return;
      LoopStmt loop{.dim = d, .tile = tile};
      loop.body = std::move(inner);
      inner = Block();
      inner.push_back(Stmt{std::move(loop)});
    };
    if (m >= 0) wrap(m, BalancedRows(window(m), block.m));
    wrap(n, block.n);
    std::vector<DimId> order = TileOrder(i, m, n);
    for (size_t k = order.size(); k-- > 0;) {
      if (order[k] != m && order[k] != n) wrap(order[k], 1);
    }
    return inner;
  }

  // Rows per register block, so that a window of 64 is cut 11+11+11+11+11+9 and not 12x5+4.
  static int64_t BalancedRows(int64_t rows, int64_t most) {
    int64_t blocks = (rows + most - 1) / most;
    return blocks <= 1 ? most : (rows + blocks - 1) / blocks;
  }

  // The columns operand must be contiguous along n: copy it into blocks of n if it is not.
  void StageColumns(int i, const Sides& sides, DimId n, MmaStmt* mma, Block* code) {
    if (StrideOf(mma->b, n) == 1) return;
    std::vector<DimId> dims;
    for (const std::vector<DimId>* list : {&sides.batch, &sides.over, &sides.columns}) {
      for (DimId d : *list) {
        if (d != n) dims.push_back(d);
      }
    }
    dims.push_back(n);
    BufferId staged = NewLocal(dims, out_.schedule.buffer(mma->b.buffer).dtype, Level::kStaged,
                               ChoiceOf(i).block.n, static_cast<int>(dims.size()) - 1);
    mma->b = StageCopy(staged, mma->b, dims, code);
  }

  void StageRows(const Sides& sides, DimId m, int64_t rows, MmaStmt* mma, Block* code) {
    std::vector<DimId> dims;
    for (const std::vector<DimId>* list : {&sides.batch, &sides.rows, &sides.over}) {
      for (DimId d : *list) {
        if (d != m) dims.push_back(d);
      }
    }
    dims.push_back(m);
    BufferId staged = NewLocal(dims, out_.schedule.buffer(mma->a.buffer).dtype, Level::kStaged,
                               BalancedRows(window(m), rows), static_cast<int>(dims.size()) - 1);
    mma->a = StageCopy(staged, mma->a, dims, code);
  }

  Access StageCopy(BufferId staged, Access source, const std::vector<DimId>& dims, Block* code) {
    Use(source.buffer);
    Use(staged);
    Access target{.buffer = staged, .index = PlainIndex(dims), .guards = {}};
    code->push_back(Stmt{CopyStmt{.target = target, .source = std::move(source), .dims = dims}});
    return target;
  }

  // ---- aliases ----

  // Output o may take input i's memory if i is read in one region only, at the very element that
  // region stores to o.
  void FindAliases() {
    Schedule& s = out_.schedule;
    std::map<BufferId, std::vector<const EachStmt*>> regions;
    std::set<BufferId> elsewhere;
    std::function<void(const Block&)> walk = [&](const Block& block) {
      for (const Stmt& stmt : block) {
        if (const auto* loop = std::get_if<LoopStmt>(&stmt.node)) walk(loop->body);
        if (const auto* mma = std::get_if<MmaStmt>(&stmt.node)) {
          elsewhere.insert({mma->a.buffer, mma->b.buffer});
        }
        if (const auto* copy = std::get_if<CopyStmt>(&stmt.node))
          elsewhere.insert(copy->source.buffer);
        if (const auto* each = std::get_if<EachStmt>(&stmt.node)) {
          for (const ElementOp& e : each->ops) {
            for (const Access& a : e.access) regions[a.buffer].push_back(each);
          }
        }
      }
    };
    for (const Phase& phase : s.phases) {
      for (const Segment& segment : phase.segments) walk(segment.body);
    }
    std::set<BufferId> taken;
    for (BufferId o = 0; o < s.params; ++o) {
      for (BufferId i = 0; i < s.params && s.buffer(o).kind == ParamKind::kOutput; ++i) {
        const Buffer& out = s.buffer(o);
        const Buffer& in = s.buffer(i);
        if (in.kind != ParamKind::kInput || in.dtype != out.dtype || in.shape != out.shape ||
            !(in.layout == out.layout) || elsewhere.count(i) != 0 || taken.count(i) != 0) {
          continue;
        }
        const auto& reads = regions[i];
        const auto& writes = regions[o];
        bool one = !reads.empty() && writes.size() == 1 &&
                   std::all_of(reads.begin(), reads.end(),
                               [&](const EachStmt* e) { return e == writes[0]; });
        if (one && SameElement(*writes[0], o, i)) {
          s.may_alias.emplace_back(o, i);
          taken.insert(i);
          break;
        }
      }
    }
  }

  bool SameElement(const EachStmt& each, BufferId o, BufferId i) const {
    const Access* store = nullptr;
    for (const ElementOp& e : each.ops) {
      for (const Access& a : e.access) {
        if (a.buffer == o) store = &a;
      }
    }
    if (store == nullptr || !store->guards.empty()) return false;
    for (const ElementOp& e : each.ops) {
      for (const Access& a : e.access) {
        if (a.buffer == i && (!(a.index == store->index) || !a.guards.empty())) return false;
      }
    }
    // Every grid dim must move the element, or two blocks would meet in it.
    for (const GridDim& g : choice_.grid) {
      bool moves = false;
      for (const IndexExpr& e : store->index) moves |= e.CoefficientOf(g.dim) != 0;
      if (!moves) return false;
    }
    return true;
  }

  const FusionGroup& group_;
  const Smg& smg_;
  const Choice& choice_;
  const DeviceSpec& device_;
  NestPlan plan_;
  Lowered out_;
  std::vector<int64_t> window_;
  std::map<ValueId, BufferId> param_of_;
  std::map<ValueId, BufferId> output_of_;
  std::map<std::pair<int, int>, BufferId> packed_of_;
  std::vector<BufferId> buffer_of_;  // by op; -1: none
  std::vector<BufferId> acc_;        // of the products of the nest being emitted
  std::map<BufferId, LocalUse> uses_;
  std::vector<int> last_uses_;
  int section_ = 0;
  int nest_ = 0;
};

}  // namespace

absl::StatusOr<Lowered> Lower(const FusionGroup& group, const Choice& choice,
                              const DeviceSpec& device, bool bitwise) {
  return Lowering(group, choice, device, bitwise).Run();
}

Schedule PackSchedule(const FusionGroup& group, const Lowered& lowered, size_t param) {
  const LoweredParam& packed = lowered.params[param];
  const Buffer& target = lowered.schedule.buffer(static_cast<BufferId>(param));
  const TensorView& view = group.view(packed.value);
  Schedule s;
  s.label = "Pack";
  std::map<DimId, DimId> renumber;
  for (DimId d : packed.dims) {
    renumber[d] = static_cast<DimId>(s.dims.size());
    s.dims.push_back(lowered.schedule.dim(d));
    s.dims.back().name = StrCat("i", s.dims.size() - 1);
  }
  s.buffers.push_back({.name = "p0",
                       .level = Level::kGlobal,
                       .dtype = view.dtype,
                       .kind = ParamKind::kWeight,
                       .shape = view.shape,
                       .layout = {.strides = view.strides}});
  s.buffers.push_back(target);
  s.buffers.back().name = "p1";
  s.buffers.back().kind = ParamKind::kOutput;
  s.params = 2;
  CopyStmt copy;
  for (const IndexExpr& e : packed.source) {
    copy.source.index.push_back(
        e.Substitute([&](int d) { return IndexExpr::Axis(renumber.at(d)); }));
  }
  copy.target.buffer = 1;
  for (size_t i = 0; i < s.dims.size(); ++i) {
    copy.dims.push_back(static_cast<DimId>(i));
    copy.target.index.push_back(IndexExpr::Axis(static_cast<int>(i)));
  }
  // One task packs a block of columns.
  Segment segment;
  segment.grid = {{static_cast<DimId>(s.dims.size()) - 1, target.layout.block}};
  segment.body.push_back(Stmt{std::move(copy)});
  Phase phase;
  phase.segments.push_back(std::move(segment));
  s.phases.push_back(std::move(phase));
  return s;
}

}  // namespace fusion
