#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/contains.h"
#include "core/op/body/indexed_reduction.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/ir/phase_pipeline.h"

namespace fusion {
namespace {

// No instruction takes more narrow elements at once.
constexpr int64_t kMaxPack = 4;

class Verifier {
 public:
  explicit Verifier(const Schedule& s) : s_(s) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Declarations());
    for (const Phase& phase : s_.phases) {
      phase_ = &phase;
      if (phase.segments.empty()) return Fail("a phase has no segment");
      for (const Segment& segment : phase.segments) {
        std::set<DimId> seen;
        for (const GridDim& g : segment.grid) {
          RETURN_IF_ERROR(CheckDim(g.dim));
          if (g.tile < 1) return Fail(StrCat("grid tile ", g.tile, " of dim ", s_.dim(g.dim).name));
          if (!seen.insert(g.dim).second) return Fail("a grid names a dim twice");
        }
        for (size_t h = 0; h < segment.halos.size(); ++h) {
          RETURN_IF_ERROR(CheckHalo(segment, h));
          if (!seen.insert(segment.halos[h].dim).second) {
            return Fail("a dim of the grid, or another halo's, is a halo");
          }
        }
        RETURN_IF_ERROR(Body(segment.body));
        allocated_.clear();
      }
      complete_ = written_;
    }
    for (BufferId b = 0; b < s_.params; ++b) {
      if (s_.buffer(b).kind == ParamKind::kOutput && written_.count(b) == 0) {
        return Fail(StrCat("output ", s_.buffer(b).name, " is never written"));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Fail(std::string_view what) const {
    return InvalidArgument("schedule ", Quote(s_.label), ": ", what);
  }

  absl::Status Declarations() {
    if (s_.phases.empty()) return Fail("no phase");
    for (size_t i = 0; i < s_.buffers.size(); ++i) {
      const Buffer& b = s_.buffers[i];
      bool param = static_cast<int>(i) < s_.params;
      if (param != (b.level == Level::kGlobal))
        return Fail("params come first, and only params are global");
      if (b.layout.blocked >= 0 && (b.layout.blocked >= b.rank() || b.layout.block < 1)) {
        return Fail(StrCat("layout of ", b.name, " blocks a dim that does not exist"));
      }
      const int64_t pack = b.layout.pack;
      if (pack < 1 || pack > kMaxPack || (pack > 1 && (b.layout.blocked < 0 || b.rank() < 2))) {
        return Fail(StrCat("layout of ", b.name, " has packs of ", pack));
      }
      for (DimId d : b.dims) RETURN_IF_ERROR(CheckDim(d));
      if (b.IsLocal()) continue;
      auto elements = CheckedNumElements(b.shape, DTypeBytes(b.dtype));
      if (!elements.ok()) return Fail(Message(elements.status()));
      bool strided = b.layout.blocked < 0;
      if (strided && b.layout.strides.size() != b.shape.size()) {
        return Fail(
            StrCat(b.name, " has ", b.layout.strides.size(), " strides for rank ", b.rank()));
      }
      if (b.same_as >= 0) RETURN_IF_ERROR(CheckSameMemory(static_cast<BufferId>(i)));
    }
    for (const auto& [to, from] : s_.may_alias) {
      if (to >= s_.params || from >= s_.params || s_.buffer(to).kind != ParamKind::kOutput ||
          s_.buffer(from).kind != ParamKind::kInput) {
        return Fail("alias names an output param and an input param");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckHalo(const Segment& segment, size_t h) const {
    const Halo& halo = segment.halos[h];
    RETURN_IF_ERROR(CheckDim(halo.dim));
    if (halo.reached.empty()) return Fail("a halo reaches nothing");
    for (const IndexExpr& e : halo.reached) {
      if (e.indirect() >= 0) return Fail("a halo of an indirect index");
      for (const IndexExpr::Term& t : e.terms()) {
        RETURN_IF_ERROR(CheckDim(t.axis));
        for (size_t later = h; later < segment.halos.size(); ++later) {
          if (segment.halos[later].dim != t.axis) continue;
          return Fail(StrCat("the halo of ", s_.dim(halo.dim).name,
                             " depends on itself or on one behind it"));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckSameMemory(BufferId id) const {
    const Buffer& b = s_.buffer(id);
    if (b.level != Level::kWorkspace || b.same_as >= id) {
      return Fail(StrCat(b.name, " lies in a buffer that is not declared before it"));
    }
    const Buffer& memory = s_.buffer(b.same_as);
    bool whole = memory.same_as < 0 &&
                 (memory.level == Level::kWorkspace || memory.kind == ParamKind::kOutput);
    if (!whole || memory.dtype != b.dtype || !IsDense(b) || !IsDense(memory) ||
        NumElements(b.shape) != NumElements(memory.shape)) {
      return Fail(StrCat(b.name, " lies in ", memory.name,
                         ", which is no dense output or workspace of as many elements"));
    }
    return absl::OkStatus();
  }

  // What lies in memory between phases is whole once the phase that writes it is over; before, a
  // block sees what it wrote itself.
  absl::Status CheckRead(const Access& a) const {
    RETURN_IF_ERROR(CheckAccess(a));
    const Buffer& b = s_.buffer(a.buffer);
    const BufferId memory = s_.MemoryOf(a.buffer);
    if (b.level != Level::kWorkspace || complete_.count(memory) != 0) return absl::OkStatus();
    if (written_.count(memory) == 0) return Fail(StrCat(b.name, " is read before it is written"));
    if (KeepsToItsBlock(s_, *phase_, memory)) return absl::OkStatus();
    return Fail(StrCat(b.name,
                       " is read in the phase that writes it, where other blocks may not have done "
                       "so yet"));
  }

  absl::Status CheckDim(DimId d) const {
    if (d < 0 || static_cast<size_t>(d) >= s_.dims.size()) return Fail(StrCat("no dim ", d));
    return absl::OkStatus();
  }

  absl::Status CheckAccess(const Access& a) const {
    if (a.buffer < 0 || static_cast<size_t>(a.buffer) >= s_.buffers.size()) {
      return Fail(StrCat("no buffer ", a.buffer));
    }
    const Buffer& b = s_.buffer(a.buffer);
    if (b.IsLocal() && allocated_.count(a.buffer) == 0) {
      return Fail(StrCat(b.name, " is used outside its allocation"));
    }
    if (static_cast<int>(a.index.size()) != b.rank()) {
      return Fail(StrCat(b.name, " is indexed with ", a.index.size(), " of ", b.rank(), " dims"));
    }
    for (const Guard& g : a.guards) RETURN_IF_ERROR(CheckDim(g.axis));
    for (size_t d = 0; d < a.index.size(); ++d) {
      for (const IndexExpr::Term& t : a.index[d].terms()) RETURN_IF_ERROR(CheckDim(t.axis));
      int64_t extent = b.IsLocal() ? s_.dim(b.dims[d]).extent : b.shape[d];
      RETURN_IF_ERROR(CheckRange(a, a.index[d], extent));
    }
    return absl::OkStatus();
  }

  absl::Status CheckRange(const Access& a, const IndexExpr& e, int64_t extent) const {
    if (e.indirect() >= 0) return absl::OkStatus();  // clamped where it is read
    for (const ScheduleDim& d : s_.dims) {
      if (d.extent == 0) return absl::OkStatus();
    }
    IndexRange range = RangeOf(
        e, [&](DimId d) { return Walked(d); }, a.guards);
    if (!range.empty() && (range.begin < 0 || range.end > extent)) {
      return Fail(StrCat(s_.buffer(a.buffer).name, " is accessed at ", range.begin, "..",
                         range.end - 1, ", extent is ", extent));
    }
    return absl::OkStatus();
  }

  // The coordinates of a dim that the loops around a statement leave.
  IndexRange Walked(DimId d) const {
    auto known = walked_.find(d);
    return known == walked_.end() ? IndexRange{0, s_.dim(d).extent} : known->second;
  }

  absl::Status CheckWrite(const Access& a) {
    RETURN_IF_ERROR(CheckAccess(a));
    const Buffer& b = s_.buffer(a.buffer);
    if (b.level == Level::kGlobal && b.kind != ParamKind::kOutput) {
      return Fail(StrCat(b.name, " is written but is no output"));
    }
    written_.insert(s_.MemoryOf(a.buffer));
    return absl::OkStatus();
  }

  absl::Status Body(const Block& block) {
    std::vector<BufferId> here;
    for (const Stmt& stmt : block) {
      if (const auto* alloc = std::get_if<AllocStmt>(&stmt.node)) here.push_back(alloc->buffer);
      RETURN_IF_ERROR(std::visit([&](const auto& node) { return Check(node); }, stmt.node));
    }
    for (BufferId b : here) allocated_.erase(b);
    return absl::OkStatus();
  }

  absl::Status Check(const LoopStmt& l) {
    RETURN_IF_ERROR(CheckDim(l.dim));
    if (l.tile < 1 || l.stages < 1) return Fail(StrCat("loop tile ", l.tile));
    if (l.end < 0) return Body(l.body);
    const auto outer = walked_.find(l.dim);
    const std::optional<IndexRange> saved =
        outer == walked_.end() ? std::nullopt : std::optional(outer->second);
    const IndexRange range = Walked(l.dim);
    walked_[l.dim] = {std::max(range.begin, l.begin), std::min(range.end, l.end)};
    absl::Status status = Body(l.body);
    if (saved) {
      walked_[l.dim] = *saved;
    } else {
      walked_.erase(l.dim);
    }
    return status;
  }
  absl::Status Check(const IfStmt& s) {
    if (s.somewhere.empty()) return Fail("if without a condition");
    if (s.watched >= 0) {
      bool one = static_cast<size_t>(s.watched) < s_.buffers.size() &&
                 allocated_.count(s.watched) != 0 && s_.buffer(s.watched).dims.empty() &&
                 IsFloat(s_.buffer(s.watched).dtype);
      if (!one) return Fail("if watches what is no local float without dims");
    }
    if (s.first >= 0) RETURN_IF_ERROR(CheckDim(s.first));
    for (const IndexExpr& e : s.somewhere) {
      if (e.indirect() >= 0) return Fail("if of an indirect index");
      for (const IndexExpr::Term& t : e.terms()) RETURN_IF_ERROR(CheckDim(t.axis));
    }
    return Body(s.body);
  }
  absl::Status Check(const AllocStmt& s) {
    if (s.buffer < s_.params || static_cast<size_t>(s.buffer) >= s_.buffers.size() ||
        !s_.buffer(s.buffer).IsLocal() || !allocated_.insert(s.buffer).second) {
      return Fail("alloc of something that is no fresh local buffer");
    }
    return absl::OkStatus();
  }
  absl::Status CheckMonoid(const std::string& name, size_t states, DType type) const {
    auto m = Monoid::Named(name, type);
    if (!m) return Fail(StrCat("no monoid ", name, " over ", DTypeName(type)));
    if (static_cast<size_t>(m->width()) != states) {
      return Fail(StrCat(name, " has ", m->width(), " state values, got ", states));
    }
    return absl::OkStatus();
  }
  absl::Status Check(const InitStmt& s) {
    for (BufferId b : s.buffers) {
      if (allocated_.count(b) == 0) return Fail("init of a buffer that is not allocated");
    }
    if (s.buffers.empty()) return Fail("init of nothing");
    return CheckMonoid(s.monoid, s.buffers.size(), s_.buffer(s.buffers[0]).dtype);
  }
  absl::Status Check(const EachStmt& s) {
    std::set<DimId> dims;
    for (DimId d : s.dims) {
      RETURN_IF_ERROR(CheckDim(d));
      if (!dims.insert(d).second) return Fail("each names a dim twice");
    }
    std::map<int, DType> values;
    for (const ElementOp& op : s.ops) {
      std::vector<DType> types;
      for (int v : op.args) {
        auto it = values.find(v);
        if (it == values.end()) return Fail(StrCat("v", v, " is used before it is defined"));
        types.push_back(it->second);
      }
      RETURN_IF_ERROR(CheckElement(op, types));
      if (op.kind == ElementOp::kLoad || op.kind == ElementOp::kCompute) {
        if (!values.emplace(op.result, op.type).second) {
          return Fail(StrCat("v", op.result, " is defined twice"));
        }
      }
    }
    return s.IsPlaced() ? CheckPlaced(s) : absl::OkStatus();
  }

  // What emitters rely on where points are found by their place.
  absl::Status CheckPlaced(const EachStmt& s) {
    for (const IndexExpr::Term& t : s.at.terms()) RETURN_IF_ERROR(CheckDim(t.axis));
    const bool whole = std::all_of(s.at.terms().begin(), s.at.terms().end(), [&](const auto& t) {
      return Contains(s.dims, t.axis) && t.axis != s.dims.back();
    });
    if (!whole || !IsPlace(s.at, [this](int d) { return s_.dim(d).extent; })) {
      return Fail("a place is a mixed-radix number of dims before the last one");
    }
    bool known = false;
    for (const ElementOp& op : s.ops) {
      const bool defines = op.kind == ElementOp::kLoad || op.kind == ElementOp::kCompute;
      if (op.kind == ElementOp::kStore) return Fail("a store where points are found by place");
      if (defines && op.result == s.place) {
        if (op.type != DType::kI64) break;
        known = true;
      }
      if (op.kind == ElementOp::kReduce && !known) {
        return Fail(StrCat("a reduction before its place v", s.place));
      }
    }
    if (!known) return Fail(StrCat("place v", s.place, " is no i64 of the steps"));
    const bool fixed = std::none_of(s.at.terms().begin(), s.at.terms().end(),
                                    [&](const auto& t) { return MovesAlong(s, s.place, t.axis); });
    if (fixed) return absl::OkStatus();
    return Fail("a place that depends on the dims it is along");
  }

  absl::Status CheckElement(const ElementOp& op, const std::vector<DType>& types) {
    switch (op.kind) {
      case ElementOp::kLoad:
        RETURN_IF_ERROR(CheckRead(op.access[0]));
        if (op.type != s_.buffer(op.access[0].buffer).dtype) return Fail("a load changes the type");
        return absl::OkStatus();
      case ElementOp::kStore:
        RETURN_IF_ERROR(CheckWrite(op.access[0]));
        if (types[0] != s_.buffer(op.access[0].buffer).dtype) {
          return Fail(StrCat("store of ", DTypeName(types[0]), " to ",
                             s_.buffer(op.access[0].buffer).name));
        }
        return absl::OkStatus();
      case ElementOp::kReduce:
        for (const Access& a : op.access) RETURN_IF_ERROR(CheckWrite(a));
        return CheckMonoid(op.monoid, op.access.size(), types[0]);
      case ElementOp::kCompute:
        break;
    }
    bool leaf = GetScalarInfo(op.op).typing == ScalarTyping::kLeaf;
    if (leaf) return op.axis >= 0 ? CheckDim(op.axis) : absl::OkStatus();
    if (op.op == ScalarOp::kCast) return absl::OkStatus();
    if (op.op == ScalarOp::kBitCast) {
      return CanBitCast(types[0], op.type) ? absl::OkStatus()
                                           : Fail(StrCat("v", op.result, " has another width"));
    }
    auto type = ScalarResultType(op.op, types);
    if (!type.ok()) return Fail(Message(type.status()));
    return *type == op.type ? absl::OkStatus() : Fail(StrCat("v", op.result, " has another type"));
  }

  absl::Status Check(const MmaStmt& s) {
    RETURN_IF_ERROR(CheckWrite(s.c));
    RETURN_IF_ERROR(CheckRead(s.a));
    RETURN_IF_ERROR(CheckRead(s.b));
    RETURN_IF_ERROR(CheckDim(s.n));
    if (s.m >= 0) RETURN_IF_ERROR(CheckDim(s.m));
    for (DimId d : s.over) RETURN_IF_ERROR(CheckDim(d));
    return CheckOperands(s);
  }

  // Whether neighbours along `d` are neighbours in memory, or in the block of a blocked buffer.
  bool LieAlong(const Access& access, DimId d) const {
    const Buffer& b = s_.buffer(access.buffer);
    if (b.layout.blocked >= 0) {
      return access.index[static_cast<size_t>(b.layout.blocked)].CoefficientOf(d) == 1;
    }
    // Rows of local buffers may be padded.
    return b.IsLocal() ? !access.index.empty() && access.index.back().CoefficientOf(d) == 1
                       : StrideAlong(access.index, b.layout.strides, d) == 1;
  }

  absl::Status CheckColumns(const MmaStmt& s) const {
    for (const Access* access : {&s.b, &s.c}) {
      if (LieAlong(*access, s.n)) continue;
      return Fail(StrCat("mma over columns of ", s_.buffer(access->buffer).name,
                         ", which do not lie along dim ", s_.dim(s.n).name));
    }
    return absl::OkStatus();
  }

  // Operands of the type of the sum, or narrower ones: columns as instructions want them, rows of
  // their type or of the sum's.
  absl::Status CheckOperands(const MmaStmt& s) const {
    const DType sum = s_.buffer(s.c.buffer).dtype;
    const DType rows = s_.buffer(s.a.buffer).dtype;
    const Buffer& b = s_.buffer(s.b.buffer);
    const bool alike = rows == sum && b.dtype == sum;
    const std::optional<int64_t> narrow =
        sum == SumType(rows) ? ColumnPack(rows, b.dtype) : std::nullopt;
    if (!alike && !narrow) return Fail("mma over different element types");
    const int64_t pack = alike ? 1 : *narrow;
    if (b.layout.pack != pack) {
      return Fail(StrCat("mma over columns of ", b.name, ", which are not in packs of ", pack));
    }
    const bool pairs = rows == DType::kBF16 && b.dtype == DType::kBF16;
    if (s.flushes && !pairs) return Fail("mma flushes what is no product of bf16 by bf16");
    if (pack == 1) return CheckColumns(s);
    if (s.over.empty()) return Fail("mma in packs of no dim");
    // What instructions take at once: neighbours along the last summed dim.
    const DimId along = s.over.back();
    const IndexExpr& packed = s.b.index[static_cast<size_t>(b.layout.PackedDim(b.rank()))];
    if (!(packed == IndexExpr::Axis(along))) {
      return Fail(StrCat("mma over columns of ", b.name, ", whose packs are not of dim ",
                         s_.dim(along).name));
    }
    const Buffer& a = s_.buffer(s.a.buffer);
    const bool lie = a.layout.blocked < 0 && LieAlong(s.a, along);
    if (rows == DType::kF32 || lie) return CheckColumns(s);
    return Fail(
        StrCat("mma over rows of ", a.name, ", which do not lie along dim ", s_.dim(along).name));
  }
  absl::Status Check(const CopyStmt& s) {
    RETURN_IF_ERROR(CheckWrite(s.target));
    RETURN_IF_ERROR(CheckRead(s.source));
    for (DimId d : s.dims) RETURN_IF_ERROR(CheckDim(d));
    if (s_.buffer(s.target.buffer).dtype != s_.buffer(s.source.buffer).dtype) {
      return Fail("copy changes the type");
    }
    return absl::OkStatus();
  }
  absl::Status Check(const MergeStmt& s) {
    if (s.target.size() != s.source.size() || s.target.empty())
      return Fail("merge of unequal states");
    for (const Access& a : s.target) RETURN_IF_ERROR(CheckWrite(a));
    for (const Access& a : s.source) RETURN_IF_ERROR(CheckRead(a));
    for (DimId d : s.dims) RETURN_IF_ERROR(CheckDim(d));
    return CheckMonoid(s.monoid, s.target.size(), s_.buffer(s.target[0].buffer).dtype);
  }
  absl::Status Check(const CallStmt& s) {
    auto known = [&](BufferId b) {
      return b >= 0 && static_cast<size_t>(b) < s_.buffers.size() && !s_.buffer(b).IsLocal();
    };
    for (BufferId b : s.inputs) {
      if (!known(b)) return Fail("call takes params and workspace only");
      const bool workspace = s_.buffer(b).level == Level::kWorkspace;
      if (workspace && complete_.count(s_.MemoryOf(b)) == 0) {
        return Fail(StrCat(s_.buffer(b).name, " is read before it is written"));
      }
    }
    for (BufferId b : s.outputs) {
      const bool param = known(b) && s_.buffer(b).level == Level::kGlobal;
      if (!known(b) || (param && s_.buffer(b).kind != ParamKind::kOutput)) {
        return Fail("call writes output params and workspace only");
      }
      written_.insert(s_.MemoryOf(b));
    }
    for (BufferId b : s.scratch) {
      if (allocated_.count(b) == 0) return Fail("call works in a buffer that is not allocated");
    }
    for (DimId d : s.over) RETURN_IF_ERROR(CheckDim(d));
    return absl::OkStatus();
  }

  const Schedule& s_;
  const Phase* phase_ = nullptr;
  std::set<BufferId> allocated_;
  std::map<DimId, IndexRange> walked_;  // by dim that a loop around restricts
  std::set<BufferId> written_;          // memory
  std::set<BufferId> complete_;         // written by phases that are over
};

}  // namespace

absl::Status Verify(const Schedule& schedule) { return Verifier(schedule).Run(); }

}  // namespace fusion
