#include <algorithm>

#include "tests/models/models.h"

namespace fusion {
namespace {

// Random arithmetic on lengths, and ops whose meaning it decides.
class LengthModel {
 public:
  LengthModel(OnnxBuilder& b, const ModelParams& p)
      : b_(b),
        p_(p),
        random_(p.seed, 77),
        rows_{{p.batch, "batch"}, {kColumns}},
        whole_{{p.batch, "batch"}, {p.seq, "seq"}, {kColumns}} {}

  void Build() {
    x_ = b_.Input("x", DType::kF32, whole_);
    const std::string shape = b_.Op("Shape", {x_});
    seq_ = b_.Op("Gather", {shape, b_.I64(1)});
    batch_ = b_.Op("Gather", {shape, b_.I64(0)});
    const int64_t readers = 1 + Pick(2);
    for (int64_t r = 0; r < readers; ++r) {
      b_.Output(Reader(), DType::kF32, rows_, StrCat("y", r));
    }
  }

 private:
  static constexpr int64_t kColumns = 4;

  int64_t Pick(int64_t n) {
    return static_cast<int64_t>(random_.Next() % static_cast<uint64_t>(n));
  }
  std::string Small() { return b_.I64(Pick(24)); }
  std::string Op(const std::string& type, const std::vector<std::string>& in) {
    return b_.Op(type, in);
  }
  std::string Cast(const std::string& x, onnx::TensorProto::DataType type) {
    return b_.Op("Cast", {x}, {OnnxBuilder::Int("to", type)});
  }
  std::string List(const std::string& scalar) { return Op("Unsqueeze", {scalar, b_.I64({0})}); }

  // A bool scalar.
  std::string Condition(int depth) {
    static constexpr const char* kCompare[] = {"Equal", "Less", "Greater", "GreaterOrEqual",
                                               "LessOrEqual"};
    std::string c = Op(kCompare[Pick(5)], {Number(depth + 1), Pick(2) == 0 ? Far() : Small()});
    if (Pick(5) == 0) c = Op("Not", {c});
    if (Pick(6) == 0) c = Op(Pick(2) == 0 ? "And" : "Or", {c, Condition(depth + 1)});
    return c;
  }

  // Somewhere within long ranges.
  std::string Far() { return b_.I64(1 + Pick(300)); }

  // An i64 scalar.
  std::string Number(int depth) {
    const int64_t what = depth > 2 ? Pick(4) : Pick(20);
    switch (what) {
      case 0:
        return Small();
      case 1:
        return Pick(4) == 0 ? batch_ : Far();
      case 2:
      case 3:
      case 4:
        return seq_;
      case 5:
        return Op("Add", {Number(depth + 1), Small()});
      case 6:
        return Op("Sub", {Number(depth + 1), Pick(2) == 0 ? Far() : Small()});
      case 7:
        return Op("Mul", {Number(depth + 1), b_.I64(1 + Pick(3))});
      case 8:
        return Op("Min", {Number(depth + 1), Pick(2) == 0 ? Far() : Small()});
      case 9:
        return Op("Max", {Number(depth + 1), Pick(2) == 0 ? Far() : Small()});
      case 10:
        return Op("Clip", {Number(depth + 1), b_.I64(Pick(8)), b_.I64(8 + Pick(100))});
      case 11:
        return Op("Where", {Condition(depth + 1), Number(depth + 1), Small()});
      case 12:
        return Op("Div", {Number(depth + 1), b_.I64(2 + Pick(4))});
      case 13:
        return Op("Mod", {Number(depth + 1), b_.I64(2 + Pick(7))});
      case 14:
        return Op("Abs", {Op("Sub", {Number(depth + 1), Far()})});
      case 15: {
        const std::string half =
            Op("Mul", {Cast(Number(depth + 1), onnx::TensorProto::FLOAT), b_.F32(0.5F)});
        static constexpr const char* kRound[] = {"Floor", "Ceil", "Round", "Identity"};
        return Cast(Op(kRound[Pick(4)], {half}), onnx::TensorProto::INT64);
      }
      case 16: {
        const std::string both =
            b_.Op("Concat", {List(Number(depth + 1)), List(Far())}, {OnnxBuilder::Int("axis", 0)});
        return b_.Op(Pick(2) == 0 ? "ReduceMax" : "ReduceMin", {both},
                     {OnnxBuilder::Int("keepdims", 0)});
      }
      case 17:
        return Cast(Condition(depth + 1), onnx::TensorProto::INT64);
      case 18: {
        HostTensor table(DType::kI64, {8});
        for (int64_t i = 0; i < 8; ++i) table.SetInt(i, Pick(30));
        return Op("Gather", {b_.Initializer("table", table), Bounded(0, 7, depth + 1)});
      }
      default:
        return Op("Sign", {Op("Sub", {Number(depth + 1), Far()})});
    }
  }

  std::string Bounded(int64_t least, int64_t most, int depth = 0) {
    return Op("Clip", {Number(depth), b_.I64(least), b_.I64(most)});
  }

  // [batch, 4] of something that has a sequence in between.
  std::string Summed(const std::string& x) {
    return b_.Op("ReduceSum", {x, b_.I64({1})}, {OnnxBuilder::Int("keepdims", 0)});
  }

  std::string Scaled() {
    return Summed(Op("Mul", {x_, Cast(Number(0), onnx::TensorProto::FLOAT)}));
  }
  std::string Sliced() {
    return Summed(Op("Slice", {x_, List(Number(0)), List(Number(0)), b_.I64({1})}));
  }
  std::string Padded() {
    const std::string zeros = b_.I64({0, 0, 0, 0});
    const std::string pads = b_.Op("Concat", {zeros, List(Bounded(0, 20)), List(b_.I64(0))},
                                   {OnnxBuilder::Int("axis", 0)});
    return b_.Op("ReduceMean", {Op("Pad", {x_, pads, b_.F32(1)})},
                 {OnnxBuilder::Ints("axes", {1}), OnnxBuilder::Int("keepdims", 0)});
  }
  std::string LookedUp() {
    return Op("Add", {Summed(x_), Op("Gather", {b_.Weight("rows", {8, kColumns}), Bounded(0, 7)})});
  }
  std::string Branched() {
    OnnxBuilder yes("then", p_.seed);
    OnnxBuilder no("else", p_.seed);
    yes.Output(yes.Op("Mul", {x_, yes.F32(2)}), DType::kF32, whole_);
    no.Output(no.Op("Add", {x_, no.F32(1)}), DType::kF32, whole_);
    return Summed(b_.Op("If", {Condition(0)},
                        {OnnxBuilder::Body("then_branch", std::move(yes)),
                         OnnxBuilder::Body("else_branch", std::move(no))}));
  }
  std::string Looped() {
    OnnxBuilder body("body", p_.seed);
    body.Input("pass", DType::kI64, {});
    const std::string goes = body.Input("goes", DType::kBool, {});
    const std::string v = body.Input("v", DType::kF32, rows_);
    body.Output(body.Op("Identity", {goes}), DType::kBool, {});
    body.Output(body.Op("Add", {body.Op("Mul", {v, body.F32(0.5F)}), body.F32(1)}), DType::kF32,
                rows_, "next");
    return b_.MultiOp("Loop", {Bounded(0, 6), "", Summed(x_)},
                      {OnnxBuilder::Body("body", std::move(body))}, 1)[0];
  }
  std::string Expanded() {
    const std::string shape = b_.Op("Concat", {List(Bounded(1, 9)), List(b_.I64(kColumns))},
                                    {OnnxBuilder::Int("axis", 0)});
    const std::string rows = Op("Expand", {b_.Weight("row", {1, kColumns}), shape});
    return Op("Add", {Summed(x_),
                      b_.Op("ReduceSum", {rows, b_.I64({0})}, {OnnxBuilder::Int("keepdims", 0)})});
  }
  std::string Counted() {
    const std::string most = Cast(Bounded(0, 30), onnx::TensorProto::FLOAT);
    const std::string all = Op("Range", {b_.F32(0), most, b_.F32(1)});
    return Op("Add", {Summed(x_),
                      b_.Op("ReduceSum", {all, b_.I64({0})}, {OnnxBuilder::Int("keepdims", 0)})});
  }
  std::string Masked() {
    const std::string at = Op("Range", {b_.I64(0), seq_, b_.I64(1)});
    const std::string seen = Op("Unsqueeze", {Op("Less", {at, Number(0)}), b_.I64({1})});
    return Summed(Op("Where", {seen, x_, b_.F32(0)}));
  }
  std::string Largest() {
    const std::string k = List(Op("Min", {Bounded(1, 5), seq_}));
    return Summed(b_.MultiOp("TopK", {x_, k}, {OnnxBuilder::Int("axis", 1)}, 2)[0]);
  }
  std::string Triangle() {
    const std::string flat = b_.Op("Transpose", {x_}, {OnnxBuilder::Ints("perm", {0, 2, 1})});
    const std::string scores = Op("MatMul", {x_, flat});
    const std::string kept = Op("Trilu", {scores, Number(1)});
    return Summed(Op("MatMul", {kept, x_}));
  }

  std::string Reader() {
    switch (Pick(11)) {
      case 0:
        return Scaled();
      case 1:
        return Sliced();
      case 2:
        return Padded();
      case 3:
        return LookedUp();
      case 4:
        return Branched();
      case 5:
        return Looped();
      case 6:
        return Expanded();
      case 7:
        return Counted();
      case 8:
        return Masked();
      case 9:
        return Largest();
      default:
        return Triangle();
    }
  }

  OnnxBuilder& b_;
  const ModelParams& p_;
  Random random_;
  const std::vector<NamedDim> rows_;
  const std::vector<NamedDim> whole_;
  std::string x_;
  std::string seq_;
  std::string batch_;
};

}  // namespace

void BuildLengths(OnnxBuilder& b, const ModelParams& p) { LengthModel(b, p).Build(); }

}  // namespace fusion
