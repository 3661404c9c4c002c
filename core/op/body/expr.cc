#include "core/op/body/expr.h"

#include <absl/container/flat_hash_set.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "core/base/threads/job.h"
#include "core/op/body/scalar_decisions.h"

namespace fusion {
namespace {

// Most expressions have no more nodes.
constexpr size_t kFewNodes = 12;

void VisitUnseen(const Expr& e, absl::flat_hash_set<const void*>* seen,
                 const std::function<void(const Expr&)>& visit) {
  if (!seen->insert(e.id()).second) return;
  for (const Expr& a : e.args()) VisitUnseen(a, seen, visit);
  visit(e);
}

bool SameNumber(double a, double b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

// The operations of a CompiledExpr on runs of `n` elements.

template <typename T>
void FillRun(int64_t n, T value, T* out) {
  std::fill(out, out + n, value);
}

void WithinRun(const Expr& e, int64_t n, const int64_t* at, int64_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = at[i] >= e.integer() && at[i] < e.end() ? 1 : 0;
}

template <typename T>
void SelectRun(int64_t n, const int64_t* condition, const T* a, const T* b, T* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = condition[i] != 0 ? a[i] : b[i];
}

void CastToReals(DType from, DType type, int64_t n, const CompiledExpr::Operand& a, double* out) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = RoundTo(type, a.reals != nullptr ? a.reals[i] : IntegerToDouble(from, a.integers[i]));
  }
}

// out[i] = value(i), wrapped to `type`.
template <class F>
void WrapRun(DType type, int64_t n, const F& value, int64_t* out) {
  switch (type) {  // the frequent ones as loops the compiler can vectorise
    case DType::kI64:
      for (int64_t i = 0; i < n; ++i) out[i] = value(i);
      return;
    case DType::kI32:
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<int32_t>(value(i));
      return;
    default:
      for (int64_t i = 0; i < n; ++i) out[i] = WrapInteger(type, value(i));
      return;
  }
}

void CastToInts(DType type, int64_t n, const CompiledExpr::Operand& a, int64_t* out) {
  if (a.integers != nullptr) {
    return WrapRun(
        type, n, [&](int64_t i) { return a.integers[i]; }, out);
  }
  for (int64_t i = 0; i < n; ++i) out[i] = IntegerFrom(type, a.reals[i]);
}

void BitCastRun(const Expr& e, int64_t n, const CompiledExpr::Operand& a, double* reals,
                int64_t* integers) {
  for (int64_t i = 0; i < n; ++i) {
    ScalarValue in;
    if (a.reals != nullptr) {
      in.real = a.reals[i];
    } else {
      in.integer = a.integers[i];
    }
    const ScalarValue out = EvaluateBitCast(e.arg(0).type(), e.type(), in);
    if (IsFloat(e.type())) {
      reals[i] = out.real;
    } else {
      integers[i] = out.integer;
    }
  }
}

void CallOnReals(ScalarOp op, int64_t n, const double* a, const double* b, double* out) {
  switch (op) {  // the frequent ones as loops the compiler can vectorise
    case ScalarOp::kAdd:
      for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
      return;
    case ScalarOp::kSub:
      for (int64_t i = 0; i < n; ++i) out[i] = a[i] - b[i];
      return;
    case ScalarOp::kMul:
      for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
      return;
    default:
      for (int64_t i = 0; i < n; ++i) out[i] = EvaluateReal(op, a[i], b[i]);
      return;
  }
}

void CallOnIntegers(const Expr& e, int64_t n, const int64_t* a, const int64_t* b, int64_t* out) {
  auto call = [&](const auto& f) {
    WrapRun(
        e.type(), n,
        [&](int64_t i) {
          return static_cast<int64_t>(f(static_cast<uint64_t>(a[i]), static_cast<uint64_t>(b[i])));
        },
        out);
  };
  switch (e.op()) {
    case ScalarOp::kAdd:
      return call([](uint64_t x, uint64_t y) { return x + y; });
    case ScalarOp::kSub:
      return call([](uint64_t x, uint64_t y) { return x - y; });
    case ScalarOp::kMul:
      return call([](uint64_t x, uint64_t y) { return x * y; });
    default: {
      const DType type = e.arg(0).type();
      return WrapRun(
          e.type(), n, [&](int64_t i) { return EvaluateInteger(e.op(), type, a[i], b[i]); }, out);
    }
  }
}

}  // namespace

absl::StatusOr<DType> ScalarResultType(ScalarOp op, const std::vector<DType>& args) {
  const ScalarInfo& info = GetScalarInfo(op);
  if (static_cast<int>(args.size()) != info.arity) {
    return InvalidArgument(info.name, " takes ", info.arity, " arguments, got ", args.size());
  }
  auto mismatch = [&](std::string_view wanted) {
    return InvalidArgument(info.name, "(", StrJoin(args, ", ", DTypeName), "): expected ", wanted);
  };
  switch (info.typing) {
    case ScalarTyping::kNumeric:
      for (DType t : args) {
        if (t != args[0] || t == DType::kBool) return mismatch("equal numeric types");
      }
      return args[0];
    case ScalarTyping::kReal:
    case ScalarTyping::kClassify:
      if (!IsFloat(args[0])) return mismatch("a float type");
      return info.typing == ScalarTyping::kReal ? args[0] : DType::kBool;
    case ScalarTyping::kCompare:
      if (args[0] != args[1]) return mismatch("equal types");
      return DType::kBool;
    case ScalarTyping::kLogic:
      for (DType t : args) {
        if (t != DType::kBool) return mismatch("bool");
      }
      return DType::kBool;
    case ScalarTyping::kBits:
      if (args[0] != args[1] || !IsInteger(args[0])) return mismatch("equal integer types");
      return args[0];
    case ScalarTyping::kSelect:
      if (args[0] != DType::kBool || args[1] != args[2]) return mismatch("bool and equal types");
      return args[1];
    default:
      return mismatch("a function");
  }
}

Expr Expr::Input(int index, DType type) {
  return Expr(Node{.op = ScalarOp::kInput, .type = type, .index = index, .args = {}});
}

Expr Expr::Const(DType type, double value) {
  if (!IsFloat(type)) return ConstInt(type, static_cast<int64_t>(value));
  // One NaN, as the text form has: the sign and payload of a computed one say nothing.
  const double rounded =
      std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : RoundTo(type, value);
  return Expr(Node{.op = ScalarOp::kConst, .type = type, .value = rounded, .args = {}});
}

Expr Expr::ConstInt(DType type, int64_t value) {
  if (IsFloat(type)) return Const(type, static_cast<double>(value));
  return Expr(
      Node{.op = ScalarOp::kConst, .type = type, .integer = WrapInteger(type, value), .args = {}});
}

Expr Expr::Axis(int axis) {
  return Expr(Node{.op = ScalarOp::kAxis, .type = DType::kI64, .index = axis, .args = {}});
}

Expr Expr::Within(int axis, int64_t begin, int64_t end) {
  return Expr(Node{.op = ScalarOp::kWithin,
                   .type = DType::kBool,
                   .index = axis,
                   .integer = begin,
                   .end = end,
                   .args = {}});
}

absl::StatusOr<Expr> Expr::Make(ScalarOp op, std::vector<Expr> args) {
  std::vector<DType> types;
  for (const Expr& a : args) types.push_back(a.type());
  Job::Step();
  ASSIGN_OR_RETURN(DType type, ScalarResultType(op, types));
  return Expr(Node{.op = op, .type = type, .args = std::move(args)});
}

Expr Expr::Unary(ScalarOp op, const Expr& a) {
  auto made = Make(op, {a});
  FUSION_CHECK(made.ok(), StrCat("a well-typed expression: ", Message(made.status())));
  return *std::move(made);
}

Expr Expr::Binary(ScalarOp op, const Expr& a, const Expr& b) {
  auto made = Make(op, {a, b});
  FUSION_CHECK(made.ok(), StrCat("a well-typed expression: ", Message(made.status())));
  return *std::move(made);
}

Expr Expr::Select(const Expr& condition, const Expr& a, const Expr& b) {
  auto made = Make(ScalarOp::kSelect, {condition, a, b});
  FUSION_CHECK(made.ok(), StrCat("a well-typed expression: ", Message(made.status())));
  return *std::move(made);
}

Expr Expr::Cast(const Expr& a, DType type) {
  if (a.type() == type) return a;
  return Expr(Node{.op = ScalarOp::kCast, .type = type, .args = {a}});
}

Expr Expr::BitCast(const Expr& a, DType type) {
  FUSION_CHECK(CanBitCast(a.type(), type), "types of as many bits");
  if (!IsFloat(a.type()) && !IsFloat(type)) return Cast(a, type);
  if (a.type() == type) return a;
  return Expr(Node{.op = ScalarOp::kBitCast, .type = type, .args = {a}});
}

Expr Expr::WithArgs(std::vector<Expr> args) const {
  if (args.empty()) return *this;
  if (op() == ScalarOp::kCast) return Cast(args[0], type());
  if (op() == ScalarOp::kBitCast) return BitCast(args[0], type());
  auto made = Make(op(), std::move(args));
  FUSION_CHECK(made.ok(), StrCat("a well-typed expression: ", Message(made.status())));
  return *std::move(made);
}

bool Expr::IsConst(double number) const {
  if (op() != ScalarOp::kConst) return false;
  return IsFloat(type()) ? value() == number : static_cast<double>(integer()) == number;
}

bool Expr::operator==(const Expr& other) const {
  if (node_ == other.node_) return true;
  if (empty() || other.empty()) return false;
  return op() == other.op() && type() == other.type() && index() == other.index() &&
         integer() == other.integer() && end() == other.end() &&
         SameNumber(value(), other.value()) && args() == other.args();
}

Expr Expr::MapLeaves(const std::function<Expr(const Expr&)>& leaf) const {
  std::unordered_map<const void*, Expr> done;
  std::function<Expr(const Expr&)> map = [&](const Expr& e) -> Expr {
    auto it = done.find(e.id());
    if (it != done.end()) return it->second;
    Expr result = e;
    if (e.op() == ScalarOp::kInput || e.op() == ScalarOp::kAxis || e.op() == ScalarOp::kWithin) {
      result = leaf(e);
    } else if (!e.args().empty()) {
      std::vector<Expr> args;
      bool changed = false;
      for (const Expr& a : e.args()) {
        args.push_back(map(a));
        changed |= args.back().id() != a.id();
      }
      if (changed) result = e.WithArgs(std::move(args));
    }
    done.emplace(e.id(), result);
    return result;
  };
  return map(*this);
}

void Expr::VisitOnce(const std::function<void(const Expr&)>& visit) const {
  absl::flat_hash_set<const void*> seen(kFewNodes);
  VisitUnseen(*this, &seen, visit);
}

double Expr::Cost() const {
  double cost = 0;
  VisitOnce([&](const Expr& e) { cost += GetScalarInfo(e.op()).cost; });
  return cost;
}

std::string Expr::ToString() const {
  switch (op()) {
    case ScalarOp::kInput:
      return StrCat("in", index());
    case ScalarOp::kAxis:
      return StrCat("axis(", index(), ")");
    case ScalarOp::kWithin:
      return StrCat("within(", index(), ", ", integer(), ", ", end(), ")");
    case ScalarOp::kConst:
      return StrCat(DTypeName(type()), "(",
                    IsFloat(type()) ? HexDouble(value()) : StrCat(integer()), ")");
    case ScalarOp::kCast:
    case ScalarOp::kBitCast:
      return StrCat(GetScalarInfo(op()).name, ".", DTypeName(type()), "(", arg(0).ToString(), ")");
    default:
      return StrCat(GetScalarInfo(op()).name, "(",
                    StrJoin(args(), ", ", [](const Expr& a) { return a.ToString(); }), ")");
  }
}

namespace {

constexpr int kMaxExprDepth = 200;
constexpr int kMaxExprNodes = 1 << 14;  // a Concat of kMaxVariadicInputs inputs has 12,286

}  // namespace

absl::StatusOr<Expr> Expr::Parse(Lexer& in, const std::vector<DType>& input_types) {
  int nodes = 0;
  std::function<absl::StatusOr<Expr>(int)> parse = [&](int depth) -> absl::StatusOr<Expr> {
    if (depth > kMaxExprDepth) return in.Error("an expression nested less deeply");
    if (++nodes > kMaxExprNodes) return in.Error("an expression of fewer nodes");
    // The error is made where it is needed: it looks at the whole text before.
    const Lexer place = in;
    auto unknown = [&] {
      return place.Error("a scalar function, in<i>, axis(i), within(i, b, e) or a constant");
    };
    ASSIGN_OR_RETURN(std::string word, in.Identifier());
    if (word.size() > 2 && word.compare(0, 2, "in") == 0 &&
        word.find_first_not_of("0123456789", 2) == std::string::npos && word.size() < 8) {
      auto index = static_cast<size_t>(std::stoi(word.substr(2)));
      if (index >= input_types.size()) return unknown();
      return Input(static_cast<int>(index), input_types[index]);
    }
    RETURN_IF_ERROR(in.Expect("("));
    Expr result;
    if (word == "axis" || word == "within") {
      ASSIGN_OR_RETURN(int64_t axis, in.Integer());
      if (axis < 0 || axis > 64) return in.Error("an axis number before this");
      result = Axis(static_cast<int>(axis));
      if (word == "within") {
        RETURN_IF_ERROR(in.Expect(","));
        ASSIGN_OR_RETURN(int64_t begin, in.Integer());
        RETURN_IF_ERROR(in.Expect(","));
        ASSIGN_OR_RETURN(int64_t end, in.Integer());
        result = Within(static_cast<int>(axis), begin, end);
      }
    } else if (auto dtype = ParseDType(word)) {
      if (IsFloat(*dtype)) {
        ASSIGN_OR_RETURN(double value, in.Number());
        result = Const(*dtype, value);
      } else {
        ASSIGN_OR_RETURN(int64_t value, in.Integer());
        result = ConstInt(*dtype, value);
      }
    } else if (word.compare(0, 5, "cast.") == 0) {
      auto to = ParseDType(std::string_view(word).substr(5));
      if (!to) return unknown();
      ASSIGN_OR_RETURN(Expr a, parse(depth + 1));
      // Not Cast(): printing and parsing must keep a cast to the same type.
      result = Expr(Node{.op = ScalarOp::kCast, .type = *to, .args = {a}});
    } else if (word.compare(0, 8, "bitcast.") == 0) {
      auto to = ParseDType(std::string_view(word).substr(8));
      if (!to) return unknown();
      ASSIGN_OR_RETURN(Expr a, parse(depth + 1));
      if (!CanBitCast(a.type(), *to)) {
        return in.Error(StrCat("a bitcast of ", DTypeName(a.type()), " to a type of as many bits"));
      }
      result = BitCast(a, *to);
    } else {
      auto op = FindScalarOp(word);
      if (!op || GetScalarInfo(*op).typing == ScalarTyping::kLeaf) return unknown();
      std::vector<Expr> args;
      do {
        ASSIGN_OR_RETURN(Expr a, parse(depth + 1));
        args.push_back(a);
      } while (in.Accept(","));
      auto made = Make(*op, std::move(args));
      if (!made.ok())
        return in.Error(StrCat("a well-typed call before this; ", Message(made.status())));
      result = *std::move(made);
    }
    RETURN_IF_ERROR(in.Expect(")"));
    return result;
  };
  return parse(0);
}

CompiledExpr::CompiledExpr(const Expr& expr) : expr_(expr) {
  std::unordered_map<const void*, int> step_of;
  expr.VisitOnce([&](const Expr& e) {
    Step step{.expr = e, .args = {}, .out = {}};
    for (const Expr& a : e.args()) step.args.push_back(step_of.at(a.id()));
    step_of[e.id()] = static_cast<int>(steps_.size());
    steps_.push_back(std::move(step));
  });
}

CompiledExpr::Operand CompiledExpr::Result(const Step& step, const std::vector<Operand>& inputs,
                                           const std::vector<Operand>& axes) const {
  if (step.expr.op() == ScalarOp::kInput) return inputs[static_cast<size_t>(step.expr.index())];
  if (step.expr.op() == ScalarOp::kAxis) return axes[static_cast<size_t>(step.expr.index())];
  if (IsFloat(step.expr.type())) return {.reals = step.out.reals.data()};
  return {.integers = step.out.integers.data()};
}

void CompiledExpr::Run(Step& step, int64_t n, const std::vector<Operand>& inputs,
                       const std::vector<Operand>& axes) {
  const Expr& e = step.expr;
  if (e.op() == ScalarOp::kInput || e.op() == ScalarOp::kAxis) return;
  auto count = static_cast<size_t>(n);
  bool real = IsFloat(e.type());
  if (real) {
    step.out.reals.resize(count);
  } else {
    step.out.integers.resize(count);
  }
  double* reals = step.out.reals.data();
  int64_t* ints = step.out.integers.data();
  auto arg = [&](size_t i) {
    return Result(steps_[static_cast<size_t>(step.args[i])], inputs, axes);
  };
  switch (e.op()) {
    case ScalarOp::kConst:
      return real ? FillRun(n, e.value(), reals) : FillRun(n, e.integer(), ints);
    case ScalarOp::kWithin:
      return WithinRun(e, n, axes[static_cast<size_t>(e.index())].integers, ints);
    case ScalarOp::kSelect:
      return real ? SelectRun(n, arg(0).integers, arg(1).reals, arg(2).reals, reals)
                  : SelectRun(n, arg(0).integers, arg(1).integers, arg(2).integers, ints);
    case ScalarOp::kCast:
      if (log_ != nullptr) LogDecisions(e, n, arg(0), arg(0));
      return real ? CastToReals(e.arg(0).type(), e.type(), n, arg(0), reals)
                  : CastToInts(e.type(), n, arg(0), ints);
    case ScalarOp::kBitCast:
      if (log_ != nullptr) LogDecisions(e, n, arg(0), arg(0));
      return BitCastRun(e, n, arg(0), reals, ints);
    default:
      break;
  }
  Operand a = arg(0);
  Operand b = step.args.size() > 1 ? arg(1) : a;
  if (log_ != nullptr) LogDecisions(e, n, a, b);
  if (real) return CallOnReals(e.op(), n, a.reals, b.reals, reals);
  if (a.reals != nullptr) {
    for (int64_t i = 0; i < n; ++i) {
      ints[i] = EvaluatePredicate(e.op(), a.reals[i], b.reals[i]) ? 1 : 0;
    }
    return;
  }
  CallOnIntegers(e, n, a.integers, b.integers, ints);
}

void CompiledExpr::LogDecisions(const Expr& e, int64_t n, const Operand& a,
                                const Operand& b) const {
  if (!Decides(e)) return;
  for (int64_t i = 0; i < n && !log_->over(); ++i) {
    if (a.reals != nullptr) {
      AddRealDecision(e.op(), e.type(), a.reals[i], b.reals[i], log_);
    } else {
      AddIntegerDecision(e.op(), a.integers[i], b.integers[i], log_);
    }
  }
}

CompiledExpr::Operand CompiledExpr::Evaluate(int64_t n, const std::vector<Operand>& inputs,
                                             const std::vector<Operand>& axes) {
  for (Step& step : steps_) Run(step, n, inputs, axes);
  return Result(steps_.back(), inputs, axes);
}

}  // namespace fusion
