#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/graph/evaluate.h"
#include "core/graph/text.h"
#include "core/import/import.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The nodes and outputs of an imported graph in one line, or the error.
std::string Import(TestModel& m, const ImportOptions& options = {}) {
  auto graph = ImportOnnx(m.proto(), options);
  if (!graph.ok()) return std::string(graph.status().ToString());
  EXPECT_TRUE(Verify(*graph).ok()) << Verify(*graph);
  EXPECT_TRUE(ParseGraph(ToString(*graph)).ok());
  std::string out;
  for (const Node& node : graph->nodes()) {
    StrAppend(&out, StrCat(node.def->name, node.attrs.ToString(), " "));
  }
  for (TensorId id : graph->outputs()) {
    StrAppend(&out, StrCat(graph->tensor(id).name, ":", graph->tensor(id).type.ToString(), " "));
  }
  out.pop_back();
  return out;
}

std::vector<double> Values(const HostTensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.elements(); ++i) out.push_back(t.GetDouble(i));
  return out;
}

std::vector<double> ResultOf(TestModel& m, const std::vector<HostTensor>& inputs) {
  auto graph = ImportOnnx(m.proto());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  auto none = [](TensorId) -> absl::StatusOr<const HostTensor*> { return NotFound("no weights"); };
  auto out = Evaluate(*graph, inputs, none);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? Values((*out)[0]) : std::vector<double>();
}

HostTensor F(Dims dims, std::initializer_list<float> values) {
  return HostTensor::FromValues<float>(DType::kF32, std::move(dims), values);
}

TestModel OneNode(const std::string& op, const std::vector<std::string>& inputs, int opset = 17) {
  TestModel m(opset);
  m.Input("x", {2, 3}).Node(op, inputs, {"y"}, "n").Output("y");
  return m;
}

// ---- structure ----

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

// ---- ops and opsets ----

TEST(ImportOnnx, UnknownOpsSayWhatThereIs) {
  TestModel m = OneNode("Frobnicate", {"x"});
  EXPECT_THAT(Import(m), AllOf(HasSubstr("UNIMPLEMENTED: node \"n\" (Frobnicate)"),
                               HasSubstr("domain \"ai.onnx\", opset 17"),
                               HasSubstr("Constant, Dropout, Abs, Add")));
  TestModel other = OneNode("Gelu", {"x"});
  other.Domain("com.microsoft").proto().add_opset_import()->set_domain("com.microsoft");
  other.proto().mutable_opset_import(1)->set_version(1);
  EXPECT_THAT(Import(other), AllOf(HasSubstr("UNIMPLEMENTED"),
                                   HasSubstr("op \"Gelu\" of domain \"com.microsoft\", opset 1")));
  TestModel loop = OneNode("Loop", {"x"});
  EXPECT_THAT(Import(loop), HasSubstr("(Loop)"));
}

TEST(ImportOnnx, OpsetsMustBeKnown) {
  TestModel early = OneNode("Add", {"x", "x"}, 6);
  EXPECT_THAT(
      Import(early),
      HasSubstr("UNIMPLEMENTED: node \"n\" (Add): opset 6 of domain \"\" is not supported for this"
                " op; supported opsets: 7..23"));
  TestModel late = OneNode("Add", {"x", "x"}, 24);
  EXPECT_THAT(Import(late), HasSubstr("opset 24"));
  TestModel none = OneNode("Add", {"x", "x"});
  none.proto().clear_opset_import();
  EXPECT_THAT(Import(none),
              HasSubstr("INVALID_ARGUMENT: node \"n\" (Add): the model imports no opset"));
  TestModel twice = OneNode("Add", {"x", "x"});
  twice.proto().add_opset_import()->set_domain("ai.onnx");
  twice.proto().mutable_opset_import(1)->set_version(12);
  EXPECT_THAT(Import(twice), HasSubstr("is imported in versions 17 and 12"));
  TestModel alias = OneNode("Add", {"x", "x"});
  alias.Domain("ai.onnx").proto().mutable_opset_import(0)->set_domain("ai.onnx");
  EXPECT_EQ(Import(alias), "Add y:f32[2,3]");
  TestModel ancient = OneNode("Abs", {"x"}, 1);
  ancient.Attr("consumed_inputs", std::vector<int64_t>{0}).proto().clear_opset_import();
  ancient.proto().set_ir_version(2);
  EXPECT_EQ(Import(ancient), "Abs y:f32[2,3]");
}

TEST(ImportOnnx, AttributesAreChecked) {
  TestModel unknown = OneNode("Relu", {"x"});
  unknown.Attr("beta", 1);
  EXPECT_THAT(Import(unknown),
              HasSubstr("INVALID_ARGUMENT: node \"n\" (Relu): unknown attribute \"beta\""));
  TestModel twice = OneNode("Softmax", {"x"});
  twice.Attr("axis", 1).Attr("axis", 0);
  EXPECT_THAT(Import(twice), HasSubstr("attribute \"axis\" is given twice"));
  TestModel kind = OneNode("Softmax", {"x"});
  kind.AttrFloat("axis", 1);
  EXPECT_THAT(Import(kind), HasSubstr("attribute \"axis\" has another kind than expected"));
  TestModel reference = OneNode("Softmax", {"x"});
  reference.AttrRef("axis", "a");
  EXPECT_THAT(Import(reference), HasSubstr("outside of any function"));
  TestModel untyped = OneNode("Softmax", {"x"}, 13);
  untyped.Attr("axis", 0).last()->mutable_attribute(0)->clear_type();
  EXPECT_EQ(Import(untyped), "Softmax{axis=0} y:f32[2,3]");
  TestModel empty = OneNode("Softmax", {"x"});
  empty.last()->add_attribute()->set_name("axis");
  EXPECT_THAT(Import(empty), HasSubstr("attribute \"axis\": has no value"));
  TestModel internal = OneNode("Softmax", {"x"});
  internal.Attr("flatten", 1);
  EXPECT_THAT(Import(internal), HasSubstr("unknown attribute \"flatten\""));
}

TEST(ImportOnnx, ParametersAsAttributesOrInputs) {
  TestModel old = OneNode("Unsqueeze", {"x"}, 11);
  old.Attr("axes", std::vector<int64_t>{0, 3});
  EXPECT_EQ(Import(old), "Unsqueeze{axes=[0, 3]} y:f32[1,2,3,1]");
  TestModel now = OneNode("Unsqueeze", {"x", "axes"});
  now.Ints("axes", {0, 3});
  EXPECT_EQ(Import(now), "Unsqueeze{axes=[0, 3]} y:f32[1,2,3,1]");
  TestModel both = OneNode("Unsqueeze", {"x", "axes"});
  both.Ints("axes", {0}).Attr("axes", std::vector<int64_t>{0});
  EXPECT_THAT(Import(both), HasSubstr("input 1 \"axes\" (axes) is also given as an attribute"));
  TestModel slice9 = OneNode("Slice", {"x"}, 9);
  slice9.Attr("starts", std::vector<int64_t>{1})
      .Attr("ends", std::vector<int64_t>{3})
      .Attr("axes", std::vector<int64_t>{1});
  EXPECT_THAT(Import(slice9), HasSubstr("y:f32[2,2]"));
  TestModel slice10 = OneNode("Slice", {"x", "s", "e", "", "steps"}, 10);
  slice10.Ints("s", {-1, 2})
      .Ints("e", {std::numeric_limits<int64_t>::min(), 0})
      .Ints("steps", {-1, -2});
  EXPECT_THAT(Import(slice10), HasSubstr("y:f32[2,1]"));
  TestModel i32 = OneNode("Reshape", {"x", "shape"});
  i32.Initializer("shape", HostTensor::FromValues<int>(DType::kI32, {2}, {3, 2}));
  EXPECT_THAT(Import(i32), HasSubstr("y:f32[3,2]"));
}

TEST(ImportOnnx, ParametersMustBeConstantsOfTheRightKind) {
  TestModel runtime;
  runtime.Input("x", {2, 3}).Input("shape", {2}, DType::kI64);
  runtime.Node("Reshape", {"x", "shape"}, {"y"}, "r").Output("y");
  EXPECT_THAT(
      Import(runtime),
      HasSubstr("UNIMPLEMENTED: node \"r\" (Reshape): input 1 \"shape\" (shape) is a graph input;"
                " only constants are supported here"));
  TestModel computed;
  computed.Input("x", {2, 3}).Input("shape", {2}, DType::kI64).Node("Abs", {"shape"}, {"abs"});
  computed.Node("Reshape", {"x", "abs"}, {"y"}, "r").Output("y");
  EXPECT_THAT(Import(computed), HasSubstr("input 1 \"abs\" (shape) is computed at run time"));
  TestModel weight = OneNode("Reshape", {"x", "shape"});
  weight.Reference("shape", {2}, DType::kI64);
  EXPECT_THAT(Import(weight), AllOf(HasSubstr("INVALID_ARGUMENT"),
                                    HasSubstr("input 1 \"shape\" (shape) is a i64[2] whose bytes"
                                              " are not in the model")));
  TestModel floats = OneNode("Reshape", {"x", "shape"});
  floats.Initializer("shape", F({2}, {3, 2}));
  EXPECT_THAT(Import(floats), HasSubstr("(shape): is f32[2], expected a list of integers"));
  TestModel matrix = OneNode("Reshape", {"x", "shape"});
  matrix.Initializer("shape", HostTensor(DType::kI64, {1, 2}));
  EXPECT_THAT(Import(matrix), HasSubstr("is i64[1,2], expected a list of integers"));
  TestModel absent = OneNode("Reshape", {"x"});
  EXPECT_THAT(Import(absent), HasSubstr("attribute \"shape\" is missing"));
}

TEST(ImportOnnx, OldSoftmaxFlattens) {
  TestModel old;
  old.proto().mutable_opset_import(0)->set_version(11);
  old.Input("x", {1, 2, 2}).Node("Softmax", {"x"}, {"y"}).Output("y");
  HostTensor x = F({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(ResultOf(old, {x}), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
  old.proto().mutable_opset_import(0)->set_version(13);
  EXPECT_EQ(ResultOf(old, {x}), (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
}

TEST(ImportOnnx, ClipOfEveryOpset) {
  HostTensor x = F({2, 3}, {-5, -1, 0, 1, 5, 9});
  TestModel old = OneNode("Clip", {"x"}, 6);
  old.AttrFloat("max", 4).AttrFloat("min", -2);
  EXPECT_EQ(ResultOf(old, {x}), (std::vector<double>{-2, -1, 0, 1, 4, 4}));
  TestModel upper = OneNode("Clip", {"x", "", "hi"}, 13);
  upper.Initializer("hi", F({}, {1}));
  EXPECT_EQ(ResultOf(upper, {x}), (std::vector<double>{-5, -1, 0, 1, 1, 1}));
  TestModel none = OneNode("Clip", {"x"}, 13);
  EXPECT_EQ(ResultOf(none, {x}), Values(x));
  TestModel wrong = OneNode("Clip", {"x"}, 13);
  wrong.AttrFloat("min", 0);
  EXPECT_THAT(Import(wrong), HasSubstr("unknown attribute \"min\""));
  TestModel wide = OneNode("Clip", {"x", "lo"}, 13);
  wide.Initializer("lo", F({3}, {0, 0, 0}));
  EXPECT_THAT(Import(wide), HasSubstr("input 1 f32[3], expected a scalar"));
}

TEST(ImportOnnx, SplitIsEvenOrSaysHow) {
  TestModel m;
  m.Input("x", {7}).Node("Split", {"x"}, {"a", "b", "c"}, "s").Output("a").Output("c");
  EXPECT_THAT(Import(m), HasSubstr("a:f32[3] c:f32[1]"));
  m.Attr("num_outputs", 4);
  EXPECT_THAT(Import(m), HasSubstr("num_outputs is 4, the node has 3 outputs"));
  TestModel sizes;
  sizes.Input("x", {7}).Ints("sizes", {2, int64_t{1} << 62, int64_t{1} << 62});
  sizes.Node("Split", {"x", "sizes"}, {"a", "b", "c"}, "s").Output("a");
  EXPECT_THAT(Import(sizes), HasSubstr("INVALID_ARGUMENT: node \"s\" (Split)"));
}

TEST(ImportOnnx, LayerNormalizationWithStatistics) {
  TestModel m;
  m.Input("x", {1, 2}).Initializer("scale", F({2}, {1, 1}));
  m.Node("LayerNormalization", {"x", "scale"}, {"y", "mean", "inverse"}).AttrFloat("epsilon", 0);
  m.Output("inverse").Output("mean");
  EXPECT_EQ(ResultOf(m, {F({1, 2}, {1, 5})}), (std::vector<double>{0.5}));
  TestModel unused;
  unused.Input("x", {1, 2}).Initializer("scale", F({2}, {1, 1}));
  unused.Node("LayerNormalization", {"x", "scale"}, {"y", "mean", ""}).Output("y");
  auto graph = ImportOnnx(unused.proto());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->node(0).outputs.size(), 1u);
}

TEST(ImportOnnx, HalfPrecisionNormsKeepTheirEpsilon) {
  TestModel m;
  m.Input("x", {1, 2}, DType::kF16).Input("scale", {2}, DType::kF16);
  m.Node("LayerNormalization", {"x", "scale"}, {"y"}).AttrFloat("epsilon", 1e-12f).Output("y");
  HostTensor flat = HostTensor::FromValues<float>(DType::kF16, {1, 2}, {1, 1});
  EXPECT_EQ(ResultOf(m, {flat, flat.Reshaped({2})}), (std::vector<double>{0, 0}));
}

TEST(ImportOnnx, DropoutIsTheIdentity) {
  TestModel m = OneNode("Dropout", {"x"}, 7);
  m.AttrFloat("ratio", 0.5f);
  EXPECT_EQ(Import(m), "Identity y:f32[2,3]");
  TestModel test = OneNode("Dropout", {"x"}, 6);
  EXPECT_THAT(Import(test), HasSubstr("UNIMPLEMENTED: node \"n\" (Dropout): is_test is 0"));
  test.Attr("is_test", 1);
  EXPECT_EQ(Import(test), "Identity y:f32[2,3]");
  TestModel mode = OneNode("Dropout", {"x", "ratio", "mode"}, 13);
  mode.Initializer("ratio", F({}, {0.5f}))
      .Initializer("mode", HostTensor::FromValues<int>(DType::kBool, {}, {0}));
  EXPECT_EQ(Import(mode), "Identity y:f32[2,3]");
  TestModel training = OneNode("Dropout", {"x", "", "mode"}, 13);
  training.Initializer("mode", HostTensor::FromValues<int>(DType::kBool, {}, {1}));
  EXPECT_THAT(Import(training), HasSubstr("training mode is not supported"));
  TestModel open;
  open.Input("x", {2})
      .Input("mode", {}, DType::kBool)
      .Node("Dropout", {"x", "", "mode"}, {"y"}, "n")
      .Output("y");
  EXPECT_THAT(Import(open), HasSubstr("training_mode is not a constant"));
}

TEST(ImportOnnx, DropoutMasksAreOnes) {
  TestModel m;
  m.Input("x", {2}).Node("Dropout", {"x"}, {"y", "mask"}).Output("mask").Output("y");
  EXPECT_EQ(Import(m), "Identity mask:bool[2] y:f32[2]");
  EXPECT_EQ(ResultOf(m, {F({2}, {0, 0})}), (std::vector<double>{1, 1}));
  TestModel unused;
  unused.Input("x", {"n"}).Node("Dropout", {"x"}, {"y", "mask"}, "d").Output("y");
  EXPECT_EQ(Import(unused), "Identity y:f32[s0]");
  unused.Output("mask");
  EXPECT_THAT(Import(unused),
              HasSubstr("node \"d\" (Dropout): the mask of a tensor of shape [s0]"));
}

// ---- constants and weights ----

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
      onnx::TensorProto::UINT64);
  EXPECT_THAT(Import(input), HasSubstr("input \"x\": element type UINT64 (13) is not supported"));
  TestModel sparse = OneNode("Neg", {"x"});
  sparse.graph()->add_sparse_initializer()->mutable_values()->set_name("s");
  EXPECT_THAT(Import(sparse), HasSubstr("initializer \"s\" is sparse"));
}

TEST(ImportOnnx, BadConstantsNameTheNode) {
  TestModel m;
  m.Input("x", {2}).Node("Constant", {}, {"c"}, "k").Node("Add", {"x", "c"}, {"y"}).Output("y");
  EXPECT_THAT(Import(m), HasSubstr("node \"k\" (Constant): has no value"));
}

// ---- types ----

TEST(ImportOnnx, DeclaredTypesAreChecked) {
  TestModel shape;
  shape.Input("x", {2, 3}).Node("Neg", {"x"}, {"y"}).Output("y", {2, 4});
  EXPECT_EQ(
      Import(shape),
      "INVALID_ARGUMENT: output \"y\" is declared f32[2,4], the nodes before it give f32[2,3]");
  TestModel rank;
  rank.Input("x", {2, 3}).Node("Neg", {"x"}, {"y"}).Output("y", {6});
  EXPECT_THAT(Import(rank), HasSubstr("is declared f32[6]"));
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
  TestModel bound;
  bound.Input("x", {2, 3}).Node("Neg", {"x"}, {"y"}).Output("y", {"batch", 3});
  EXPECT_THAT(Import(bound, {.dim_bindings = {{"batch", 4}}}), HasSubstr("is declared f32[4,3]"));
  TestModel stray = OneNode("Neg", {"x"});
  stray.Declare("not there", {5});
  EXPECT_EQ(Import(stray), "Neg y:f32[2,3]");
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
  negative.Input("x", {-1, 3}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Import(negative), HasSubstr("input \"x\": dim 0 is -1"));
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
            "dim 0 of "
            "input 1 f32[4,5] is 4");
  TestModel unnamed;
  unnamed.Input("a", {2, 3}).Node("MatMul", {"a", "a"}, {"product"}).Output("product");
  EXPECT_THAT(Import(unnamed), HasSubstr("node \"product\" (MatMul)"));
}

// ---- symbolic dims ----

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
              AllOf(HasSubstr("node \"cat\" (Concat)"), HasSubstr("dim \"s\" (s0) is"
                                                                  " symbolic; bind it")));
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
            "UNIMPLEMENTED: node \"shape_of_x\" (Shape): the shape [s0,6] is symbolic; bind its "
            "dims; dim "
            "\"batch\" (s0) is symbolic; bind it with dim_bindings or, if it is the batch, with "
            "batch_size");
  EXPECT_EQ(Import(m, {.batch_size = 4}), "Reshape{shape=[4, 2, 3]} y:f32[4,2,3]");
  TestModel two;
  two.Input("a", {"n"}).Input("b", {"m"}).Node("Add", {"a", "b"}, {"y"}, "add").Output("y");
  EXPECT_THAT(Import(two), AllOf(HasSubstr("node \"add\" (Add)"), HasSubstr("dim \"n\" (s0)"),
                                 HasSubstr("dim \"m\" (s1)")));
}

// ---- keep_outputs ----

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

// ---- hostile input ----

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
