// Ops of other domains: those a request defines, and those of ONNX Runtime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/custom/custom_ops.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/graph/evaluate/evaluate.h"
#include "tests/support/imported.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kOps = R"(
  op acme.Leak(x) {slope: float = 0.5} = x > 0 ? x : slope * x
  op acme.Rows(x[m, k], y[k]) -> [m] = sum[k] x[m, k] * y[k]
)";

// y = acme.Leak(x) of slope 0.25, z = acme.Rows(y, w).
TestModel LeakingRows() {
  TestModel m;
  m.Input("x", {2, 3}).Input("w", {3});
  m.Node("Leak", {"x"}, {"y"}, "leak").Domain("acme").AttrFloat("slope", 0.25F);
  m.Node("Rows", {"y", "w"}, {"z"}, "rows").Domain("acme").Output("z");
  return m;
}

absl::StatusOr<Graph> ImportWith(TestModel& m, std::string_view text) {
  CustomOps ops = CustomOps::Parse(text).value();
  return ImportOnnx(m.proto(), {.custom_ops = &ops});
}

TEST(CustomOpsImport, AreEvaluatedLikeOthers) {
  TestModel m = LeakingRows();
  auto graph = ImportWith(m, kOps);
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto outputs =
      Evaluate(*graph, {F({2, 3}, {1, -4, 2, -8, 0, 3}), F({3}, {1, 10, 100})},
               [](TensorId) -> absl::StatusOr<const HostTensor*> { return Internal("none"); });
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(DoublesOf((*outputs)[0]), ElementsAre(191, 298));
}

TEST(CustomOpsImport, CountByWhatTheyMean) {
  TestModel m = LeakingRows();
  auto text = [&](std::string_view ops) {
    auto graph = ImportWith(m, ops);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return ToString(Canonicalise(*graph)->graph);
  };
  const std::string other(
      "op acme.Rows(a[i, j], b[j]) -> [i] = sum[j] (a[i, j] * b[j])  # the same\n"
      "op acme.Leak(v) {slope: float} = let s = slope * v; v > 0 ? v : s");
  EXPECT_EQ(text(kOps), text(other));
  EXPECT_NE(text(kOps), text(std::string(kOps.substr(0, kOps.find("op acme.Rows"))) +
                             "op acme.Rows(x[m, k], y[k]) -> [m] = max[k] x[m, k] * y[k]"));
}

TEST(CustomOpsImport, NameNodeAndPlace) {
  TestModel m = LeakingRows();
  EXPECT_THAT(std::string(Message(ImportWith(m, "").status())),
              AllOf(HasSubstr("node \"leak\" (Leak): op \"Leak\" of domain \"acme\""),
                    HasSubstr("custom_ops defines others")));
  const std::string wrong =
      "op acme.Leak(x) {slope: float} = x\nop acme.Rows(x[m, k], y[k]) -> [k] = x[m, k]";
  EXPECT_EQ(
      std::string(Message(ImportWith(m, wrong).status())),
      "node \"rows\" (Rows): custom op acme.Rows: line 2, column 40: m is a dim of an input but no "
      "axis: neither the result nor the reduction names it\n"
      "  op acme.Rows(x[m, k], y[k]) -> [k] = x[m, k]\n"
      "                                         ^");
}

TEST(CustomOpsImport, HidesNoOpOfOurs) {
  TestModel m = OneNode("Custom", {"x"});
  m.AttrString("body", "for d0:2 d1:3 [d0, d1] = map(in0[d0, d1]) : in0");
  EXPECT_THAT(Import(m),
              HasSubstr("op \"Custom\" of domain \"ai.onnx\", opset 17, is not supported"));
}

// ONNX Runtime's attention against the same steps of ONNX.
TEST(MicrosoftAttention, IsItsSteps) {
  TestModel m;
  m.Input("x", {1, 3, 4}).Input("w", {4, 6}).Input("b", {6}).Input("n", {1}, DType::kI32);
  m.Node("Attention", {"x", "w", "b", "n"}, {"y"}, "att").Domain("com.microsoft");
  m.Attr("num_heads", 1).Output("y");
  m.proto().add_opset_import()->set_domain("com.microsoft");
  m.proto().mutable_opset_import(1)->set_version(1);
  HostTensor length(DType::kI32, {1});
  length.SetInt(0, 2);
  const std::vector<HostTensor> in = {
      F({1, 3, 4}, {1, 0, 2, 1, 0, 1, 0, 1, 3, 1, 1, 0}),
      F({4, 6}, {1, 0, 1, 0, 1, 2, 0, 1, 0, 1, 3, 4, 1, 1, 0, 0, 5, 6, 0, 0, 1, 1, 7, 8}),
      F({6}, {0, 0, 0, 0, 1, 1})};
  std::vector<HostTensor> all = in;
  all.push_back(length);
  // The last key is hidden: each row is a mix of the first two values, [19, 23] and [11, 13].
  const std::vector<double> got = ResultOf(m, all);
  ASSERT_EQ(got.size(), 6U);
  for (size_t row = 0; row < 3; ++row) {
    const double share = (got[2 * row] - 11) / 8;
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
    EXPECT_NEAR(got[2 * row + 1], 13 + 10 * share, 1e-4);
  }
  // q0 = [3, 2]; k0 = [2, 1], k1 = [1, 2]: scores 8 and 7, over sqrt 2.
  EXPECT_NEAR((got[0] - 11) / 8, 1 / (1 + std::exp(-1 / std::sqrt(2.0))), 1e-5);
}

TEST(MicrosoftAttention, SaysWhatIsNotSupported) {
  TestModel m;
  m.Input("x", {1, 3, 4}).Input("w", {4, 6}).Input("b", {6}).Input("p", {1}, DType::kI32);
  m.Node("Attention", {"x", "w", "b", "", "", "", "p"}, {"y"}, "att").Domain("com.microsoft");
  m.Attr("num_heads", 1).Output("y");
  m.proto().add_opset_import()->set_domain("com.microsoft");
  m.proto().mutable_opset_import(1)->set_version(1);
  EXPECT_EQ(Import(m),
            "UNIMPLEMENTED: node \"att\" (\"com.microsoft.Attention\"): input 6 "
            "(past_sequence_length, of a "
            "shared buffer) is not supported; input 6 is \"p\"");
}

// A node of com.microsoft on inputs of these types; its attributes are to be added.
TestModel OwnNode(const std::string& op, const std::vector<TensorType>& inputs) {
  TestModel m;
  std::vector<std::string> names;
  for (const TensorType& type : inputs) {
    names.push_back(StrCat("i", names.size()));
    std::vector<TestModel::TestDim> dims;
    for (int64_t extent : type.shape.ToDims()) dims.emplace_back(extent);
    m.Input(names.back(), dims, type.dtype);
  }
  m.Node(op, names, {"y"}, "own").Domain("com.microsoft");
  m.Output("y").proto().add_opset_import()->set_domain("com.microsoft");
  m.proto().mutable_opset_import(1)->set_version(1);
  return m;
}

HostTensor Bytes(Dims dims, std::initializer_list<int64_t> values) {
  HostTensor out(DType::kU8, std::move(dims));
  int64_t i = 0;
  for (int64_t value : values) out.SetInt(i++, value);
  return out;
}

// Row 1 has the keys 0 and 1 before it, of which the mask hides 0; row 0 only that one, which it
// sees all the same. (onnxruntime 1.32: 1, 0.9929998 and 0.0070001 for mask_filter_value -5.)
TEST(MicrosoftAttention, WhatCausalityHidesIsOutOfTheQuestion) {
  TestModel m = OwnNode(
      "Attention",
      {{DType::kF32, {1, 2, 2}}, {DType::kF32, {2, 6}}, {DType::kF32, {6}}, {DType::kI32, {1, 2}}});
  m.Attr("num_heads", 1).Attr("unidirectional", 1).AttrFloat("mask_filter_value", -5);
  HostTensor mask(DType::kI32, {1, 2});
  mask.SetInt(1, 1);
  const std::vector<double> got =
      ResultOf(m, {F({1, 2, 2}, {1, 0, 0, 1}), F({2, 6}, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1}),
                   F({6}, {0, 0, 0, 0, 0, 0}), mask});
  ASSERT_EQ(got.size(), 4U);
  EXPECT_DOUBLE_EQ(got[0], 1);
  EXPECT_DOUBLE_EQ(got[1], 0);
  const double hidden = std::exp(-5.0) / (1 + std::exp(-5.0));
  EXPECT_NEAR(got[2], hidden, 1e-6);
  EXPECT_NEAR(got[3], 1 - hidden, 1e-6);
}

// Queries of 0 take the mean of what they see: not what is behind the prompt of a batch entry, and
// nothing where the window holds nothing else. (As onnxruntime 1.32 has it.)
TEST(MicrosoftGroupQueryAttention, DoesNotSeePadding) {
  for (const int64_t window : {-1, 1}) {
    TestModel m;
    m.Input("q", {2, 3, 1}).Input("v", {2, 3, 1}).Input("lengths", {2}, DType::kI32);
    HostTensor total(DType::kI32, {});
    total.SetInt(0, 3);
    m.Initializer("total", total);
    m.Node("GroupQueryAttention", {"q", "v", "v", "", "", "lengths", "total"}, {"y"}, "own");
    m.Domain("com.microsoft").Attr("num_heads", 1).Attr("kv_num_heads", 1);
    m.Attr("local_window_size", window)
        .Output("y")
        .proto()
        .add_opset_import()
        ->set_domain("com.microsoft");
    m.proto().mutable_opset_import(1)->set_version(1);
    HostTensor lengths(DType::kI32, {2});
    lengths.SetInt(0, 1);
    lengths.SetInt(1, 2);
    const std::vector<double> got = ResultOf(
        m, {F({2, 3, 1}, {0, 0, 0, 0, 0, 0}), F({2, 3, 1}, {1, 2, 4, 8, 16, 32}), lengths});
    const std::vector<double> all = {1, 1.5, 1.5, 8, 12, 56.0 / 3};
    const std::vector<double> own = {1, 2, 0, 8, 16, 32};
    ASSERT_EQ(got.size(), 6U);
    for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[i], (window < 0 ? all : own)[i], 1e-6) << i;
  }
}

// Pairs of (3, 4) turned by a right angle, at position 1.
TEST(MicrosoftRotaryEmbedding, TurnsHalvesOrNeighbours) {
  for (int64_t interleaved : {0, 1}) {
    TestModel m = OwnNode("RotaryEmbedding", {{DType::kF32, {1, 1, 4}},
                                              {DType::kI64, {1}},
                                              {DType::kF32, {2, 2}},
                                              {DType::kF32, {2, 2}}});
    m.Attr("interleaved", interleaved);
    HostTensor position(DType::kI64, {1});
    position.SetInt(0, 1);
    const std::vector<double> got = ResultOf(m, {F({1, 1, 4}, {3, 4, 5, 6}), position,
                                                 F({2, 2}, {1, 1, 0, 1}), F({2, 2}, {0, 0, 1, 0})});
    const std::vector<double> halves = {-5, 4, 3, 6};
    const std::vector<double> neighbours = {-4, 3, 5, 6};
    EXPECT_EQ(got, interleaved == 0 ? halves : neighbours);
  }
}

// (3 - 1) * 0.5 + (5 - 2) * 0.25 = 1.75, a quarter of which is 7.
TEST(MicrosoftQlinear, AddsWhatTheNumbersStandFor) {
  const TensorType u8 = {DType::kU8, {1}};
  const TensorType one = {DType::kF32, {}};
  const TensorType zero = {DType::kU8, {}};
  TestModel m = OwnNode("QLinearAdd", {u8, one, zero, u8, one, zero, one, zero});
  EXPECT_EQ(ResultOf(m, {Bytes({1}, {3}), F({}, {0.5}), Bytes({}, {1}), Bytes({1}, {5}),
                         F({}, {0.25}), Bytes({}, {2}), F({}, {0.25}), Bytes({}, {10})}),
            std::vector<double>{17});
}

// (1 + 2 + 6 - 3 * 1) * 0.5 / 3 = 1, a quarter of which is 4.
TEST(MicrosoftQlinear, TakesTheMeanOfWhatTheNumbersStandFor) {
  const TensorType one = {DType::kF32, {}};
  const TensorType zero = {DType::kU8, {}};
  TestModel m = OwnNode("QLinearReduceMean", {{DType::kU8, {3}}, one, zero, one, zero});
  m.Attr("axes", std::vector<int64_t>{0});
  EXPECT_EQ(ResultOf(m, {Bytes({3}, {1, 2, 6}), F({}, {0.5}), Bytes({}, {1}), F({}, {0.25}),
                         Bytes({}, {10})}),
            std::vector<double>{14});
}

// Two pixels of two channels; each of three results is w[m, 0, 0, :] times the channels, plus b[m].
TEST(MicrosoftNhwcConv, HasItsChannelsLast) {
  TestModel m = OwnNode(
      "NhwcConv", {{DType::kF32, {1, 1, 2, 2}}, {DType::kF32, {3, 1, 1, 2}}, {DType::kF32, {3}}});
  EXPECT_EQ(ResultOf(m, {F({1, 1, 2, 2}, {1, 2, 3, 4}), F({3, 1, 1, 2}, {1, 0, 0, 1, 10, 100}),
                         F({3}, {0, 0.5, 0})}),
            (std::vector<double>{1, 2.5, 210, 3, 4.5, 430}));
}

// As onnxruntime 1.32 has it: what is behind the sequences does not count for the scale of x.
TEST(MicrosoftDynamicQuantizeLstm, QuantisesWhatItMultiplies) {
  auto bytes = [](Dims dims, std::initializer_list<int64_t> values) {
    HostTensor out(DType::kI8, std::move(dims));
    int64_t i = 0;
    for (int64_t value : values) out.SetInt(i++, value);
    return out;
  };
  for (const int64_t length : {3, 2}) {
    TestModel m;
    HostTensor lengths(DType::kI32, {1});
    lengths.SetInt(0, length);
    m.Input("x", {3, 1, 2}).Initializer("lengths", lengths);
    m.Initializer("w", bytes({1, 2, 4}, {20, -30, 40, 50, -60, 70, 10, 90}));
    m.Initializer("r", bytes({1, 1, 4}, {100, -120, 80, -60}));
    m.Initializer("ws", F({1}, {0.01F})).Initializer("wz", bytes({1}, {0}));
    m.Initializer("rs", F({1, 4}, {0.02F, 0.01F, 0.03F, 0.02F}));
    m.Initializer("rz", bytes({1, 4}, {0, 0, 0, 0}));
    m.Node("DynamicQuantizeLSTM",
           {"x", "w", "r", "", "lengths", "", "", "", "ws", "wz", "rs", "rz"}, {"y"}, "own");
    m.Domain("com.microsoft").Attr("hidden_size", 1).Output("y");
    m.proto().add_opset_import()->set_domain("com.microsoft");
    m.proto().mutable_opset_import(1)->set_version(1);
    const std::vector<double> got = ResultOf(m, {F({3, 1, 2}, {0.5, -1, 1.3F, 0.25, -0.75, 2})});
    const std::vector<double> all = {-0.1095611, 0.06764774, 0.21940497};
    const std::vector<double> two = {-0.10949819, 0.06803957, 0};
    ASSERT_EQ(got.size(), 3U);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[i], (length == 3 ? all : two)[i], 1e-6) << i;
  }
}

// Two numbers of 4 bits in a byte, the lower ones first, less the zero point 8.
TEST(MicrosoftMatMulNBits, UnpacksTheLowBitsFirst) {
  TestModel m = OwnNode("MatMulNBits",
                        {{DType::kF32, {1, 4}}, {DType::kU8, {1, 1, 8}}, {DType::kF32, {1, 1}}});
  m.Attr("K", 4).Attr("N", 1).Attr("block_size", 16).Attr("bits", 4);
  EXPECT_EQ(ResultOf(m, {F({1, 4}, {1, 10, 100, 1000}),
                         Bytes({1, 1, 8}, {0xA9, 0xCB, 0, 0, 0, 0, 0, 0}), F({1, 1}, {0.5})}),
            std::vector<double>{0.5 * (1 + 20 + 300 + 4000)});
}

TEST(LayerNormalization, IgnoresUnknownAttributesWhereOnnxRuntimeDoes) {
  auto model = [](int opset) {
    TestModel m(opset);
    m.Input("x", {2, 3}).Input("w", {3}).Node("LayerNormalization", {"x", "w"}, {"y"}, "norm");
    m.AttrFloat("epsion", 1e-5F).Output("y");
    return m;
  };
  TestModel before = model(11);
  EXPECT_EQ(Import(before), "LayerNormalization y:f32[2,3]");
  TestModel since = model(17);
  EXPECT_THAT(Import(since), HasSubstr("unknown attribute \"epsion\""));
}

}  // namespace
}  // namespace fusion
