#include "core/onnx/overridable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/onnx/reference_weights.h"
#include "tests/support/test_model.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// y = x w + b; w and b can be overridden, c is a constant.
TestModel Overridable(int64_t ir_version = 8) {
  TestModel m;
  m.Input("b", {3}).Input("x", {2, 4}).Input("w", {4, 3});
  m.Initializer("w", HostTensor(DType::kF32, {4, 3}))
      .Initializer("b", HostTensor(DType::kF32, {3}));
  m.Initializer("c", HostTensor(DType::kF32, {3}));
  m.Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"p", "b"}, {"q"}).Node("Add", {"q", "c"}, {"y"});
  m.Output("y");
  m.proto().set_ir_version(ir_version);
  return m;
}

std::string ErrorOf(const onnx::ModelProto& model, const std::string& name) {
  return std::string(Message(CheckOverridable(model, name)));
}

TEST(Overridable, ThoseThatAreInputsTooFromVersion4On) {
  TestModel m = Overridable();
  EXPECT_THAT(OverridableInitializers(m.proto()), ElementsAre("b", "w"));
  EXPECT_TRUE(CheckOverridable(m.proto(), "w").ok());
  EXPECT_THAT(ErrorOf(m.proto(), "c"), HasSubstr("\"c\" cannot be overridden: it is no input"));
  EXPECT_THAT(ErrorOf(m.proto(), "x"), HasSubstr("input \"x\" is no initialiser"));
  EXPECT_THAT(ErrorOf(m.proto(), "z"),
              HasSubstr("no initialiser \"z\"; those that can be overridden: \"b\", \"w\""));
  TestModel old = Overridable(3);
  EXPECT_THAT(OverridableInitializers(old.proto()), IsEmpty());
  EXPECT_THAT(ErrorOf(old.proto(), "w"), HasSubstr("IR version 3, expected 4 or later"));
}

TEST(Overridable, OverriddenOnesAreSentAsInputs) {
  TestModel m = Overridable();
  auto bare = ReferenceWeights(m.proto(), {.overridden = {"w"}});
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->graph().input_size(), 3);
  std::vector<std::string> constants;
  for (const auto& tensor : bare->graph().initializer()) constants.push_back(tensor.name());
  EXPECT_THAT(constants, ElementsAre("b", "c"));
  EXPECT_EQ(ReferenceWeights(m.proto(), {.overridden = {"c"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Overridable, AnInputWithoutShapeHasThatOfItsInitializer) {
  TestModel m = Overridable();
  m.graph()->mutable_input(2)->mutable_type()->mutable_tensor_type()->clear_shape();
  auto bare = ReferenceWeights(m.proto(), {.overridden = {"w"}});
  ASSERT_TRUE(bare.ok()) << bare.status();
  const auto& shape = bare->graph().input(2).type().tensor_type().shape();
  ASSERT_EQ(shape.dim_size(), 2);
  EXPECT_EQ(shape.dim(0).dim_value(), 4);
  m.graph()->mutable_input(2)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT64);
  EXPECT_THAT(std::string(Message(ReferenceWeights(m.proto(), {.overridden = {"w"}}).status())),
              HasSubstr("input \"w\": declared INT64 (7), its initialiser is FLOAT (1)"));
}

}  // namespace
}  // namespace fusion
