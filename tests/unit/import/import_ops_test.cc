#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/imported.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ImportOnnx, UnknownOpsSayWhatThereIs) {
  TestModel m = OneNode("Frobnicate", {"x"});
  EXPECT_THAT(Import(m), AllOf(HasSubstr("UNIMPLEMENTED: node \"n\" (Frobnicate)"),
                               HasSubstr("domain \"ai.onnx\", opset 17"),
                               HasSubstr("fusionctl capabilities --ops lists")));
  TestModel other = OneNode("MurmurHash3", {"x"});
  other.Domain("com.microsoft").proto().add_opset_import()->set_domain("com.microsoft");
  other.proto().mutable_opset_import(1)->set_version(1);
  EXPECT_THAT(Import(other),
              AllOf(HasSubstr("UNIMPLEMENTED"),
                    HasSubstr("op \"MurmurHash3\" of domain \"com.microsoft\", opset 1")));
  TestModel loop = OneNode("Loop", {"x"});
  EXPECT_THAT(Import(loop), HasSubstr("(Loop)"));
}

TEST(ImportOnnx, TheLargestOfBoolsIsWhetherAnyHolds) {
  HostTensor x(DType::kBool, {2, 3});
  x.SetInt(1, 1);
  x.SetInt(2, 1);
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    TestModel m(20);
    m.Input("x", {2, 3}, DType::kBool).Ints("axes", {0}).Node(op, {"x", "axes"}, {"y"});
    m.Attr("keepdims", 0).Output("y");
    const bool any = std::string_view(op) == "ReduceMax";
    EXPECT_EQ(ResultOf(m, {x}), (std::vector<double>{0, any ? 1.0 : 0, any ? 1.0 : 0})) << op;
    EXPECT_THAT(Import(m), HasSubstr("y:bool[3]"));
  }
}

TEST(ImportOnnx, OpsetsMustBeKnown) {
  TestModel early = OneNode("MeanVarianceNormalization", {"x"}, 8);
  EXPECT_THAT(
      Import(early),
      HasSubstr(
          "UNIMPLEMENTED: node \"n\" (MeanVarianceNormalization): opset 8 of domain \"\" is not "
          "supported for this op; supported opsets: 9..28"));
  TestModel late = OneNode("Add", {"x", "x"}, 29);
  EXPECT_THAT(Import(late), HasSubstr("opset 29"));
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
                " only constants are supported here (fusionctl: --fix NAME=VALUE gives an input "
                "its value)"));
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
  EXPECT_EQ(ResultOf(none, {x}), DoublesOf(x));
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
  EXPECT_THAT(Import(open),
              HasSubstr("(training_mode) is a graph input; only constants are supported"));
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
  EXPECT_THAT(Import(unused), HasSubstr("node \"d\" (Dropout): the mask of a tensor of shape [n]"));
}

}  // namespace
}  // namespace fusion
