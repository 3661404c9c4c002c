#include "core/onnx/tensor_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/onnx/constant_node.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

onnx::TensorProto Typed(int32_t type, const Dims& dims) {
  onnx::TensorProto t;
  t.set_name("t");
  t.set_data_type(type);
  for (int64_t d : dims) t.add_dims(d);
  return t;
}

std::string TextOf(const onnx::TensorProto& t) {
  auto value = ReadInlineTensor(t, "tensor \"t\"");
  if (!value.ok()) return std::string(Message(value.status()));
  std::string out = StrCat(DTypeName(value->dtype()), DimsToString(value->dims()));
  for (int64_t i = 0; i < value->elements(); ++i) StrAppend(&out, StrCat(" ", value->GetDouble(i)));
  return out;
}

TEST(TensorProto, EveryTypeSurvivesRawBytes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    HostTensor t(static_cast<DType>(i), {2, 3});
    for (int64_t k = 0; k < 6; ++k) t.SetDouble(k, static_cast<double>(k % 2));
    auto back = ReadInlineTensor(MakeTensorProto(t, "t"), "t");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, t);
  }
}

TEST(TensorProto, TypedFieldsAreRead) {
  auto t = Typed(onnx::TensorProto::FLOAT, {2});
  t.add_float_data(1.5f);
  t.add_float_data(-2);
  EXPECT_EQ(TextOf(t), "f32[2] 1.5 -2");
  t = Typed(onnx::TensorProto::DOUBLE, {1});
  t.add_double_data(0.1);
  EXPECT_EQ(TextOf(t), "f64[1] 0.1");
  t = Typed(onnx::TensorProto::INT64, {});
  t.add_int64_data(-7);
  EXPECT_EQ(TextOf(t), "i64[] -7");
  t = Typed(onnx::TensorProto::INT32, {1});
  t.add_int32_data(-8);
  EXPECT_EQ(TextOf(t), "i32[1] -8");
  for (int32_t type :
       {onnx::TensorProto::UINT8, onnx::TensorProto::INT8, onnx::TensorProto::INT16}) {
    t = Typed(type, {2});
    t.add_int32_data(5);
    t.add_int32_data(100);
    EXPECT_THAT(TextOf(t), HasSubstr("[2] 5 100"));
  }
  t = Typed(onnx::TensorProto::BOOL, {3});
  for (int v : {0, 1, 7}) t.add_int32_data(v);
  EXPECT_EQ(TextOf(t), "bool[3] 0 1 1");
  t = Typed(onnx::TensorProto::FLOAT16, {2});
  t.add_int32_data(0x3c00);
  t.add_int32_data(0xc000);  // the bits of -2, as an unsigned number
  EXPECT_EQ(TextOf(t), "f16[2] 1 -2");
  t = Typed(onnx::TensorProto::BFLOAT16, {1});
  t.add_int32_data(0x3f80);
  EXPECT_EQ(TextOf(t), "bf16[1] 1");
}

TEST(TensorProto, BoolsOfOddBytesBecomeOne) {
  auto t = Typed(onnx::TensorProto::BOOL, {2});
  t.set_raw_data(std::string("\x00\xff", 2));
  auto value = ReadInlineTensor(t, "t");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->data<uint8_t>()[1], 1);
}

TEST(TensorProto, CountsMustFit) {
  auto t = Typed(onnx::TensorProto::FLOAT, {2, 2});
  t.add_float_data(1);
  EXPECT_EQ(TextOf(t), "tensor \"t\": float_data has 1 elements, expected 4");
  t.set_raw_data("12345678");
  EXPECT_EQ(TextOf(t), "tensor \"t\": f32[2,2] has 8 bytes of raw_data, expected 16");
  t = Typed(onnx::TensorProto::INT64, {0});
  t.add_int64_data(1);
  EXPECT_THAT(TextOf(t), HasSubstr("int64_data has 1 elements, expected 0"));
}

TEST(TensorProto, NothingIsAllocatedForAbsurdShapes) {
  EXPECT_THAT(TextOf(Typed(onnx::TensorProto::FLOAT, {int64_t{1} << 40, int64_t{1} << 40})),
              HasSubstr("more than 2^63 bytes"));
  EXPECT_THAT(TextOf(Typed(onnx::TensorProto::FLOAT, {int64_t{1} << 40})),
              HasSubstr("float_data has 0 elements, expected 1099511627776"));
  EXPECT_THAT(TextOf(Typed(onnx::TensorProto::FLOAT, {-1})), HasSubstr("dim -1 is negative"));
  EXPECT_THAT(TextOf(Typed(onnx::TensorProto::FLOAT, {0, int64_t{1} << 62})),
              HasSubstr("more than 2^63"));
  EXPECT_THAT(TextOf(Typed(onnx::TensorProto::FLOAT, Dims(65, 1))),
              HasSubstr("rank 65, expected at most 64"));
}

TEST(TensorProto, ZeroSizedTensorsAreFine) {
  EXPECT_EQ(TextOf(Typed(onnx::TensorProto::FLOAT, {0, 3})), "f32[0,3]");
  auto t = Typed(onnx::TensorProto::FLOAT, {3, 0});
  t.set_raw_data("");
  EXPECT_EQ(TextOf(t), "f32[3,0]");
}

TEST(TensorProto, NarrowTypesAreReadPackedAndAsNumbers) {
  auto t = Typed(22, {3});  // INT4
  t.set_raw_data(std::string("\x2f\x08", 2));
  EXPECT_EQ(TextOf(t), "i4[3] -1 2 -8");
  t.set_raw_data("\x2f");
  EXPECT_THAT(TextOf(t), HasSubstr("has 1 bytes of raw_data, expected 2"));
  t = Typed(22, {3});
  t.add_int32_data(0x2f);
  t.add_int32_data(0x08);
  EXPECT_EQ(TextOf(t), "i4[3] -1 2 -8");
  t = Typed(17, {2});  // FLOAT8E4M3FN
  t.add_int32_data(0x38);
  t.add_int32_data(0xfe);
  EXPECT_EQ(TextOf(t), "f8e4m3fn[2] 1 -448");
  t = Typed(27, {1});  // FLOAT6E2M3: an element in an entry
  t.add_int32_data(0x1f);
  EXPECT_EQ(TextOf(t), "f6e2m3[1] 7.5");
}

TEST(TensorProto, OtherTypesAreNamed) {
  EXPECT_THAT(TextOf(Typed(onnx::TensorProto::STRING, {1})),
              HasSubstr("element type STRING (8) is not supported; supported: bool, u8"));
  EXPECT_THAT(TextOf(Typed(9999, {1})), HasSubstr("element type number 9999 is not supported"));
  EXPECT_THAT(TextOf(Typed(0, {1})), HasSubstr("UNDEFINED (0)"));
  auto t = Typed(onnx::TensorProto::FLOAT, {1});
  t.mutable_segment()->set_begin(0);
  EXPECT_THAT(TextOf(t), HasSubstr("segmented"));
}

TEST(ConstantNode, EveryForm) {
  auto text = [](const onnx::NodeProto& node) {
    auto tensor = ConstantNodeTensor(node, "c");
    auto header = ConstantNodeHeader(node, "c");
    EXPECT_EQ(tensor.ok(), header.ok());
    if (!tensor.ok()) return std::string(Message(tensor.status()));
    EXPECT_EQ(ReadTensorHeader(*tensor, "c")->dims, header->dims);
    EXPECT_EQ(ReadTensorHeader(*tensor, "c")->bytes, header->bytes);
    return TextOf(*tensor);
  };
  auto with = [](const std::string& name) {
    onnx::NodeProto node;
    node.set_op_type("Constant");
    node.add_output("c");
    node.add_attribute()->set_name(name);
    return node;
  };
  auto node = with("value_int");
  node.mutable_attribute(0)->set_i(3);
  EXPECT_EQ(text(node), "i64[] 3");
  node = with("value_ints");
  node.mutable_attribute(0)->add_ints(4);
  EXPECT_EQ(text(node), "i64[1] 4");
  EXPECT_EQ(text(with("value_ints")), "i64[0]");
  node = with("value_float");
  node.mutable_attribute(0)->set_f(0.5f);
  EXPECT_EQ(text(node), "f32[] 0.5");
  node = with("value_floats");
  node.mutable_attribute(0)->add_floats(0.25f);
  EXPECT_EQ(text(node), "f32[1] 0.25");
  node = with("value");
  *node.mutable_attribute(0)->mutable_t() =
      MakeTensorProto(HostTensor::FromValues<int64_t>(DType::kI32, {2}, {1, 2}), "");
  EXPECT_EQ(text(node), "i32[2] 1 2");
  node.add_attribute()->set_name("value_int");
  EXPECT_EQ(text(node), "c: has the attributes value and value_int, expected one value");
  EXPECT_EQ(text(with("value")), "c: attribute \"value\" is no tensor");
  EXPECT_THAT(text(with("sparse_value")), HasSubstr("not supported"));
  EXPECT_THAT(text(with("value_string")), HasSubstr("not supported"));
  EXPECT_THAT(text(with("volume")), HasSubstr("unknown attribute \"volume\""));
  EXPECT_EQ(text(onnx::NodeProto()), "c: has no value");
}

}  // namespace
}  // namespace fusion
