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

/// Type of `op` applied to arguments of these types, or why it cannot be (leaves and casts have no
/// rule: InvalidArgument).
absl::StatusOr<DType> ScalarResultType(ScalarOp op, const std::vector<DType>& args);

/// An immutable scalar expression with types. A DAG: sharing a sub-expression shares its node, so
/// backends compute it once. Cheap to copy; safe to share between threads.
///
///   Expr x = Expr::Input(0, DType::kF32);
///   Expr silu = x * Expr::Unary(ScalarOp::kSigmoid, x);   // prints "mul(in0, sigmoid(in0))"
///
/// Building an ill-typed expression is a bug of ours and aborts; text from outside goes through
/// Parse, which fails with a position instead.
class Expr {
 public:
  Expr() = default;  // empty; only assignable

  static Expr Input(int index, DType type);
  static Expr Const(DType type, double value);
  static Expr ConstInt(DType type, int64_t value);
  static Expr Axis(int axis);
  static Expr Within(int axis, int64_t begin, int64_t end);
  static Expr Unary(ScalarOp op, const Expr& a);
  static Expr Binary(ScalarOp op, const Expr& a, const Expr& b);
  static Expr Select(const Expr& condition, const Expr& a, const Expr& b);
  static Expr Cast(const Expr& a, DType type);  // `a` itself if it has the type already
  /// The bits of `a` as another type, see CanBitCast; a cast between integers.
  static Expr BitCast(const Expr& a, DType type);

  /// The same op on other arguments, of types that it takes; e.args() gives an equal expression.
  Expr WithArgs(std::vector<Expr> args) const;

  bool empty() const { return node_ == nullptr; }
  ScalarOp op() const { return node_->op; }
  DType type() const { return node_->type; }
  const std::vector<Expr>& args() const { return node_->args; }
  const Expr& arg(int i) const { return node_->args[static_cast<size_t>(i)]; }
  /// kInput, kAxis, kWithin: which one.
  int index() const { return node_->index; }
  /// kConst of a float type.
  double value() const { return node_->value; }
  /// kConst of an integer type or bool; kWithin: begin.
  int64_t integer() const { return node_->integer; }
  /// kWithin: end.
  int64_t end() const { return node_->end; }
  /// Identity of the shared node, for memo tables.
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
  /// Inverse of ToString; `input_types[i]` is the type of in<i>. Rejects unknown names, wrong
  /// arity, ill-typed arguments, more than 16,384 nodes and nesting beyond 200.
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

/// A value of the evaluator: a run of elements, doubles for float types and 64-bit integers for the
/// others.
struct ValueRun {
  std::vector<double> reals;
  std::vector<int64_t> integers;
};

/// An expression flattened for evaluation over runs of elements.
///
///   CompiledExpr f(expr);
///   f.Evaluate(n, inputs, axes, &out);    // inputs[i] holds n elements of in<i>
///
/// Float arithmetic is in double; casts round. Not thread-safe (it owns its temporaries); make one
/// per thread.
class CompiledExpr {
 public:
  explicit CompiledExpr(const Expr& expr);

  DType type() const { return expr_.type(); }

  /// From now on, what comparisons, roundings and the like decide is added to `log`, which lives as
  /// long as this; null: no more.
  void Watch(DecisionLog* log) { log_ = log; }

  /// Where one input or axis coordinate is, `n` elements: exactly one pointer is set, as the type
  /// asks.
  struct Operand {
    const double* reals = nullptr;
    const int64_t* integers = nullptr;
  };
  /// Evaluates n elements. `axes[k]` is the coordinate run of axis k (needed for the axes the
  /// expression names).
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
