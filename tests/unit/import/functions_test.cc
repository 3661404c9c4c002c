// Model-local functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/evaluate/evaluate.h"
#include "tests/support/imported.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Functions, AreInlinedWithTheirNames) {
  TestModel m;
  m.Function("my", "Twice", {"a"}, {"b"});
  m.Node("Neg", {"a"}, {"t"}, "neg").Node("Exp", {"t"}, {"b"}, "exp").End();
  m.Input("x", {2}).Node("Twice", {"x"}, {"h"}, "first").Domain("my");
  m.Node("Twice", {"h"}, {"y"}, "second").Domain("my").Output("y", {2});
  EXPECT_EQ(ImportNamed(m), "first/neg=Neg first/exp=Exp second/neg=Neg second/exp=Exp y:f32[2]");
}

TEST(Functions, MayCallFunctions) {
  TestModel m;
  m.Function("my", "Inner", {"a"}, {"b"}).Node("Abs", {"a"}, {"b"}, "abs").End();
  m.Function("my", "Outer", {"a"}, {"b"});
  m.Node("Inner", {"a"}, {"t"}, "in").Domain("my").Node("Sqrt", {"t"}, {"b"}, "sqrt").End();
  m.Input("x", {2}).Node("Outer", {"x"}, {"y"}, "out").Domain("my").Output("y");
  EXPECT_EQ(ImportNamed(m), "out/in/abs=Abs out/sqrt=Sqrt y:f32[2]");
}

TEST(Functions, HaveTheirOwnOpset) {
  TestModel m(11);
  m.Function("my", "F", {"a"}, {"b"}, {}, 13).Node("Softmax", {"a"}, {"b"}, "sm").End();
  m.Input("x", {2, 3, 4})
      .Node("F", {"x"}, {"h"}, "f")
      .Domain("my")
      .Node("Softmax", {"h"}, {"y"}, "old")
      .Output("y");
  EXPECT_EQ(ImportNamed(m), "f/sm=Softmax old=Softmax{axis=1, flatten=1} y:f32[2,3,4]");
}

TEST(Functions, AttributesArePassedOn) {
  TestModel m;
  m.Function("my", "Inner", {"a"}, {"b"}, {"inner_axis"}).Node("Softmax", {"a"}, {"b"}, "sm");
  m.AttrRef("axis", "inner_axis").End();
  m.Function("my", "Outer", {"a"}, {"b"}, {"axis"}).Node("Inner", {"a"}, {"b"}, "in").Domain("my");
  m.AttrRef("inner_axis", "axis").End();
  m.Input("x", {2, 3}).Node("Outer", {"x"}, {"h"}, "o").Domain("my").Attr("axis", 0);
  m.Node("Outer", {"h"}, {"y"}, "p").Domain("my").Output("y");
  EXPECT_EQ(ImportNamed(m), "o/in/sm=Softmax{axis=0} p/in/sm=Softmax y:f32[2,3]");
}

TEST(Functions, DefaultAttributesOfNewerFilesCount) {
  TestModel m;
  m.Function("my", "F", {"a"}, {"b"})
      .Node("Softmax", {"a"}, {"b"}, "sm")
      .AttrRef("axis", "axis")
      .End();
  onnx::AttributeProto axis;
  axis.set_name("axis");
  axis.set_type(onnx::AttributeProto::INT);
  axis.set_i(1);
  onnx::FunctionProto* f = m.proto().mutable_functions(0);
  f->GetReflection()->MutableUnknownFields(f)->AddLengthDelimited(11, axis.SerializeAsString());
  m.Input("x", {2, 3}).Node("F", {"x"}, {"h"}, "o").Domain("my");
  m.Node("F", {"h"}, {"y"}, "p").Domain("my").Attr("axis", 0).Output("y");
  EXPECT_EQ(ImportNamed(m), "o/sm=Softmax{axis=1} p/sm=Softmax{axis=0} y:f32[2,3]");
}

TEST(Functions, ConstantsMayComeFromAttributes) {
  TestModel m;
  m.Function("my", "AddK", {"a"}, {"b"}, {"k"})
      .Node("Constant", {}, {"c"})
      .AttrRef("value_float", "k");
  m.Node("Add", {"a", "c"}, {"b"}).End();
  m.Input("x", {1}).Node("AddK", {"x"}, {"h"}, "f").Domain("my").AttrFloat("k", 2);
  m.Node("AddK", {"h"}, {"y"}, "g").Domain("my").AttrFloat("k", 5).Output("y");
  auto graph = ImportOnnx(m.proto());
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto none = [](TensorId) -> absl::StatusOr<const HostTensor*> { return NotFound(""); };
  auto out = Evaluate(*graph, {HostTensor::FromValues<float>(DType::kF32, {1}, {10})}, none);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].GetDouble(0), 17);
  // Two calls, two values of one name: the client could not serve them by name.
  for (const Tensor& t : graph->tensors()) {
    EXPECT_FALSE(t.kind == TensorKind::kConstant && t.client_has_bytes);
  }
}

TEST(Functions, OutputsMayBeInputsOrRepeat) {
  TestModel m;
  m.Function("my", "F", {"a"}, {"a", "b", "b"}).Node("Neg", {"a"}, {"b"}, "neg").End();
  m.Input("x", {2})
      .Node("F", {"x"}, {"u", "v", "w"}, "f")
      .Domain("my")
      .Output("u")
      .Output("v")
      .Output("w");
  std::string text = ImportNamed(m);
  EXPECT_THAT(text, AllOf(HasSubstr("f/neg=Neg"), HasSubstr("u:f32[2] v:f32[2] w:f32[2]")));
}

TEST(Functions, MissingInputsAreAbsent) {
  TestModel m;
  m.Function("my", "F", {"a", "lo", "hi"}, {"b"})
      .Node("Clip", {"a", "lo", "hi"}, {"b"}, "clip")
      .End();
  m.Input("x", {2}).Node("F", {"x"}, {"y"}, "f").Domain("my").Output("y");
  EXPECT_EQ(ImportNamed(m), "f/clip=Clip y:f32[2]");
}

TEST(Functions, TakePrecedenceOverOps) {
  TestModel m;
  m.Function("", "Relu", {"a"}, {"b"}).Node("Neg", {"a"}, {"b"}, "neg").End();
  m.Input("x", {2}).Node("Relu", {"x"}, {"y"}, "r").Output("y");
  EXPECT_EQ(ImportNamed(m), "r/neg=Neg y:f32[2]");
}

TEST(Functions, MistakesAreNamed) {
  TestModel recursive;
  recursive.Function("my", "F", {"a"}, {"b"}).Node("G", {"a"}, {"b"}, "g").Domain("my").End();
  recursive.Function("my", "G", {"a"}, {"b"}).Node("F", {"a"}, {"b"}, "f").Domain("my").End();
  recursive.Input("x", {2}).Node("F", {"x"}, {"y"}, "main").Domain("my").Output("y");
  EXPECT_EQ(ImportNamed(recursive),
            "INVALID_ARGUMENT: node \"main/g/f\" calls function \"F\", which calls itself");
  TestModel silent;
  silent.Function("my", "F", {"a"}, {"b"}).Node("Neg", {"a"}, {"c"}).End();
  silent.Input("x", {2}).Node("F", {"x"}, {"y"}, "f").Domain("my").Output("y");
  EXPECT_THAT(ImportNamed(silent), HasSubstr("function \"F\": no node gives its output \"b\""));
  TestModel wide;
  wide.Function("my", "F", {"a"}, {"b"}).Node("Neg", {"a"}, {"b"}).End();
  wide.Input("x", {2}).Node("F", {"x", "x"}, {"y"}, "f").Domain("my").Output("y");
  EXPECT_THAT(
      ImportNamed(wide),
      HasSubstr("node \"f\" calls function \"F\" with 2 inputs and 1 outputs, it has 1 and 1"));
  TestModel twice;
  twice.Function("my", "F", {"a"}, {"b"}).End().Function("my", "F", {"a"}, {"b"}).End();
  twice.Input("x", {2}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(ImportNamed(twice), HasSubstr("function \"F\" of domain \"my\" is defined twice"));
  TestModel captured;
  captured.Function("my", "F", {"a"}, {"b"}).Node("Add", {"a", "x"}, {"b"}, "add").End();
  captured.Input("x", {2}).Node("F", {"x"}, {"y"}, "f").Domain("my").Output("y");
  EXPECT_THAT(ImportNamed(captured),
              HasSubstr("node \"f/add\" (Add): input 1 \"f/x\" is given by no node"));
  TestModel redefined;
  redefined.Function("my", "F", {"a"}, {"b"})
      .Node("Neg", {"a"}, {"a"})
      .Node("Neg", {"a"}, {"b"})
      .End();
  redefined.Input("x", {2}).Node("F", {"x"}, {"y"}, "f").Domain("my").Output("y");
  EXPECT_THAT(ImportNamed(redefined), HasSubstr("tensor \"f/a\" is defined twice"));
}

// f0 is small; f_i calls f_(i-1) twice.
TestModel Doubling(int depth, bool empty) {
  TestModel m;
  m.Function("my", "f0", {"a"}, {"a"});
  if (!empty) m.Node("Neg", {"a"}, {"t"});
  m.End();
  for (int i = 1; i <= depth; ++i) {
    m.Function("my", StrCat("f", i), {"a"}, {"c"});
    m.Node(StrCat("f", i - 1), {"a"}, {"b"})
        .Domain("my")
        .Node(StrCat("f", i - 1), {"b"}, {"c"})
        .Domain("my")
        .End();
  }
  m.Input("x", {2}).Node(StrCat("f", depth), {"x"}, {"y"}).Domain("my").Output("y");
  return m;
}

TEST(Functions, DoublingStopsAtTheLimit) {
  for (bool empty : {true, false}) {
    TestModel m = Doubling(40, empty);
    EXPECT_THAT(ImportNamed(m), HasSubstr("RESOURCE_EXHAUSTED"));
    TestModel deep = Doubling(70, empty);
    EXPECT_THAT(ImportNamed(deep), HasSubstr("RESOURCE_EXHAUSTED: node"));
  }
  TestModel fine = Doubling(5, false);
  EXPECT_THAT(ImportNamed(fine), HasSubstr("y:f32[2]"));
}

TEST(Functions, LongListsCalledOftenStopAtTheLimit) {
  TestModel m;
  m.Function("my", "f", {"a"}, {"b"}).Node("Split", {"a"}, {"b"});
  for (int i = 0; i < 1000; ++i) m.last()->add_output(StrCat("o", i));
  m.End().Input("x", {2});
  for (int i = 0; i < 20000; ++i) m.Node("f", {"x"}, {StrCat("y", i)}).Domain("my");
  m.Output("y0");
  EXPECT_THAT(ImportNamed(m),
              HasSubstr("RESOURCE_EXHAUSTED: the nodes of the model have more than"));
}

}  // namespace
}  // namespace fusion
