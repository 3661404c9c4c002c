#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/graph/build/text.h"
#include "tests/support/imported.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ImportOnnx, NodesInAnyOrder) {
  TestModel m;
  m.Input("x", {2})
      .Node("Exp", {"b"}, {"y"})
      .Node("Neg", {"a"}, {"b"})
      .Node("Abs", {"x"}, {"a"})
      .Output("y");
  EXPECT_EQ(Import(m), "Abs Neg Exp y:f32[2]");
}

TEST(ImportOnnx, SortedNodesKeepTheirOrder) {
  TestModel m;
  m.Input("x", {2});
  m.Node("Abs", {"x"}, {"a"}).Node("Neg", {"x"}, {"b"}).Node("Exp", {"x"}, {"c"});
  m.Node("Sum", {"c", "a", "b"}, {"y"}).Output("y");
  EXPECT_EQ(Import(m), "Abs Neg Exp Sum y:f32[2]");
}

TEST(ImportOnnx, CyclesAreNamed) {
  TestModel m;
  m.Input("x", {2}).Node("Add", {"x", "c"}, {"a"}, "first").Node("Neg", {"a"}, {"b"}, "second");
  m.Node("Exp", {"b"}, {"c"}, "third").Node("Abs", {"c"}, {"y"}, "outside").Output("y");
  std::string error = Import(m);
  EXPECT_THAT(error, AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("a cycle of 3 nodes"),
                           HasSubstr("\"first\" (Add)"), HasSubstr("\"second\" (Neg)"),
                           HasSubstr("\"third\" (Exp)")));
  EXPECT_EQ(error.find("outside"), std::string::npos);
  TestModel self;
  self.Input("x", {2}).Node("Add", {"x", "y"}, {"y"}, "loop").Output("y");
  EXPECT_THAT(Import(self), HasSubstr("a cycle of 1 nodes: node \"loop\" (Add)"));
}

TEST(ImportOnnx, LongChainsNeedNoStack) {
  TestModel m;
  m.Input("x", {2});
  constexpr int kLength = 60000;
  // Backwards, so that nothing is sorted.
  for (int i = kLength; i > 0; --i) {
    m.Node("Neg", {i == 1 ? "x" : StrCat("t", i - 1)}, {StrCat("t", i)});
  }
  m.Output(StrCat("t", kLength));
  auto graph = ImportOnnx(m.proto());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes().size(), static_cast<size_t>(kLength));
}

TEST(ImportOnnx, TooManyNodes) {
  TestModel m;
  m.Input("x", {2});
  for (int i = 0; i <= kMaxImportedNodes; ++i) m.Node("Neg", {"x"}, {StrCat("t", i)});
  m.Output("t0");
  EXPECT_THAT(Import(m),
              AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("more than 65536 nodes")));
}

TEST(ImportOnnx, NamesMustBeDefinedOnce) {
  TestModel nodes;
  nodes.Input("x", {2}).Node("Neg", {"x"}, {"y"}).Node("Abs", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Import(nodes), HasSubstr("INVALID_ARGUMENT: tensor \"y\" is defined twice"));
  TestModel input;
  input.Input("x", {2}).Node("Neg", {"x"}, {"x"}).Output("x");
  EXPECT_THAT(Import(input), HasSubstr("tensor \"x\" is defined twice"));
  TestModel inputs;
  inputs.Input("x", {2}).Input("x", {2}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Import(inputs), HasSubstr("input \"x\" is declared twice"));
  TestModel initializers;
  initializers.Input("x", {2}).Initializer("w", F({}, {1})).Initializer("w", F({}, {2}));
  initializers.Node("Add", {"x", "w"}, {"y"}).Output("y");
  EXPECT_THAT(Import(initializers), HasSubstr("tensor \"w\" is defined twice"));
  TestModel outputs = OneNode("Neg", {"x"});
  outputs.Output("y");
  EXPECT_THAT(Import(outputs), HasSubstr("output \"y\" is declared twice"));
}

TEST(ImportOnnx, TheLastOfEqualConstantsCounts) {
  TestModel m;
  m.Input("x", {1}).Node("Constant", {}, {"c"}).AttrFloat("value_float", 2);
  m.Node("Mul", {"x", "c"}, {"y"})
      .Node("Constant", {}, {"c"})
      .AttrFloat("value_float", 5)
      .Output("y");
  EXPECT_EQ(ResultOf(m, {F({1}, {3})}), (std::vector<double>{15}));
}

TEST(ImportOnnx, NamesMustBeDefined) {
  TestModel m = OneNode("Add", {"x", "nowhere"});
  EXPECT_THAT(
      Import(m),
      HasSubstr("node \"n\" (Add): input 1 \"nowhere\" is given by no node, input or initializer"));
  TestModel output = OneNode("Neg", {"x"});
  output.Output("z");
  EXPECT_THAT(Import(output), HasSubstr("output \"z\" is given by no node"));
  TestModel none;
  none.Input("x", {2}).Node("Neg", {"x"}, {"y"});
  EXPECT_THAT(Import(none), HasSubstr("the graph has no output"));
  EXPECT_THAT(ImportOnnx(onnx::ModelProto()).status().ToString(),
              HasSubstr("the model has no graph"));
  TestModel no_outputs = OneNode("Neg", {"x"});
  no_outputs.Node("Neg", {"x"}, {});
  EXPECT_EQ(Import(no_outputs), "Neg y:f32[2,3]");  // nobody needs that node
}

TEST(ImportOnnx, NodesNobodyNeedsDoNotMatter) {
  TestModel m = OneNode("Neg", {"x"});
  m.Node("Frobnicate", {"x", "nowhere"}, {"dead"}).Domain("com.example");
  EXPECT_EQ(Import(m), "Neg y:f32[2,3]");
}

TEST(ImportOnnx, InputsAndInitializersAsOutputs) {
  TestModel m;
  m.Input("x", {2}).Initializer("c", F({2}, {5, 6})).Output("x").Output("c");
  EXPECT_EQ(Import(m), "x:f32[2] c:f32[2]");
  EXPECT_EQ(ResultOf(m, {F({2}, {3, 4})}), (std::vector<double>{3, 4}));
}

TEST(ImportOnnx, NamesFullOfQuotesAndCommentMarks) {
  const std::string evil = "\"*/ #include </etc/passwd>\n\\\xff` $(reboot) //";
  TestModel m;
  m.Input(evil + "in", {2}).Node("Neg", {evil + "in"}, {evil + "out"}, evil).Output(evil + "out");
  auto graph = ImportOnnx(m.proto());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->node(0).name, evil);
  EXPECT_EQ(ToString(*ParseGraph(ToString(*graph))), ToString(*graph));
  m.Node(evil, {evil + "in"}, {"z"}, evil).Output("z");
  std::string error = Import(m);
  EXPECT_EQ(error.find('\n'), std::string::npos);
  TestModel big = OneNode("Neg", {"x"});
  big.last()->set_op_type(std::string(1 << 20, 'x'));
  EXPECT_LT(Import(big).size(), 4096u);
}

TEST(ImportOnnx, ZeroSizedDims) {
  TestModel m;
  m.Input("x", {0, 3})
      .Input("w", {3, 4})
      .Node("MatMul", {"x", "w"}, {"h"})
      .Node("Softmax", {"h"}, {"y"})
      .Output("y");
  EXPECT_EQ(Import(m), "MatMul Softmax y:f32[0,4]");
  EXPECT_TRUE(
      ResultOf(m, {HostTensor(DType::kF32, {0, 3}), HostTensor(DType::kF32, {3, 4})}).empty());
  TestModel inner;
  inner.Input("x", {2, 0}).Input("w", {0, 1}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  EXPECT_EQ(ResultOf(inner, {HostTensor(DType::kF32, {2, 0}), HostTensor(DType::kF32, {0, 1})}),
            (std::vector<double>{0, 0}));
}

TEST(ImportOnnx, FoldingIsBounded) {
  TestModel m;
  m.Input("x", {1}).Ints("shape", {1 << 19}).Initializer("one", F({}, {1}));
  m.Node("Expand", {"one", "shape"}, {"t0"});
  // Each node alone would fold to 2 MiB.
  constexpr int kNodes = 2000;
  for (int i = 0; i < kNodes; ++i) m.Node("Neg", {StrCat("t", i)}, {StrCat("t", i + 1)});
  m.Node("Add", {StrCat("t", kNodes), "x"}, {"y"}).Output("y");
  auto graph = ImportOnnx(m.proto());
  ASSERT_TRUE(graph.ok()) << graph.status();
  int64_t bytes = 0;
  for (const Tensor& t : graph->tensors()) bytes += t.value ? t.value->byte_size() : 0;
  EXPECT_LE(bytes, int64_t{300} << 20);
  EXPECT_GT(graph->nodes().size(), 1000u);
}

TEST(ImportOnnx, HostileNumbersAreRefused) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  TestModel expand = OneNode("Expand", {"x", "s"});
  expand.Ints("s", {kMax, 2, 3});
  EXPECT_THAT(Import(expand), HasSubstr("more than 2^63 bytes"));
  TestModel reshape = OneNode("Reshape", {"x", "s"});
  reshape.Ints("s", {kMax, kMax});
  EXPECT_THAT(Import(reshape), HasSubstr("INVALID_ARGUMENT"));
  TestModel slice = OneNode("Slice", {"x", "s", "e", "a", "steps"});
  slice.Ints("s", {kMin, kMax})
      .Ints("e", {kMax, kMin})
      .Ints("a", {0, 1})
      .Ints("steps", {kMax, kMin + 1});
  EXPECT_THAT(Import(slice), HasSubstr("y:f32[1,1]"));
  TestModel twice = OneNode("Slice", {"x", "s", "e", "a"});
  twice.Ints("s", {0, 0}).Ints("e", {1, 1}).Ints("a", {0, -2});
  EXPECT_THAT(Import(twice), HasSubstr("name one axis twice"));
  TestModel many = OneNode("Unsqueeze", {"x", "a"});
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < 100; ++i) axes.push_back(i);
  many.Ints("a", axes);
  EXPECT_THAT(Import(many), HasSubstr("rank 102, expected at most 64"));
  TestModel range;
  range.Input("x", {1}).Initializer("a", HostTensor::FromValues<int64_t>(DType::kI64, {}, {kMin}));
  range.Initializer("b", HostTensor::FromValues<int64_t>(DType::kI64, {}, {kMax}));
  range.Initializer("d", HostTensor::FromValues<int64_t>(DType::kI64, {}, {1}));
  range.Node("Range", {"a", "b", "d"}, {"r"}).Node("Gather", {"x", "r"}, {"y"}).Output("y");
  EXPECT_THAT(Import(range), HasSubstr("a range of"));
  TestModel concat;
  concat.Input("x", {int64_t{1} << 40, 2}, DType::kU8);
  concat.Node("Concat", {"x", "x", "x", "x"}, {"y"}, "c").Attr("axis", 1);
  concat.Node("Concat", {"y", "y", "y", "y"}, {"z"}, "c").Attr("axis", 1).Output("z");
  EXPECT_THAT(Import(concat), HasSubstr("35184372088832 bytes, expected at most 17592186044416"));
}

TEST(ImportOnnx, ShapeArithmeticVanishes) {
  TestModel m;
  m.Input("x", {2, 3, 8})
      .Initializer("zero", HostTensor::FromValues<int64_t>(DType::kI64, {}, {0}));
  m.Initializer("one", HostTensor::FromValues<int64_t>(DType::kI64, {}, {1}));
  m.Ints("axis", {0}).Ints("rest", {2, 4});
  m.Node("Shape", {"x"}, {"s"})
      .Node("Gather", {"s", "zero"}, {"b"})
      .Node("Gather", {"s", "one"}, {"n"});
  m.Node("Unsqueeze", {"b", "axis"}, {"b1"}).Node("Unsqueeze", {"n", "axis"}, {"n1"});
  m.Node("Concat", {"b1", "n1", "rest"}, {"t"})
      .Attr("axis", 0)
      .Node("Reshape", {"x", "t"}, {"y"})
      .Output("y");
  EXPECT_EQ(Import(m), "Reshape{shape=[2, 3, 2, 4]} y:f32[2,3,2,4]");
}

}  // namespace
}  // namespace fusion
