#include "core/graph/evaluate/test_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fusion {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): fast, any seed is good, the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // Irwin-Hall distribution of four 16-bit numbers: variance 4/12.
  double Normal() {
    uint64_t z = Next();
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>((z >> (16 * i)) & 0xFFFF);
    return (sum / 65536.0 - 2.0) * std::sqrt(3.0);
  }

 private:
  uint64_t state_;
};

void Scale(HostTensor* tensor, double factor) {
  for (int64_t i = 0; i < tensor->elements(); ++i) {
    tensor->SetDouble(i, tensor->GetDouble(i) * factor);
  }
}

// Per input of the program, the largest K that a product sums it over (1: none).
std::vector<double> SummedOver(const Program& program) {
  std::vector<double> length(program.values.size(), 1);
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kLoop || !op.body.reduce || op.inputs.size() < 2) continue;
    double points = 1;
    for (int axis : op.body.ReducedAxes()) {
      points *= static_cast<double>(op.body.axes[static_cast<size_t>(axis)].extent.value());
    }
    for (ValueId v : op.inputs) {
      double& longest = length[static_cast<size_t>(v)];
      longest = std::max(longest, points);
    }
  }
  return length;
}

// Per value of the program, the shortest dim that it indexes; 0: it indexes none.
std::vector<int64_t> IndexedExtents(const Program& program) {
  std::vector<int64_t> extent(program.values.size(), 0);
  for (const LoopOp& op : program.ops) {
    if (op.kind != LoopOp::kLoop) continue;
    for (size_t i = 0; i < op.body.reads.size(); ++i) {
      const Shape& table = program.value(op.inputs[i]).type.shape;
      const IndexMap& index = op.body.reads[i].index;
      for (size_t d = 0; d < index.size(); ++d) {
        if (index[d].indirect() < 0) continue;
        ValueId by = op.inputs[static_cast<size_t>(index[d].indirect())];
        int64_t length = table.dim(static_cast<int>(d)).value();
        int64_t& shortest = extent[static_cast<size_t>(by)];
        shortest = shortest == 0 ? length : std::min(shortest, length);
      }
    }
  }
  return extent;
}

// Whether some factor in the expression is a large constant.
bool MultipliesByLargeNumber(const Expr& expr) {
  constexpr double kLarge = 1000;
  bool found = false;
  expr.VisitOnce([&](const Expr& e) {
    if (e.op() != ScalarOp::kMul || !IsFloat(e.type())) return;
    for (const Expr& factor : e.args()) {
      found |= factor.op() == ScalarOp::kConst && std::fabs(factor.value()) >= kLarge;
    }
  });
  return found;
}

// Per value of the program, whether it depends on integer inputs (and constants) alone and is
// multiplied by a large number while it does: a padding mask, as a rule.
std::vector<bool> MasksAsIntegers(const Program& program) {
  std::vector<bool> of_integers(program.values.size(), false);
  for (ValueId v : program.inputs) {
    DType type = program.value(v).type.dtype;
    of_integers[static_cast<size_t>(v)] = !IsFloat(type) && type != DType::kBool;
  }
  for (const LoopOp& op : program.ops) {
    bool any = false;
    bool all = true;
    for (ValueId v : op.inputs) {
      bool here = of_integers[static_cast<size_t>(v)];
      any |= here;
      all &= here || program.value(v).kind == TensorKind::kConstant;
    }
    of_integers[static_cast<size_t>(op.output)] = any && all;
  }
  std::vector<bool> mask(program.values.size(), false);
  for (size_t o = program.ops.size(); o-- > 0;) {
    const LoopOp& op = program.ops[o];
    auto out = static_cast<size_t>(op.output);
    if (!of_integers[out]) continue;
    bool large = op.kind == LoopOp::kLoop && MultipliesByLargeNumber(op.body.value);
    if (!mask[out] && !large) continue;
    for (ValueId v : op.inputs) mask[static_cast<size_t>(v)] = of_integers[static_cast<size_t>(v)];
  }
  return mask;
}

void ToZerosAndOnes(HostTensor* tensor) {
  for (int64_t i = 0; i < tensor->elements(); ++i) tensor->SetInt(i, tensor->GetInt(i) & 1);
}

// Every valid index of a dim, those that count from its end included.
HostTensor RandomIndices(const TensorType& type, int64_t extent, uint64_t seed) {
  Random random(seed);
  HostTensor t(type.dtype, type.shape.ToDims());
  for (int64_t i = 0; i < t.elements(); ++i) {
    t.SetInt(i, static_cast<int64_t>(random.Next() % static_cast<uint64_t>(2 * extent)) - extent);
  }
  return t;
}

}  // namespace

HostTensor RandomTensor(const TensorType& type, uint64_t seed) {
  Random random(seed);
  HostTensor t(type.dtype, type.shape.ToDims());
  if (type.dtype == DType::kF32) {
    for (float& x : t.data<float>()) x = static_cast<float>(random.Normal());
    return t;
  }
  uint64_t values = type.dtype == DType::kBool ? 2 : 4;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (IsFloat(type.dtype)) {
      t.SetDouble(i, random.Normal());
    } else {
      t.SetInt(i, static_cast<int64_t>(random.Next() % values));
    }
  }
  return t;
}

HostTensor AdversarialTensor(const TensorType& type, uint64_t seed) {
  HostTensor t = RandomTensor(type, seed);
  if (!IsFloat(type.dtype)) return t;
  constexpr std::array kSpecial = {
      std::numeric_limits<double>::quiet_NaN(), HUGE_VAL, -HUGE_VAL, -0.0, 1e-40, -1e-42};
  Random random(seed + 77);
  uint64_t one_in = std::max<uint64_t>(23, static_cast<uint64_t>(t.elements()) / 24);
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (random.Next() % one_in == 0) t.SetDouble(i, kSpecial[random.Next() % kSpecial.size()]);
  }
  return t;
}

std::vector<HostTensor> RandomInputs(const Program& program, uint64_t seed, bool adversarial) {
  std::vector<double> summed = SummedOver(program);
  std::vector<int64_t> indexed = IndexedExtents(program);
  std::vector<bool> masks = MasksAsIntegers(program);
  std::vector<HostTensor> inputs;
  for (ValueId v : program.inputs) {
    const TensorType& type = program.value(v).type;
    uint64_t own = seed * 1009 + inputs.size();
    int64_t extent = indexed[static_cast<size_t>(v)];
    if (extent > 0) {
      inputs.push_back(RandomIndices(type, extent, own));
      continue;
    }
    inputs.push_back(adversarial ? AdversarialTensor(type, own) : RandomTensor(type, own));
    if (masks[static_cast<size_t>(v)]) ToZerosAndOnes(&inputs.back());
    double length = summed[static_cast<size_t>(v)];
    if (length > 1 && IsFloat(type.dtype)) Scale(&inputs.back(), std::pow(length, -0.25));
  }
  return inputs;
}

}  // namespace fusion
