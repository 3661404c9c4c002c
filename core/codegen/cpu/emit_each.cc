#include <algorithm>
#include <array>
#include <functional>

#include "core/base/contains.h"
#include "core/codegen/cpu/emitter.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

constexpr int kUnroll = 4;  // independent accumulators: an addition takes four cycles

// A body that costs more additions than this is limited by latency: a core's reorder window holds
// only one or two of them. Then the steps of several vectors are interleaved, as many vectors as
// keep their values in 32 registers (with 16 registers spilling costs less than waiting). Measured
// 2026-11, 20 functions of 16 Ki elements: Zen 4, 61 us without, 34 us with four vectors; Intel
// family 6 model 167, 29.0 us with four, 22.3 us with eight, in AVX2 56.6 and 42.8 us.
constexpr double kLongBody = 48;
constexpr int kMostInTurns = 8;
constexpr int kValuesInRegisters = 24;

// With at least this many vectors divided by one number, division is replaced by multiplication
// with its reciprocal: a vector division takes six cycles on Zen 4, the product and its correction
// three. Chosen, not measured.
constexpr int64_t kLeastQuotients = 4;

// Vertical folds with more arithmetic than this are limited by it, not by their accumulator.
constexpr int kLightFold = 2;

// Loops of folds over windows of at most this many points are unrolled.
constexpr int64_t kUnrolledWindow = 4;

// Type of the value that a step of `each` defines.
DType TypeOf(const EachStmt& each, int value) {
  for (const ElementOp& op : each.ops) {
    const bool makes = op.kind == ElementOp::kLoad || op.kind == ElementOp::kCompute;
    if (makes && op.result == value) return op.type;
  }
  return DType::kBool;
}

std::string Identity(const std::string& monoid, DType type) {
  Expr e = Monoid::Named(monoid, type)->identity()[0];
  return ElementLiteral(type, IsFloat(type) ? e.value() : 0, IsFloat(type) ? 0 : e.integer());
}

}  // namespace

std::string MergeVectors(const std::string& monoid, DType type, const std::string& a,
                         const std::string& b) {
  if (monoid == "sum") return StrCat(a, " + ", b);
  if (monoid == "prod") return StrCat(a, " * ", b);
  return StrCat(monoid, "_", VectorSuffix(type), "(", a, ", ", b, ")");
}

std::string MergeScalars(const std::string& monoid, DType type, const std::string& a,
                         const std::string& b) {
  if (monoid == "sum") return StrCat(a, " + ", b);
  if (monoid == "prod") return StrCat(a, " * ", b);
  // The lanes of narrow integers are wider than their type in memory.
  return StrCat("scalar_", monoid, "<", MemoryTypeName(type), ">(", a, ", ", b, ")");
}

std::vector<int64_t> CpuEmitter::Borders(const EachStmt& each, DimId d,
                                         std::vector<int64_t>* outside) const {
  std::vector<int64_t> borders;
  auto add = [&](int64_t begin, int64_t end) {
    for (int64_t b : {begin, end}) {
      const bool inside = b > 0 && b < dim(d).extent;
      if (inside) borders.push_back(b);
      if (!inside && outside != nullptr && !Contains(*outside, b)) outside->push_back(b);
    }
  };
  for (const ElementOp& op : each.ops) {
    if (op.op == ScalarOp::kWithin && op.kind == ElementOp::kCompute && op.axis == d)
      add(op.integer, op.end);
    for (const Access& a : op.access) {
      for (const Guard& g : a.guards) {
        if (g.axis == d) add(g.begin, g.end);
      }
    }
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

absl::Status CpuEmitter::CheckElements(const EachStmt& each) const {
  for (const ElementOp& op : each.ops) {
    for (const Access& a : op.access) {
      if (buffer(a.buffer).layout.blocked >= 0) {
        return Unimplemented(
            "unimplemented: element access to a blocked buffer on the cpu backend");
      }
    }
    if (op.kind == ElementOp::kReduce && op.access.size() != 1) {
      return Unimplemented("unimplemented: ", op.monoid, " states on the cpu backend");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CpuEmitter::Region> CpuEmitter::PlanRegion(const EachStmt& each) const {
  RETURN_IF_ERROR(CheckElements(each));
  if (each.IsPlaced()) return PlanPlaced(each);
  Region region;
  region.each = &each;
  bool first = true;
  for (const ElementOp& op : each.ops) {
    if (op.kind != ElementOp::kReduce) continue;
    std::vector<DimId> reduced;
    for (DimId d : each.dims) {
      if (!Names(op.access[0].index, d)) reduced.push_back(d);
    }
    if (!first && reduced != region.reduced) {
      return Unimplemented(
          "unimplemented: reductions over different dims in one region on the cpu backend");
    }
    first = false;
    region.folds = true;
    region.reduced = std::move(reduced);
  }
  if (!each.dims.empty() && !window(each.dims.back()).IsPoint()) region.vector = each.dims.back();
  region.folds_vector =
      region.folds && region.vector >= 0 && Contains(region.reduced, region.vector);
  for (DimId d : each.dims) {
    if (d == region.vector || window(d).IsPoint()) continue;
    (region.folds && Contains(region.reduced, d) ? region.inner : region.outer).push_back(d);
  }
  const auto computed = std::count_if(each.ops.begin(), each.ops.end(), [](const ElementOp& op) {
    return op.kind == ElementOp::kCompute;
  });
  region.light = computed <= kLightFold;
  bool long_enough = region.vector >= 0 && window(region.vector).Longest() >= 2 * kUnroll * lanes_;
  if (region.folds_vector && long_enough && !s_.bitwise) region.unroll = kUnroll;
  if (region.folds && !region.folds_vector && region.vector >= 0 && !region.inner.empty()) {
    long_enough = window(region.inner.back()).Longest() >= 2 * kUnroll;
    region.unrolls_inner = region.light && long_enough && !s_.bitwise;
    if (region.unrolls_inner) region.unroll = kUnroll;
  }
  PlanTurns(&region);
  if (!region.folds && region.turned < 0 && region.vector >= 0) {
    region.in_turns = VectorsInTurns(each);
    const int64_t longest = window(region.vector).Longest();
    while (region.in_turns > 1 && longest < 2 * region.in_turns * lanes_) region.in_turns /= 2;
  }
  return region;
}

// Number of vectors of a region whose steps are interleaved.
int CpuEmitter::VectorsInTurns(const EachStmt& each) const {
  double cost = 0;
  std::map<int, size_t> last;  // use of each value
  for (size_t i = 0; i < each.ops.size(); ++i) {
    const ElementOp& op = each.ops[i];
    if (op.kind != ElementOp::kStore && op.type != DType::kF32 && op.type != DType::kBool) return 1;
    if (op.kind == ElementOp::kCompute) cost += GetScalarInfo(op.op).cost;
    for (int v : op.args) last[v] = i;
  }
  if (cost < kLongBody) return 1;
  int alive = 0;
  int most = 1;
  for (size_t i = 0; i < each.ops.size(); ++i) {
    const ElementOp& op = each.ops[i];
    for (const auto& [v, use] : last) alive -= use == i ? 1 : 0;
    const bool constant = op.kind == ElementOp::kCompute && op.op == ScalarOp::kConst;
    if (op.kind != ElementOp::kStore && !constant && last.count(op.result) != 0) ++alive;
    most = std::max(most, alive);
  }
  for (int turns = kMostInTurns; turns > 1; turns /= 2) {
    if (turns * most <= kValuesInRegisters) return turns;
  }
  return 1;
}

// The divisions of a region whose divisor is the same for all vectors: (op, load of the divisor).
std::vector<std::pair<size_t, size_t>> CpuEmitter::CommonDivisions(const Region& region) const {
  std::vector<std::pair<size_t, size_t>> out;
  const std::vector<ElementOp>& ops = region.each->ops;
  const bool in_one_loop = region.inner.empty() && (!region.folds || region.folds_vector);
  const bool many = window(region.vector).Longest() >= kLeastQuotients * lanes_;
  if (s_.bitwise || guard_ || !in_one_loop || !many) return out;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool divides = ops[i].kind == ElementOp::kCompute && ops[i].op == ScalarOp::kDiv;
    if (!divides || ops[i].type != DType::kF32) continue;
    for (size_t l = 0; l < i; ++l) {
      if (ops[l].kind != ElementOp::kLoad || ops[l].result != ops[i].args[1]) continue;
      const Access& a = ops[l].access[0];
      const bool one = StepAlong(a, region.vector) == 0 &&
                       (region.turned < 0 || StepAlong(a, region.turned) == 0);
      const bool plain =
          a.guards.empty() && std::all_of(a.index.begin(), a.index.end(),
                                          [](const IndexExpr& e) { return e.indirect() < 0; });
      if (one && plain && buffer(a.buffer).dtype == DType::kF32) out.push_back({i, l});
    }
  }
  return out;
}

absl::Status CpuEmitter::Write(const EachStmt& each) {
  ASSIGN_OR_RETURN(Region region, PlanRegion(each));
  if (region.turned >= 0) Use("transpose");
  if (region.vector >= 0 && !CommonDivisions(region).empty()) Use("quotient");
  for (const ElementOp& op : each.ops) {
    for (const Access& a : op.access) {
      UseMemory(buffer(a.buffer).dtype);
      if (op.kind != ElementOp::kLoad && StreamsPastCaches(a.buffer)) {
        streams_ = true;
        Use("store_past");
      }
      if (op.kind == ElementOp::kLoad && region.vector >= 0 && op.type == DType::kF32 &&
          StepAlong(a, region.vector) == 2) {
        Use("load_even");
      }
    }
    if (op.kind == ElementOp::kReduce) {
      Use("fold");
      Use("select");
      Use("lanes");
      Use("minmax");
    }
    if (op.kind != ElementOp::kCompute) continue;
    if (op.op == ScalarOp::kAxis || op.op == ScalarOp::kWithin) Use("lanes");
    if (op.op == ScalarOp::kCast && !IsFloat(op.type)) Use("to_integer");
    if (op.op == ScalarOp::kCast && IsSmallFloat(op.type)) {
      Use(DTypeName(op.type));
      Use("odd");
    }
    if (op.op == ScalarOp::kBitCast) {
      for (DType type : {op.type, TypeOf(each, op.args[0])}) {
        if (IsSmallFloat(type)) Use(DTypeName(type));
      }
    }
    if (op.op == ScalarOp::kDiv && !IsFloat(op.type)) Use("integer_division");
    UseFunction(op);
  }
  std::string ops = StrJoin(each.ops, " ", [&](const ElementOp& op) -> std::string {
    if (op.kind == ElementOp::kReduce) return StrCat("reduce.", op.monoid);
    if (op.kind != ElementOp::kCompute || GetScalarInfo(op.op).typing == ScalarTyping::kLeaf)
      return "";
    return std::string(GetScalarInfo(op.op).name);
  });
  std::string label;
  for (std::string_view word : StrSplit(ops, ' ')) {
    if (!word.empty()) label += StrCat(label.empty() ? "" : " ", word);
  }
  out_.Open("/* ", label.empty() ? "copy" : label, " */");
  SayStep(label.empty() ? "copy" : label);
  WriteRegion(&region);
  out_.Close();
  for (std::string& p : point_) p.clear();
  return absl::OkStatus();
}

// Loops over the segments of the current window between borders, one after the other. Every guard
// is constant within a segment.
void CpuEmitter::WriteSegments(Region* region, DimId d, const std::function<void()>& body) {
  std::vector<int64_t> outside;
  std::vector<int64_t> borders = Borders(*region->each, d, &outside);
  WriteNeeds(borders);
  for (int64_t border : outside) WriteNeedsOutside(border, dim(d).extent);
  borders.insert(borders.begin(), 0);
  borders.push_back(std::max<int64_t>(dim(d).extent, 1));
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    region->range[d] = {borders[i], borders[i + 1]};
    body();
  }
  region->range.erase(d);
}

// Level `level` of the loops outside (inside = false) or inside the accumulators.
void CpuEmitter::WriteLoops(Region* region, size_t level, bool inside) {
  const std::vector<DimId>& dims = inside ? region->inner : region->outer;
  if (level == dims.size()) {
    if (inside) {
      if (region->folds_vector || !region->folds) {
        WriteVectorLoop(region);
      } else {
        // Vertical folds: the vector loop is outside the accumulators and has set the lanes
        // already.
        WriteBody(*region, {vertical_lanes_, "0"});
      }
      return;
    }
    if (region->each->IsPlaced()) {
      WriteAtPlace(region);
    } else if (!region->folds) {
      WriteVectorLoop(region);
    } else if (region->folds_vector || region->vector < 0) {
      out_.Open("");
      WriteAccumulators(*region);
      if (region->vector < 0) vertical_lanes_ = "";
      WriteLoops(region, 0, true);
      WriteFolds(*region, {"", "0"});
      out_.Close();
    } else {
      WriteVectorLoop(region);
    }
    return;
  }
  DimId d = dims[level];
  const Window& w = window(d);
  std::vector<int64_t> borders = Borders(*region->each, d);
  std::string name = dim(d).name;
  WriteSegments(region, d, [&] {
    auto [begin, end] = region->range[d];
    bool cut = !borders.empty();
    std::string from = cut && begin > 0 ? StrCat("max_i64(", w.begin, ", ", begin, ")") : w.begin;
    std::string to = cut && end < dim(d).extent ? StrCat("min_i64(", w.end, ", ", end, ")") : w.end;
    point_[static_cast<size_t>(d)] = name;
    if (inside && region->unrolls_inner && level + 1 == dims.size()) {
      WriteInTurn(*region, name, from, to);
    } else {
      const bool few = w.lengths.size() == 1 && w.Longest() <= kUnrolledWindow && !Varies(d);
      if (inside && few && region->light && !cut) out_.Line("#pragma GCC unroll ", w.Longest());
      out_.Open("for (i64 ", name, " = ", from, "; ", name, " < ", to, "; ++", name, ")");
      WriteLoops(region, level + 1, inside);
      out_.Close();
    }
    point_[static_cast<size_t>(d)].clear();
  });
}

// The innermost loop of a vertical fold, whose points are distributed over the accumulators in
// turn.
void CpuEmitter::WriteInTurn(const Region& region, const std::string& name, const std::string& from,
                             const std::string& to) {
  const std::string at = StrCat(name, "_at");
  out_.Open("");
  out_.Line("i64 ", at, " = ", from, ";");
  out_.Open("for (; ", at, " + ", region.unroll, " <= ", to, "; ", at, " += ", region.unroll, ")");
  out_.Line("#pragma GCC unroll ", region.unroll);
  out_.Open("for (int u = 0; u < ", region.unroll, "; ++u)");
  out_.Line("const i64 ", name, " = ", at, " + u;");
  WriteBody(region, {vertical_lanes_, "u"});
  out_.Close();
  out_.Close();
  out_.Open("for (; ", at, " < ", to, "; ++", at, ")");
  out_.Line("const i64 ", name, " = ", at, ";");
  WriteBody(region, {vertical_lanes_, "0"});
  out_.Close();
  out_.Close();
}

void CpuEmitter::WriteVectorLoop(Region* region) {
  if (region->vector < 0) {
    WriteBody(*region, {"", "0"});
    return;
  }
  DimId d = region->vector;
  const Window& w = window(d);
  bool cut = !Borders(*region->each, d).empty();
  WriteSegments(region, d, [&] {
    auto [begin, end] = region->range[d];
    std::string from = cut && begin > 0 ? StrCat("max_i64(", w.begin, ", ", begin, ")") : w.begin;
    std::string to = cut && end < dim(d).extent ? StrCat("min_i64(", w.end, ", ", end, ")") : w.end;
    const std::vector<std::pair<size_t, size_t>> divisions = CommonDivisions(*region);
    if (divisions.empty()) {
      WriteStrips(region, from, to);
      return;
    }
    // By reciprocals where they are as exact, else by divisions.
    out_.Open("");
    for (const auto& [division, divisor] : divisions) {
      out_.Line("const float by", division, " = *(", Address(region->each->ops[divisor].access[0]),
                ");");
    }
    out_.Open(
        "if (",
        StrJoin(divisions, " && ",
                [](const auto& each) { return StrCat("has_reciprocal(by", each.first, ")"); }),
        ")");
    for (const auto& [division, divisor] : divisions) {
      out_.Line("const vf inverse", division, " = splat(1.0f / by", division, ");");
      region->by_reciprocal.push_back(division);
    }
    WriteStrips(region, from, to);
    region->by_reciprocal.clear();
    out_.Close();
    out_.Open("else");
    WriteStrips(region, from, to);
    out_.Close();
    out_.Close();
  });
}

// Whole vectors first, several at a time if there are several accumulators, then the rest.
void CpuEmitter::WriteStrips(Region* region, const std::string& begin, const std::string& end) {
  DimId d = region->vector;
  std::string name = dim(d).name;
  const Window& w = window(d);
  bool cut = !Borders(*region->each, d).empty();
  bool whole = !cut && std::all_of(w.lengths.begin(), w.lengths.end(),
                                   [&](int64_t l) { return l % lanes_ == 0; });
  bool any_whole = cut || w.Longest() >= lanes_;
  auto body = [&](const Lanes& lanes) {
    point_[static_cast<size_t>(d)] = name;
    if (region->folds && !region->folds_vector) {
      WriteAccumulators(*region);
      vertical_lanes_ = lanes.count;
      WriteLoops(region, 0, true);
      WriteFolds(*region, lanes);
    } else if (region->turned >= 0) {
      WriteTurned(*region, lanes);
    } else {
      WriteBody(*region, lanes);
    }
    point_[static_cast<size_t>(d)].clear();
  };
  out_.Open("");
  std::string at = StrCat(name, "_at");
  out_.Line("i64 ", at, " = ", begin, ";");
  if (region->unroll > 1 && !region->unrolls_inner) {
    out_.Open("for (; ", at, " + ", region->unroll, " * W <= ", end, "; ", at,
              " += ", region->unroll, " * W)");
    out_.Line("#pragma GCC unroll ", region->unroll);
    out_.Open("for (int u = 0; u < ", region->unroll, "; ++u)");
    out_.Line("const i64 ", name, " = ", at, " + u * W;");
    body({"", "u"});
    out_.Close();
    out_.Close();
  }
  if (region->in_turns > 1) {
    out_.Open("for (; ", at, " + ", region->in_turns, " * W <= ", end, "; ", at,
              " += ", region->in_turns, " * W)");
    for (int u = 0; u < region->in_turns; ++u) {
      out_.Line("const i64 ", name, "_", u, " = ", at, " + ", u, " * W;");
    }
    WriteInTurns(region, name);
    out_.Close();
  }
  if (any_whole) {
    out_.Open("for (; ", at, " + W <= ", end, "; ", at, " += W)");
    out_.Line("const i64 ", name, " = ", at, ";");
    body({"", "0"});
    out_.Close();
  }
  if (!whole) {
    out_.Open("if (", at, " < ", end, ")");
    out_.Line("const i64 ", name, " = ", at, ";");
    out_.Line("const i64 ", name, "_left = ", end, " - ", at, ";");
    body({StrCat(name, "_left"), "0"});
    out_.Close();
  }
  out_.Close();
}

void CpuEmitter::WriteAccumulators(const Region& region) {
  int number = 0;
  for (const ElementOp& op : region.each->ops) {
    if (op.kind != ElementOp::kReduce) continue;
    DType type = buffer(op.access[0].buffer).dtype;
    std::string identity = StrCat("splat(", Identity(op.monoid, type), ")");
    if (s_.bitwise && region.folds_vector) {
      out_.Line(MemoryTypeName(type), " r", number, " = ", Identity(op.monoid, type), ";");
    } else {
      std::string all = StrJoin(std::vector<int>(static_cast<size_t>(region.unroll), 0), ", ",
                                [&](int) { return identity; });
      out_.Line(VectorTypeName(type), " r", number, "[", region.unroll, "] = {", all, "};");
    }
    ++number;
  }
}

// Folds the accumulators into the buffers.
void CpuEmitter::WriteFolds(const Region& region, const Lanes& lanes) {
  int number = 0;
  for (const ElementOp& op : region.each->ops) {
    if (op.kind != ElementOp::kReduce) continue;
    const Access& a = op.access[0];
    DType type = buffer(a.buffer).dtype;
    std::string name = StrCat("r", number++);
    auto merge_accumulators = [&] {
      for (int u = 1; u < region.unroll; ++u) {
        out_.Line(name, "[0] = ",
                  MergeVectors(op.monoid, type, StrCat(name, "[0]"), StrCat(name, "[", u, "]")),
                  ";");
      }
    };
    if (region.folds_vector || region.vector < 0) {
      std::string folded;
      if (region.vector < 0) {
        folded = StrCat(name, "[0][0]");  // every lane holds the same value
      } else if (s_.bitwise) {
        folded = name;
      } else {
        merge_accumulators();
        folded = StrCat("fold_", op.monoid, "<", MemoryTypeName(type), ">(", name, "[0])");
      }
      std::string place = StrCat("*(", Address(a), ")");
      out_.Line(place, " = ", MergeScalars(op.monoid, type, place, folded), ";");
      continue;
    }
    ElementOp load;
    load.kind = ElementOp::kLoad;
    load.type = type;
    load.access = {a};
    ElementOp store = load;
    store.kind = ElementOp::kStore;
    merge_accumulators();
    std::string merged =
        MergeVectors(op.monoid, type, LoadCode(region, load, lanes), StrCat(name, "[0]"));
    out_.Line(VectorTypeName(type), " ", name, "_all = ", merged, ";");
    store.args = {-number};  // names r<number - 1>_all
    out_.Line(StoreCode(region, store, lanes));
  }
}

void CpuEmitter::WriteBody(const Region& region, const Lanes& lanes) {
  int fold = 0;
  const std::vector<int> passes = DecidedSelects(region);
  for (size_t i = 0; i < region.each->ops.size(); ++i) {
    WriteStep(region, lanes, passes, i, fold);
    if (region.each->ops[i].kind == ElementOp::kReduce) ++fold;
  }
}

// Interleaves the steps of several whole vectors: each step for all of them before the next step.
void CpuEmitter::WriteInTurns(Region* region, const std::string& name) {
  const std::vector<int> passes = DecidedSelects(*region);
  std::string& point = point_[static_cast<size_t>(region->vector)];
  for (size_t i = 0; i < region->each->ops.size(); ++i) {
    for (int u = 0; u < region->in_turns; ++u) {
      turn_ = StrCat("_", u);
      point = StrCat(name, turn_);
      WriteStep(*region, {"", "0"}, passes, i, 0);
    }
  }
  turn_.clear();
  point.clear();
}

// Step i of a region, `passes` as DecidedSelects says; a fold goes to accumulator `fold`.
void CpuEmitter::WriteStep(const Region& region, const Lanes& lanes, const std::vector<int>& passes,
                           size_t i, int fold) {
  const ElementOp& op = region.each->ops[i];
  if (passes[i] == -2) return;
  auto define = [&](const std::string& code) {
    out_.Line("const ", VectorTypeName(op.type), " ", ValueName(op.result), " = ", code, ";");
  };
  if (passes[i] >= 0) return define(ValueName(passes[i]));
  if (const std::string turned = TurnedName(region, i); !turned.empty()) {
    if (op.kind == ElementOp::kLoad) return define(StrCat(turned, "[u]"));
    out_.Line(turned, "[u] = ", ValueName(op.args[0]), ";");
    return;
  }
  switch (op.kind) {
    case ElementOp::kLoad:
      if (const int64_t ahead = RowsAhead(region, op, lanes); ahead > 0) {
        Use("fetch");
        out_.Line("fetch_behind(", Address(op.access[0]), " + ", ahead, ");");
      }
      return define(LoadCode(region, op, lanes));
    case ElementOp::kCompute:
      if (Contains(region.by_reciprocal, i)) {
        return define(StrCat("quotient(", ValueName(op.args[0]), ", ", ValueName(op.args[1]),
                             ", inverse", i, ")"));
      }
      return define(ComputeCode(region, op));
    case ElementOp::kStore:
      out_.Line(StoreCode(region, op, lanes));
      return;
    case ElementOp::kReduce:
      break;
  }
  if (region.each->IsPlaced()) return WriteReduceAtPlace(region, op, lanes);
  DType type = buffer(op.access[0].buffer).dtype;
  std::string value = ValueName(op.args[0]);
  if (region.folds_vector && s_.bitwise) {
    std::string count = lanes.count.empty() ? "W" : lanes.count;
    std::string r = StrCat("r", fold);
    out_.Line("for (i64 i = 0; i < ", count, "; ++i) ", r, " = ",
              MergeScalars(op.monoid, type, r, StrCat(value, "[i]")), ";");
    return;
  }
  if (region.folds_vector && !lanes.count.empty()) {
    value = StrCat("select_", VectorSuffix(type), "(lane_numbers() < (int)", lanes.count, ", ",
                   value, ", splat(", Identity(op.monoid, type), "))");
  }
  std::string r = StrCat("r", fold, "[", lanes.accumulator, "]");
  out_.Line(r, " = ", MergeVectors(op.monoid, type, r, value), ";");
}

}  // namespace fusion
