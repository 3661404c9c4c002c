#include "core/rewrite/low_precision.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "core/graph/program/half_precision.h"
#include "core/graph/program/tidy.h"
#include "core/rewrite/operands.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

// Which operands of a product are rounded.
struct Rounding {
  std::array<bool, 2> operands = {false, false};  // by read
  bool any() const { return operands[0] || operands[1]; }
};

// A sum of products in f32 without windows, with one operand known before the first run.
struct WeightedSum {
  size_t weights = 0;  // number of the read
  size_t others = 1;
  int64_t rows = 1;  // product of the extents of the axes that only the other operand has
};

std::optional<WeightedSum> AsWeightedSum(const Program& program, const std::vector<bool>& known,
                                         const LoopOp& op) {
  if (op.kind != LoopOp::kLoop || !IsSumOfProducts(op.body) || op.inputs.size() != 2) return {};
  const LoopBody& body = op.body;
  if (body.value.type() != DType::kF32) return {};
  if (body.value.arg(0).index() == body.value.arg(1).index()) return {};
  for (size_t r : {0, 1}) {
    const Value& value = program.value(op.inputs[r]);
    if (value.type.dtype != DType::kF32 || !value.type.shape.is_static()) return {};
    if (!body.reads[r].guards.empty() || SlidesWindows(body, body.reads[r].index)) return {};
  }
  const bool first = known[static_cast<size_t>(op.inputs[0])];
  if (first == known[static_cast<size_t>(op.inputs[1])]) return {};
  WeightedSum out{.weights = first ? size_t{0} : size_t{1},
                  .others = first ? size_t{1} : size_t{0}};
  const Dims dims = program.value(op.inputs[out.weights]).type.shape.ToDims();
  if (NumElements(dims) < kLeastNarrowWeights) return {};
  bool columns = false;
  for (int a = 0; a < static_cast<int>(body.axes.size()); ++a) {
    const Dim& extent = body.axes[static_cast<size_t>(a)].extent;
    if (!extent.is_static()) return {};
    const bool other = Names(body.reads[out.others].index, a);
    const bool weight = Names(body.reads[out.weights].index, a);
    if (other && !weight) out.rows *= std::max<int64_t>(extent.value(), 1);
    columns |= weight && !other;
  }
  return columns ? std::optional(out) : std::nullopt;
}

class Rounder {
 public:
  Rounder(const DeviceSpec& device, const LeaveProduct& leave, Program* program)
      : has_unit_(device.other_types.contains(DType::kBF16)),
        least_sum_(device.LeastSumOf(DType::kBF16)),
        leave_(leave),
        program_(*program),
        known_(KnownBeforeRuns(*program)) {}

  bool Run() {
    std::vector<LoopOp> ops;
    ops.reserve(program_.ops.size());
    for (LoopOp& op : program_.ops) {
      const Rounding rounding = RoundingOf(op);
      const bool rounds = rounding.any() && !(leave_ && leave_(op));
      if (rounds) Round(rounding, &op, &ops);
      ops.push_back(std::move(op));
    }
    program_.ops = std::move(ops);
    if (rounded_.empty()) return false;
    Tidy(&program_);
    return true;
  }

 private:
  Rounding RoundingOf(const LoopOp& op) const {
    const std::optional<WeightedSum> sum = AsWeightedSum(program_, known_, op);
    Rounding out;
    if (!sum) return out;
    if (sum->rows < kLeastRowsInHalf) {
      out.operands[sum->weights] = true;
    } else if (has_unit_ && LengthAlongSum(op.body, sum->others) >= least_sum_) {
      out.operands = {true, true};
    }
    return out;
  }

  // Extent of the reduced axis along which the read is contiguous; 0: none.
  static int64_t LengthAlongSum(const LoopBody& body, size_t read) {
    const IndexMap& index = body.reads[read].index;
    const int axis = index.empty() ? -1 : SummedAxis(body, index.back());
    return axis < 0 ? 0 : body.axes[static_cast<size_t>(axis)].extent.value();
  }

  void Round(const Rounding& rounding, LoopOp* product, std::vector<LoopOp>* ops) {
    std::array<Expr, 2> factors = {product->body.value.arg(0), product->body.value.arg(1)};
    for (Expr& factor : factors) {
      const auto read = static_cast<size_t>(factor.index());
      if (!rounding.operands[read]) continue;
      ValueId& input = product->inputs[read];
      input = Rounded(input, *product, ops);
      factor = Expr::Cast(Expr::Input(factor.index(), DType::kBF16), DType::kF32);
    }
    product->body.value = factors[0] * factors[1];
  }

  // `value` in bf16, computed once for all readers.
  ValueId Rounded(ValueId value, const LoopOp& reader, std::vector<LoopOp>* ops) {
    auto [at, fresh] = rounded_.try_emplace(value, kNoValue);
    if (!fresh) return at->second;
    const TensorType type = program_.value(value).type;
    LoopOp cast{.label = "Cast", .origin = reader.origin, .step = reader.step};
    cast.body = CastBody(type.shape, type.dtype, DType::kBF16);
    cast.inputs = {value};
    cast.output = static_cast<ValueId>(program_.values.size());
    at->second = cast.output;
    program_.values.push_back({.type = {DType::kBF16, type.shape},
                               .kind = TensorKind::kIntermediate,
                               .order = program_.value(value).order});
    ops->push_back(std::move(cast));
    return at->second;
  }

  const bool has_unit_;
  const int64_t least_sum_;
  const LeaveProduct& leave_;
  Program& program_;
  const std::vector<bool> known_;
  std::map<ValueId, ValueId> rounded_;
};

// A weight as it is stored.
struct Stored {
  ValueId value = kNoValue;
  std::optional<Expr> factor;  // set if it is multiplied by a constant
  // Set if it is multiplied by elements of another value: that value, and the index over the dims
  // of the weight.
  ValueId factors = kNoValue;
  IndexMap at;
};

struct Narrowing {
  WeightedSum sum;
  Stored stored;
};

class Narrower {
 public:
  Narrower(const LeaveProduct& leave, Program* program)
      : leave_(leave), program_(*program), known_(KnownBeforeRuns(*program)) {}

  bool Run() {
    std::map<size_t, Narrowing> found;  // by op
    for (size_t l = 0; l < program_.ops.size(); ++l) {
      std::optional<Narrowing> narrowing = NarrowingOf(program_.ops[l]);
      if (!narrowing || (leave_ && leave_(program_.ops[l]))) continue;
      found.emplace(l, *std::move(narrowing));
    }
    if (found.empty()) return false;
    std::vector<LoopOp> ops;
    for (size_t l = 0; l < program_.ops.size(); ++l) {
      auto narrowing = found.find(l);
      LoopOp op = std::move(program_.ops[l]);
      if (narrowing == found.end()) {
        ops.push_back(std::move(op));
      } else {
        Narrow(narrowing->second, std::move(op), &ops);
      }
    }
    program_.ops = std::move(ops);
    Tidy(&program_);
    return true;
  }

 private:
  std::optional<Stored> StoredAs(ValueId value) const {
    Stored out;
    if (const LoopOp* op = ElementwiseOf(program_, value); op != nullptr) {
      const Expr& product = op->body.value;
      if (product.op() == ScalarOp::kMul) {
        int weight = product.arg(0).op() == ScalarOp::kInput ? 0 : 1;
        if (product.arg(0).op() == ScalarOp::kInput && product.arg(1).op() == ScalarOp::kInput &&
            !ReadsInPlace(program_, *op, product.arg(0).index())) {
          weight = 1;
        }
        const Expr& w = product.arg(weight);
        const Expr& s = product.arg(1 - weight);
        if (w.op() != ScalarOp::kInput || !ReadsInPlace(program_, *op, w.index()))
          return std::nullopt;
        if (s.op() == ScalarOp::kConst) {
          out.factor = s;
        } else if (s.op() == ScalarOp::kInput && s.index() != w.index()) {
          const auto read = static_cast<size_t>(s.index());
          if (!op->body.reads[read].guards.empty()) return std::nullopt;
          out.factors = op->inputs[read];
          out.at = op->body.reads[read].index;
        } else {
          return std::nullopt;
        }
        value = op->inputs[static_cast<size_t>(w.index())];
      }
    }
    // Lossless casts of the stored elements.
    bool as_integer = false;
    while (const LoopOp* op = ElementwiseOf(program_, value)) {
      const Expr& cast = op->body.value;
      const bool widens = cast.op() == ScalarOp::kCast && cast.arg(0).op() == ScalarOp::kInput &&
                          (cast.type() == DType::kF32 || cast.type() == DType::kI32) &&
                          ReadsInPlace(program_, *op, cast.arg(0).index());
      if (!widens) break;
      as_integer |= cast.type() == DType::kI32;
      value = op->inputs[static_cast<size_t>(cast.arg(0).index())];
    }
    const Value& stored = program_.value(value);
    const bool narrow = ColumnPack(DType::kF32, stored.type.dtype).has_value() &&
                        stored.type.dtype != DType::kF32 &&
                        !(as_integer && IsFloat(stored.type.dtype)) &&
                        known_[static_cast<size_t>(value)];
    if (!narrow) return std::nullopt;
    out.value = value;
    return out;
  }

  std::optional<Narrowing> NarrowingOf(const LoopOp& op) const {
    const std::optional<WeightedSum> sum = AsWeightedSum(program_, known_, op);
    if (!sum || sum->rows >= kLeastRowsInHalf) return std::nullopt;
    std::optional<Stored> stored = StoredAs(op.inputs[sum->weights]);
    if (!stored) return std::nullopt;
    if (stored->factors != kNoValue) {
      std::optional<IndexMap> at = OverOutput(op.body, sum->weights, stored->at);
      if (!at) return std::nullopt;
      stored->at = *std::move(at);
    }
    return Narrowing{*sum, *std::move(stored)};
  }

  // Adds `op` with narrow weights, and an op that applies the weights' factors to its result.
  void Narrow(const Narrowing& narrowing, LoopOp op, std::vector<LoopOp>* ops) {
    const Stored& stored = narrowing.stored;
    const auto weights = static_cast<int>(narrowing.sum.weights);
    op.inputs[narrowing.sum.weights] = stored.value;
    const Expr narrow =
        Expr::Cast(Expr::Input(weights, program_.value(stored.value).type.dtype), DType::kF32);
    op.body.value = Expr::Input(1 - weights, DType::kF32) * narrow;
    if (!stored.factor && stored.factors == kNoValue) {
      ops->push_back(std::move(op));
      return;
    }
    const ValueId result = op.output;
    const Shape shape = program_.value(result).type.shape;
    LoopOp scale{.label = "Mul", .origin = op.origin, .step = op.step};
    scale.output = result;
    scale.body = CastBody(shape, DType::kF32, DType::kF32);
    op.output = static_cast<ValueId>(program_.values.size());
    program_.values.push_back({.type = {DType::kF32, shape}, .kind = TensorKind::kIntermediate});
    scale.inputs = {op.output};
    if (stored.factors != kNoValue) {
      scale.inputs.push_back(stored.factors);
      scale.body.reads.push_back(Read{.index = stored.at, .guards = {}});
    }
    const Expr factor = stored.factor ? *stored.factor : Expr::Input(1, DType::kF32);
    scale.body.value = Expr::Input(0, DType::kF32) * factor;
    ops->push_back(std::move(op));
    ops->push_back(std::move(scale));
  }

  const LeaveProduct& leave_;
  Program& program_;
  const std::vector<bool> known_;
};

}  // namespace

bool RoundProducts(const DeviceSpec& device, Program* program, const LeaveProduct& leave) {
  // Matrix units of devices with explicit memory take operands in layouts of their own.
  if (device.explicit_memory || program->open_dims) return false;
  return Rounder(device, leave, program).Run();
}

bool ReadNarrowWeights(const DeviceSpec& device, Program* program, const LeaveProduct& leave) {
  if (device.explicit_memory || program->open_dims) return false;
  return Narrower(leave, program).Run();
}

}  // namespace fusion
