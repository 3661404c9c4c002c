#include "core/graph/graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

constexpr const char* kAttention = R"(graph "attention" {
  %0 = input "q" : f32[2,5,4]
  %1 = input "k" : f32[2,7,4]
  %2 = input "v" : f32[2,7,3]
  %3 = const "scale" : f32[] {0x1p-1}
  %4 = Transpose(%1) {perm=[0, 2, 1]} : f32[2,4,7]  "kt" @ "t"
  %5 = MatMul(%0, %4) : f32[2,5,7]  "s" @ "qk"
  %6 = Mul(%5, %3) : f32[2,5,7]  "scaled" @ "scale"
  %7 = Softmax(%6) {axis=-1} : f32[2,5,7]  "p" @ "sm"
  %8 = MatMul(%7, %2) : f32[2,5,3]  "o" @ "pv"
  output %8
}
)";

HostTensor Random(Dims dims, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  HostTensor t(DType::kF32, std::move(dims));
  for (float& v : t.data<float>()) v = normal(rng);
  return t;
}

absl::StatusOr<const HostTensor*> NoWeights(TensorId) { return NotFound("no weights"); }

TEST(GraphText, PrintsWhatItParses) {
  auto graph = ParseGraph(kAttention);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(ToString(*graph), kAttention);
  EXPECT_TRUE(Verify(*graph).ok());
}

TEST(GraphText, HostileNamesSurvive) {
  GraphBuilder b("\"*/ \n\\");
  TensorId x = b.AddInput("in\"\\\n*/", {DType::kF32, {2}});
  auto y = b.AddNode("Relu", {x}, {}, "rm -rf \"$HOME\"; */", "\xff\x01");
  ASSERT_TRUE(y.ok());
  b.MarkOutput(*y);
  auto graph = b.Build();
  ASSERT_TRUE(graph.ok());
  std::string text = ToString(*graph);
  auto back = ParseGraph(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->node(0).name, "rm -rf \"$HOME\"; */");
  EXPECT_EQ(ToString(*back), text);
}

TEST(GraphText, ErrorsSayWhere) {
  auto bad = ParseGraph("graph \"g\" {\n  %0 = input \"x\" : f32[2]\n  %1 = Nope(%0)\n}");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(Message(bad.status()).find("line 3, column 8: expected the name of a known op"),
            std::string_view::npos)
      << bad.status();
}

TEST(Evaluate, AttentionEqualsTheFormula) {
  auto graph = ParseGraph(kAttention);
  ASSERT_TRUE(graph.ok());
  std::vector<HostTensor> inputs = {Random({2, 5, 4}, 1), Random({2, 7, 4}, 2),
                                    Random({2, 7, 3}, 3)};
  auto out = Evaluate(*graph, inputs, NoWeights);
  ASSERT_TRUE(out.ok()) << out.status();
  auto at = [&](int t, int b, int i, int j) {
    const Dims& d = inputs[static_cast<size_t>(t)].dims();
    return inputs[static_cast<size_t>(t)].GetDouble((b * d[1] + i) * d[2] + j);
  };
  for (int b = 0; b < 2; ++b) {
    for (int m = 0; m < 5; ++m) {
      double sum = 0;
      double acc[3] = {};
      for (int l = 0; l < 7; ++l) {
        double s = 0;
        for (int k = 0; k < 4; ++k) s += at(0, b, m, k) * at(1, b, l, k);
        double e = std::exp(s * 0.5);
        sum += e;
        for (int n = 0; n < 3; ++n) acc[n] += e * at(2, b, l, n);
      }
      for (int n = 0; n < 3; ++n) {
        EXPECT_NEAR((*out)[0].GetDouble((b * 5 + m) * 3 + n), acc[n] / sum, 1e-6);
      }
    }
  }
}

TEST(BuildProgram, AReinterpretationKeepsTheOrderOfItsInput) {
  // The only reader transposes: of a computed value that would choose how it is stored.
  auto graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[13,7,2]
  %1 = Reshape(%0) {shape=[7, 26]} : f32[7,26]  "" @ ""
  %2 = Transpose(%1) {perm=[1, 0]} : f32[26,7]  "" @ ""
  output %2
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->op(0).kind, LoopOp::kReinterpret);
  EXPECT_TRUE(program->value(program->op(0).output).order.empty());
}

TEST(Evaluate, BoxesEqualTheWholeForAbsorbedAndPlainPrograms) {
  auto graph = ParseGraph(kAttention);
  ASSERT_TRUE(graph.ok());
  std::vector<HostTensor> inputs = {Random({2, 5, 4}, 1), Random({2, 7, 4}, 2),
                                    Random({2, 7, 3}, 3)};
  auto whole = Evaluate(*graph, inputs, NoWeights, {.threads = 2});
  ASSERT_TRUE(whole.ok());
  for (bool absorb : {false, true}) {
    auto program = BuildProgram(*graph, {.absorb_views = absorb});
    ASSERT_TRUE(program.ok());
    Box box{{1, 2, 0}, {2, 4, 3}};
    auto part = EvaluateBoxes(*program, {box}, [&](ValueId id) -> const HostTensor* {
      return &inputs[static_cast<size_t>(program->value(id).index)];
    });
    ASSERT_TRUE(part.ok()) << part.status();
    EXPECT_EQ((*part)[0].dims(), (Dims{1, 2, 3}));
    for (int64_t i = 0; i < 6; ++i) {
      EXPECT_EQ((*part)[0].GetDouble(i), (*whole)[0].GetDouble((5 + 2) * 3 + i));
    }
  }
}

TEST(Program, ViewsBecomeIndexMaps) {
  auto graph = ParseGraph(R"(graph "heads" {
  %0 = input "x" : f32[1,6,8]
  %1 = Reshape(%0) {shape=[1, 6, 2, 4]} : f32[1,6,2,4]  "" @ ""
  %2 = Transpose(%1) {perm=[0, 2, 1, 3]} : f32[1,2,6,4]  "" @ ""
  %3 = Exp(%2) : f32[1,2,6,4]  "" @ ""
  %4 = Transpose(%3) {perm=[0, 2, 1, 3]} : f32[1,6,2,4]  "" @ ""
  %5 = Reshape(%4) {shape=[1, 6, 8]} : f32[1,6,8]  "" @ ""
  %6 = Neg(%5) : f32[1,6,8]  "" @ ""
  output %6
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok());
  ASSERT_EQ(program->ops.size(), 2u) << ToString(*program);
  // The intermediate is stored as its reader wants it: rows of heads.
  EXPECT_EQ(program->value(program->ops[0].output).order, (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(ToString(*program), ToString(*ParseProgram(ToString(*program))));
  auto inputs = std::vector<HostTensor>{Random({1, 6, 8}, 9)};
  auto reference = Evaluate(*graph, inputs, NoWeights);
  auto absorbed = EvaluateBoxes(*program, {Box::Whole({1, 6, 8})},
                                [&](ValueId) -> const HostTensor* { return &inputs[0]; });
  ASSERT_TRUE(reference.ok() && absorbed.ok());
  EXPECT_EQ((*reference)[0], (*absorbed)[0]);
}

TEST(Program, ReshapeWithoutCommonFactorsIsABarrier) {
  auto graph = ParseGraph(R"(graph "r" {
  %0 = input "x" : f32[6,4]
  %1 = Exp(%0) : f32[6,4]  "" @ ""
  %2 = Reshape(%1) {shape=[4, 6]} : f32[4,6]  "" @ ""
  %3 = ReduceSum(%2) {axes=[1]} : f32[4,1]  "" @ ""
  output %3
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto program = BuildProgram(*graph);
  ASSERT_TRUE(program.ok());
  ASSERT_EQ(program->ops.size(), 3u);
  EXPECT_EQ(program->ops[1].kind, LoopOp::kReinterpret);
  std::vector<HostTensor> inputs = {Random({6, 4}, 4)};
  auto out = Evaluate(*graph, inputs, NoWeights);
  ASSERT_TRUE(out.ok());
  double sum = 0;
  for (int i = 0; i < 6; ++i) sum += std::exp(inputs[0].GetDouble(i));
  EXPECT_NEAR((*out)[0].GetDouble(0), sum, 1e-5);
}

TEST(Builder, ShapeArithmeticFoldsAway) {
  GraphBuilder b;
  TensorId x = b.AddInput("x", {DType::kF32, {2, 3, 8}});
  TensorId shape = b.AddNode("Shape", {x}).value();
  TensorId one = b.AddConstant("", HostTensor::FromValues<int64_t>(DType::kI64, {}, {1}));
  TensorId dim = b.AddNode("Gather", {shape, one}).value();
  TensorId vec = b.AddNode("Unsqueeze", {dim}, {{"axes", std::vector<int64_t>{0}}}).value();
  TensorId rest = b.AddConstant("", HostTensor::FromValues<int64_t>(DType::kI64, {2}, {2, 4}));
  TensorId joined = b.AddNode("Concat", {vec, rest}, {{"axis", int64_t{0}}}).value();
  ASSERT_NE(b.ConstantValue(joined), nullptr);
  EXPECT_EQ(TensorToText(*b.ConstantValue(joined)), "i64[3] {3, 2, 4}");
}

TEST(Program, GatherAtKnownPlacesIsAView) {
  for (const std::vector<int64_t>& ids : {std::vector<int64_t>{-1}, {1, 3, 5}, {4, 0, 1}}) {
    GraphBuilder b;
    TensorId x = b.AddInput("x", {DType::kF32, {6, 8}});
    auto n = static_cast<int64_t>(ids.size());
    HostTensor indices(DType::kI64, {n});
    for (int64_t i = 0; i < n; ++i) indices.SetInt(i, ids[static_cast<size_t>(i)]);
    TensorId at = b.AddConstant("", std::move(indices));
    TensorId picked = b.AddNode("Gather", {x, at}, {{"axis", int64_t{0}}}).value();
    b.MarkOutput(b.AddNode("Exp", {picked}).value());
    auto graph = b.Build();
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto program = BuildProgram(*graph);
    ASSERT_TRUE(program.ok()) << program.status();
    bool spaced = ids != std::vector<int64_t>{4, 0, 1};
    EXPECT_EQ(program->ops.size(), spaced ? 1u : 2u);
    EXPECT_EQ(program->ops[0].inputs.size(), spaced ? 1u : 2u);
  }
}

TEST(Builder, ErrorsNameTheNode) {
  GraphBuilder b;
  TensorId x = b.AddInput("x", {DType::kF32, {2, 3}});
  auto bad = b.AddNode("Softmax", {x}, {{"axis", int64_t{7}}}, "attn/softmax_3");
  EXPECT_EQ(Message(bad.status()),
            "node \"attn/softmax_3\" (Softmax): axis 7 out of range for rank 2; expected -2..1");
  auto unknown = b.AddNode("Frobnicate", {x}, {}, "f");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(Message(unknown.status()).find("fusionctl capabilities --ops"), std::string_view::npos);
}

TEST(Builder, SymbolsStayOpen) {
  auto graph = ParseGraph(R"(graph "dyn" {
  symbol s0 "seq" min 1 max 512 multiple 1 likely [128]
  %0 = input "x" : f32[1,s0,8]
  %1 = Softmax(%0) {axis=-1} : f32[1,s0,8]  "y" @ "sm"
  output %1
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(BuildProgram(*graph).ok());
}

TEST(Builder, TensorsBeyondTheLimitAreRefused) {
  TensorType row{DType::kF32, {1, int64_t{1} << 30}};
  TensorType column{DType::kF32, {int64_t{1} << 30, 1}};
  GraphBuilder b;
  auto y = b.AddNode("Add", {b.AddInput("x", row), b.AddInput("c", column)}, {}, "big");
  EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Message(y.status()),
      "node \"big\" (Add): shape [1073741824,1073741824]: 4611686018427387904 bytes, expected "
      "at most 17592186044416");

  GraphBuilder input;
  input.MarkOutput(input.AddInput("x", {DType::kF32, {int64_t{1} << 30, int64_t{1} << 30}}));
  EXPECT_EQ(
      Message(input.Build().status()),
      "tensor \"x\": shape [1073741824,1073741824]: 4611686018427387904 bytes, expected at most "
      "17592186044416");
}

TEST(Builder, TensorsTogetherAreLimitedToo) {
  for (int tensors : {4, 5}) {
    GraphBuilder b;
    for (int i = 0; i < tensors; ++i) {
      b.MarkOutput(b.AddInput("x", {DType::kU8, {kMaxTensorBytes / 4}}));
    }
    EXPECT_EQ(b.Build().ok(), tensors == 4) << tensors;
  }
}

TEST(Evaluate, RowsAreDividedByTheirNorm) {
  auto graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[2,2]
  %1 = LpNormalization(%0) {axis=1} : f32[2,2]  "" @ ""
  %2 = LpNormalization(%0) {axis=0, p=1} : f32[2,2]  "" @ ""
  output %1
  output %2
}
)");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto out = Evaluate(
      *graph, {HostTensor::FromValues(DType::kF32, {2, 2}, {3.0F, -4.0F, 0.0F, 2.0F})}, NoWeights);
  ASSERT_TRUE(out.ok()) << out.status();
  const double expected[2][4] = {{0.6, -0.8, 0, 1}, {1, -4.0 / 6, 0, 2.0 / 6}};
  for (int o = 0; o < 2; ++o) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR((*out)[static_cast<size_t>(o)].GetDouble(i), expected[o][i], 1e-6) << o << i;
    }
  }
}

TEST(Evaluate, ManyInputsAreJoinedInOrder) {
  constexpr int kInputs = 301;
  GraphBuilder b;
  std::vector<TensorId> inputs;
  std::vector<HostTensor> values;
  for (int i = 0; i < kInputs; ++i) {
    int64_t rows = i % 3;  // empty pieces too
    inputs.push_back(b.AddInput(StrCat("x", i), {DType::kI32, {rows}}));
    values.emplace_back(DType::kI32, Dims{rows});
    for (int64_t k = 0; k < rows; ++k) values.back().SetInt(k, 10 * i + k);
  }
  AttrMap attrs;
  attrs.Set("axis", int64_t{0});
  b.MarkOutput(b.AddNode("Concat", inputs, attrs).value());
  auto graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto out = Evaluate(*graph, values, NoWeights);
  ASSERT_TRUE(out.ok()) << out.status();
  int64_t at = 0;
  for (const HostTensor& piece : values) {
    for (int64_t k = 0; k < piece.elements(); ++k) {
      ASSERT_EQ((*out)[0].GetInt(at++), piece.GetInt(k));
    }
  }
  EXPECT_EQ(at, (*out)[0].elements());
}

TEST(Evaluate, WhatNoMachineHoldsIsRefused) {
  constexpr int64_t kSide = 2'000'000;
  GraphBuilder b;
  TensorId x = b.AddInput("x", {DType::kF32, {kSide, 1}});
  TensorId y = b.AddInput("y", {DType::kF32, {1, kSide}});
  b.MarkOutput(b.AddNode("MatMul", {x, y}, {}, "outer").value());
  auto graph = b.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto out = Evaluate(*graph, {Random({kSide, 1}, 1), Random({1, kSide}, 2)}, NoWeights);
  EXPECT_TRUE(absl::IsResourceExhausted(out.status())) << out.status();
}

TEST(Canonical, NamesAndNodeOrderDoNotMatter) {
  auto build = [](bool swapped, const std::string& suffix) {
    GraphBuilder b("g" + suffix);
    TensorId x = b.AddInput("x" + suffix, {DType::kF32, {4, 8}});
    TensorId w1 = kNoTensor;
    TensorId w2 = kNoTensor;
    TensorType square{DType::kF32, {8, 8}};
    if (swapped) w2 = b.AddWeight("b" + suffix, square);
    w1 = b.AddWeight("a" + suffix, square);
    if (!swapped) w2 = b.AddWeight("b" + suffix, square);
    TensorId left = kNoTensor;
    TensorId right = kNoTensor;
    if (swapped) right = b.AddNode("MatMul", {x, w2}, {}, "r" + suffix).value();
    left = b.AddNode("MatMul", {x, w1}, {}, "l" + suffix).value();
    if (!swapped) right = b.AddNode("MatMul", {x, w2}, {}, "r" + suffix).value();
    b.AddNode("Relu", {x}, {}, "dead").value();
    b.MarkOutput(b.AddNode("Add", {left, right}, {}, "sum").value());
    return Canonicalise(*b.Build()).value();
  };
  CanonicalGraph a = build(false, "1");
  CanonicalGraph b = build(true, "2");
  EXPECT_EQ(a.key_text, b.key_text);
  EXPECT_EQ(a.weight_names, (std::vector<std::string>{"a1", "b1"}));
  EXPECT_EQ(b.weight_names, (std::vector<std::string>{"a2", "b2"}));
  EXPECT_EQ(b.node_names, (std::vector<std::string>{"l2", "r2", "sum"}));
}

TEST(Canonical, OneWeightTwiceDiffersFromTwoWeights) {
  auto build = [](bool shared) {
    GraphBuilder b;
    TensorId x = b.AddInput("x", {DType::kF32, {4, 8}});
    TensorId w1 = b.AddWeight("a", {DType::kF32, {8, 8}});
    TensorId w2 = shared ? w1 : b.AddWeight("b", {DType::kF32, {8, 8}});
    TensorId y = b.AddNode("MatMul", {x, w1}).value();
    b.MarkOutput(b.AddNode("MatMul", {y, w2}).value());
    return Canonicalise(*b.Build())->key_text;
  };
  EXPECT_NE(build(true), build(false));
}

}  // namespace
}  // namespace fusion
