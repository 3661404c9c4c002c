#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {

// `depth` steps of one cell, unrolled: x [steps, B, cols], state [B, hidden].
void BuildLstmCell(OnnxBuilder& b, const ModelParams& p) {
  std::vector<NamedDim> state = {{p.batch}, {p.hidden}};
  std::string x = b.Input("x", DType::kF32, {{p.depth}, {p.batch}, {p.cols}});
  std::string h = b.Input("h0", DType::kF32, state);
  std::string c = b.Input("c0", DType::kF32, state);
  std::string input_weight = b.Weight("weight_ih", {p.cols, 4 * p.hidden});
  std::string state_weight = b.Weight("weight_hh", {p.hidden, 4 * p.hidden});
  std::string bias = b.Weight("bias", {4 * p.hidden}, 0.02f);
  std::string parts = b.I64({p.hidden, p.hidden, p.hidden, p.hidden});
  for (int64_t t = 0; t < p.depth; ++t) {
    std::string step = b.Op("Gather", {x, b.I64(t)}, {OnnxBuilder::Int("axis", 0)});
    std::string sum =
        b.Op("Add", {b.Op("MatMul", {step, input_weight}), b.Op("MatMul", {h, state_weight})});
    std::vector<std::string> gates =
        b.MultiOp("Split", {b.Op("Add", {sum, bias}), parts}, {OnnxBuilder::Int("axis", 1)}, 4);
    std::string kept = b.Op("Mul", {b.Op("Sigmoid", {gates[1]}), c});
    std::string added = b.Op("Mul", {b.Op("Sigmoid", {gates[0]}), b.Op("Tanh", {gates[2]})});
    c = b.Op("Add", {kept, added});
    h = b.Op("Mul", {b.Op("Sigmoid", {gates[3]}), b.Op("Tanh", {c})});
  }
  b.Output(h, DType::kF32, state, "h");
  b.Output(c, DType::kF32, state, "c");
}

void BuildLstm(OnnxBuilder& b, const ModelParams& p) {
  const NamedDim steps = {p.depth, "seq"};
  const NamedDim batch = {p.batch, "batch"};
  std::string x = b.Input("x", DType::kF32, {steps, batch, {p.cols}});
  std::vector<std::string> out = b.MultiOp(
      "LSTM",
      {x, b.Weight("W", {1, 4 * p.hidden, p.cols}, 0.06f),
       b.Weight("R", {1, 4 * p.hidden, p.hidden}, 0.06f), b.Weight("B", {1, 8 * p.hidden}, 0.02f)},
      {OnnxBuilder::Int("hidden_size", p.hidden)}, 3);
  std::vector<NamedDim> state = {{1}, batch, {p.hidden}};
  b.Output(out[0], DType::kF32, {steps, {1}, batch, {p.hidden}}, "y");
  b.Output(out[1], DType::kF32, state, "h");
  b.Output(out[2], DType::kF32, state, "c");
}

// v = tanh(v W + b + x), as often as `passes` says; all of them are kept.
void BuildLoop(OnnxBuilder& b, const ModelParams& p) {
  std::vector<NamedDim> state = {{p.batch}, {p.hidden}};
  std::string passes = b.Input("passes", DType::kI64, {}, InputFill::kPositions, p.depth);
  std::string x = b.Input("x", DType::kF32, state);
  std::string w = b.Weight("weight", {p.hidden, p.hidden});
  std::string bias = b.Weight("bias", {p.hidden}, 0.02f);
  OnnxBuilder body("body", p.seed);
  body.Input("pass", DType::kI64, {});
  std::string goes = body.Input("goes", DType::kBool, {});
  std::string v = body.Input("v", DType::kF32, state);
  std::string sum = body.Op("Add", {body.Op("MatMul", {v, w}), bias});
  std::string next = body.Op("Tanh", {body.Op("Add", {sum, x})});
  body.Output(body.Op("Identity", {goes}), DType::kBool, {});
  body.Output(next, DType::kF32, state, "next");
  body.Output(next, DType::kF32, state, "kept");
  std::vector<std::string> out =
      b.MultiOp("Loop", {passes, "", x}, {OnnxBuilder::Body("body", std::move(body))}, 2);
  b.Output(out[0], DType::kF32, state, "last");
  b.Output(out[1], DType::kF32, {{p.depth, "passes"}, {p.batch}, {p.hidden}}, "all");
}

}  // namespace fusion
