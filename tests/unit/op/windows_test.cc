#include "core/op/forms/windows.h"

#include <gtest/gtest.h>

#include "core/op/derive.h"

namespace fusion {
namespace {

using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }

OpCall Call(std::string_view op, std::vector<TensorType> inputs, AttrMap attrs = {}) {
  std::vector<std::optional<TensorType>> types(inputs.begin(), inputs.end());
  return OpCall(*FindOp(op), std::move(types), std::move(attrs));
}

std::string TypeOf(const OpCall& call) {
  auto types = InferOutputTypes(call);
  return types.ok() ? (*types)[0].ToString() : std::string(Message(types.status()));
}

// "count, begin + end" of the only window of a pool over `extent` elements.
std::string WindowOver(int64_t extent, AttrMap attrs) {
  auto windows = PoolWindowsOf(Call("MaxPool", {F32({1, 1, extent})}, std::move(attrs)));
  if (!windows.ok()) return std::string(Message(windows.status()));
  const Window& w = (*windows)[0];
  return StrCat(w.count, ", ", w.pad_begin, " + ", w.fill_end);
}

TEST(Windows, AreCountedAndPaddedAsAsked) {
  AttrMap k3s2 = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}};
  EXPECT_EQ(WindowOver(7, k3s2), "3, 0 + 0");
  k3s2.Set("pads", Ints{1, 1});
  EXPECT_EQ(WindowOver(7, k3s2), "4, 1 + 1");
  // The last element of the padding is behind every window.
  EXPECT_EQ(WindowOver(8, k3s2), "4, 1 + 0");
  EXPECT_EQ(WindowOver(9, {{"kernel_shape", Ints{3}}, {"dilations", Ints{3}}}), "3, 0 + 0");
}

TEST(Windows, CeilModeAddsAWindowThatStartsInside) {
  AttrMap k3s2 = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(WindowOver(8, k3s2), "4, 0 + 1");
  EXPECT_EQ(WindowOver(7, k3s2), "3, 0 + 0");
  // One that would start in the padding behind the input is none.
  AttrMap k1s3 = {{"kernel_shape", Ints{1}}, {"strides", Ints{3}}, {"ceil_mode", int64_t{1}}};
  k1s3.Set("pads", Ints{0, 1});
  EXPECT_EQ(WindowOver(4, k1s3), "2, 0 + 0");
  k1s3.Set("pads", Ints{0, 0});
  EXPECT_EQ(WindowOver(6, k1s3), "2, 0 + 0");
}

TEST(Windows, AutoPadKeepsTheExtentDividedByTheStride) {
  AttrMap k4s2 = {{"kernel_shape", Ints{4}}, {"strides", Ints{2}}};
  k4s2.Set("auto_pad", std::string("SAME_UPPER"));
  EXPECT_EQ(WindowOver(7, k4s2), "4, 1 + 2");
  k4s2.Set("auto_pad", std::string("SAME_LOWER"));
  EXPECT_EQ(WindowOver(7, k4s2), "4, 2 + 1");
  k4s2.Set("auto_pad", std::string("VALID"));
  EXPECT_EQ(WindowOver(7, k4s2), "2, 0 + 0");
  k4s2.Set("auto_pad", std::string("SOME"));
  EXPECT_EQ(WindowOver(7, k4s2),
            "attribute \"auto_pad\" is \"SOME\", expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
}

TEST(Windows, DimsWithoutElementsHaveNoneOrOnlyPaddedWindows) {
  AttrMap k2s3 = {{"kernel_shape", Ints{2}}, {"strides", Ints{3}}};
  EXPECT_EQ(
      WindowOver(0, k2s3),
      "a window of 2 elements does not fit into spatial dim 0 of extent 0 with 0 + 0 padding");
  k2s3.Set("pads", Ints{1, 4});
  EXPECT_EQ(WindowOver(0, k2s3), "2, 1 + 4");
  for (int64_t kernel : {1, 2, 7}) {  // less, and more, than the stride
    AttrMap same = {{"kernel_shape", Ints{kernel}}, {"strides", Ints{3}}};
    same.Set("auto_pad", std::string("SAME_UPPER"));
    EXPECT_EQ(WindowOver(0, same), "0, 0 + 0");
    for (const char* op : {"MaxPool", "AveragePool"}) {
      EXPECT_EQ(TypeOf(Call(op, {F32({1, 2, 0})}, same)), "f32[1,2,0]") << op << kernel;
    }
    EXPECT_EQ(TypeOf(Call("Conv", {F32({1, 2, 0}), F32({5, 2, kernel})}, same)), "f32[1,5,0]");
  }
}

TEST(AveragePool, CountsOfLargeInputsAreSmall) {
  auto constant_bytes = [](const OpCall& call) {
    StepCount count;
    EXPECT_TRUE(InferOutputTypes(call, &count).ok());
    return count.constant_bytes;
  };
  OpCall wide = Call("AveragePool", {F32({1, 1, 65536, 65536})},
                     {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}});
  EXPECT_EQ(TypeOf(wide), "f32[1,1,65536,65536]");
  // Two dims, each with zero for the sum's padding and a number for every window.
  EXPECT_LE(constant_bytes(wide), 2 * 65536 * 4 + 64);
  // 2^23 windows of 2^23 elements each, all inside.
  constexpr int64_t kLong = int64_t{1} << 24;
  OpCall deep = Call("AveragePool", {F32({1, 1, kLong})}, {{"kernel_shape", Ints{kLong / 2}}});
  EXPECT_EQ(TypeOf(deep), "f32[1,1,8388609]");
  EXPECT_EQ(constant_bytes(deep), 4);
  OpCall padded =
      Call("AveragePool", {F32({1, 1, kLong})}, {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}});
  auto types = InferOutputTypes(padded);
  EXPECT_TRUE(absl::IsResourceExhausted(types.status())) << types.status();
  EXPECT_EQ(Message(types.status()),
            "averages 16777216 partly padded windows of spatial dim 0; supported: 1048576");
}

TEST(Windows, BadAttributesAreNamed) {
  EXPECT_EQ(WindowOver(7, {{"kernel_shape", Ints{3}}, {"strides", Ints{0}}}),
            "attribute \"strides\" [0] has the entry 0, expected 1..16777216");
  EXPECT_EQ(WindowOver(7, {{"kernel_shape", Ints{3}}, {"pads", Ints{1}}}),
            "attribute \"pads\" has 1 entries, expected 2");
  EXPECT_EQ(
      WindowOver(2, {{"kernel_shape", Ints{3}}}),
      "a window of 3 elements does not fit into spatial dim 0 of extent 2 with 0 + 0 padding");
  EXPECT_EQ(WindowOver(7, {{"kernel_shape", Ints{3, 3}}}),
            "attribute \"kernel_shape\" has 2 entries, input 0 f32[1,1,7] has 1 spatial dims");
}

TEST(Conv, ShapesAreDerived) {
  EXPECT_EQ(TypeOf(Call("Conv", {F32({2, 3, 10}), F32({4, 3, 3})})), "f32[2,4,8]");
  EXPECT_EQ(TypeOf(Call("Conv", {F32({2, 3, 10, 9}), F32({4, 3, 3, 3}), F32({4})},
                        {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 1}}})),
            "f32[2,4,5,9]");
  EXPECT_EQ(TypeOf(Call("Conv", {F32({2, 6, 5, 5, 5}), F32({9, 2, 1, 2, 3})},
                        {{"group", int64_t{3}}, {"dilations", Ints{1, 2, 2}}})),
            "f32[2,9,5,3,1]");
  EXPECT_EQ(TypeOf(Call("Conv", {F32({Dim::Symbol(0), 3, 10}), F32({4, 3, 3})})), "f32[s0,4,8]");
}

TEST(Conv, BadCallsSayWhatIsWrong) {
  EXPECT_EQ(TypeOf(Call("Conv", {F32({2, 3, 10}), F32({4, 2, 3})})),
            "input 0 f32[2,3,10] has 3 channels, input 1 f32[4,2,3] in 1 group(s) expects 2");
  EXPECT_EQ(TypeOf(Call("Conv", {F32({2, 4, 10}), F32({3, 2, 3})}, {{"group", int64_t{2}}})),
            "attribute \"group\" is 2, the 3 output channels of input 1 f32[3,2,3] do not divide by"
            " it");
  // No output channel contradicts any number of groups.
  EXPECT_EQ(TypeOf(Call("Conv", {F32({1, 0, 10}), F32({0, int64_t{1} << 36, 1})},
                        {{"group", int64_t{1} << 31}})),
            "attribute \"group\" is 2147483648, input 1 f32[0,68719476736,1]: more than"
            " 1099511627776 input channels");
  EXPECT_EQ(TypeOf(Call("Conv", {F32({2, 3, 10}), F32({4, 3, 3})}, {{"kernel_shape", Ints{5}}})),
            "attribute \"kernel_shape\" is [5], input 1 f32[4,3,3] has the windows [3]");
  EXPECT_EQ(TypeOf(Call("Conv", {F32({2, 3, 10}), F32({4, 3, 3}), F32({3})})),
            "input 2 f32[3], expected one value for each of 4 output channels");
}

TEST(Conv, IsAnAffineSumOverWindows) {
  OpCall call = Call("Convolve", {F32({2, 6, 9, 9}), F32({8, 3, 3, 3})},
                     {{"group", int64_t{2}}, {"strides", Ints{2, 1}}, {"dilations", Ints{1, 3}}});
  auto body = call.def().body(call, 0);
  ASSERT_TRUE(body.ok()) << body.status();
  auto name = [&](int axis) { return body->axes[static_cast<size_t>(axis)].name; };
  EXPECT_EQ(StrJoin(body->axes, " ", [](const LoopAxis& a) { return a.name; }),
            "n g co oh ow ci kh kw");
  EXPECT_EQ(IndexMapToString(body->reads[0].index, name), "[n, 3*g + ci, 2*oh + kh, ow + 3*kw]");
  EXPECT_EQ(IndexMapToString(body->reads[1].index, name), "[4*g + co, ci, kh, kw]");
  EXPECT_EQ(IndexMapToString(body->write, name), "[n, 4*g + co, oh, ow]");
  EXPECT_TRUE(body->Verify({F32({2, 6, 9, 9}), F32({8, 3, 3, 3})}).ok());
}

TEST(Pad, RepeatsAreCountedBeforeTheyAreBuilt) {
  auto wrapped = [](int64_t extent, int64_t behind, const char* mode = "wrap") {
    return TypeOf(
        Call("Pad", {F32({extent})}, {{"pads", Ints{0, behind}}, {"mode", std::string(mode)}}));
  };
  EXPECT_EQ(wrapped(2, 2 * 4095), "f32[8192]") << "4096 pieces";
  EXPECT_EQ(wrapped(2, 2 * 4095 + 1),
            "pads 0 and 8191 repeat dim 0 of extent 2 more than 4096 times");
  EXPECT_EQ(wrapped(2, (1 << 20) - 2),
            "pads 0 and 1048574 repeat dim 0 of extent 2 more than 4096 times");
  EXPECT_EQ(wrapped(3, 9000, "reflect"),
            "pads 0 and 9000 repeat dim 0 of extent 3 more than 4096 times");
  EXPECT_EQ(wrapped(1, (1 << 20) - 1), "f32[1048576]") << "one element stands still";
  EXPECT_EQ(wrapped(2, (1 << 20) - 2, "edge"), "f32[1048576]");
}

TEST(Pad, ReadsTheInputOnlyWhereItIs) {
  auto zero = std::make_shared<const HostTensor>(DType::kF32, Dims());
  OpCall call = Call("PadConstant", {F32({4, 5})}, {{"pads", Ints{1, -2, 2, 3}}, {"value", zero}});
  auto body = call.def().body(call, 0);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(body->OutputType().ToString(), "f32[7,6]");
  EXPECT_TRUE(body->Verify({F32({4, 5})}).ok()) << body->Verify({F32({4, 5})});
  EXPECT_EQ(body->reads[0].guards, (std::vector<Guard>{{0, 1, 5}, {1, 0, 3}}));
  OpCall cut = Call("PadConstant", {F32({4, 5})}, {{"pads", Ints{-1, 0, 0, -2}}, {"value", zero}});
  auto view = cut.def().body(cut, 0);
  ASSERT_TRUE(view.ok());
  EXPECT_TRUE(view->IsView());
  EXPECT_EQ(TypeOf(Call("Pad", {F32({4})}, {{"pads", Ints{-3, -2}}})),
            "pads [-3,-2] give dim 0 of [4] the extent -1");
}

TEST(Ops, InternalStepsAreNotForModels) {
  EXPECT_NE(FindOp("Convolve"), nullptr);
  EXPECT_EQ(FindModelOp("Convolve"), nullptr);
  EXPECT_EQ((", " + ListModelOps() + ", ").find(", Convolve, "), std::string::npos);
}

}  // namespace
}  // namespace fusion
