#include <array>
#include <bit>

#include "core/codegen/cpu/emitter.h"
#include "core/schedule/ir/access.h"

// The steps of an element-wise region as expressions on vectors.

namespace fusion {
namespace {

// Kernels that access more than this many times the size of the last cache store past it, since
// nothing of a result would remain there for its readers. Chosen, not measured.
constexpr double kStreamedCaches = 2;

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
    case DType::kI4:
      return StrCat("(", code, ") << 28 >> 28");
    case DType::kU4:
      return StrCat("(", code, ") & 15");
    case DType::kI2:
      return StrCat("(", code, ") << 30 >> 30");
    case DType::kU2:
      return StrCat("(", code, ") & 3");
    default:
      return code;
  }
}

// k where a step divides unsigned numbers by the constant 2^k; else -1.
int DividesByPower(const EachStmt& each, const ElementOp& op) {
  if (op.op != ScalarOp::kDiv || !IsUnsigned(op.type)) return -1;
  for (const ElementOp& e : each.ops) {
    const bool divisor = e.kind == ElementOp::kCompute && e.op == ScalarOp::kConst &&
                         e.result == op.args[1] && e.integer > 0;
    if (divisor && std::has_single_bit(static_cast<uint64_t>(e.integer))) {
      return std::countr_zero(static_cast<uint64_t>(e.integer));
    }
  }
  return -1;
}

// The bits of `a`, of type `from`, as a value of `to`, in registers.
std::string BitCastCode(DType from, DType to, const std::string& a) {
  const std::string_view name = DTypeName(IsFloat(from) ? from : to);
  const std::string_view to_vector = VectorTypeName(to);
  if (IsFloat(from) && IsFloat(to)) {  // of one width, both small
    return StrCat(DTypeName(to), "_to_f(f_to_", DTypeName(from), "(", a, "))");
  }
  if (IsSmallFloat(to)) {
    return StrCat(name, "_to_f(__builtin_convertvector(", a, ", ", BitsTypeName(to), "))");
  }
  if (IsSmallFloat(from)) {
    return Wrapped(to, StrCat("__builtin_convertvector(f_to_", name, "(", a, "), vi)"));
  }
  if (DTypeBytes(to) == 8) return StrCat("(", to_vector, ")(", a, ")");
  if (to == DType::kU32) return Wrapped(to, StrCat("__builtin_convertvector((vi)(", a, "), vl)"));
  return IsWide(from) ? StrCat("(", to_vector, ")__builtin_convertvector(", a, ", vi)")
                      : StrCat("(", to_vector, ")(", a, ")");
}

}  // namespace

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

// True if lanes read different places because of an indirect index.
bool CpuEmitter::IsScatteredRead(const Region& region, const Access& access) const {
  return region.vector >= 0 &&
         std::any_of(access.index.begin(), access.index.end(), [&](const IndexExpr& e) {
           return e.indirect() >= 0 && MovesAlong(*region.each, e.indirect(), region.vector);
         });
}

// Sum over indirect dims of stride * clamped index of lane `at`.
std::string CpuEmitter::IndirectOffset(const ElementOp& op, std::string_view at) const {
  std::string out;
  const Access& a = op.access[0];
  for (size_t d = 0; d < a.index.size(); ++d) {
    if (a.index[d].indirect() < 0) continue;
    int64_t extent = buffer(a.buffer).shape[d];
    std::string lane = StrCat("(i64)", ValueName(a.index[d].indirect()), "[", at, "]");
    out += StrCat(" + ", IndexWithin(a.buffer, extent, lane), " * ", StridesOf(a.buffer)[d]);
  }
  return out;
}

std::string CpuEmitter::LoadCode(const Region& region, const ElementOp& op,
                                 const Lanes& lanes) const {
  std::string code = BareLoadCode(region, op, lanes);
  // Of bytes from outside only the bits of the type count.
  return IsNarrowInteger(op.type) ? Wrapped(op.type, code) : code;
}

std::string CpuEmitter::BareLoadCode(const Region& region, const ElementOp& op,
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
                  BareLoadCode(region, rest, lanes), " : ", zero);
  }
  std::string_view type = DTypeName(op.type);
  int64_t stride = region.vector < 0 ? 0 : Offset(a).CoefficientOf(Coordinate(region.vector));
  std::string address = Address(a);
  std::string count = lanes.count.empty() ? "W" : lanes.count;
  const bool half = IsSmallFloat(op.type);
  if (!IsScatteredRead(region, a)) {
    address += IndirectOffset(op, "0");
  } else {
    std::string offset = stride == 0 ? "" : StrCat(" + i * ", stride);
    return StrCat("[&] { ", half ? BitsTypeName(op.type) : VectorTypeName(op.type),
                  " r = {}; for (i64 i = 0; i < ", count,
                  "; ++i) r[i] = ", op.type == DType::kBool ? "-" : "", "(", address, ")[0", offset,
                  IndirectOffset(op, "i"), "]; return ", half ? StrCat(type, "_to_f(r)") : "r",
                  "; }()");
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
  if (stride == 2 && op.type == DType::kF32) {
    return StrCat("load_even_f32(", address, ", ", count, ")");
  }
  return StrCat("loads_", type, "(", address, ", ", stride, ", ", count, ")");
}

// True if an output is written with stores that bypass the caches: the kernel's data do not fit, so
// a line would be read, written and evicted before it is read again.
bool CpuEmitter::StreamsPastCaches(BufferId id) const {
  const Buffer& b = buffer(id);
  const bool plain =
      b.level == Level::kGlobal && b.kind == ParamKind::kOutput && b.dtype == DType::kF32;
  if (!plain || IsMember() || guard_ || device_.levels.size() < 2) return false;
  const auto cache = static_cast<double>(device_.levels[device_.levels.size() - 2].bytes);
  const auto all = static_cast<double>(ParamBytes(s_));
  return cache > 0 && all >= kStreamedCaches * cache &&
         static_cast<double>(StoredBytes(b)) >= cache / 2;
}

std::string CpuEmitter::StoreCode(const Region& region, const ElementOp& op,
                                  const Lanes& lanes) const {
  const Access& a = op.access[0];
  DType type = buffer(a.buffer).dtype;
  std::string value =
      op.args[0] >= 0 ? ValueName(op.args[0]) : StrCat("r", -op.args[0] - 1, "_all");
  int64_t stride = region.vector < 0 ? 0 : Offset(a).CoefficientOf(Coordinate(region.vector));
  std::string address = Address(a);
  std::string count = lanes.count.empty() ? "W" : lanes.count;
  if (stride == 0 && IsSmallFloat(type)) {
    return StrCat("stores_", DTypeName(type), "(", address, ", 0, ", value, ", 1);");
  }
  if (stride == 0) {
    return type == DType::kBool
               ? StrCat("*(", address, ") = ", value, "[0] & 1;")
               : StrCat("*(", address, ") = (", MemoryTypeName(type), ")", value, "[0];");
  }
  if (stride == 1 && lanes.count.empty() && StreamsPastCaches(a.buffer)) {
    return StrCat("store_past_f32(", address, ", ", value, ");");
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
    operands.push_back(ValueName(wide->args[0]));
  }
  return StrCat(operands[0], " / ", operands[1]);
}

std::string CpuEmitter::ComputeCode(const Region& region, const ElementOp& op) const {
  auto value = [this](int v) { return ValueName(v); };
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
    if (IsSmallFloat(op.type)) {
      // Through double, if it is not exact as a float.
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
  if (op.op == ScalarOp::kBitCast) return BitCastCode(from, op.type, value(op.args[0]));
  std::string code(FindSpelling(op.op)->code);
  if (const int bits = DividesByPower(*region.each, op); bits >= 0) {
    return StrCat(value(op.args[0]), " >> ", bits);
  }
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
