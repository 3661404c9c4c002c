#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/imported.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ImportOnnx, ConstantsAndWeights) {
  TestModel m;
  m.Input("x", {512})
      .Initializer("scale", F({1}, {2}))
      .Initializer("big", HostTensor(DType::kF32, {512}));
  m.Reference("far", {512}).Node("Constant", {}, {"k"}).AttrFloat("value_float", 3);
  m.Node("Sum", {"x", "scale", "big", "far", "k"}, {"y"}).Output("y");
  auto graph = ImportOnnx(m.proto());
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto find = [&](std::string_view name) {
    for (const Tensor& t : graph->tensors()) {
      if (t.name == name) return t;
    }
    return Tensor{};
  };
  EXPECT_EQ(find("scale").kind, TensorKind::kConstant);
  EXPECT_TRUE(find("scale").client_has_bytes);
  EXPECT_EQ(find("k").kind, TensorKind::kConstant);
  EXPECT_EQ(find("big").kind, TensorKind::kWeight);
  EXPECT_EQ(find("far").kind, TensorKind::kWeight);
  EXPECT_EQ(find("far").type.ToString(), "f32[512]");
  graph = ImportOnnx(m.proto(), {.inline_limit_bytes = std::numeric_limits<int64_t>::max()});
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(find("big").kind, TensorKind::kConstant);
  EXPECT_EQ(find("far").kind, TensorKind::kWeight);
}

TEST(ImportOnnx, InitializersThatAreInputsAreNoInputs) {
  TestModel m;
  m.Input("x", {2})
      .Input("w", {2})
      .Initializer("w", F({2}, {1, 2}))
      .Node("Add", {"x", "w"}, {"y"})
      .Output("y");
  EXPECT_EQ(ResultOf(m, {F({2}, {10, 20})}), (std::vector<double>{11, 22}));
  TestModel other;
  other.Input("x", {2})
      .Input("w", {3})
      .Initializer("w", F({2}, {1, 2}))
      .Node("Add", {"x", "w"}, {"y"})
      .Output("y");
  EXPECT_THAT(Import(other), HasSubstr("input \"w\" is declared f32[3]"));
}

TEST(ImportOnnx, UnsupportedElementTypesAreNamed) {
  TestModel m = OneNode("Add", {"x", "w"});
  onnx::TensorProto* w = m.graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::STRING);
  EXPECT_THAT(
      Import(m),
      HasSubstr("UNIMPLEMENTED: initializer \"w\": element type STRING (8) is not supported"));
  w->set_data_type(onnx::TensorProto::FLOAT);
  w->add_dims(4);
  EXPECT_THAT(
      Import(m),
      HasSubstr("INVALID_ARGUMENT: initializer \"w\": float_data has 0 elements, expected 4"));
  TestModel input = OneNode("Neg", {"x"});
  input.graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::COMPLEX64);
  EXPECT_THAT(Import(input),
              HasSubstr("input \"x\": element type COMPLEX64 (14) is not supported"));
  TestModel sparse = OneNode("Neg", {"x"});
  sparse.graph()->add_sparse_initializer()->mutable_values()->set_name("s");
  EXPECT_THAT(Import(sparse), HasSubstr("initializer \"s\" is sparse"));
}

TEST(ImportOnnx, BadConstantsNameTheNode) {
  TestModel m;
  m.Input("x", {2}).Node("Constant", {}, {"c"}, "k").Node("Add", {"x", "c"}, {"y"}).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("node \"k\" (Constant): has no value"));
}

TEST(ImportOnnx, DeclaredTypesAreChecked) {
  TestModel dtype;
  dtype.Input("x", {2})
      .Node("Neg", {"x"}, {"a"})
      .Node("Abs", {"a"}, {"y"})
      .Declare("a", {2}, DType::kF16)
      .Output("y");
  EXPECT_EQ(Import(dtype),
            "INVALID_ARGUMENT: tensor \"a\" is declared f16[2], the nodes before it give f32[2]");
  TestModel partial;
  partial.Input("x", {2, 3}).Node("Neg", {"x"}, {"y"}).Output("y", {"batch", 3});
  EXPECT_EQ(Import(partial), "Neg y:f32[2,3]");
  TestModel stray = OneNode("Neg", {"x"});
  stray.Declare("not there", {5});
  EXPECT_EQ(Import(stray), "Neg y:f32[2,3]");
}

TEST(ImportOnnx, ShapesThatNoNodeGivesAreWarnings) {
  auto warnings = [](TestModel& m, const std::map<std::string, int64_t>& dims = {}) {
    std::set<std::string> said;
    EXPECT_EQ(Import(m, {.dim_bindings = dims, .warnings = &said}), "Neg y:f32[2,3]");
    return StrJoin(said, "\n");
  };
  TestModel shape;
  shape.Input("x", {2, 3}).Node("Neg", {"x"}, {"y"}).Output("y", {2, 4});
  EXPECT_EQ(warnings(shape),
            "output \"y\" is declared f32[2,4], the nodes before it give f32[2,3]");
  TestModel rank;
  rank.Input("x", {2, 3}).Node("Neg", {"x"}, {"y"}).Declare("y", {6}).Output("y");
  EXPECT_EQ(warnings(rank), "tensor \"y\" is declared f32[6], the nodes before it give f32[2,3]");
  TestModel bound;
  bound.Input("x", {2, 3}).Node("Neg", {"x"}, {"y"}).Output("y", {"batch", 3});
  EXPECT_EQ(warnings(bound), "");
  EXPECT_EQ(warnings(bound, {{"batch", 4}}),
            "output \"y\" is declared f32[4,3], the nodes before it give f32[2,3]");
}

// Two dims that are "?" need not be equal.
TEST(ImportOnnx, UnknownDimsAreSymbolsOfTheirOwn) {
  TestModel m;
  m.Input("x", {-1, "?", "?"}).Node("Neg", {"x"}, {"y"}).Output("y", {-1, "?", "?"});
  EXPECT_EQ(Import(m, {.dim_bindings = {{"x[0]", 1}, {"x[1]", 2}, {"x[2]", 3}}}),
            "Neg y:f32[1,2,3]");
}

TEST(ImportOnnx, InputsNeedTypeAndRank) {
  TestModel bare;
  bare.graph()->add_input()->set_name("x");
  bare.Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Import(bare), HasSubstr("input \"x\": has no element type"));
  bare.graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  EXPECT_THAT(Import(bare), HasSubstr("input \"x\": has no shape"));
  bare.graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  EXPECT_THAT(Import(bare), HasSubstr("input \"x\": is a sequence, only tensors are supported"));
  TestModel negative;
  negative.Input("x", {-2, 3}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Import(negative), HasSubstr("input \"x\": dim 0 is -2"));
  TestModel huge;
  huge.Input("x", {int64_t{1} << 40, int64_t{1} << 40}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Import(huge), HasSubstr("input \"x\": shape"));
  TestModel deep;
  deep.Input("x", std::vector<TestModel::TestDim>(65, 1)).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Import(deep), HasSubstr("rank 65, expected at most 64"));
}

TEST(ImportOnnx, MismatchesNameTheNode) {
  TestModel m;
  m.Input("a", {2, 3})
      .Input("b", {4, 5})
      .Node("MatMul", {"a", "b"}, {"y"}, "encoder/0/qk")
      .Output("y");
  EXPECT_EQ(Import(m),
            "INVALID_ARGUMENT: node \"encoder/0/qk\" (MatMul): dim 1 of input 0 f32[2,3] is 3 but "
            "dim 0 of input 1 f32[4,5] is 4; input 0 is \"a\", input 1 is \"b\"");
  TestModel unnamed;
  unnamed.Input("a", {2, 3}).Node("MatMul", {"a", "a"}, {"product"}).Output("product");
  EXPECT_THAT(Import(unnamed), HasSubstr("node \"product\" (MatMul)"));
}

TestModel Dynamic() {
  TestModel m;
  m.Input("x", {"batch", "seq", 8})
      .Node("Softmax", {"x"}, {"y"}, "sm")
      .Output("y", {"batch", "seq", 8});
  return m;
}

TEST(ImportOnnx, UnboundSymbolsStay) {
  TestModel m = Dynamic();
  EXPECT_EQ(Import(m), "Softmax y:f32[s0,s1,8]");
  auto graph = ImportOnnx(m.proto());
  EXPECT_EQ(graph->symbols()[0].name, "batch");
  EXPECT_EQ(graph->symbols()[1].name, "seq");
}

TEST(ImportOnnx, SymbolsAreBoundByName) {
  TestModel m = Dynamic();
  EXPECT_EQ(Import(m, {.dim_bindings = {{"seq", 16}}}), "Softmax y:f32[s0,16,8]");
  EXPECT_EQ(Import(m, {.dim_bindings = {{"seq", 16}, {"batch", 2}}}), "Softmax y:f32[2,16,8]");
  EXPECT_THAT(
      Import(m, {.dim_bindings = {{"sequence", 16}}}),
      HasSubstr(
          "dim_bindings name \"sequence\", which is no dim; symbolic dims: \"batch\", \"seq\""));
  EXPECT_THAT(Import(m, {.dim_bindings = {{"seq", -1}}}),
              HasSubstr("dim \"seq\" is bound to -1, expected 0.."));
  EXPECT_THAT(Import(m, {.dim_bindings = {{"seq", int64_t{1} << 41}}}),
              HasSubstr("INVALID_ARGUMENT"));
  EXPECT_EQ(Import(m, {.dim_bindings = {{"seq", 0}}}), "Softmax y:f32[s0,0,8]");
  TestModel fixed = OneNode("Neg", {"x"});
  EXPECT_THAT(Import(fixed, {.dim_bindings = {{"n", 1}}}), HasSubstr("all dims are numbers"));
}

TEST(ImportOnnx, BatchSizeBindsLeadingSymbols) {
  TestModel m = Dynamic();
  EXPECT_EQ(Import(m, {.batch_size = 4}), "Softmax y:f32[4,s0,8]");
  EXPECT_EQ(Import(m, {.dim_bindings = {{"seq", 16}}, .batch_size = 4}), "Softmax y:f32[4,16,8]");
  EXPECT_THAT(
      Import(m, {.dim_bindings = {{"batch", 2}}, .batch_size = 4}),
      HasSubstr("batch_size is 4, but no input has that as its leading dim; leading dims are 2"));
  EXPECT_THAT(Import(m, {.batch_size = -4}), HasSubstr("batch_size is -4"));
  TestModel fixed = OneNode("Neg", {"x"});
  EXPECT_EQ(Import(fixed, {.batch_size = 2}), "Neg y:f32[2,3]");
  EXPECT_EQ(Import(fixed, {.batch_size = 8}),
            "INVALID_ARGUMENT: batch_size is 8, but no input has that as its leading"
            " dim; leading dims are 2");
  TestModel mixed;
  mixed.Input("x", {"n", 3}).Input("bias", {3}).Node("Add", {"x", "bias"}, {"y"}).Output("y");
  EXPECT_EQ(Import(mixed, {.batch_size = 8}), "Add y:f32[8,3]");
}

TEST(ImportOnnx, SumsOfSymbolsAreTakenApart) {
  TestModel m;
  m.Input("past", {1, "p", 8}).Input("x", {1, "s", 8}).Input("mask", {1, "p + s"});
  m.Input("all", {1, "p + s", 8}).Node("Concat", {"past", "x"}, {"k"}, "cat").Attr("axis", 1);
  m.Node("Add", {"k", "all"}, {"y"}).Output("y");
  EXPECT_EQ(Import(m, {.dim_bindings = {{"p", 3}, {"s", 2}}}), "Concat{axis=1} Add y:f32[1,5,8]");
  EXPECT_THAT(Import(m, {.dim_bindings = {{"p", 3}, {"s", 2}, {"p + s", 6}}}),
              HasSubstr("dim \"p + s\" is bound to 6, the symbols in it add up to 5"));
  EXPECT_THAT(Import(m, {.dim_bindings = {{"p", 3}}}),
              AllOf(HasSubstr("node \"cat\" (Concat)"),
                    HasSubstr("along the symbolic dim s; dim \"s\" is symbolic; bind it")));
  TestModel odd;
  odd.Input("x", {"batch-size", "2*n + 1", "n - 1"}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(Import(odd), "Neg y:f32[s0,2*s1 + 1,s1 + -1]");
  EXPECT_EQ(Import(odd, {.dim_bindings = {{"n", 4}, {"batch-size", 2}}}), "Neg y:f32[2,9,3]");
  EXPECT_THAT(Import(odd, {.dim_bindings = {{"n", 0}}}),
              HasSubstr("input \"x\": an extent is negative"));
}

TEST(ImportOnnx, NamelessDimsHaveNames) {
  TestModel m;
  m.Input("x", {"", 3}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(Import(m), "Neg y:f32[s0,3]");
  EXPECT_EQ(Import(m, {.dim_bindings = {{"x[0]", 5}}}), "Neg y:f32[5,3]");
  EXPECT_EQ(Import(m, {.batch_size = 6}), "Neg y:f32[6,3]");
}

TEST(ImportOnnx, WhereASymbolCannotStayItIsNamed) {
  TestModel m;
  m.Input("x", {"batch", 6})
      .Node("Shape", {"x"}, {"s"}, "shape_of_x")
      .Node("Gather", {"s", "i"}, {"d"});
  m.Ints("i", {0}).Node("Concat", {"d", "m"}, {"t"}).Attr("axis", 0).Ints("m", {2, 3});
  m.Node("Reshape", {"x", "t"}, {"y"}).Output("y");
  EXPECT_EQ(Import(m),
            "UNIMPLEMENTED: node \"shape_of_x\" (Shape): the shape [batch,6] is symbolic; bind its "
            "dims; dim \"batch\" is symbolic; bind it with dim_bindings or, if it is the batch, "
            "with batch_size, or leave it open with dim_ranges");
  EXPECT_EQ(Import(m, {.batch_size = 4}), "Reshape{shape=[4, 2, 3]} y:f32[4,2,3]");
  TestModel two;
  two.Input("a", {"n"}).Input("b", {"m"}).Node("Add", {"a", "b"}, {"y"}, "add").Output("y");
  EXPECT_THAT(Import(two), AllOf(HasSubstr("node \"add\" (Add)"),
                                 HasSubstr("f32[m] is m where an earlier input has n"),
                                 HasSubstr("dim \"n\" is"), HasSubstr("dim \"m\" is")));
}

TEST(ImportOnnx, KeptOutputsComeBehind) {
  TestModel m;
  m.Input("x", {2})
      .Node("Neg", {"x"}, {"a"})
      .Node("Exp", {"a"}, {"b"})
      .Node("Abs", {"b"}, {"y"})
      .Output("y");
  EXPECT_EQ(Import(m, {.keep_outputs = {"b", "a"}}), "Neg Exp Abs y:f32[2] b:f32[2] a:f32[2]");
  EXPECT_EQ(Import(m, {.keep_outputs = {"y", "a", "a"}}), "Neg Exp Abs y:f32[2] a:f32[2]");
  EXPECT_THAT(Import(m, {.keep_outputs = {"c"}}),
              HasSubstr("keep_outputs names \"c\", which no node of the graph gives"));
  EXPECT_THAT(Import(m, {.keep_outputs = {"x"}}), HasSubstr("INVALID_ARGUMENT"));
  m.Node("Sin", {"a"}, {"side"});
  EXPECT_EQ(Import(m, {.keep_outputs = {"side"}}), "Neg Exp Abs Sin y:f32[2] side:f32[2]");
}

}  // namespace
}  // namespace fusion
