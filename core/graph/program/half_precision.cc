#include "core/graph/program/half_precision.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_map>

namespace fusion {
namespace {

constexpr DType kWide = DType::kF32;

DType WidenedType(DType type) { return IsSmallFloat(type) ? kWide : type; }

// The same expression over f32 in place of smaller floats.
class Widener {
 public:
  Expr Of(const Expr& e) {
    auto known = done_.find(e.id());
    if (known != done_.end()) return known->second;
    Expr wide = Make(e);
    done_.emplace(e.id(), wide);
    return wide;
  }

 private:
  Expr Make(const Expr& e) {
    if (e.op() == ScalarOp::kInput) return Expr::Cast(e, WidenedType(e.type()));
    if (e.op() == ScalarOp::kConst) {
      return IsSmallFloat(e.type()) ? Expr::Const(kWide, e.value()) : e;
    }
    if (e.args().empty()) return e;
    if (e.op() == ScalarOp::kCast) {
      const Expr wide = Of(e.arg(0));
      // A narrow float that is widened again is one that a model rounds to: not so a half.
      return Expr::Cast(IsNarrowFloat(e.type()) ? Expr::Cast(wide, e.type()) : wide,
                        WidenedType(e.type()));
    }
    if (e.op() == ScalarOp::kBitCast) {
      // Of the type whose bits they are, not of a wider one.
      const Expr bits = Expr::BitCast(Expr::Cast(Of(e.arg(0)), e.arg(0).type()), e.type());
      return Expr::Cast(bits, WidenedType(e.type()));
    }
    std::vector<Expr> args;
    for (const Expr& arg : e.args()) args.push_back(Of(arg));
    return e.WithArgs(std::move(args));
  }

  std::unordered_map<const void*, Expr> done_;
};

bool IsCastOfHalf(const Expr& e) {
  return e.op() == ScalarOp::kCast && e.type() == kWide && IsSmallFloat(e.arg(0).type());
}

// Inputs of 16-bit floats are all looked at as f32.
bool OnlyCasts(const Expr& value, int input) {
  bool bare = value.op() == ScalarOp::kInput && value.index() == input;
  value.VisitOnce([&](const Expr& e) {
    if (IsCastOfHalf(e)) return;
    for (const Expr& arg : e.args()) {
      bare |= arg.op() == ScalarOp::kInput && arg.index() == input;
    }
  });
  return !bare;
}

// `value` with input `input` in f32 where it is cast to it.
Expr WithWideInput(const Expr& value, int input) {
  std::unordered_map<const void*, Expr> done;
  std::function<Expr(const Expr&)> of = [&](const Expr& e) -> Expr {
    if (IsCastOfHalf(e) && e.arg(0).op() == ScalarOp::kInput && e.arg(0).index() == input) {
      return Expr::Input(input, kWide);
    }
    if (e.args().empty()) return e;
    auto known = done.find(e.id());
    if (known != done.end()) return known->second;
    std::vector<Expr> args;
    for (const Expr& arg : e.args()) args.push_back(of(arg));
    Expr out = e.op() == ScalarOp::kCast ? Expr::Cast(args[0], e.type()) : e.WithArgs(args);
    done.emplace(e.id(), out);
    return out;
  };
  return of(value);
}

// Values of a program and who reads them.
struct Reader {
  LoopId op;
  size_t input;
};
std::vector<std::vector<Reader>> ReadersOf(const Program& program) {
  std::vector<std::vector<Reader>> readers(program.values.size());
  for (size_t l = 0; l < program.ops.size(); ++l) {
    const LoopOp& op = program.ops[l];
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      readers[static_cast<size_t>(op.inputs[i])].push_back({static_cast<LoopId>(l), i});
    }
  }
  return readers;
}

// Not so the casts that a model asks for: they are to round.
bool RoundsLast(const LoopOp& op) {
  const Expr& value = op.body.value;
  return op.kind == LoopOp::kLoop && op.label != "Cast" && !op.body.reduce &&
         value.op() == ScalarOp::kCast && IsHalf(value.type()) && value.arg(0).type() == kWide;
}

// What comes out may differ by more than a rounding if what goes in does: comparisons, integers,
// positions of extrema.
bool Jumps(const LoopOp& op) {
  bool jumps = op.body.reduce && !op.body.reduce->IsScalar();
  op.body.value.VisitOnce([&](const Expr& e) {
    switch (e.op()) {
      case ScalarOp::kFloor:
      case ScalarOp::kCeil:
      case ScalarOp::kRound:
      case ScalarOp::kSign:
      case ScalarOp::kMod:
        jumps = true;
        break;
      default:
        jumps |= GetScalarInfo(e.op()).typing == ScalarTyping::kCompare;
        jumps |= e.op() == ScalarOp::kCast && (!IsFloat(e.type()) || IsNarrowFloat(e.type()));
        jumps |= e.op() == ScalarOp::kBitCast;
        break;
    }
  });
  return jumps;
}

// Copies its one input, element by element.
bool IsCopy(const Program& program, const LoopOp& op) {
  return !op.body.reduce && op.body.value.op() == ScalarOp::kInput && op.inputs.size() == 1 &&
         ReadsInPlace(program, op, 0);
}

}  // namespace

bool WidenHalves(LoopBody* body, std::optional<DType>* rounded) {
  rounded->reset();
  const Expr& value = body->value;
  const bool reduces = body->reduce.has_value();
  if (!reduces && value.args().empty()) return false;
  Widener widener;
  Expr wide = widener.Of(value);
  if (!reduces && IsSmallFloat(value.type())) {
    // One rounding, of what is cast, where the op is a cast.
    const Expr last = value.op() == ScalarOp::kCast ? widener.Of(value.arg(0)) : wide;
    wide = Expr::Cast(last, value.type());
  }
  if (wide == value) return false;
  if (reduces && IsSmallFloat(body->reduce->type())) {
    if (IsSmallFloat(body->reduce->result_type())) *rounded = body->reduce->result_type();
    body->reduce = *Monoid::Named(body->reduce->name(), kWide);
  }
  body->value = std::move(wide);
  return true;
}

bool IsSumOfProducts(const LoopBody& body) {
  const Expr& value = body.value;
  return body.reduce && body.reduce->name() == "sum" && value.op() == ScalarOp::kMul &&
         value.arg(0).op() == ScalarOp::kInput && value.arg(1).op() == ScalarOp::kInput;
}

std::optional<std::array<DType, 2>> FactorTypes(const Expr& value, DType type) {
  if (value.op() != ScalarOp::kMul) return std::nullopt;
  std::array<DType, 2> types{};
  int seen = 0;
  for (int k : {0, 1}) {
    const Expr& factor = value.arg(k);
    const bool cast = factor.op() == ScalarOp::kCast && factor.type() == type;
    const Expr& leaf = cast ? factor.arg(0) : factor;
    if (leaf.op() != ScalarOp::kInput || leaf.index() > 1) return std::nullopt;
    types[static_cast<size_t>(leaf.index())] = leaf.type();
    seen |= 1 << leaf.index();
  }
  if (seen != 3) return std::nullopt;
  return types;
}

namespace {

// Rounds to an integer.
bool Steps(const Expr& value) {
  bool steps = false;
  value.VisitOnce([&](const Expr& e) {
    steps |= e.op() == ScalarOp::kFloor || e.op() == ScalarOp::kCeil || e.op() == ScalarOp::kRound;
    steps |= e.op() == ScalarOp::kCast && (IsInteger(e.type()) || IsNarrowFloat(e.type())) &&
             IsFloat(e.arg(0).type());
    steps |= e.op() == ScalarOp::kBitCast;
  });
  return steps;
}

// Gives the same bits wherever it is computed, of the same bits. Sums and products in f32 do not:
// one may be rounded, or not, before the next. `exact`: but for one, the last step, that is.
bool IsSameEverywhere(const Expr& value, bool exact) {
  bool same = true;
  value.VisitOnce([&](const Expr& e) {
    switch (e.op()) {
      case ScalarOp::kInput:
      case ScalarOp::kConst:
      case ScalarOp::kWithin:
      case ScalarOp::kAxis:
      case ScalarOp::kCast:
      case ScalarOp::kBitCast:
      case ScalarOp::kRound:
      case ScalarOp::kFloor:
      case ScalarOp::kCeil:
      case ScalarOp::kMin:
      case ScalarOp::kMax:
      case ScalarOp::kSelect:
      case ScalarOp::kEq:
      case ScalarOp::kNe:
      case ScalarOp::kLt:
      case ScalarOp::kLe:
      case ScalarOp::kGt:
      case ScalarOp::kGe:
      case ScalarOp::kAnd:
      case ScalarOp::kOr:
      case ScalarOp::kNot:
        return;
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
        same &= IsInteger(e.type()) || (exact && e.id() == value.id());
        return;
      case ScalarOp::kMul:
      case ScalarOp::kDiv:
        same &= e.type() == DType::kF64 || IsInteger(e.type());
        return;
      default:
        same = false;
    }
  });
  return same;
}

// Whether an op makes whole numbers; `whole`: of such.
bool IsWhole(const LoopOp& op, bool whole) {
  if (op.kind != LoopOp::kLoop || op.body.reduce) return false;
  const Expr& value = op.body.value;
  switch (value.op()) {
    case ScalarOp::kRound:
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
      return true;
    case ScalarOp::kInput:
      return whole;
    case ScalarOp::kAdd:
    case ScalarOp::kSub:
    case ScalarOp::kMin:
    case ScalarOp::kMax:
      return whole && std::all_of(value.args().begin(), value.args().end(), [](const Expr& e) {
               if (e.op() == ScalarOp::kInput) return true;
               return e.op() == ScalarOp::kConst && IsFloat(e.type()) &&
                      e.value() == std::floor(e.value());
             });
    default:
      return false;
  }
}

}  // namespace

std::vector<bool> OutputsOfRoundedFactors(const Program& program) {
  // By value: computed, and whether it hangs on which way something computed was rounded: to bf16,
  // to an integer.
  std::vector<bool> computed(program.values.size(), false);
  std::vector<bool> whole(program.values.size(), false);  // numbers
  std::vector<bool> stepped(program.values.size(), false);
  std::vector<bool> rounded(program.values.size(), false);
  std::vector<bool> follows(program.values.size(), false);
  auto at = [](std::vector<bool>& list, ValueId v) { return list[static_cast<size_t>(v)]; };
  for (const LoopOp& op : program.ops) {
    const auto out = static_cast<size_t>(op.output);
    const Expr& value = op.body.value;
    const bool loop = op.kind == LoopOp::kLoop;
    const bool moves = !loop || (!op.body.reduce && value.op() == ScalarOp::kInput);
    const bool reads_whole =
        std::all_of(op.inputs.begin(), op.inputs.end(), [&](ValueId in) { return at(whole, in); });
    whole[out] = IsWhole(op, reads_whole);
    const bool same =
        loop && !op.body.reduce && IsSameEverywhere(value, reads_whole && at(whole, op.output));
    const bool half = program.value(op.output).type.dtype == DType::kBF16;
    for (ValueId in : op.inputs) {
      computed[out] = computed[out] || at(computed, in);
      rounded[out] = rounded[out] || (moves && at(rounded, in));
      follows[out] = follows[out] || at(follows, in);
      stepped[out] = stepped[out] || at(stepped, in);
    }
    stepped[out] = stepped[out] || (loop && computed[out] && Steps(value));
    // Roundings of inputs are the same everywhere, and so are copies of them.
    const bool exact = (moves || same) && !computed[out];
    rounded[out] = rounded[out] || (half && !moves && !exact);
    computed[out] = !exact;
    if (!loop || !op.body.reduce || value.op() != ScalarOp::kMul) continue;
    follows[out] = follows[out] || stepped[out];
    for (const Expr& factor : value.args()) {
      if (!IsCastOfHalf(factor) || factor.arg(0).op() != ScalarOp::kInput) continue;
      const ValueId in = op.inputs[static_cast<size_t>(factor.arg(0).index())];
      follows[out] = follows[out] || at(rounded, in);
    }
  }
  std::vector<bool> out;
  for (ValueId v : program.outputs) out.push_back(follows[static_cast<size_t>(v)]);
  return out;
}

LoopBody CastBody(const Shape& shape, DType from, DType to) {
  LoopBody body;
  for (int d = 0; d < shape.rank(); ++d) {
    body.axes.push_back({StrCat("d", d), shape.dim(d)});
    body.write.push_back(IndexExpr::Axis(d));
  }
  body.reads = {Read{.index = body.write, .guards = {}}};
  body.value = Expr::Cast(Expr::Input(0, from), to);
  return body;
}

double CostWithoutRoundings(const Expr& value) {
  double cost = 0;
  value.VisitOnce([&](const Expr& e) {
    const bool between = e.op() == ScalarOp::kCast && IsFloat(e.type()) &&
                         (IsSmallFloat(e.type()) || IsSmallFloat(e.arg(0).type()));
    if (!between) cost += GetScalarInfo(e.op()).cost;
  });
  return cost;
}

std::vector<LoopId> KeepWide(const std::vector<bool>& needed_outside, Program* program) {
  std::vector<LoopId> left(program->ops.size());
  std::iota(left.begin(), left.end(), 0);
  const bool any = std::any_of(program->values.begin(), program->values.end(),
                               [](const Value& v) { return IsHalf(v.type.dtype); });
  if (!any) return left;
  std::vector<std::vector<Reader>> readers = ReadersOf(*program);
  std::vector<bool> changed(program->ops.size(), false);
  for (LoopOp& op : program->ops) {
    const auto out = static_cast<size_t>(op.output);
    if (!RoundsLast(op) || needed_outside[out]) continue;
    const bool all_cast =
        std::all_of(readers[out].begin(), readers[out].end(), [&](const Reader& r) {
          const LoopOp& reader = program->op(r.op);
          return reader.kind == LoopOp::kLoop && !Jumps(reader) &&
                 OnlyCasts(reader.body.value, static_cast<int>(r.input));
        });
    if (!all_cast) continue;
    op.body.value = op.body.value.arg(0);
    changed[static_cast<size_t>(&op - program->ops.data())] = true;
    program->values[out].type.dtype = kWide;
    for (const Reader& r : readers[out]) {
      LoopOp& reader = program->ops[static_cast<size_t>(r.op)];
      changed[static_cast<size_t>(r.op)] = true;
      reader.body.value = WithWideInput(reader.body.value, static_cast<int>(r.input));
    }
  }
  left.clear();
  for (size_t l = 0; l < program->ops.size(); ++l) {
    const LoopOp& op = program->ops[l];
    const auto out = static_cast<size_t>(op.output);
    if (!changed[l] || !IsCopy(*program, op) || needed_outside[out]) {
      left.push_back(static_cast<LoopId>(l));
      continue;
    }
    for (const Reader& r : readers[out]) {
      program->ops[static_cast<size_t>(r.op)].inputs[r.input] = op.inputs[0];
      readers[static_cast<size_t>(op.inputs[0])].push_back(r);
    }
  }
  return left;
}

}  // namespace fusion
