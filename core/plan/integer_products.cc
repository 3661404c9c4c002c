#include "core/plan/integer_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/base/saturate.h"
#include "core/graph/halves.h"
#include "core/graph/tidy.h"
#include "core/plan/operands.h"
#include "core/schedule/access.h"

namespace fusion {
namespace {

constexpr int kSignShift = 128;  // between u8 and i8

// A number, or one for each of some coordinates.
struct Number {
  std::optional<Expr> constant;
  ValueId value = kNoValue;
  IndexMap at;  // of `value`, over the dims of the operand, or of what the product writes

  bool is_there() const { return constant.has_value() || value != kNoValue; }
};

// An operand of a product as (stored - zero) * scale.
struct Integers {
  ValueId stored = kNoValue;
  Number zero;   // i32; not there: 0
  Number scale;  // f32; not there: 1
};

// A product that is to be done in integers.
struct IntegerProduct {
  size_t rows = 0;  // read
  size_t columns = 1;
  std::map<size_t, Integers> operands;  // by read; numbers over what is written
};

// Follows a value back through the expressions that it is made with, element by element.
class Trail {
 public:
  Trail(const Program& program, ValueId value) : program_(program), value_(value) { Follow(); }

  // The stored integers that this is made from; nullopt: it is made otherwise.
  std::optional<Integers> ToIntegers() {
    Integers out;
    if (op_ != nullptr && expr_.op() == ScalarOp::kMul && expr_.type() == DType::kF32) {
      if (!Split(/*either=*/true, &out.scale)) return std::nullopt;
    }
    return Unscaled(std::move(out));
  }

 private:
  std::optional<Integers> Unscaled(Integers out) {
    Uncast(DType::kF32, DType::kI32);
    if (op_ != nullptr && expr_.op() == ScalarOp::kSub && expr_.type() == DType::kI32) {
      if (!Split(/*either=*/false, &out.zero)) return std::nullopt;
    }
    // Casts that lose nothing.
    while (Uncast(DType::kF32, DType::kI8) || Uncast(DType::kF32, DType::kU8) ||
           Uncast(DType::kI32, DType::kI8) || Uncast(DType::kI32, DType::kU8)) {
    }
    const DType type = program_.value(value_).type.dtype;
    if (type != DType::kI8 && type != DType::kU8) return std::nullopt;
    out.stored = value_;
    return out;
  }

  // To what makes an element that is read in place.
  void Follow() {
    for (;;) {
      op_ = ElementwiseOf(program_, value_);
      if (op_ == nullptr) return;
      expr_ = op_->body.value;
      if (expr_.op() != ScalarOp::kInput || !ReadsInPlace(program_, *op_, expr_.index())) return;
      value_ = op_->inputs[static_cast<size_t>(expr_.index())];
    }
  }

  bool IsInPlace(const Expr& e) const {
    return e.op() == ScalarOp::kInput && ReadsInPlace(program_, *op_, e.index());
  }

  // To argument `i`, if it is read in place.
  bool Enter(int i) {
    const Expr arg = expr_.arg(i);
    if (!IsInPlace(arg)) return false;
    value_ = op_->inputs[static_cast<size_t>(arg.index())];
    Follow();
    return true;
  }

  bool Uncast(DType to, DType from) {
    const bool casts = op_ != nullptr && expr_.op() == ScalarOp::kCast && expr_.type() == to &&
                       expr_.arg(0).type() == from;
    return casts && Enter(0);
  }

  // To one argument of two, the other one is `number`.
  bool Split(bool either, Number* number) {
    for (int main : {0, 1}) {
      if (main == 1 && !either) break;
      std::optional<Number> other = NumberOf(expr_.arg(1 - main));
      if (!other || !IsInPlace(expr_.arg(main))) continue;
      if (either && !LeadsToIntegers(expr_.arg(main))) continue;
      *number = *std::move(other);
      return Enter(main);
    }
    return false;
  }

  bool LeadsToIntegers(const Expr& arg) const {
    Trail ahead(program_, op_->inputs[static_cast<size_t>(arg.index())]);
    return ahead.Unscaled({}).has_value();
  }

  std::optional<Number> NumberOf(const Expr& e) const {
    if (e.op() == ScalarOp::kConst) return Number{.constant = e};
    if (e.op() != ScalarOp::kInput) return std::nullopt;
    const auto read = static_cast<size_t>(e.index());
    if (!op_->body.reads[read].guards.empty()) return std::nullopt;
    return Number{.value = op_->inputs[read], .at = op_->body.reads[read].index};
  }

  const Program& program_;
  ValueId value_;
  const LoopOp* op_ = nullptr;  // makes value_; null: none does
  Expr expr_;                   // of which value_ is the result
};

class Pass {
 public:
  Pass(const DeviceSpec& device, bool f32, const LeaveProduct& leave, Program* program)
      : f32_(f32 && device.other_types.contains(DType::kI8)),
        leave_(leave),
        program_(*program),
        known_(KnownBeforeRuns(*program)) {}

  void Run() {
    std::map<size_t, IntegerProduct> found;  // by op
    for (size_t l = 0; l < program_.ops.size(); ++l) {
      std::optional<IntegerProduct> product = AsIntegers(program_.ops[l]);
      if (!product || (leave_ && leave_(program_.ops[l]))) continue;
      found.emplace(l, *std::move(product));
    }
    if (found.empty()) return;
    std::vector<LoopOp> before = std::move(program_.ops);
    for (size_t l = 0; l < before.size(); ++l) {
      auto product = found.find(l);
      if (product == found.end()) {
        ops_.push_back(std::move(before[l]));
      } else {
        Multiply(product->second, before[l]);
      }
    }
    program_.ops = std::move(ops_);
    Tidy(&program_);
  }

 private:
  // ---- what is there ----

  std::optional<IntegerProduct> AsIntegers(const LoopOp& op) const {
    if (op.kind != LoopOp::kLoop || op.inputs.size() != 2) return std::nullopt;
    const LoopBody& body = op.body;
    const bool sums =
        body.reduce && body.reduce->name() == "sum" && body.value.op() == ScalarOp::kMul &&
        body.value.arg(0).op() == ScalarOp::kInput && body.value.arg(1).op() == ScalarOp::kInput &&
        body.value.arg(0).index() != body.value.arg(1).index();
    if (!sums || !FitsIn(body)) return std::nullopt;
    IntegerProduct out;
    const bool real = body.value.type() == DType::kF32;
    const bool first = known_[static_cast<size_t>(op.inputs[0])];
    if (real && first == known_[static_cast<size_t>(op.inputs[1])]) return std::nullopt;
    // Weights are packed once; of two operands of a run the first has the rows.
    if (first || !HasOwnDims(body, 1)) std::swap(out.rows, out.columns);
    if (!HasOwnDims(body, out.columns)) return std::nullopt;
    if (real && !LiesAlongSum(body, out.rows)) return std::nullopt;
    for (int a : body.ReducedAxes()) {
      if (!Names(body.reads[0].index, a) || !Names(body.reads[1].index, a)) return std::nullopt;
    }
    for (size_t r : {0, 1}) {
      if (!body.reads[r].guards.empty() || SlidesWindows(body.reads[r].index)) return std::nullopt;
      std::optional<Integers> operand = Trail(program_, op.inputs[r]).ToIntegers();
      if (!operand) return std::nullopt;
      for (Number* number : {&operand->zero, &operand->scale}) {
        if (number->value == kNoValue) continue;
        std::optional<IndexMap> at = OverOutput(body, r, number->at);
        if (!at) return std::nullopt;
        number->at = *std::move(at);
      }
      out.operands[r] = *std::move(operand);
    }
    return out;
  }

  // Whether sums are of a type, and of so few terms, that i32 holds them.
  bool FitsIn(const LoopBody& body) const {
    int64_t terms = 1;
    for (int a : body.ReducedAxes()) {
      const Dim& extent = body.axes[static_cast<size_t>(a)].extent;
      if (!extent.is_static()) return false;
      terms = SaturatedProduct(terms, extent.value());
    }
    const bool is_static = std::all_of(body.axes.begin(), body.axes.end(),
                                       [](const LoopAxis& a) { return a.extent.is_static(); });
    if (!is_static) return false;
    if (body.value.type() == DType::kI32) return true;
    return f32_ && body.value.type() == DType::kF32 && terms <= kMostExactTerms;
  }

  static bool SlidesWindows(const IndexMap& index) {
    return std::any_of(index.begin(), index.end(), [](const IndexExpr& e) {
      return e.terms().size() > 1 || e.indirect() >= 0;
    });
  }

  // Whether a read has a dim of what is written that the other one lacks.
  static bool HasOwnDims(const LoopBody& body, size_t read) {
    for (int a = 0; a < static_cast<int>(body.axes.size()); ++a) {
      if (Names(body.reads[read].index, a) && !Names(body.reads[1 - read].index, a)) return true;
    }
    return false;
  }

  static bool LiesAlongSum(const LoopBody& body, size_t read) {
    const IndexMap& index = body.reads[read].index;
    if (index.empty() || !index.back().IsPlainAxis()) return false;
    return !Names(body.write, index.back().terms()[0].axis);
  }

  // ---- what becomes of it ----

  ValueId AddValue(DType type, const Shape& shape) {
    program_.values.push_back({.type = {type, shape}, .kind = TensorKind::kIntermediate});
    return static_cast<ValueId>(program_.values.size() - 1);
  }

  static LoopOp OpBeside(const LoopOp& product, std::string label) {
    return {.label = std::move(label), .origin = product.origin, .step = product.step};
  }

  // `stored` as `type`, one of u8 and i8, once for all its readers; its zero point moves with it.
  ValueId Shifted(ValueId stored, DType type, const LoopOp& reader) {
    const DType from = program_.value(stored).type.dtype;
    if (from == type) return stored;
    auto [at, fresh] = shifted_.try_emplace(stored, kNoValue);
    if (!fresh) return at->second;
    const Shape shape = program_.value(stored).type.shape;
    const int shift = type == DType::kU8 ? kSignShift : -kSignShift;
    LoopOp op = OpBeside(reader, "Add");
    op.body = CastBody(shape, from, type);
    op.body.value = Expr::Cast(
        Expr::Cast(Expr::Input(0, from), DType::kI32) + Expr::ConstInt(DType::kI32, shift), type);
    op.inputs = {stored};
    op.output = at->second = AddValue(type, shape);
    program_.values[static_cast<size_t>(op.output)].order = program_.value(stored).order;
    ops_.push_back(std::move(op));
    return shifted_.at(stored);
  }

  // The sums of an operand along what `product` sums up, in i32, and where an element of what is
  // written finds its own.
  Number SumsOf(size_t read, ValueId stored, const LoopOp& product) {
    const LoopBody& body = product.body;
    LoopOp op = OpBeside(product, "ReduceSum");
    std::map<int, int> axes;  // of the product, in the sums
    auto moved = [&](const IndexMap& index) {
      IndexMap out;
      for (const IndexExpr& e : index) {
        out.push_back(e.Substitute([&](int a) { return IndexExpr::Axis(axes.at(a)); }));
      }
      return out;
    };
    for (int a = 0; a < static_cast<int>(body.axes.size()); ++a) {
      if (!Names(body.reads[read].index, a)) continue;
      axes[a] = static_cast<int>(op.body.axes.size());
      op.body.axes.push_back(body.axes[static_cast<size_t>(a)]);
    }
    op.body.reads = {Read{.index = moved(body.reads[read].index), .guards = {}}};
    op.body.value = Expr::Cast(Expr::Input(0, program_.value(stored).type.dtype), DType::kI32);
    op.body.reduce = Monoid::Sum(DType::kI32);
    Number out;
    for (size_t d = 0; d < body.write.size(); ++d) {
      const IndexExpr& e = body.write[d];
      const bool own = std::all_of(e.terms().begin(), e.terms().end(),
                                   [&](const IndexExpr::Term& t) { return axes.contains(t.axis); });
      if (!own || e.terms().empty()) continue;
      op.body.write.push_back(moved({e})[0]);
      out.at.push_back(IndexExpr::Axis(static_cast<int>(d)));
    }
    op.inputs = {stored};
    op.output = out.value = AddValue(DType::kI32, op.body.OutputType().shape);
    ops_.push_back(std::move(op));
    return out;
  }

  // What is written behind the sum.
  struct Behind {
    LoopOp op;
    Expr Use(const Number& number, DType type) {
      if (number.constant) return *number.constant;
      op.inputs.push_back(number.value);
      op.body.reads.push_back(Read{.index = number.at, .guards = {}});
      return Expr::Input(static_cast<int>(op.inputs.size()) - 1, type);
    }
  };

  void Multiply(const IntegerProduct& integers, const LoopOp& product) {
    const LoopBody& body = product.body;
    const Shape shape = program_.value(product.output).type.shape;
    Integers a = integers.operands.at(integers.rows);
    Integers b = integers.operands.at(integers.columns);
    LoopOp sum = OpBeside(product, product.label);
    sum.body = body;
    sum.inputs = product.inputs;
    std::map<size_t, int> shifts;  // of zero points, by read
    for (auto [read, operand, type] : {std::tuple{integers.rows, &a, DType::kU8},
                                       std::tuple{integers.columns, &b, DType::kI8}}) {
      const ValueId shifted = Shifted(operand->stored, type, product);
      if (shifted != operand->stored) shifts[read] = type == DType::kU8 ? kSignShift : -kSignShift;
      operand->stored = sum.inputs[read] = shifted;
    }
    auto wide = [&](size_t read) {
      const DType type = program_.value(sum.inputs[read]).type.dtype;
      return Expr::Cast(Expr::Input(static_cast<int>(read), type), DType::kI32);
    };
    sum.body.value = wide(static_cast<size_t>(body.value.arg(0).index())) *
                     wide(static_cast<size_t>(body.value.arg(1).index()));
    sum.body.reduce = Monoid::Sum(DType::kI32);
    sum.output = AddValue(DType::kI32, shape);

    Behind behind{.op = OpBeside(product, body.value.type() == DType::kF32 ? "Mul" : "Sub")};
    behind.op.body = CastBody(shape, DType::kI32, DType::kI32);
    behind.op.inputs = {sum.output};
    behind.op.output = product.output;
    // Zero points as they are behind the shifts; nullopt: 0.
    auto zero_of = [&](const Integers& operand, size_t read) -> std::optional<Expr> {
      const auto shift = shifts.find(read);
      const int64_t by = shift == shifts.end() ? 0 : shift->second;
      if (!operand.zero.is_there() || operand.zero.constant) {
        const int64_t zero = operand.zero.constant ? operand.zero.constant->integer() : 0;
        if (zero + by == 0) return std::nullopt;
        return Expr::ConstInt(DType::kI32, zero + by);
      }
      const Expr zero = behind.Use(operand.zero, DType::kI32);
      return by == 0 ? zero : zero + Expr::ConstInt(DType::kI32, by);
    };
    Expr result = Expr::Input(0, DType::kI32);
    const std::optional<Expr> za = zero_of(a, integers.rows);
    const std::optional<Expr> zb = zero_of(b, integers.columns);
    if (za) {
      const Number sums = SumsOf(integers.columns, b.stored, product);
      result = result - *za * behind.Use(sums, DType::kI32);
    }
    if (zb) {
      const Number sums = SumsOf(integers.rows, a.stored, product);
      result = result - *zb * behind.Use(sums, DType::kI32);
    }
    if (za && zb) result = result + Expr::ConstInt(DType::kI32, TermsOf(body)) * (*za * *zb);
    if (body.value.type() == DType::kF32) {
      result = Expr::Cast(result, DType::kF32);
      std::optional<Expr> scale;
      for (const Number* number : {&a.scale, &b.scale}) {
        if (!number->is_there()) continue;
        const Expr s = behind.Use(*number, DType::kF32);
        scale = scale ? *scale * s : s;
      }
      if (scale) result = result * *scale;
    }
    if (result.op() == ScalarOp::kInput) {
      sum.output = product.output;
      ops_.push_back(std::move(sum));
      return;
    }
    ops_.push_back(std::move(sum));
    behind.op.body.value = result;
    ops_.push_back(std::move(behind.op));
  }

  // Modulo 2^32 as all that they are multiplied with.
  static int64_t TermsOf(const LoopBody& body) {
    uint64_t terms = 1;
    for (int a : body.ReducedAxes()) {
      terms *= static_cast<uint64_t>(body.axes[static_cast<size_t>(a)].extent.value());
    }
    return static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(terms)));
  }

  const bool f32_;
  const LeaveProduct& leave_;
  Program& program_;
  const std::vector<bool> known_;
  std::vector<LoopOp> ops_;
  std::map<ValueId, ValueId> shifted_;
};

}  // namespace

void MultiplyIntegers(const DeviceSpec& device, bool f32, Program* program,
                      const LeaveProduct& leave) {
  if (device.explicit_memory || program->open_dims) return;
  Pass(device, f32, leave, program).Run();
}

}  // namespace fusion
