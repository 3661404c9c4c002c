#include <algorithm>
#include <map>

#include "core/codegen/cpu/emitter.h"
#include "core/schedule/ir/access.h"

// Element-wise regions that reduce at looked-up places (EachStmt::place): no loop runs along the
// dims of a place. If all lanes of a vector have one place, its elements are reduced there
// together, else one by one.

namespace fusion {
namespace {

// The scalar C form of a function of 64-bit integers and conditions; "": there is none.
std::string_view SpellingOfOne(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
      return "$0 + $1";
    case ScalarOp::kSub:
      return "$0 - $1";
    case ScalarOp::kMul:
      return "$0 * $1";
    case ScalarOp::kMax:
      return "max_i64($0, $1)";
    case ScalarOp::kMin:
      return "min_i64($0, $1)";
    case ScalarOp::kEq:
      return "$0 == $1";
    case ScalarOp::kNe:
      return "$0 != $1";
    case ScalarOp::kLt:
      return "$0 < $1";
    case ScalarOp::kLe:
      return "$0 <= $1";
    case ScalarOp::kGt:
      return "$0 > $1";
    case ScalarOp::kGe:
      return "$0 >= $1";
    case ScalarOp::kAnd:
      return "$0 & $1";
    case ScalarOp::kOr:
      return "$0 | $1";
    case ScalarOp::kNot:
      return "!$0";
    case ScalarOp::kSelect:
      return "$0 ? $1 : $2";
    default:
      return "";
  }
}

}  // namespace

CpuEmitter::Region CpuEmitter::PlanPlaced(const EachStmt& each) const {
  Region region;
  region.each = &each;
  if (!window(each.dims.back()).IsPoint()) region.vector = each.dims.back();
  for (DimId d : each.dims) {
    if (d != region.vector && !each.Places(d) && !window(d).IsPoint()) region.outer.push_back(d);
  }
  region.scattered = region.vector >= 0 && MovesAlong(each, each.place, region.vector);
  return region;
}

// Writes the coordinates of a place as variables, and the test whether the block contains them;
// opens a block that CloseAtPlace ends. `place`: code for the number of the place.
void CpuEmitter::OpenAtPlace(const EachStmt& each, const std::string& place) {
  std::vector<IndexExpr::Term> digits(each.at.terms().begin(), each.at.terms().end());
  std::sort(digits.begin(), digits.end(), IndexExpr::MajorFirst);
  const int64_t constant = each.at.constant();
  std::string rest =
      constant == 0 ? StrCat("(i64)", place) : StrCat("(i64)", place, " - ", constant);
  std::string within;
  if (digits.size() > 1) {
    out_.Line("const i64 place = ", rest, ";");
    rest = "place";
    const int64_t places = digits[0].coefficient * dim(digits[0].axis).extent;
    within = StrCat("place >= 0 && place < ", places, " && ");
  }
  std::vector<std::string> inside;
  for (const IndexExpr::Term& digit : digits) {
    const std::string& name = dim(digit.axis).name;
    const std::string by = digit.coefficient == 1 ? "" : StrCat(" / ", digit.coefficient);
    out_.Line("const i64 ", name, " = ", rest, by, ";");
    rest = StrCat("place % ", digit.coefficient);
    const Window& w = window(digit.axis);
    inside.push_back(StrCat(name, " >= ", w.begin, " && ", name, " < ", w.end));
    point_[static_cast<size_t>(digit.axis)] = name;
  }
  out_.Open("if (", within, StrJoin(inside, " && "), ")");
}

void CpuEmitter::CloseAtPlace(const EachStmt& each) {
  out_.Close();
  for (const IndexExpr::Term& digit : each.at.terms()) {
    point_[static_cast<size_t>(digit.axis)].clear();
  }
}

// The steps that compute a place common to all lanes, for one lane: s0, s1 ... instead of vectors.
// Returns false and writes nothing if some of them are not of integers.
bool CpuEmitter::WritePlaceAlone(const Region& region, const std::vector<int>& passes) {
  std::vector<std::string> lines;
  std::map<int, DType> types;
  for (size_t i = 0; i < region.each->ops.size(); ++i) {
    const ElementOp& op = region.each->ops[i];
    if (passes[i] == -2) continue;
    types[op.result] = op.type;
    if (!IsInteger(op.type) && op.type != DType::kBool) return false;
    if (IsNarrowInteger(op.type)) return false;
    std::string code;
    if (passes[i] >= 0) {
      code = StrCat("s", passes[i]);
    } else if (op.kind == ElementOp::kLoad) {
      const Access& a = op.access[0];
      const bool plain =
          a.guards.empty() && std::all_of(a.index.begin(), a.index.end(),
                                          [](const IndexExpr& e) { return e.indirect() < 0; });
      if (!plain) return false;
      code = StrCat("*(", Address(a), ")", op.type == DType::kBool ? " != 0" : "");
    } else if (op.op == ScalarOp::kConst) {
      code = ElementLiteral(DType::kI64, 0, op.integer);
    } else if (op.op == ScalarOp::kAxis) {
      code = Coordinate(op.axis);
    } else if (op.op == ScalarOp::kCast) {
      // What is narrower holds what it held.
      if (op.type != DType::kI64) return false;
      code = StrCat("s", op.args[0]);
    } else {
      const bool logic =
          op.op == ScalarOp::kAnd || op.op == ScalarOp::kOr || op.op == ScalarOp::kNot;
      const bool wide = std::all_of(op.args.begin(), op.args.end(), [&](int v) {
        return types.at(v) == DType::kI64 || types.at(v) == DType::kBool;
      });
      if (SpellingOfOne(op.op).empty() || !wide || (logic && op.type != DType::kBool)) return false;
      for (char c : SpellingOfOne(op.op)) {
        if (!code.empty() && code.back() == '$') {
          code.pop_back();
          code += StrCat("s", op.args[static_cast<size_t>(c - '0')]);
        } else {
          code += c;
        }
      }
    }
    lines.push_back(StrCat("const i64 s", op.result, " = ", code, ";"));
  }
  for (const std::string& line : lines) out_.Line(line);
  return true;
}

// The body inside the loops over all dims except those of the place and the vector dim.
void CpuEmitter::WriteAtPlace(Region* region) {
  const EachStmt& each = *region->each;
  if (region->scattered) return WriteVectorLoop(region);
  out_.Open("");
  const std::vector<int> passes = DecidedSelects(*region, {each.place});
  std::string place = StrCat("s", each.place);
  if (!WritePlaceAlone(*region, passes)) {
    for (size_t i = 0; i < each.ops.size(); ++i) WriteStep(*region, {"", "0"}, passes, i, 0);
    place = StrCat(ValueName(each.place), "[0]");
  }
  OpenAtPlace(each, place);
  WriteVectorLoop(region);
  CloseAtPlace(each);
  out_.Close();
}

// Reduces the elements of a vector at the places that the steps computed.
void CpuEmitter::WriteReduceAtPlace(const Region& region, const ElementOp& op, const Lanes& lanes) {
  const EachStmt& each = *region.each;
  const Access& a = op.access[0];
  const DType type = buffer(a.buffer).dtype;
  const std::string value = ValueName(op.args[0]);
  if (region.scattered) {
    const std::string count = lanes.count.empty() ? "W" : lanes.count;
    const int64_t step = StepAlong(a, region.vector);
    out_.Open("for (i64 lane = 0; lane < ", count, "; ++lane)");
    OpenAtPlace(each, StrCat(ValueName(each.place), "[lane]"));
    const std::string lane = step == 0 ? "" : step == 1 ? " + lane" : StrCat(" + lane * ", step);
    const std::string place = StrCat("*(", Address(a), lane, ")");
    out_.Line(place, " = ", MergeScalars(op.monoid, type, place, StrCat(value, "[lane]")), ";");
    CloseAtPlace(each);
    out_.Close();
    return;
  }
  if (region.vector < 0) {
    const std::string place = StrCat("*(", Address(a), ")");
    out_.Line(place, " = ", MergeScalars(op.monoid, type, place, StrCat(value, "[0]")), ";");
    return;
  }
  if (StepAlong(a, region.vector) == 0) {
    // The vectors run along a dim that is summed up: every lane goes to the same element.
    const std::string place = StrCat("*(", Address(a), ")");
    const std::string count = lanes.count.empty() ? "W" : lanes.count;
    out_.Open("for (i64 lane = 0; lane < ", count, "; ++lane)");
    out_.Line(place, " = ", MergeScalars(op.monoid, type, place, StrCat(value, "[lane]")), ";");
    out_.Close();
    return;
  }
  ElementOp load;
  load.kind = ElementOp::kLoad;
  load.type = type;
  load.access = {a};
  ElementOp store = load;
  store.kind = ElementOp::kStore;
  store.args = {-1};  // names r0_all
  out_.Open("");
  out_.Line("const ", VectorTypeName(type),
            " r0_all = ", MergeVectors(op.monoid, type, LoadCode(region, load, lanes), value), ";");
  out_.Line(StoreCode(region, store, lanes));
  out_.Close();
}

}  // namespace fusion
