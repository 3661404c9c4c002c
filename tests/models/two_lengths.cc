#include "tests/models/models.h"

namespace fusion {
namespace {

// What follows from two lengths together: which of them is the longer one, where a row of both is
// cut, what is done when they are equal.
class TwoLengthsModel {
 public:
  TwoLengthsModel(OnnxBuilder& b, const ModelParams& p)
      : b_(b),
        p_(p),
        random_(p.seed, 78),
        first_{{p.batch, "batch"}, {kColumns}},
        second_{{p.seq, "seq"}, {kColumns}} {}

  void Build() {
    x_ = b_.Input("x", DType::kF32, first_);
    y_ = b_.Input("y", DType::kF32, second_);
    s_ = Op("Gather", {Op("Shape", {x_}), b_.I64(0)});
    t_ = Op("Gather", {Op("Shape", {y_}), b_.I64(0)});
    const int64_t readers = 1 + Pick(2);
    for (int64_t r = 0; r < readers; ++r) {
      // Both are read, that both lengths are known.
      b_.Output(Op("Add", {Op("Add", {Weighted(x_), Weighted(y_)}), Reader()}), DType::kF32,
                {{kColumns}}, StrCat("y", r));
    }
  }

 private:
  static constexpr int64_t kColumns = 4;

  int64_t Pick(int64_t n) {
    return static_cast<int64_t>(random_.Next() % static_cast<uint64_t>(n));
  }
  std::string Op(const std::string& type, const std::vector<std::string>& in) {
    return b_.Op(type, in);
  }
  std::string Cast(const std::string& x, onnx::TensorProto::DataType type) {
    return b_.Op("Cast", {x}, {OnnxBuilder::Int("to", type)});
  }
  std::string List(const std::string& scalar) { return Op("Unsqueeze", {scalar, b_.I64({0})}); }

  // An i64 scalar.
  std::string Number(int depth = 0) {
    switch (depth > 1 ? Pick(4) : Pick(9)) {
      case 0:
      case 1:
        return s_;
      case 2:
      case 3:
        return t_;
      case 4:
        return Op("Add", {Number(depth + 1), Number(depth + 1)});
      case 5:
        return Op("Sub", {Number(depth + 1), Number(depth + 1)});
      case 6:
        return Op(Pick(2) == 0 ? "Min" : "Max", {Number(depth + 1), Number(depth + 1)});
      case 7:
        return Op("Mul", {Number(depth + 1), b_.I64(1 + Pick(3))});
      default:
        return Op("Add", {Number(depth + 1), b_.I64(Pick(5))});
    }
  }

  // [4]: the sum of the rows, each times its number, so that their order counts.
  std::string Weighted(const std::string& rows) {
    const std::string count = Op("Gather", {Op("Shape", {rows}), b_.I64(0)});
    const std::string at =
        Cast(Op("Range", {b_.I64(0), count, b_.I64(1)}), onnx::TensorProto::FLOAT);
    const std::string factors = Op("Unsqueeze", {Op("Add", {at, b_.F32(1)}), b_.I64({1})});
    return b_.Op("ReduceSum", {Op("Mul", {rows, factors}), b_.I64({0})},
                 {OnnxBuilder::Int("keepdims", 0)});
  }

  std::string Both() {
    std::vector<std::string> parts = {Pick(2) == 0 ? x_ : y_, Pick(2) == 0 ? x_ : y_};
    if (Pick(3) == 0) parts.push_back(Pick(2) == 0 ? x_ : y_);
    return b_.Op("Concat", parts, {OnnxBuilder::Int("axis", 0)});
  }

  std::string Cut() {
    const std::string both = Both();
    const std::string at = List(Number());
    const std::string end = List(b_.I64(1 << 20));
    return Weighted(Pick(2) == 0 ? Op("Slice", {both, at, end, b_.I64({0})})
                                 : Op("Slice", {both, b_.I64({0}), at, b_.I64({0})}));
  }

  std::string Halved() {
    const std::string both = b_.Op("Concat", {x_, y_}, {OnnxBuilder::Int("axis", 0)});
    const std::string lengths =
        b_.Op("Concat", {List(t_), List(s_)}, {OnnxBuilder::Int("axis", 0)});
    const std::vector<std::string> parts =
        b_.MultiOp("Split", {both, lengths}, {OnnxBuilder::Int("axis", 0)}, 2);
    return Op("Sub", {Weighted(parts[0]), Weighted(parts[1])});
  }

  std::string Alternative(const std::string& x) {
    static constexpr const char* kFunctions[] = {"Neg",  "Abs",      "Floor", "Ceil",
                                                 "Relu", "Softsign", "Round", "Identity"};
    return Op(kFunctions[Pick(8)], {x});
  }

  std::string Condition() {
    static constexpr const char* kCompare[] = {"Equal", "Less", "Greater", "GreaterOrEqual",
                                               "LessOrEqual"};
    return Op(kCompare[Pick(5)], {Number(), Pick(3) == 0 ? b_.I64(1 + Pick(9)) : Number()});
  }

  std::string Chosen() {
    const std::string x = Pick(2) == 0 ? x_ : y_;
    return Weighted(Op("Where", {Condition(), Alternative(x), Alternative(x)}));
  }

  std::string Scaled() {
    return Op("Mul", {Weighted(x_), Cast(Number(), onnx::TensorProto::FLOAT)});
  }

  std::string Padded() {
    const std::string less = Op("Max", {Op("Sub", {s_, t_}), b_.I64(0)});
    const std::string pads = b_.Op("Concat", {b_.I64({0, 0}), List(less), List(b_.I64(0))},
                                   {OnnxBuilder::Int("axis", 0)});
    return Weighted(Op("Pad", {y_, pads, b_.F32(1)}));
  }

  std::string Gathered() {
    const std::string both = Both();
    const std::string from = Number(1);
    const std::string to = Op("Add", {from, Pick(2) == 0 ? s_ : t_});
    const std::string last = Op("Sub", {Op("Gather", {Op("Shape", {both}), b_.I64(0)}), b_.I64(1)});
    const std::string all = Op("Max", {Op("Range", {from, to, b_.I64(1)}), b_.I64(0)});
    const std::string at = Op("Min", {all, last});
    return Weighted(Op("Gather", {both, at}));
  }

  std::string Reader() {
    switch (Pick(7)) {
      case 0:
      case 1:
        return Cut();
      case 2:
        return Halved();
      case 3:
        return Chosen();
      case 4:
        return Scaled();
      case 5:
        return Padded();
      default:
        return Gathered();
    }
  }

  OnnxBuilder& b_;
  const ModelParams& p_;
  Random random_;
  const std::vector<NamedDim> first_;
  const std::vector<NamedDim> second_;
  std::string x_;
  std::string y_;
  std::string s_;
  std::string t_;
};

}  // namespace

void BuildTwoLengths(OnnxBuilder& b, const ModelParams& p) { TwoLengthsModel(b, p).Build(); }

}  // namespace fusion
