#include "core/op/forms/recurrent.h"

#include <gtest/gtest.h>

#include "core/op/derive.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }

std::string TypesOf(std::string_view op, std::vector<TensorType> inputs, AttrMap attrs,
                    int outputs) {
  std::vector<std::optional<TensorType>> types(inputs.begin(), inputs.end());
  auto out = InferOutputTypes(OpCall(*FindOp(op), std::move(types), std::move(attrs), outputs));
  return out.ok() ? StrJoin(*out, " ", [](const TensorType& t) { return t.ToString(); })
                  : std::string(Message(out.status()));
}

TEST(Recurrent, ShapesFollowDirectionAndLayout) {
  EXPECT_EQ(TypesOf("LSTM", {F32({7, 2, 3}), F32({1, 20, 3}), F32({1, 20, 5})}, {}, 3),
            "f32[7,1,2,5] f32[1,2,5] f32[1,2,5]");
  EXPECT_EQ(TypesOf("GRU", {F32({2, 7, 3}), F32({2, 15, 3}), F32({2, 15, 5})},
                    {{"direction", std::string("bidirectional")}, {"layout", int64_t{1}}}, 2),
            "f32[2,7,2,5] f32[2,2,5]");
}

TEST(Recurrent, WhatIsNotSupportedSaysSo) {
  std::vector<TensorType> in = {F32({7, 2, 3}), F32({1, 5, 3}), F32({1, 5, 5})};
  EXPECT_EQ(TypesOf("RNN", in, {{"sequence_lens", std::vector<int64_t>{7, 8}}}, 1),
            "sequence_lens has the entry 8, expected 0..7");
  EXPECT_EQ(TypesOf("RNN", in, {{"sequence_lens", std::vector<int64_t>{7}}}, 1),
            "sequence_lens has 1 entries, expected one for each of the batch of 2");
  EXPECT_EQ(TypesOf("RNN", in, {{"sequence_lens", std::vector<int64_t>{7, 7}}}, 1), "f32[7,1,2,5]");
  std::vector<TensorType> open = in;
  open[0].shape = Shape({Dim(7), Dim::Symbol(0), Dim(3)});
  EXPECT_EQ(TypesOf("RNN", open, {{"sequence_lens", std::vector<int64_t>{7, 7}}}, 1),
            TypesOf("RNN", open, {}, 1))
      << "how many there are is open yet";
  EXPECT_EQ(TypesOf("RNN", in, {{"hidden_size", int64_t{4}}}, 1),
            "attribute \"hidden_size\" is 4, input R is f32[1,5,5]");
  EXPECT_EQ(TypesOf("RNN", in, {{"activations", std::string("Tanh,Relu")}}, 1),
            "attribute \"activations\" has 2 entries, expected 1");
  in[0] = F32({kMaxPasses + 1, 2, 3});
  EXPECT_EQ(TypesOf("RNN", in, {}, 1), "a sequence of 2147483649 steps; supported: 0..2147483648");
}

TEST(Recurrent, StepsAndBatchMayBeOpen) {
  std::vector<TensorType> in = {F32({7, 2, 3}), F32({2, 20, 3}), F32({2, 20, 5})};
  in[0].shape = Shape({Dim::Symbol(0), Dim::Symbol(1), Dim(3)});
  EXPECT_EQ(TypesOf("LSTM", in, {{"direction", std::string("bidirectional")}}, 3),
            "f32[s0,2,s1,5] f32[2,s1,5] f32[2,s1,5]");
  EXPECT_EQ(
      TypesOf("LSTM", in, {{"direction", std::string("bidirectional")}, {"layout", int64_t{1}}}, 3),
      "f32[s0,s1,2,5] f32[s0,2,5] f32[s0,2,5]");
}

TEST(Recurrent, AttributesOfOpenShapesAreChecked) {
  std::vector<TensorType> in = {F32({7, 2, 3}), F32({1, 5, 3}), F32({1, 5, 5})};
  in[0].shape = Shape({Dim::Symbol(0), Dim::Symbol(1), Dim(3)});
  EXPECT_EQ(TypesOf("RNN", in, {{"activations", std::string("Tanh,Relu")}}, 1),
            "attribute \"activations\" has 2 entries, expected 1");
}

TEST(Recurrent, ABatchMayBeEmpty) {
  for (const int64_t steps : {7, 40}) {
    EXPECT_EQ(TypesOf("GRU", {F32({steps, 0, 3}), F32({1, 15, 3}), F32({1, 15, 5})}, {}, 2),
              StrCat("f32[", steps, ",1,0,5] f32[1,0,5]"));
  }
}

TEST(Recurrent, NoStepsLeaveTheStateAsItIs) {
  EXPECT_EQ(TypesOf("RNN", {F32({0, 2, 3}), F32({1, 5, 3}), F32({1, 5, 5})}, {}, 2),
            "f32[0,1,2,5] f32[1,2,5]");
}

TEST(Recurrent, LongSequencesAreOneRepeat) {
  const std::vector<TensorType> in = {F32({100000, 2, 3}), F32({1, 15, 3}), F32({1, 15, 5})};
  EXPECT_EQ(TypesOf("GRU", in, {}, 2), "f32[100000,1,2,5] f32[1,2,5]");
  StepCount count;
  std::vector<std::optional<TensorType>> types(in.begin(), in.end());
  ASSERT_TRUE(InferOutputTypes(OpCall(*FindOp("GRU"), std::move(types), {}, 2), &count).ok());
  EXPECT_LT(count.loop_ops, 100);
}

}  // namespace
}  // namespace fusion
