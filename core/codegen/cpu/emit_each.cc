#include <algorithm>
#include <array>
#include <functional>

#include "core/base/contains.h"
#include "core/codegen/cpu/emitter.h"
#include "core/schedule/access.h"

namespace fusion {
namespace {

constexpr int kUnroll = 4;  // independent accumulators: an addition takes four cycles

// Vertical folds with more arithmetic than this wait for it, not for their accumulator.
constexpr int kLightFold = 2;

// How a scalar function is written on vectors. `%` is the type suffix.
struct Spelling {
  ScalarOp op;
  std::string_view code;  // $0, $1, $2: operands
  std::string_view part;  // of the prelude
  bool real_only;
};
constexpr std::array<Spelling, 38> kSpellings = {{
    {ScalarOp::kAdd, "$0 + $1", "", false},
    {ScalarOp::kSub, "$0 - $1", "", false},
    {ScalarOp::kMul, "$0 * $1", "", false},
    {ScalarOp::kDiv, "$0 / $1", "", true},
    {ScalarOp::kMax, "max_%($0, $1)", "minmax", false},
    {ScalarOp::kMin, "min_%($0, $1)", "minmax", false},
    {ScalarOp::kPow, "pow_%($0, $1)", "pow", true},
    {ScalarOp::kNeg, "-$0", "", false},
    {ScalarOp::kAbs, "abs_%($0)", "abs", false},
    {ScalarOp::kSign, "sign_%($0)", "sign", false},
    {ScalarOp::kExp, "exp_%($0)", "exp", true},
    {ScalarOp::kLog, "log_%($0)", "log", true},
    {ScalarOp::kSqrt, "sqrt_%($0)", "sqrt", true},
    {ScalarOp::kReciprocal, "1.0f / $0", "", true},
    {ScalarOp::kErf, "erf_%($0)", "erf", true},
    {ScalarOp::kTanh, "tanh_%($0)", "tanh", true},
    {ScalarOp::kSigmoid, "sigmoid_%($0)", "sigmoid", true},
    {ScalarOp::kSin, "sin_%($0)", "trig", true},
    {ScalarOp::kCos, "cos_%($0)", "trig", true},
    {ScalarOp::kFloor, "floor_%($0)", "rounding", true},
    {ScalarOp::kCeil, "ceil_%($0)", "rounding", true},
    {ScalarOp::kRound, "round_%($0)", "rounding", true},
    {ScalarOp::kEq, "$0 == $1", "", false},
    {ScalarOp::kNe, "$0 != $1", "", false},
    {ScalarOp::kLt, "$0 < $1", "", false},
    {ScalarOp::kLe, "$0 <= $1", "", false},
    {ScalarOp::kGt, "$0 > $1", "", false},
    {ScalarOp::kGe, "$0 >= $1", "", false},
    {ScalarOp::kAnd, "$0 & $1", "", false},
    {ScalarOp::kOr, "$0 | $1", "", false},
    {ScalarOp::kNot, "~$0", "", false},
    {ScalarOp::kBitAnd, "$0 & $1", "", false},
    {ScalarOp::kBitOr, "$0 | $1", "", false},
    {ScalarOp::kBitXor, "$0 ^ $1", "", false},
    {ScalarOp::kIsNan, "$0 != $0", "", true},
    {ScalarOp::kIsInf, "abs_%($0) == __builtin_inff()", "abs", true},
    {ScalarOp::kSelect, "select_%($0, $1, $2)", "select", false},
    {ScalarOp::kMod, "mod_%($0, $1)", "integer_division", false},
}};

const Spelling* FindSpelling(ScalarOp op) {
  for (const Spelling& s : kSpellings) {
    if (s.op == op) return &s;
  }
  return nullptr;
}

// Its lanes have 64 bits in registers.
bool IsWide(DType type) { return DTypeBytes(type) == 8 || type == DType::kU32; }

// Integer types narrower than a lane wrap after arithmetic.
std::string Wrapped(DType type, const std::string& code) {
  switch (type) {
    case DType::kU8:
      return StrCat("(", code, ") & 255");
    case DType::kI8:
      return StrCat("(", code, ") << 24 >> 24");
    case DType::kI16:
      return StrCat("(", code, ") << 16 >> 16");
    case DType::kU16:
      return StrCat("(", code, ") & 65535");
    case DType::kU32:
      return StrCat("(", code, ") & (i64)0xffffffff");
    default:
      return code;
  }
}

std::string Identity(const std::string& monoid, DType type) {
  Expr e = Monoid::Named(monoid, type)->identity()[0];
  return ElementLiteral(type, IsFloat(type) ? e.value() : 0, IsFloat(type) ? 0 : e.integer());
}

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
  // Lanes of narrow integers are wider than what they are stored as.
  return StrCat("scalar_", monoid, "<", MemoryTypeName(type), ">(", a, ", ", b, ")");
}

}  // namespace

std::vector<int64_t> CpuEmitter::Borders(const EachStmt& each, DimId d) const {
  std::vector<int64_t> borders;
  auto add = [&](int64_t begin, int64_t end) {
    for (int64_t b : {begin, end}) {
      if (b > 0 && b < dim(d).extent) borders.push_back(b);
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

absl::StatusOr<CpuEmitter::Region> CpuEmitter::PlanRegion(const EachStmt& each) const {
  Region region;
  region.each = &each;
  bool first = true;
  for (const ElementOp& op : each.ops) {
    for (const Access& a : op.access) {
      if (buffer(a.buffer).layout.blocked >= 0) {
        return Unimplemented(
            "unimplemented: element access to a blocked buffer on the cpu backend");
      }
    }
    if (op.kind != ElementOp::kReduce) continue;
    if (op.access.size() != 1) {
      return Unimplemented("unimplemented: ", op.monoid, " states on the cpu backend");
    }
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
  bool long_enough = region.vector >= 0 && window(region.vector).Longest() >= 2 * kUnroll * lanes_;
  if (region.folds_vector && long_enough && !s_.bitwise) region.unroll = kUnroll;
  if (region.folds && !region.folds_vector && region.vector >= 0 && !region.inner.empty()) {
    const auto computed = std::count_if(each.ops.begin(), each.ops.end(), [](const ElementOp& op) {
      return op.kind == ElementOp::kCompute;
    });
    long_enough = window(region.inner.back()).Longest() >= 2 * kUnroll;
    region.unrolls_inner = computed <= kLightFold && long_enough && !s_.bitwise;
    if (region.unrolls_inner) region.unroll = kUnroll;
  }
  PlanTurns(&region);
  return region;
}

// What the prelude has for a function on values of its type.
void CpuEmitter::UseFunction(const ElementOp& op) {
  const Spelling* spelling = FindSpelling(op.op);
  if (spelling == nullptr || spelling->part.empty()) return;
  if (op.op == ScalarOp::kMod && IsFloat(op.type)) {
    Use("float_remainder");
  } else if (op.op == ScalarOp::kPow && !IsFloat(op.type)) {
    Use("integer_power");
  } else {
    Use(spelling->part);
    if (op.type == DType::kF64) Use(StrCat(spelling->part, "_d"));
  }
}

absl::Status CpuEmitter::Write(const EachStmt& each) {
  ASSIGN_OR_RETURN(Region region, PlanRegion(each));
  if (region.turned >= 0) Use("transpose");
  for (const ElementOp& op : each.ops) {
    for (const Access& a : op.access) {
      UseMemory(buffer(a.buffer).dtype);
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
    if (op.op == ScalarOp::kCast && IsHalf(op.type)) {
      Use(DTypeName(op.type));
      Use("odd");
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

// Loops over the parts of the current window that borders cut, one after the other: inside one,
// every guard is decided.
void CpuEmitter::WriteSegments(Region* region, DimId d, const std::function<void()>& body) {
  std::vector<int64_t> borders = Borders(*region->each, d);
  WriteNeeds(borders);
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
    if (!region->folds) {
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
      out_.Open("for (i64 ", name, " = ", from, "; ", name, " < ", to, "; ++", name, ")");
      WriteLoops(region, level + 1, inside);
      out_.Close();
    }
    point_[static_cast<size_t>(d)].clear();
  });
}

// The innermost loop of a vertical fold, to whose points its accumulators take turns.
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
    WriteStrips(region, from, to);
  });
}

// Whole vectors first, several at a time where accumulators allow it, then what is left.
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
  int number = 0;
  std::vector<int> passes = DecidedSelects(region);
  for (size_t i = 0; i < region.each->ops.size(); ++i) {
    const ElementOp& op = region.each->ops[i];
    if (passes[i] == -2) continue;
    if (passes[i] >= 0) {
      out_.Line("const ", VectorTypeName(op.type), " v", op.result, " = v", passes[i], ";");
      continue;
    }
    if (const std::string turned = TurnedName(region, i); !turned.empty()) {
      out_.Line(op.kind == ElementOp::kLoad ? StrCat("const vf v", op.result, " = ", turned, "[u];")
                                            : StrCat(turned, "[u] = v", op.args[0], ";"));
      continue;
    }
    switch (op.kind) {
      case ElementOp::kLoad:
        out_.Line("const ", VectorTypeName(op.type), " v", op.result, " = ",
                  LoadCode(region, op, lanes), ";");
        break;
      case ElementOp::kCompute:
        out_.Line("const ", VectorTypeName(op.type), " v", op.result, " = ",
                  ComputeCode(region, op), ";");
        break;
      case ElementOp::kStore:
        out_.Line(StoreCode(region, op, lanes));
        break;
      case ElementOp::kReduce: {
        DType type = buffer(op.access[0].buffer).dtype;
        std::string value = StrCat("v", op.args[0]);
        if (region.folds_vector && s_.bitwise) {
          std::string count = lanes.count.empty() ? "W" : lanes.count;
          std::string r = StrCat("r", number);
          out_.Line("for (i64 i = 0; i < ", count, "; ++i) ", r, " = ",
                    MergeScalars(op.monoid, type, r, StrCat(value, "[i]")), ";");
        } else {
          if (region.folds_vector && !lanes.count.empty()) {
            value = StrCat("select_", VectorSuffix(type), "(lane_numbers() < (int)", lanes.count,
                           ", ", value, ", splat(", Identity(op.monoid, type), "))");
          }
          std::string r = StrCat("r", number, "[", lanes.accumulator, "]");
          out_.Line(r, " = ", MergeVectors(op.monoid, type, r, value), ";");
        }
        ++number;
        break;
      }
    }
  }
}

std::string CpuEmitter::IndirectOffset(const Region&, const ElementOp& op) const {
  // Sum over indirect dims of stride * clamped index of lane i.
  std::string out;
  const Access& a = op.access[0];
  for (size_t d = 0; d < a.index.size(); ++d) {
    if (a.index[d].indirect() < 0) continue;
    int64_t extent = buffer(a.buffer).shape[d];
    std::string lane = StrCat("(i64)v", a.index[d].indirect(), "[i]");
    out += StrCat(" + ", IndexWithin(a.buffer, extent, lane), " * ", StridesOf(a.buffer)[d]);
  }
  return out;
}

std::string CpuEmitter::LoadCode(const Region& region, const ElementOp& op,
                                 const Lanes& lanes) const {
  const Access& a = op.access[0];
  std::string zero = StrCat("(", VectorTypeName(op.type), "){}");
  for (const Guard& g : a.guards) {
    auto it = region.range.find(g.axis);
    if (it != region.range.end()) {
      // Segments never cross a guard's border: the first coordinate decides.
      if (it->second.first < g.begin || it->second.first >= g.end) return zero;
      continue;
    }
    std::string at = Coordinate(g.axis);
    Access bare = a;
    std::erase_if(bare.guards, [&](const Guard& other) { return other == g; });
    ElementOp rest = op;
    rest.access = {bare};
    return StrCat("(", at, " >= ", g.begin, " && ", at, " < ", g.end, ") ? ",
                  LoadCode(region, rest, lanes), " : ", zero);
  }
  std::string_view type = DTypeName(op.type);
  int64_t stride = region.vector < 0 ? 0 : Offset(a).CoefficientOf(Coordinate(region.vector));
  bool indirect = std::any_of(a.index.begin(), a.index.end(),
                              [](const IndexExpr& e) { return e.indirect() >= 0; });
  std::string address = Address(a);
  std::string count = lanes.count.empty() ? "W" : lanes.count;
  const bool half = IsHalf(op.type);
  if (indirect) {
    std::string offset = stride == 0 ? "" : StrCat(" + i * ", stride);
    return StrCat(
        "[&] { ", half ? "mem_bits" : VectorTypeName(op.type), " r = {}; for (i64 i = 0; i < ",
        count, "; ++i) r[i] = ", op.type == DType::kBool ? "-" : "", "(", address, ")[0", offset,
        IndirectOffset(region, op), "]; return ", half ? StrCat(type, "_to_f(r)") : "r", "; }()");
  }
  if (stride == 0 && half) return StrCat("splat_", type, "(", address, ")");
  if (stride == 0) {
    std::string element = StrCat("*(", address, ")");
    if (op.type == DType::kBool) return StrCat("splat(-(int)(", element, " != 0))");
    const std::string_view vector = VectorTypeName(op.type);
    const std::string_view to = vector == "vi" ? "(int)" : vector == "vl" ? "(i64)" : "";
    return StrCat("splat(", to, element, ")");
  }
  if (stride == 1) {
    return lanes.count.empty() ? StrCat("load_", type, "(", address, ")")
                               : StrCat("loadn_", type, "(", address, ", ", lanes.count, ")");
  }
  return StrCat("loads_", type, "(", address, ", ", stride, ", ", count, ")");
}

std::string CpuEmitter::StoreCode(const Region& region, const ElementOp& op,
                                  const Lanes& lanes) const {
  const Access& a = op.access[0];
  DType type = buffer(a.buffer).dtype;
  std::string value =
      op.args[0] >= 0 ? StrCat("v", op.args[0]) : StrCat("r", -op.args[0] - 1, "_all");
  int64_t stride = region.vector < 0 ? 0 : Offset(a).CoefficientOf(Coordinate(region.vector));
  std::string address = Address(a);
  std::string count = lanes.count.empty() ? "W" : lanes.count;
  if (stride == 0 && IsHalf(type)) {
    return StrCat("stores_", DTypeName(type), "(", address, ", 0, ", value, ", 1);");
  }
  if (stride == 0) {
    return type == DType::kBool
               ? StrCat("*(", address, ") = ", value, "[0] & 1;")
               : StrCat("*(", address, ") = (", MemoryTypeName(type), ")", value, "[0];");
  }
  if (stride == 1) {
    return lanes.count.empty() ? StrCat("store_", DTypeName(type), "(", address, ", ", value, ");")
                               : StrCat("storen_", DTypeName(type), "(", address, ", ", value, ", ",
                                        lanes.count, ");");
  }
  return StrCat("stores_", DTypeName(type), "(", address, ", ", stride, ", ", value, ", ", count,
                ");");
}

// A quotient of f32 values in f64, rounded to f32, is their quotient in f32 (Figueroa 1995); "" for
// other casts.
std::string CpuEmitter::QuotientInSingle(const Region& region, const ElementOp& cast) const {
  auto computed = [&](int value, ScalarOp op, DType type) -> const ElementOp* {
    for (const ElementOp& e : region.each->ops) {
      const bool is = e.kind == ElementOp::kCompute && e.result == value && e.op == op;
      if (is && e.type == type) return &e;
    }
    return nullptr;
  };
  auto type_of = [&](int value) {
    for (const ElementOp& e : region.each->ops) {
      if (e.result == value && (e.kind == ElementOp::kCompute || e.kind == ElementOp::kLoad)) {
        return e.type;
      }
    }
    return DType::kBool;
  };
  if (cast.type != DType::kF32) return "";
  const ElementOp* division = computed(cast.args[0], ScalarOp::kDiv, DType::kF64);
  if (division == nullptr) return "";
  std::vector<std::string> operands;
  for (int arg : division->args) {
    const ElementOp* wide = computed(arg, ScalarOp::kCast, DType::kF64);
    if (wide == nullptr || type_of(wide->args[0]) != DType::kF32) return "";
    operands.push_back(StrCat("v", wide->args[0]));
  }
  return StrCat(operands[0], " / ", operands[1]);
}

std::string CpuEmitter::ComputeCode(const Region& region, const ElementOp& op) const {
  auto value = [](int v) { return StrCat("v", v); };
  switch (op.op) {
    case ScalarOp::kConst:
      return StrCat("splat(", ElementLiteral(op.type, op.real, op.integer), ")");
    case ScalarOp::kAxis: {
      std::string at = StrCat("splat((i64)", Coordinate(op.axis), ")");
      if (op.axis != region.vector) return at;
      return StrCat(at, " + __builtin_convertvector(lane_numbers(), vl)");
    }
    case ScalarOp::kWithin: {
      auto it = region.range.find(op.axis);
      if (it != region.range.end()) {
        bool inside = it->second.first >= op.integer && it->second.first < op.end;
        return StrCat("splat(", inside ? -1 : 0, ")");
      }
      std::string at = Coordinate(op.axis);
      return StrCat("splat(-(int)(", at, " >= ", op.integer, " && ", at, " < ", op.end, "))");
    }
    default:
      break;
  }
  // Types of the operands, for comparisons and casts.
  DType from = op.type;
  for (const ElementOp& e : region.each->ops) {
    if (!op.args.empty() && e.result == op.args[0]) from = e.type;
  }
  if (op.op == ScalarOp::kCast) {
    if (std::string quotient = QuotientInSingle(region, op); !quotient.empty()) return quotient;
    std::string_view to = VectorTypeName(op.type);
    std::string a = value(op.args[0]);
    if (op.type == DType::kBool) return StrCat("__builtin_convertvector(", a, " != 0, vi)");
    if (from == DType::kBool) a = StrCat("(", a, " & 1)");
    if (IsHalf(op.type)) {
      // By way of double what is no float exactly.
      if (IsWide(from) || from == DType::kI32) {
        a = StrCat("odd_f(__builtin_convertvector(", a, ", vd))");
      } else {
        a = StrCat("__builtin_convertvector(", a, ", vf)");
      }
      return StrCat(DTypeName(op.type), "_to_f(f_to_", DTypeName(op.type), "(", a, "))");
    }
    if (IsFloat(op.type)) return StrCat("__builtin_convertvector(", a, ", ", to, ")");
    if (!IsFloat(from))
      return Wrapped(op.type, StrCat("__builtin_convertvector(", a, ", ", to, ")"));
    if (op.type == DType::kU64) return StrCat("to_u64(", a, ")");
    Expr low = Monoid::Named("max", op.type)->identity()[0];
    Expr high = Monoid::Named("min", op.type)->identity()[0];
    return StrCat("to_integer<", to, ">(", a, ", ",
                  DoubleLiteral(static_cast<double>(low.integer())), ", ",
                  DoubleLiteral(static_cast<double>(high.integer())), ", ",
                  ElementLiteral(DType::kI64, 0, low.integer()), ", ",
                  ElementLiteral(DType::kI64, 0, high.integer()), ")");
  }
  std::string code(FindSpelling(op.op)->code);
  if (op.op == ScalarOp::kDiv && !IsFloat(op.type)) code = "div_%($0, $1)";
  if (op.op == ScalarOp::kReciprocal && op.type == DType::kF64) code = "1.0 / $0";
  bool on_operand = GetScalarInfo(op.op).typing == ScalarTyping::kClassify;
  std::string out;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '%') {
      out += VectorSuffix(on_operand ? from : op.type);
    } else if (code[i] == '$') {
      out += value(op.args[static_cast<size_t>(code[++i] - '0')]);
    } else {
      out += code[i];
    }
  }
  bool compares = GetScalarInfo(op.op).typing == ScalarTyping::kCompare || on_operand;
  if (compares && IsWide(from)) return StrCat("__builtin_convertvector(", out, ", vi)");
  bool arithmetic = GetScalarInfo(op.op).typing == ScalarTyping::kNumeric;
  return arithmetic && IsInteger(op.type) ? Wrapped(op.type, out) : out;
}

}  // namespace fusion
