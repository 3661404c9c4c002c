#include "core/rewrite/integer_products.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "core/base/saturate.h"
#include "core/graph/program/half_precision.h"
#include "core/graph/program/tidy.h"
#include "core/rewrite/integer_trail.h"
#include "core/rewrite/layouts.h"
#include "core/rewrite/operands.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

constexpr int kSignedToUnsigned = 128;  // between u8 and i8

// Images with fewer channels use too little of each pack: a photograph's three stay in f32.
constexpr int64_t kLeastPackedChannels = 8;

// With fewer rows or columns, shifting, summing and packing a matrix that is known only at run time
// costs more than its few uses save. A choice, as kLeastRowsInHalf.
constexpr int64_t kLeastRowsOfARun = kLeastRowsInHalf;

// A product that is to be computed in integers.
struct IntegerProduct {
  size_t rows = 0;  // number of the read
  size_t columns = 1;
  int packed = -1;  // axis along which rows are packed; -1: it is the last reduced one already
  LoopBody body;    // of the product, but reading the stored elements
  std::map<size_t, IntegerOperand> operands;  // by read; zeros and scales over output dims
};

class Pass {
 public:
  Pass(const DeviceSpec& device, bool f32, const LeaveProduct& leave, Program* program)
      : f32_(f32 && device.other_types.contains(DType::kI8)),
        leave_(leave),
        program_(*program),
        known_(KnownBeforeRuns(*program)) {}

  bool Run() {
    std::map<size_t, IntegerProduct> found;  // by op
    for (size_t l = 0; l < program_.ops.size(); ++l) {
      std::optional<IntegerProduct> product = AsIntegers(program_.ops[l]);
      if (!product || (leave_ && leave_(program_.ops[l]))) continue;
      found.emplace(l, *std::move(product));
    }
    if (found.empty()) return false;
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
    return true;
  }

 private:
  // ---- finding products ----

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
    const bool weighted = first != known_[static_cast<size_t>(op.inputs[1])];
    if (real && !weighted) return std::nullopt;
    // Weights are the columns, since they are packed once. Of two operands known at run time the
    // first is the rows.
    if (first) std::swap(out.rows, out.columns);
    const int64_t rows = OwnPoints(body, out.rows);
    const int64_t columns = OwnPoints(body, out.columns);
    if (columns == 0 || (!weighted && std::min(rows, columns) < kLeastRowsOfARun)) {
      return std::nullopt;
    }
    out.body = body;
    for (int a : body.ReducedAxes()) {
      if (!Names(body.reads[0].index, a) || !Names(body.reads[1].index, a)) return std::nullopt;
    }
    for (size_t r : {0, 1}) {
      const Read& read = body.reads[r];
      if (!read.guards.empty() || IsIndirect(read.index)) return std::nullopt;
      if (r == out.columns && SlidesWindows(body, read.index)) return std::nullopt;
      std::optional<IntegerOperand> operand = IntegerTrail(program_, op.inputs[r]).ToIntegers();
      if (!operand || !CanMove(*operand)) return std::nullopt;
      if (operand->at != IdentityMap(operand->at.size())) {
        const Dims dims = program_.value(op.inputs[r]).type.shape.ToDims();
        if (!operand->moves.empty() || !IsPartMap(operand->at, dims)) return std::nullopt;
      }
      if (operand->moves.empty()) {
        out.body.reads[r].index = ComposedMap(operand->at, read.index);
      }
      if (real && !IsInRange(*operand)) return std::nullopt;
      for (IntegerTerm* number : {&operand->zero, &operand->scale}) {
        if (number->value == kNoValue) continue;
        std::optional<IndexMap> at = OverOutput(body, r, number->at);
        if (!at) return std::nullopt;
        number->at = *std::move(at);
      }
      out.operands[r] = *std::move(operand);
    }
    out.packed = PackedAxis(out.body, out.rows);
    const bool image =
        out.packed >= 0 && SummedAxis(out.body, out.body.reads[out.rows].index.back()) < 0;
    if (image && out.body.reads[out.rows].index != body.reads[out.rows].index) out.packed = -1;
    const bool slides = SlidesWindows(out.body, out.body.reads[out.rows].index);
    if ((real || slides) && out.packed < 0) return std::nullopt;
    if (real && !HoldsSums(body, out)) return std::nullopt;
    return out;
  }

  // Whether no sum of a product leaves i32.
  bool HoldsSums(const LoopBody& body, const IntegerProduct& product) const {
    int64_t most = 1;
    for (const auto& [read, operand] : product.operands) {
      most = SaturatedProduct(most, Largest(operand));
    }
    for (int a : body.ReducedAxes()) {
      most = SaturatedProduct(most, body.axes[static_cast<size_t>(a)].extent.value());
    }
    return most <= std::numeric_limits<int32_t>::max();
  }

  // The largest |stored - zero|.
  int64_t Largest(const IntegerOperand& operand) const {
    const auto [least, most] = RangeOf(operand);
    if (operand.zero.value != kNoValue) return most - least;
    const int64_t zero = operand.zero.constant ? operand.zero.constant->integer() : 0;
    return std::max(std::abs(least - zero), std::abs(most - zero));
  }

  std::pair<int64_t, int64_t> RangeOf(const IntegerOperand& operand) const {
    const bool is_signed = program_.value(operand.stored).type.dtype == DType::kI8;
    return is_signed ? std::pair<int64_t, int64_t>{-128, 127} : std::pair<int64_t, int64_t>{0, 255};
  }

  // Whether sums have a type that can be computed in i32.
  bool FitsIn(const LoopBody& body) const {
    const bool is_static = std::all_of(body.axes.begin(), body.axes.end(),
                                       [](const LoopAxis& a) { return a.extent.is_static(); });
    if (body.value.type() == DType::kI32) return is_static;
    return is_static && f32_ && body.value.type() == DType::kF32;
  }

  static bool IsIndirect(const IndexMap& index) {
    return std::any_of(index.begin(), index.end(),
                       [](const IndexExpr& e) { return e.indirect() >= 0; });
  }

  // Whether the moves can be applied to the stored integers: the zero point and scale are the same
  // for all elements, and the zero point can be stored.
  bool CanMove(const IntegerOperand& operand) const {
    if (operand.moves.empty()) return true;
    for (const IntegerTerm* number : {&operand.zero, &operand.scale}) {
      const bool same = std::all_of(number->at.begin(), number->at.end(),
                                    [](const IndexExpr& e) { return e.terms().empty(); });
      if (!same || IsIndirect(number->at)) return false;
    }
    return IsInRange(operand);
  }

  // Whether the zero point has the type of the stored elements, and a constant scale is finite.
  bool IsInRange(const IntegerOperand& operand) const {
    if (operand.scale.constant && !std::isfinite(operand.scale.constant->value())) return false;
    if (operand.zero.constant) {
      const auto [least, most] = RangeOf(operand);
      const int64_t zero = operand.zero.constant->integer();
      return zero >= least && zero <= most;
    }
    if (operand.zero.value == kNoValue) return true;
    const LoopOp* made = ElementwiseOf(program_, operand.zero.value);
    return made != nullptr && made->body.value.op() == ScalarOp::kCast &&
           made->body.value.arg(0).type() == program_.value(operand.stored).type.dtype;
  }

  // Product of the extents of the axes that only this read has; 0: there are none.
  static int64_t OwnPoints(const LoopBody& body, size_t read) {
    int64_t points = 0;
    for (int a = 0; a < static_cast<int>(body.axes.size()); ++a) {
      if (!Names(body.reads[read].index, a) || Names(body.reads[1 - read].index, a)) continue;
      const int64_t extent = body.axes[static_cast<size_t>(a)].extent.value();
      points = SaturatedProduct(std::max<int64_t>(points, 1), extent);
    }
    return points;
  }

  // The reduced axis along which the read is contiguous, or can become so: channels of images
  // become innermost (core/rewrite/layouts.h). -1: none.
  static int PackedAxis(const LoopBody& body, size_t read) {
    const IndexMap& index = body.reads[read].index;
    if (index.empty()) return -1;
    if (const int last = SummedAxis(body, index.back()); last >= 0) return last;
    if (index.size() < kImageRank) return -1;
    const int channels = SummedAxis(body, index[kChannelDim]);
    const bool many = channels >= 0 && body.axes[static_cast<size_t>(channels)].extent.value() >=
                                           kLeastPackedChannels;
    return many ? channels : -1;
  }

  // ---- rewriting ----

  ValueId AddValue(DType type, const Shape& shape) {
    program_.values.push_back({.type = {type, shape}, .kind = TensorKind::kIntermediate});
    return static_cast<ValueId>(program_.values.size() - 1);
  }

  static LoopOp OpBeside(const LoopOp& product, std::string label) {
    return {.label = std::move(label), .origin = product.origin, .step = product.step};
  }

  // `stored` as `type` (u8 or i8), computed once for all readers.
  ValueId Shifted(ValueId stored, DType type, const LoopOp& reader) {
    const DType from = program_.value(stored).type.dtype;
    if (from == type) return stored;
    auto [at, fresh] = shifted_.try_emplace(stored, kNoValue);
    if (!fresh) return at->second;
    const Shape shape = program_.value(stored).type.shape;
    const int shift = type == DType::kU8 ? kSignedToUnsigned : -kSignedToUnsigned;
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

  // The zero point after a shift by `by`, if it is a constant or absent; nullopt if it is read from
  // a tensor.
  std::optional<int64_t> KnownZero(const IntegerOperand& operand, int64_t by) const {
    if (operand.zero.constant) return operand.zero.constant->integer() + by;
    return operand.zero.is_there() ? std::nullopt : std::optional(by);
  }

  // Applies the operand's moves to `shifted`, its stored integers plus `by`. Inserted zeros become
  // zero points.
  ValueId Moved(const IntegerOperand& operand, ValueId shifted, int64_t by, const LoopOp& reader) {
    const DType type = program_.value(shifted).type.dtype;
    ValueId value = shifted;
    for (size_t i = operand.moves.size(); i-- > 0;) {
      const ElementMove& move = operand.moves[i];
      auto [at, fresh] = moved_.try_emplace({move.to, type}, kNoValue);
      if (fresh) {
        LoopOp op = OpBeside(reader, move.label);
        op.body = move.body;
        op.inputs = {value};
        Expr moved = Expr::Input(0, type);
        if (move.body.value.op() == ScalarOp::kSelect) {
          moved = Expr::Select(move.body.value.arg(0), moved, Zero(operand, type, by, &op));
        }
        op.body.value = moved;
        op.output = at->second = AddValue(type, program_.value(move.to).type.shape);
        ops_.push_back(std::move(op));
      }
      value = moved_.at({move.to, type});
    }
    return value;
  }

  Expr Zero(const IntegerOperand& operand, DType type, int64_t by, LoopOp* op) const {
    if (const std::optional<int64_t> known = KnownZero(operand, by)) {
      return Expr::ConstInt(type, *known);
    }
    op->inputs.push_back(operand.zero.value);
    op->body.reads.push_back(Read{.index = operand.zero.at, .guards = {}});
    return Expr::Cast(Expr::Input(1, DType::kI32) + Expr::ConstInt(DType::kI32, by), type);
  }

  // The sums of an operand along the reduced axes of `body` (the body of `product`), in i32, with
  // the index at which each output element finds its sum.
  IntegerTerm SumsOf(size_t read, ValueId stored, const LoopBody& body, const LoopOp& product) {
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
    IntegerTerm out;
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

  // The element-wise op after the sum.
  struct Behind {
    LoopOp op;
    Expr Use(const IntegerTerm& number, DType type) {
      if (number.constant) return *number.constant;
      op.inputs.push_back(number.value);
      op.body.reads.push_back(Read{.index = number.at, .guards = {}});
      return Expr::Input(static_cast<int>(op.inputs.size()) - 1, type);
    }
  };

  void Multiply(const IntegerProduct& integers, const LoopOp& product) {
    const LoopBody& body = integers.body;
    const Shape shape = program_.value(product.output).type.shape;
    IntegerOperand a = integers.operands.at(integers.rows);
    IntegerOperand b = integers.operands.at(integers.columns);
    LoopOp sum = OpBeside(product, product.label);
    sum.body = body;
    sum.inputs = product.inputs;
    std::map<size_t, int64_t> shifts;  // of zero points, by read
    for (auto [read, operand, type] : {std::tuple{integers.rows, &a, DType::kU8},
                                       std::tuple{integers.columns, &b, DType::kI8}}) {
      const ValueId shifted = Shifted(operand->stored, type, product);
      if (shifted != operand->stored)
        shifts[read] = type == DType::kU8 ? kSignedToUnsigned : -kSignedToUnsigned;
      operand->stored = sum.inputs[read] = Moved(*operand, shifted, shifts[read], product);
    }
    auto wide = [&](size_t read) {
      const DType type = program_.value(sum.inputs[read]).type.dtype;
      return Expr::Cast(Expr::Input(static_cast<int>(read), type), DType::kI32);
    };
    sum.body.value = wide(static_cast<size_t>(body.value.arg(0).index())) *
                     wide(static_cast<size_t>(body.value.arg(1).index()));
    sum.body.reduce = Monoid::Sum(DType::kI32);
    if (integers.packed >= 0) SumLastAlong(integers.packed, &sum.body);

    Behind behind{.op = OpBeside(product, body.value.type() == DType::kF32 ? "Mul" : "Sub")};
    behind.op.body = CastBody(shape, DType::kI32, DType::kI32);
    behind.op.inputs = {kNoValue};  // the sum
    behind.op.output = product.output;
    // Zero points after the shifts; nullopt: 0.
    auto zero_of = [&](const IntegerOperand& operand, size_t read) -> std::optional<Expr> {
      const int64_t by = shifts[read];
      if (const std::optional<int64_t> known = KnownZero(operand, by)) {
        return *known == 0 ? std::nullopt : std::optional(Expr::ConstInt(DType::kI32, *known));
      }
      const Expr zero = behind.Use(operand.zero, DType::kI32);
      return by == 0 ? zero : zero + Expr::ConstInt(DType::kI32, by);
    };
    Expr result = Expr::Input(0, DType::kI32);
    const std::optional<Expr> za = zero_of(a, integers.rows);
    const std::optional<Expr> zb = zero_of(b, integers.columns);
    if (za) {
      const IntegerTerm sums = SumsOf(integers.columns, b.stored, body, product);
      result = result - *za * behind.Use(sums, DType::kI32);
    }
    if (zb) {
      const IntegerTerm sums = SumsOf(integers.rows, a.stored, body, product);
      result = result - *zb * behind.Use(sums, DType::kI32);
    }
    if (za && zb) result = result + Expr::ConstInt(DType::kI32, TermsOf(body)) * (*za * *zb);
    if (body.value.type() == DType::kF32) {
      result = Expr::Cast(result, DType::kF32);
      std::optional<Expr> scale;
      for (const IntegerTerm* number : {&a.scale, &b.scale}) {
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
    behind.op.inputs[0] = sum.output = AddValue(DType::kI32, shape);
    ops_.push_back(std::move(sum));
    behind.op.body.value = result;
    ops_.push_back(std::move(behind.op));
  }

  // Makes `axis` the last axis.
  static void SumLastAlong(int axis, LoopBody* body) {
    const int last = static_cast<int>(body->axes.size()) - 1;
    auto renumbered = [&](const IndexMap& index) {
      IndexMap out;
      for (const IndexExpr& e : index) {
        out.push_back(e.Substitute([&](int a) {
          return IndexExpr::Axis(a == axis ? last : a > axis ? a - 1 : a);
        }));
      }
      return out;
    };
    const auto at = body->axes.begin() + axis;
    std::rotate(at, at + 1, body->axes.end());
    for (Read& read : body->reads) read.index = renumbered(read.index);
    body->write = renumbered(body->write);
  }

  // The number of terms of each sum, modulo 2^32 like everything it is multiplied by.
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
  std::map<std::pair<ValueId, DType>, ValueId> moved_;  // by the value that it replaces
};

}  // namespace

bool MultiplyIntegers(const DeviceSpec& device, bool f32, Program* program,
                      const LeaveProduct& leave) {
  if (device.explicit_memory || program->open_dims) return false;
  return Pass(device, f32, leave, program).Run();
}

}  // namespace fusion
