#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/parse/lexer.h"
#include "core/base/status.h"
#include "core/op/body/scalar.h"
#include "core/op/body/shape_decision.h"

namespace fusion {

/// Type of `op` applied to arguments of these types. InvalidArgument, with the reason, if `op` does
/// not take them, and for leaves and casts, whose type does not follow from arguments.
absl::StatusOr<DType> ScalarResultType(ScalarOp op, const std::vector<DType>& args);

/// An immutable, typed scalar expression. It is a DAG: a shared sub-expression is one node, and
/// backends compute it once. Cheap to copy; safe to share between threads.
///
///   Expr x = Expr::Input(0, DType::kF32);
///   Expr silu = x * Expr::Unary(ScalarOp::kSigmoid, x);   // prints "mul(in0, sigmoid(in0))"
///
/// The factories below abort on ill-typed arguments. Use Parse for untrusted text: it returns an
/// error.
class Expr {
 public:
  Expr() = default;  // empty: may only be assigned to, copied and tested with empty()

  static Expr Input(int index, DType type);
  /// A constant of any type. Float types: rounded to `type`. Integer types: wrapped to `type`;
  /// Const truncates first. Bool: value != 0.
  static Expr Const(DType type, double value);
  static Expr ConstInt(DType type, int64_t value);
  static Expr Axis(int axis);  // of type i64
  /// bool: begin <= coordinate along `axis` < end.
  static Expr Within(int axis, int64_t begin, int64_t end);
  static Expr Unary(ScalarOp op, const Expr& a);
  static Expr Binary(ScalarOp op, const Expr& a, const Expr& b);
  static Expr Select(const Expr& condition, const Expr& a, const Expr& b);
  static Expr Cast(const Expr& a, DType type);  // `a` itself if it has the type already
  /// The bits of `a` as another type of the same width (CanBitCast). Between integer types it is a
  /// Cast.
  static Expr BitCast(const Expr& a, DType type);

  /// The same op with other arguments, which must have types that it takes.
  /// e.WithArgs(e.args()) == e.
  Expr WithArgs(std::vector<Expr> args) const;

  bool empty() const { return node_ == nullptr; }
  ScalarOp op() const { return node_->op; }
  DType type() const { return node_->type; }
  const std::vector<Expr>& args() const { return node_->args; }
  const Expr& arg(int i) const { return node_->args[static_cast<size_t>(i)]; }
  /// kInput: number of the input; kAxis, kWithin: number of the axis.
  int index() const { return node_->index; }
  /// kConst of a float type: the number.
  double value() const { return node_->value; }
  /// kConst of an integer type or bool: the number; kWithin: begin.
  int64_t integer() const { return node_->integer; }
  /// kWithin: end.
  int64_t end() const { return node_->end; }
  /// Identity of the node, for memo tables; valid while the node lives.
  const void* id() const { return node_.get(); }

  /// True if the node is a constant equal to `value`.
  bool IsConst(double value) const;

  /// Structural equality.
  bool operator==(const Expr& other) const;

  /// The same expression with every leaf (kInput, kAxis, kWithin) replaced by leaf(e). Shared nodes
  /// stay shared.
  Expr MapLeaves(const std::function<Expr(const Expr&)>& leaf) const;
  /// Calls visit(e) once per distinct node, arguments before users.
  void VisitOnce(const std::function<void(const Expr&)>& visit) const;
  /// Sum of ScalarInfo::cost over distinct nodes.
  double Cost() const;

  /// "mul(in0, sigmoid(in0))"; constants as f32(0x1.8p+1), casts as cast.f32(x).
  std::string ToString() const;
  /// Inverse of ToString; `input_types[i]` is the type of in<i>. InvalidArgument, with the
  /// position, for unknown names, wrong arity, ill-typed arguments, more than 16,384 nodes and
  /// nesting beyond 200.
  static absl::StatusOr<Expr> Parse(Lexer& in, const std::vector<DType>& input_types);

 private:
  struct Node {
    ScalarOp op = ScalarOp::kConst;
    DType type = DType::kF32;
    int index = 0;
    int64_t integer = 0;
    int64_t end = 0;
    double value = 0;
    std::vector<Expr> args;
  };
  explicit Expr(Node node) : node_(std::make_shared<const Node>(std::move(node))) {}
  static absl::StatusOr<Expr> Make(ScalarOp op, std::vector<Expr> args);

  std::shared_ptr<const Node> node_;
};

inline Expr operator+(const Expr& a, const Expr& b) { return Expr::Binary(ScalarOp::kAdd, a, b); }
inline Expr operator-(const Expr& a, const Expr& b) { return Expr::Binary(ScalarOp::kSub, a, b); }
inline Expr operator*(const Expr& a, const Expr& b) { return Expr::Binary(ScalarOp::kMul, a, b); }
inline Expr operator/(const Expr& a, const Expr& b) { return Expr::Binary(ScalarOp::kDiv, a, b); }

/// A run (batch) of consecutive elements in the evaluator: `reals` for float types, `integers` for
/// the others.
struct ValueRun {
  std::vector<double> reals;
  std::vector<int64_t> integers;
};

/// An expression, flattened for evaluation over runs of elements.
///
///   CompiledExpr f(expr);
///   f.Evaluate(n, inputs, axes, &out);    // inputs[i] holds n elements of in<i>
///
/// Float arithmetic is in double; casts round. Not thread-safe: it owns its temporaries. Use one
/// per thread.
class CompiledExpr {
 public:
  explicit CompiledExpr(const Expr& expr);

  DType type() const { return expr_.type(); }

  /// Later evaluations log the decisions of comparisons, roundings and the like (Decides) to `log`,
  /// which must outlive this object; nullptr: stop logging.
  void Watch(DecisionLog* log) { log_ = log; }

  /// `n` elements of one input, axis coordinate or result. Exactly one pointer is set: `reals` for
  /// float types, else `integers`.
  struct Operand {
    const double* reals = nullptr;
    const int64_t* integers = nullptr;
  };
  /// Evaluates n elements. `axes[k]` holds the coordinates along axis k (needed for the axes that
  /// the expression uses). The result is valid until the next call, and while `inputs` and `axes`
  /// are.
  Operand Evaluate(int64_t n, const std::vector<Operand>& inputs, const std::vector<Operand>& axes);

 private:
  struct Step {
    Expr expr;
    std::vector<int> args;  // steps
    ValueRun out;
  };
  void Run(Step& step, int64_t n, const std::vector<Operand>& inputs,
           const std::vector<Operand>& axes);
  Operand Result(const Step& step, const std::vector<Operand>& inputs,
                 const std::vector<Operand>& axes) const;
  void LogDecisions(const Expr& e, int64_t n, const Operand& a, const Operand& b) const;

  Expr expr_;
  std::vector<Step> steps_;
  DecisionLog* log_ = nullptr;
};

}  // namespace fusion
