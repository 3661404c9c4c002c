// Ops whose attributes and inputs changed between opsets: every form means the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/imported.h"

namespace fusion {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;

HostTensor X() { return F({2, 3}, {1, -2, 3, -4, 5, -6}); }

HostTensor I(Dims dims, std::initializer_list<int64_t> values) {
  return HostTensor::FromValues<int64_t>(DType::kI64, std::move(dims), values);
}

// `op` with one list of integers, which is an attribute before opset `since` and input 1 from it
// on.
std::vector<double> WithAxes(const std::string& op, int opset, int since, const Ints& axes) {
  bool input = opset >= since;
  TestModel m = OneNode(
      op, input ? std::vector<std::string>{"x", "axes"} : std::vector<std::string>{"x"}, opset);
  if (input) {
    HostTensor value(DType::kI64, {static_cast<int64_t>(axes.size())});
    for (size_t i = 0; i < axes.size(); ++i) value.SetInt(static_cast<int64_t>(i), axes[i]);
    m.Initializer("axes", value);
  } else {
    m.Attr("axes", axes);
  }
  return ResultOf(m, {X()});
}

TEST(OpsetForms, ReduceTakesAxesAsAttributeThenAsInput) {
  for (int opset : {7, 11, 12, 13, 17, 18, 21}) {
    EXPECT_THAT(WithAxes("ReduceSum", opset, 13, {1}), ElementsAre(2, -5)) << opset;
    EXPECT_THAT(WithAxes("ReduceMax", opset, 18, {1}), ElementsAre(3, 5)) << opset;
    EXPECT_THAT(WithAxes("ReduceL1", opset, 18, {0}), ElementsAre(5, 7, 9)) << opset;
    EXPECT_THAT(WithAxes("ReduceSumSquare", opset, 18, {1}), ElementsAre(14, 77)) << opset;
    EXPECT_EQ(WithAxes("Unsqueeze", opset, 13, {0}).size(), 6U) << opset;
  }
}

TEST(OpsetForms, OpsOfManyInputsNeedNotBroadcast) {
  for (int opset : {6, 7, 8, 13}) {
    auto of_two = [&](const std::string& op) {
      TestModel m = OneNode(op, {"x", "other"}, opset);
      m.Initializer("other", F({2, 3}, {2, 2, 2, -2, -2, -2}));
      return ResultOf(m, {X()});
    };
    EXPECT_THAT(of_two("Max"), ElementsAre(2, 2, 3, -2, 5, -2)) << opset;
    EXPECT_THAT(of_two("Min"), ElementsAre(1, -2, 2, -4, -2, -6)) << opset;
    EXPECT_THAT(of_two("Sum"), ElementsAre(3, 0, 5, -6, 3, -8)) << opset;
    EXPECT_THAT(of_two("Mean"), ElementsAre(1.5, 0, 2.5, -3, 1.5, -4)) << opset;
  }
}

TEST(OpsetForms, SoftmaxFlattensBeforeOpset13) {
  for (int opset : {7, 11, 12}) {
    TestModel m = OneNode("LogSoftmax", {"x"}, opset);
    m.Attr("axis", 0);
    double sum = 0;
    for (double y : ResultOf(m, {X()})) sum += std::exp(y);
    EXPECT_NEAR(sum, 1, 1e-6) << opset;  // over both dims
  }
  TestModel m = OneNode("LogSoftmax", {"x"}, 13);
  m.Attr("axis", 0);
  double sum = 0;
  for (double y : ResultOf(m, {X()})) sum += std::exp(y);
  EXPECT_NEAR(sum, 3, 1e-6);  // each of three columns
}

TEST(OpsetForms, PadsAreAttributesThenInputs) {
  for (int opset : {7, 10}) {
    TestModel m = OneNode("Pad", {"x"}, opset);
    m.Attr("pads", Ints{0, 1, 0, -1}).AttrFloat("value", 7);
    EXPECT_THAT(ResultOf(m, {X()}), ElementsAre(7, 1, -2, 7, -4, 5)) << opset;
  }
  for (int opset : {11, 13, 18, 21}) {
    TestModel m = OneNode("Pad", {"x", "pads", "value"}, opset);
    m.Initializer("pads", I({4}, {0, 1, 0, -1})).Initializer("value", F({}, {7}));
    EXPECT_THAT(ResultOf(m, {X()}), ElementsAre(7, 1, -2, 7, -4, 5)) << opset;
  }
  TestModel axes = OneNode("Pad", {"x", "pads", "", "axes"}, 18);
  axes.Initializer("pads", I({2}, {1, -1})).Initializer("axes", I({1}, {-1}));
  EXPECT_THAT(ResultOf(axes, {X()}), ElementsAre(0, 1, -2, 0, -4, 5));
}

TEST(OpsetForms, PadsRepeatElements) {
  auto padded = [](const std::string& mode, std::initializer_list<int64_t> pads) {
    TestModel m = OneNode("Pad", {"x", "pads"}, 19);
    m.Initializer("pads", I({4}, pads)).AttrString("mode", mode);
    return ResultOf(m, {X()});
  };
  EXPECT_THAT(padded("reflect", {0, 2, 0, 1}),
              ElementsAre(3, -2, 1, -2, 3, -2, -6, 5, -4, 5, -6, 5));
  EXPECT_THAT(padded("edge", {0, 2, 0, 0}), ElementsAre(1, 1, 1, -2, 3, -4, -4, -4, 5, -6));
  EXPECT_THAT(padded("wrap", {0, 1, 0, 4}),
              ElementsAre(3, 1, -2, 3, 1, -2, 3, 1, -6, -4, 5, -6, -4, 5, -6, -4));
}

TEST(OpsetForms, BatchNormalizationIsInferenceInAllOpsets) {
  for (int opset : {7, 9, 14, 15, 21}) {
    TestModel m = OneNode("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, opset);
    m.Initializer("scale", F({3}, {2, 1, 1})).Initializer("bias", F({3}, {0, 10, 0}));
    m.Initializer("mean", F({3}, {1, 0, 0}))
        .Initializer("var", F({3}, {4, 1, 1}))
        .AttrFloat("epsilon", 0);
    EXPECT_THAT(ResultOf(m, {X()}), ElementsAre(0, 8, 3, -5, 15, -6)) << opset;
  }
  TestModel training = OneNode("BatchNormalization", {"x", "s", "s", "s", "s"}, 14);
  training.Initializer("s", F({3}, {1, 1, 1})).Attr("training_mode", 1);
  EXPECT_THAT(Import(training), HasSubstr("attribute \"training_mode\" is 1"));
}

// The last of two updates of a row stays.
TEST(OpsetForms, IndicesOfScatterNdMayBeComputed) {
  TestModel m = OneNode("ScatterND", {"x", "i", "u"}, 16);
  m.Input("i", {3, 1}, DType::kI64).Initializer("u", F({3, 3}, {1, 1, 1, 2, 2, 2, 3, 3, 3}));
  EXPECT_THAT(ResultOf(m, {X(), I({3, 1}, {1, 1, -1})}), ElementsAre(1, -2, 3, 3, 3, 3));
  EXPECT_THAT(ResultOf(m, {X(), I({3, 1}, {0, 1, 0})}), ElementsAre(3, 3, 3, 2, 2, 2));
  m.AttrString("reduction", "add");
  EXPECT_THAT(ResultOf(m, {X(), I({3, 1}, {0, 0, 0})}),
              ElementsAre(7, 4, 9, X().GetDouble(3), X().GetDouble(4), X().GetDouble(5)));
  TestModel elements = OneNode("ScatterND", {"x", "i", "u"}, 16);
  elements.Input("i", {2, 2}, DType::kI64).Initializer("u", F({2}, {7, 8}));
  EXPECT_THAT(ResultOf(elements, {X(), I({2, 2}, {0, 2, -1, -3})}),
              ElementsAre(1, -2, 7, 8, X().GetDouble(4), X().GetDouble(5)));
}

TEST(OpsetForms, IndicesOfScatterNdThatAreKnown) {
  TestModel constant = OneNode("ScatterND", {"x", "i", "u"}, 16);
  constant.Initializer("i", I({3, 1}, {1, 1, -1}))
      .Initializer("u", F({3, 3}, {1, 1, 1, 2, 2, 2, 3, 3, 3}));
  EXPECT_THAT(ResultOf(constant, {X()}), ElementsAre(1, -2, 3, 3, 3, 3));
}

TEST(OldBroadcast, PutsTheSecondOperandAtItsAxis) {
  TestModel m(6);
  m.Input("x", {2, 3, 2}).Input("b", {3}).Node("Mul", {"x", "b"}, {"y"}, "mul");
  m.Attr("broadcast", 1).Attr("axis", 1).Output("y");
  EXPECT_THAT(ResultOf(m, {F({2, 3, 2}, {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}), F({3}, {1, 2, 3})}),
              ElementsAre(1, 1, 2, 2, 3, 3, 2, 2, 4, 4, 6, 6));
}

TEST(OldBroadcast, MeetsFromBehindWithoutAnAxis) {
  TestModel m(6);
  m.Input("x", {2, 3}).Input("b", {3}).Node("Sub", {"x", "b"}, {"y"}, "sub");
  m.Attr("broadcast", 1).Output("y");
  EXPECT_THAT(ResultOf(m, {F({2, 3}, {1, 2, 3, 4, 5, 6}), F({3}, {1, 2, 3})}),
              ElementsAre(0, 0, 0, 3, 3, 3));
}

TEST(OldBroadcast, RefusesWhatDoesNotFit) {
  auto model = [](int64_t broadcast, int64_t axis) {
    TestModel m(6);
    m.Input("x", {2, 3, 2}).Input("b", {3}).Node("Add", {"x", "b"}, {"y"}, "add");
    m.Attr("broadcast", broadcast).Attr("axis", axis).Output("y");
    return m;
  };
  TestModel no = model(0, 1);
  EXPECT_EQ(
      Import(no),
      "INVALID_ARGUMENT: node \"add\" (Add): inputs 0 [2,3,2] and 1 [3] differ, and attribute "
      "\"broadcast\" is 0");
  TestModel far = model(1, 3);
  EXPECT_EQ(Import(far),
            "INVALID_ARGUMENT: node \"add\" (Add): input 1 [3] does not fit at axis 3 of input 0 "
            "[2,3,2]");
}

TEST(OldBroadcast, StretchesTheSecondOperandOnly) {
  TestModel m(6);
  m.Input("x", {1, 3}).Input("b", {2, 3}).Node("Add", {"x", "b"}, {"y"}, "add");
  m.Attr("broadcast", 1).Output("y");
  EXPECT_EQ(
      Import(m),
      "INVALID_ARGUMENT: node \"add\" (Add): input 1 [2,3] does not broadcast to input 0 [1,3] "
      "at axis 0");
}

TEST(OldBroadcast, SlopesStandAlongChannels) {
  TestModel m(6);
  m.Input("x", {1, 2, 2}).Input("s", {2}).Node("PRelu", {"x", "s"}, {"y"}, "prelu").Output("y");
  EXPECT_THAT(ResultOf(m, {F({1, 2, 2}, {-1, 1, -1, 1}), F({2}, {2, 3})}),
              ElementsAre(-2, 1, -3, 1));
}

TEST(OpsetForms, GroupsHadScalesOfTheirOwnBeforeOpset21) {
  auto normalised = [](int opset, int scales) {
    TestModel m(opset);
    m.Input("x", {1, 4, 1}).Input("s", {scales}).Input("b", {scales});
    m.Node("GroupNormalization", {"x", "s", "b"}, {"y"}, "n").Attr("num_groups", 2).Output("y");
    return m;
  };
  TestModel of_groups = normalised(18, 2);
  TestModel of_channels = normalised(21, 4);
  const HostTensor x = F({1, 4, 1}, {1, 3, -8, 2});
  EXPECT_THAT(ResultOf(of_groups, {x, F({2}, {2, 3}), F({2}, {0, 1})}),
              Pointwise(DoubleNear(1e-4), {-2.0, 2.0, -2.0, 4.0}));
  EXPECT_THAT(ResultOf(of_channels, {x, F({4}, {2, 1, 3, 1}), F({4}, {0, 0, 0, 5})}),
              Pointwise(DoubleNear(1e-4), {-2.0, 1.0, -3.0, 6.0}));
  TestModel mixed = normalised(21, 2);
  EXPECT_THAT(Import(mixed), HasSubstr("expected one value for each of the 4 channels"));
}

TEST(OpsetForms, RemaindersOfFloatsNeedFmodBeforeOpset28) {
  TestModel old = OneNode("Mod", {"x", "x"}, 27);
  EXPECT_THAT(Import(old), HasSubstr("float types need fmod=1 before opset 28"));
  TestModel now = OneNode("Mod", {"x", "x"}, 28);
  EXPECT_EQ(Import(now), "Mod y:f32[2,3]");
}

}  // namespace
}  // namespace fusion
