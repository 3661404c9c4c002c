#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/program/program.h"
#include "core/rewrite/operands.h"

namespace fusion {

/// A zero point or a scale: one constant, or the elements of a tensor (per-channel), or absent.
struct IntegerTerm {
  std::optional<Expr> constant;
  ValueId value = kNoValue;
  // Index into `value`, over the same dims as IntegerOperand::at. In integer_products.cc later over
  // those of the product's output.
  IndexMap at;

  bool is_there() const { return constant.has_value() || value != kNoValue; }
};

/// An op between the stored elements and the product that only moves elements or inserts zeros (a
/// slice, padding).
struct ElementMove {
  ValueId to = kNoValue;
  std::string label;
  LoopBody body;
};

/// An operand of a product as moves of (stored - zero) * scale.
struct IntegerOperand {
  std::vector<ElementMove> moves;  // moves.back() is applied first, moves[0] gives the operand
  ValueId stored = kNoValue;
  IndexMap at;        // index into `stored`, over the dims that the first applied move reads;
                      // without moves, over those of the operand
  IntegerTerm zero;   // i32; absent: 0
  IntegerTerm scale;  // f32; absent: 1
};

/// The map [i, j, ..] -> [i, j, ..].
IndexMap IdentityMap(size_t rank);

/// `index` with at[d] substituted for its axis d: index(at(x)).
IndexMap ComposedMap(const IndexMap& index, const IndexMap& at);

/// Whether `at` maps the elements of a tensor of these dims one-to-one to a box of another tensor:
/// every index is a constant, or one dim plus a constant. The order of dims may differ.
bool IsPartMap(const IndexMap& at, const Dims& dims);

/// Traces a value back through the element-wise expressions and views that compute it. `program`
/// must outlive it.
class IntegerTrail {
 public:
  IntegerTrail(const Program& program, ValueId value) : program_(program), value_(value) {
    at_ = IdentityMap(RankOf(value));
    Follow();
  }

  /// The stored integers that the value is computed from; nullopt if it is not of that form. Call
  /// it once.
  std::optional<IntegerOperand> ToIntegers() {
    IntegerOperand out;
    while (op_ != nullptr && MovesElements(*op_)) {
      out.moves.push_back({.to = value_, .label = op_->label, .body = op_->body});
      value_ = op_->inputs[0];
      at_ = IdentityMap(RankOf(value_));
      Follow();
    }
    if (op_ != nullptr && expr_.op() == ScalarOp::kMul && expr_.type() == DType::kF32) {
      if (!Split(/*either=*/true, &out.scale)) return std::nullopt;
    }
    return Unscaled(std::move(out));
  }

 private:
  std::optional<IntegerOperand> Unscaled(IntegerOperand out) {
    Uncast(DType::kF32, DType::kI32);
    if (op_ != nullptr && expr_.op() == ScalarOp::kSub && expr_.type() == DType::kI32) {
      if (!Split(/*either=*/false, &out.zero)) return std::nullopt;
    }
    // Lossless casts.
    while (Uncast(DType::kF32, DType::kI8) || Uncast(DType::kF32, DType::kU8) ||
           Uncast(DType::kI32, DType::kI8) || Uncast(DType::kI32, DType::kU8)) {
    }
    const DType type = program_.value(value_).type.dtype;
    if (type != DType::kI8 && type != DType::kU8) return std::nullopt;
    out.stored = value_;
    out.at = at_;
    return out;
  }

  size_t RankOf(ValueId value) const {
    return static_cast<size_t>(program_.value(value).type.shape.rank());
  }

  // Skips ops that return an input unchanged and in place.
  void Follow() {
    for (;;) {
      op_ = ElementwiseOf(program_, value_);
      if (op_ == nullptr) return;
      expr_ = op_->body.value;
      if (expr_.op() != ScalarOp::kInput || !ReadsInPlace(program_, *op_, expr_.index())) return;
      value_ = op_->inputs[static_cast<size_t>(expr_.index())];
    }
  }

  static bool MovesElements(const LoopOp& op) {
    if (op.inputs.size() != 1) return false;
    const Expr& value = op.body.value;
    if (value.op() == ScalarOp::kInput) return true;
    return value.op() == ScalarOp::kSelect && !HasInputs(value.arg(0)) &&
           value.arg(1).op() == ScalarOp::kInput && value.arg(2).IsConst(0);
  }

  static bool HasInputs(const Expr& e) {
    bool found = false;
    e.VisitOnce([&](const Expr& part) { found |= part.op() == ScalarOp::kInput; });
    return found;
  }

  // Whether `e` is an input element whose index is affine and unguarded.
  bool IsRead(const Expr& e) const {
    if (e.op() != ScalarOp::kInput) return false;
    const Read& read = op_->body.reads[static_cast<size_t>(e.index())];
    return read.guards.empty() &&
           std::none_of(read.index.begin(), read.index.end(),
                        [](const IndexExpr& i) { return i.indirect() >= 0; });
  }

  // Continues the trace at argument `i`, if that is an input element.
  bool Enter(int i) {
    const Expr arg = expr_.arg(i);
    if (!IsRead(arg)) return false;
    const auto read = static_cast<size_t>(arg.index());
    at_ = ComposedMap(op_->body.reads[read].index, at_);
    value_ = op_->inputs[read];
    Follow();
    return true;
  }

  bool Uncast(DType to, DType from) {
    const bool casts = op_ != nullptr && expr_.op() == ScalarOp::kCast && expr_.type() == to &&
                       expr_.arg(0).type() == from;
    return casts && Enter(0);
  }

  // Of a binary expression, stores one argument in `number` and continues the trace at the other
  // one.
  bool Split(bool either, IntegerTerm* number) {
    for (int main : {0, 1}) {
      if (main == 1 && !either) break;
      std::optional<IntegerTerm> other = NumberOf(expr_.arg(1 - main));
      if (!other || !IsRead(expr_.arg(main))) continue;
      if (either && !LeadsToIntegers(expr_.arg(main))) continue;
      *number = *std::move(other);
      return Enter(main);
    }
    return false;
  }

  bool LeadsToIntegers(const Expr& arg) const {
    IntegerTrail ahead(program_, op_->inputs[static_cast<size_t>(arg.index())]);
    return ahead.Unscaled({}).has_value();
  }

  std::optional<IntegerTerm> NumberOf(const Expr& e) const {
    if (e.op() == ScalarOp::kConst) return IntegerTerm{.constant = e};
    if (e.op() != ScalarOp::kInput) return std::nullopt;
    const auto read = static_cast<size_t>(e.index());
    if (!op_->body.reads[read].guards.empty()) return std::nullopt;
    return IntegerTerm{.value = op_->inputs[read],
                       .at = ComposedMap(op_->body.reads[read].index, at_)};
  }

  const Program& program_;
  ValueId value_;
  IndexMap at_;  // index into value_, over the dims of the operand or of its last move
  const LoopOp* op_ = nullptr;  // computes value_ element-wise; null: none does
  Expr expr_;                   // the value of op_
};

}  // namespace fusion
