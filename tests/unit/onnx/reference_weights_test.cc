#include "core/onnx/reference_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/onnx/external_data.h"
#include "core/onnx/weight_source.h"
#include "tests/models/models.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// Names of initialisers and constants without bytes.
std::vector<std::string> ReferencesOf(const onnx::ModelProto& model) {
  std::vector<std::string> out;
  for (const onnx::TensorProto& t : model.graph().initializer()) {
    if (IsExternal(t)) out.push_back(t.name());
  }
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const onnx::AttributeProto& a : node.attribute()) {
      if (a.has_t() && IsExternal(a.t())) out.push_back(node.output(0));
    }
  }
  return out;
}

bool Inline(TestModel& m, const std::string& name) {
  auto out = ReferenceWeights(m.proto());
  EXPECT_TRUE(out.ok()) << out.status();
  for (const std::string& n : ReferencesOf(*out)) {
    if (n == name) return false;
  }
  return true;
}

HostTensor Zeros(DType dtype, Dims dims) { return HostTensor(dtype, std::move(dims)); }

TEST(ReferenceWeights, BigFloatsGoSmallOnesStay) {
  TestModel m;
  m.Input("x", {1, 256});
  m.Initializer("w", Zeros(DType::kF32, {256, 4})).Initializer("b", Zeros(DType::kF32, {256}));
  m.Initializer("b2", Zeros(DType::kF32, {257}));
  m.Node("MatMul", {"x", "w"}, {"y"}).Node("Add", {"y", "b"}, {"z"}).Output("z");
  auto out = ReferenceWeights(m.proto());
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(ReferencesOf(*out), (std::vector<std::string>{"w", "b2"}));
  const onnx::TensorProto& w = out->graph().initializer(0);
  EXPECT_EQ(w.external_data(0).value(), kClientWeightLocation);
  EXPECT_EQ(w.dims(0), 256);
  EXPECT_EQ(w.data_type(), onnx::TensorProto::FLOAT);
  EXPECT_FALSE(w.has_raw_data());
}

TEST(ReferenceWeights, ShapeVectorsAlwaysStay) {
  TestModel m;
  m.Initializer("i64", Zeros(DType::kI64, {5000})).Initializer("i32", Zeros(DType::kI32, {5000}));
  m.Initializer("i16", Zeros(DType::kI16, {5000}))
      .Initializer("matrix", Zeros(DType::kI64, {2, 2500}));
  m.Node("Cast", {"i64"}, {"a"}).Attr("to", 1).Output("a");
  EXPECT_TRUE(Inline(m, "i64"));
  EXPECT_TRUE(Inline(m, "i32"));
  EXPECT_FALSE(Inline(m, "i16"));
  EXPECT_FALSE(Inline(m, "matrix"));
}

TEST(ReferenceWeights, MasksAndIndicesStayWhereTheyOnlySelectOrAddress) {
  // Sliced, compared, then the condition of Where; indices through a reshape.
  TestModel m;
  m.Input("x", {8, 8});
  m.Initializer("mask", Zeros(DType::kBool, {64, 64}))
      .Initializer("table", Zeros(DType::kI64, {64, 64}));
  m.Initializer("zero", Zeros(DType::kF32, {})).Ints("s", {0}).Ints("e", {8}).Ints("shape", {-1});
  m.Node("Slice", {"mask", "s", "e"}, {"m1"}).Node("Not", {"m1"}, {"m2"});
  m.Node("Where", {"m2", "x", "zero"}, {"y"}).Output("y");
  m.Node("Reshape", {"table", "shape"}, {"t1"}).Node("Gather", {"x", "t1"}, {"z"}).Output("z");
  EXPECT_TRUE(Inline(m, "mask"));
  EXPECT_TRUE(Inline(m, "table"));
  // One use as a number is enough to make it a weight.
  m.Node("Cast", {"m1"}, {"f"}).Attr("to", 1).Output("f");
  EXPECT_FALSE(Inline(m, "mask"));
  EXPECT_TRUE(Inline(m, "table"));
  m.Output("t1");
  EXPECT_FALSE(Inline(m, "table"));
}

TEST(ReferenceWeights, MasksOverTwoMebibytesGo) {
  TestModel m;
  m.Input("x", {1});
  m.Initializer("fits", Zeros(DType::kBool, {2048, 1024}))
      .Initializer("big", Zeros(DType::kBool, {2049, 1024}));
  m.Node("Where", {"fits", "x", "x"}, {"y"})
      .Node("Where", {"big", "x", "x"}, {"z"})
      .Output("y")
      .Output("z");
  EXPECT_TRUE(Inline(m, "fits"));
  EXPECT_FALSE(Inline(m, "big"));
}

TEST(ReferenceWeights, OtherDomainsSubgraphsAndFunctionsMakeWeights) {
  TestModel m;
  m.Input("x", {1})
      .Initializer("a", Zeros(DType::kBool, {64, 64}))
      .Initializer("b", Zeros(DType::kBool, {64, 64}));
  m.Initializer("unused", Zeros(DType::kBool, {64, 64}));
  m.Node("Where", {"a", "x", "x"}, {"y"}).Domain("com.example").Output("y");
  m.Node("If", {"x"}, {"z"}).Output("z");
  onnx::AttributeProto* branch = m.last()->add_attribute();
  branch->set_name("then_branch");
  onnx::NodeProto* inner = branch->mutable_g()->add_node();
  inner->set_op_type("Where");
  inner->add_input("b");
  EXPECT_FALSE(Inline(m, "a"));
  EXPECT_FALSE(Inline(m, "b"));
  EXPECT_FALSE(Inline(m, "unused"));
}

TEST(ReferenceWeights, ConstantNodesToo) {
  TestModel m;
  m.Input("x", {1, 512});
  m.Node("Constant", {}, {"w"}).AttrTensor("value", Zeros(DType::kF32, {512}));
  m.Node("Constant", {}, {"list"});
  onnx::AttributeProto* a = m.last()->add_attribute();
  a->set_name("value_floats");
  a->set_type(onnx::AttributeProto::FLOATS);
  for (int i = 0; i < 512; ++i) a->add_floats(static_cast<float>(i));
  m.Node("Constant", {}, {"small"}).AttrFloat("value_float", 2);
  m.Node("Add", {"x", "w"}, {"y"})
      .Node("Add", {"y", "list"}, {"z"})
      .Node("Mul", {"z", "small"}, {"u"})
      .Output("u");
  auto out = ReferenceWeights(m.proto());
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(ReferencesOf(*out), (std::vector<std::string>{"w", "list"}));
  WeightSource source(m.proto());
  EXPECT_EQ(source.names(), (std::vector<std::string>{"w", "list", "small"}));
  auto list = source.Load("list");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->GetDouble(511), 511);
}

TEST(ReferenceWeights, SmallExternalConstantsAreReadIn) {
  TempDir dir;
  dir.Write("w.bin", std::string("\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0", 16));
  TestModel m;
  m.Input("x", {6}).Reference("shape", {2}, DType::kI64).Reference("w", {1000});
  for (int i : {0, 1}) {
    m.graph()->mutable_initializer(i)->mutable_external_data(0)->set_value("w.bin");
  }
  m.Node("Reshape", {"x", "shape"}, {"y"}).Output("y");
  auto out = ReferenceWeights(m.proto(), {.directory = dir.path()});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(ReferencesOf(*out), (std::vector<std::string>{"w"}));
  EXPECT_EQ(ReadInlineTensor(out->graph().initializer(0), "")->GetInt(1), 3);
  // The name of the client's file is nobody's business.
  EXPECT_EQ(out->SerializeAsString().find("w.bin"), std::string::npos);
  auto missing = ReferenceWeights(m.proto(), {.directory = dir.path("no")});
  EXPECT_THAT(std::string(Message(missing.status())), HasSubstr("initializer \"shape\""));
}

TEST(ReferenceWeights, RequestsAreSmallAndDoNotChangeTheModel) {
  auto bert = GenerateModel("bert_layer");
  ASSERT_TRUE(bert.ok());
  std::string before = bert->model.SerializeAsString();
  auto out = ReferenceWeights(bert->model);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_LT(out->ByteSizeLong(), 16u * 1024);
  EXPECT_GT(before.size(), size_t{25} << 20);
  EXPECT_EQ(bert->model.SerializeAsString(), before);
  // Stripping twice changes nothing.
  EXPECT_EQ(ReferenceWeights(*out)->SerializeAsString(), out->SerializeAsString());
}

TEST(ReferenceWeights, DocumentationIsLeftOut) {
  TestModel m;
  m.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y");
  m.last()->set_doc_string("secret stack trace");
  m.proto().set_doc_string("secret");
  m.proto().set_producer_name("secret");
  EXPECT_EQ(ReferenceWeights(m.proto())->SerializeAsString().find("secret"), std::string::npos);
}

TEST(ReferenceWeights, UnsupportedTypesNameTheTensor) {
  TestModel m;
  m.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y");
  onnx::TensorProto* text = m.graph()->add_initializer();
  text->set_name("vocabulary");
  text->set_data_type(onnx::TensorProto::STRING);
  auto out = ReferenceWeights(m.proto());
  EXPECT_EQ(out.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Message(out.status())), HasSubstr("initializer \"vocabulary\""));
}

TEST(WeightSource, LoadsAndTakes) {
  TestModel m;
  m.Initializer("w", HostTensor::FromValues<float>(DType::kF32, {2}, {1, 2}));
  m.Initializer("w2", HostTensor::FromValues<float>(DType::kF32, {2}, {3, 4}));
  WeightSource source(m.proto());
  EXPECT_EQ(source.Load("w")->GetDouble(1), 2);
  EXPECT_EQ(source.Load("w")->GetDouble(1), 2);
  EXPECT_EQ(source.Take("w")->GetDouble(0), 1);
  EXPECT_EQ(source.Take("w").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(source.Load("w").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(source.Load("w2")->GetDouble(0), 3);
  EXPECT_EQ(source.Load("v").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(source.Load("v").status())), HasSubstr("weight \"v\""));
}

TEST(WeightSource, ExternalTensorsAreReadWhenAskedFor) {
  TempDir dir;
  TestModel m;
  m.Reference("w", {2}, DType::kI16);
  m.graph()->mutable_initializer(0)->mutable_external_data(0)->set_value("w.bin");
  WeightSource source(m.proto(), dir.path());
  EXPECT_THAT(std::string(Message(source.Load("w").status())),
              HasSubstr("weight \"w\": external data file \"w.bin\""));
  dir.Write("w.bin", std::string("\x05\x00\x06\x00", 4));
  EXPECT_EQ(source.Take("w")->GetInt(1), 6);
  EXPECT_EQ(source.Take("w")->GetInt(1), 6);
}

}  // namespace
}  // namespace fusion
