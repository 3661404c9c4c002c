#include "core/rewrite/layouts.h"

#include <gtest/gtest.h>

#include "core/graph/build/text.h"
#include "tests/support/whole_program.h"

namespace fusion {
namespace {

// The storage orders of the values of a graph that ops compute, by label: "Convolve [0,2,3,1]",
// and without brackets those that lie as their dims stand.
std::vector<std::string> OrdersOf(const std::string& text, const char* device,
                                  const LeaveProduct& leave = nullptr) {
  auto graph = ParseGraph(text);
  FUSION_CHECK(graph.ok(), Message(graph.status()));
  auto program = BuildProgram(*graph);
  FUSION_CHECK(program.ok(), Message(program.status()));
  StoreColumnsInnermost(DeviceNamed(device), &*program, leave);
  auto again = ParseProgram(ToString(*program));
  FUSION_CHECK(again.ok(), Message(again.status()));
  EXPECT_EQ(ToString(*again), ToString(*program));
  std::vector<std::string> out;
  for (const LoopOp& op : program->ops) {
    const std::vector<int>& order = program->value(op.output).order;
    out.push_back(order.empty() ? op.label : StrCat(op.label, " [", StrJoin(order, ","), "]"));
  }
  return out;
}

// Two convolutions with bias, padding and a pool between them.
std::string Chain(int channels) {
  return StrCat(R"(graph "g" {
  %0 = input "x" : f32[1,3,20,20]
  %1 = weight "v" : f32[)",
                channels, R"(,3,3,3]
  %2 = weight "w" : f32[)",
                channels, ",", channels, R"(,3,3]
  %3 = Conv(%0, %1) : f32[1,)",
                channels, R"(,18,18]  "" @ ""
  %4 = Relu(%3) : f32[1,)",
                channels, R"(,18,18]  "" @ ""
  %5 = MaxPool(%4) {kernel_shape=[2,2],strides=[2,2]} : f32[1,)",
                channels, R"(,9,9]  "" @ ""
  %6 = Conv(%5, %2) {pads=[1,1,1,1]} : f32[1,)",
                channels, R"(,9,9]  "" @ ""
  %7 = Tanh(%6) : f32[1,)",
                channels, R"(,9,9]  "" @ ""
  output %7
}
)");
}

TEST(StoreColumnsInnermost, BetweenConvolutionsChannelsAreNeighbours) {
  const std::vector<std::string> orders = OrdersOf(Chain(32), "generic-avx512");
  EXPECT_EQ(orders, (std::vector<std::string>{"Convolve [0,2,3,1]", "Relu [0,2,3,1]",
                                              "WindowReduce [0,2,3,1]", "PadConstant [0,2,3,1]",
                                              "Convolve [0,2,3,1]", "Tanh"}));
}

TEST(StoreColumnsInnermost, FewChannelsFillNoVector) {
  for (const std::string& order : OrdersOf(Chain(8), "generic-avx512")) {
    EXPECT_EQ(order.find('['), std::string::npos) << order;
  }
  EXPECT_NE(OrdersOf(Chain(8), "generic-avx2")[0].find('['), std::string::npos);
}

// What is left reads and writes as the model has it; the others go on without it.
TEST(StoreColumnsInnermost, WhatIsLeftStaysAndWhatLiesBetween) {
  int asked = 0;
  const LeaveProduct pool = [&asked](const LoopOp& op) {
    ++asked;
    return op.label == "WindowReduce";
  };
  EXPECT_EQ(OrdersOf(Chain(32), "generic-avx512", pool),
            (std::vector<std::string>{"Convolve [0,2,3,1]", "Relu", "WindowReduce",
                                      "PadConstant [0,2,3,1]", "Convolve [0,2,3,1]", "Tanh"}));
  EXPECT_EQ(asked, 6);
}

TEST(StoreColumnsInnermost, WhereMemoryIsExplicitAllStaysAsItIs) {
  for (const std::string& order : OrdersOf(Chain(32), "h100")) {
    EXPECT_EQ(order.find('['), std::string::npos) << order;
  }
}

TEST(StoreColumnsInnermost, OutputsAndProductsOfTwoInputsStay) {
  const std::vector<std::string> orders = OrdersOf(R"(graph "g" {
  %0 = input "x" : f32[1,2,32,32]
  %1 = input "y" : f32[1,2,32,32]
  %2 = MatMul(%0, %1) : f32[1,2,32,32]  "" @ ""
  %3 = Relu(%2) : f32[1,2,32,32]  "" @ ""
  output %3
}
)",
                                                   "generic-avx512");
  EXPECT_EQ(orders, (std::vector<std::string>{"MatMul", "Relu"}));
}

}  // namespace
}  // namespace fusion
