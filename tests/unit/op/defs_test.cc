#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_call.h"

namespace fusion {
namespace {

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }

using Ints = std::vector<int64_t>;

TEST(Ops, ShapesAreDerived) {
  EXPECT_EQ(TypeOf(Call("MatMul", {F32({2, 1, 3, 4}), F32({5, 4, 6})})), "f32[2,5,3,6]");
  EXPECT_EQ(TypeOf(Call("MatMul", {F32({4}), F32({4, 6})})), "f32[6]");
  EXPECT_EQ(TypeOf(Call("MatMul", {F32({4}), F32({4})})), "f32[]");
  EXPECT_EQ(TypeOf(Call("Add", {F32({3, 1}), F32({1, 4})})), "f32[3,4]");
  EXPECT_EQ(TypeOf(Call("Transpose", {F32({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}})), "f32[4,2,3]");
  EXPECT_EQ(TypeOf(Call("Reshape", {F32({2, 12})}, {{"shape", Ints{0, 3, -1}}})), "f32[2,3,4]");
  EXPECT_EQ(TypeOf(Call("Reshape", {F32({6, 4})}, {{"shape", Ints{4, 6}}})), "f32[4,6]");
  EXPECT_EQ(TypeOf(Call("Softmax", {F32({2, 5})})), "f32[2,5]");
  EXPECT_EQ(
      TypeOf(Call("ReduceMean", {F32({2, 5})}, {{"axes", Ints{-1}}, {"keepdims", int64_t{0}}})),
      "f32[2]");
  EXPECT_EQ(TypeOf(Call("Split", {F32({2, 7})}, {{"axis", int64_t{1}}}, 3)),
            "f32[2,3] f32[2,3] f32[2,1]");
  EXPECT_EQ(TypeOf(Call("Concat", {F32({2, 3}), F32({2, 4})}, {{"axis", int64_t{-1}}})),
            "f32[2,7]");
  EXPECT_EQ(TypeOf(Call("Gather", {F32({9, 4}), {DType::kI64, {2, 3}}})), "f32[2,3,4]");
  EXPECT_EQ(TypeOf(Call("Slice", {F32({10})},
                        {{"starts", Ints{8}}, {"ends", Ints{-11}}, {"steps", Ints{-3}}})),
            "f32[3]");
  EXPECT_EQ(TypeOf(Call("Expand", {F32({3, 1})}, {{"shape", Ints{2, 1, 4}}})), "f32[2,3,4]");
  EXPECT_EQ(TypeOf(Call("Gemm", {F32({4, 3}), F32({5, 4}), F32({5})},
                        {{"transA", int64_t{1}}, {"transB", int64_t{1}}})),
            "f32[3,5]");
}

TEST(Ops, ShapesOfNewerOperatorsAreDerived) {
  const TensorType heads = F32({2, 4, 7, 8});
  const TensorType kv = F32({2, 2, 5, 8});
  const TensorType past = F32({2, 2, 3, 8});
  const std::vector<std::optional<TensorType>> cached = {heads, kv, kv, std::nullopt, past, past};
  EXPECT_EQ(TypeOf(OpCall(*FindOp("Attention"), cached, {}, 4)),
            "f32[2,4,7,8] f32[2,2,8,8] f32[2,2,8,8] f32[2,4,7,8]");
  EXPECT_EQ(TypeOf(Call("Attention", {F32({2, 7, 32}), F32({2, 5, 16}), F32({2, 5, 12})},
                        {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}})),
            "f32[2,7,24]");
  EXPECT_EQ(TypeOf(Call("RotaryEmbedding", {heads, F32({2, 7, 4}), F32({2, 7, 4})})),
            "f32[2,4,7,8]");
  EXPECT_EQ(TypeOf(Call("GroupNormalization", {F32({2, 6, 5}), F32({6}), F32({6})},
                        {{"num_groups", int64_t{3}}})),
            "f32[2,6,5]");
  EXPECT_EQ(TypeOf(Call("RMSNormalization", {{DType::kF16, {2, 6}}, F32({6})})), "f32[2,6]");
  EXPECT_EQ(TypeOf(Call("AffineGrid", {F32({2, 2, 3})}, {{"size", Ints{2, 9, 4, 5}}})),
            "f32[2,4,5,2]");
  EXPECT_EQ(TypeOf(Call("CenterCropPad", {F32({5, 4})}, {{"shape", Ints{2, 7}}})), "f32[2,7]");
  EXPECT_EQ(TypeOf(Call("Col2Im", {F32({1, 12, 4})},
                        {{"image_shape", Ints{3, 4}}, {"block_shape", Ints{2, 3}}})),
            "f32[1,2,3,4]");
  EXPECT_EQ(TypeOf(Call("DeformConv", {F32({1, 4, 5, 5}), F32({6, 4, 3, 3}), F32({1, 18, 3, 3})})),
            "f32[1,6,3,3]");
  EXPECT_EQ(TypeOf(Call("TensorScatter", {heads, F32({2, 4, 3, 8}), {DType::kI64, {2}}})),
            "f32[2,4,7,8]");
  EXPECT_EQ(
      TypeOf(Call("MaxRoiPool", {F32({1, 4, 5, 5}), F32({3, 5})}, {{"pooled_shape", Ints{2, 3}}})),
      "f32[3,4,2,3]");
  EXPECT_EQ(TypeOf(Call("CausalConvWithState", {F32({2, 4, 7}), F32({4, 1, 3})}, {}, 2)),
            "f32[2,4,7] f32[2,4,2]");
  EXPECT_EQ(TypeOf(Call("BitwiseAnd", {{DType::kU8, {3, 1}}, {DType::kU8, {4}}})), "u8[3,4]");
  EXPECT_EQ(TypeOf(Call("QuantizeLinear", {F32({3, 8}), F32({3, 2})},
                        {{"block_size", int64_t{5}}, {"output_dtype", int64_t{4}}})),
            "u16[3,8]");
}

TEST(Ops, BadCallsOfNewerOperatorsSayWhatIsWrong) {
  const TensorType heads = F32({2, 4, 7, 8});
  const TensorType kv = F32({2, 2, 5, 8});
  EXPECT_EQ(TypeOf(Call("Attention", {heads, F32({2, 3, 5, 8}), F32({2, 3, 5, 8})})),
            "inputs 0 to 2 are f32[2,4,7,8], f32[2,3,5,8] and f32[2,3,5,8], expected one rank and "
            "batch, as many keys as values, heads of queries that are a multiple of theirs, and "
            "keys as long as queries");
  EXPECT_EQ(TypeOf(Call("Attention", {heads, kv, kv, F32({6, 5})})),
            "input 3 is f32[6,5], expected what broadcasts to [2,4,7,5], or has fewer keys");
  EXPECT_EQ(TypeOf(Call("Attention", {heads, kv, kv, F32({7, 1})})),
            "input 3 is f32[7,1] for 5 keys: its last dim may be meant for all of them, or for the "
            "first");
  EXPECT_EQ(TypeOf(Call("Attention", {heads, kv, kv}, {{"qk_matmul_output_mode", int64_t{4}}})),
            "attribute \"qk_matmul_output_mode\" is 4, expected 0..3");
  EXPECT_EQ(TypeOf(Call("RotaryEmbedding", {heads, F32({2, 7, 3}), F32({2, 7, 3})})),
            "input 1 (cos_cache) is f32[2,7,3], expected f32[2,7,4]: position_ids are absent");
  const TensorType at = {DType::kI64, {2, 7}};
  auto turned = [&](const TensorType& cosines, const TensorType& sines, const TensorType& ids) {
    return TypeOf(Call("RotaryEmbedding", {heads, cosines, sines, ids}));
  };
  EXPECT_EQ(turned(F32({9, 4}), F32({9, 4}), at), "f32[2,4,7,8]");
  EXPECT_EQ(turned(F32({9, 4}), F32({8, 4}), at),
            "input 2 (sin_cache) is f32[8,4], expected f32[9,4] like cos_cache");
  EXPECT_EQ(turned(F32({9, 3}), F32({9, 3}), at),
            "input 1 (cos_cache) is f32[9,3], expected f32[positions,4], half of the 8 elements of "
            "a head that turn");
  EXPECT_EQ(turned(F32({2, 7, 4}), F32({2, 7, 4}), at),
            "input 1 (cos_cache) is f32[2,7,4], expected f32[positions,4], half of the 8 elements "
            "of a head that turn");
  EXPECT_EQ(turned(F32({9, 4}), F32({9, 4}), {DType::kI64, {7}}),
            "input 3 (position_ids) is i64[7], expected [2,7] for input 0 f32[2,4,7,8]");
  EXPECT_EQ(TypeOf(Call("GroupNormalization", {F32({2, 6, 5}), F32({6}), F32({6})},
                        {{"num_groups", int64_t{4}}})),
            "attribute \"num_groups\" is 4, expected a divisor of the 6 channels of input 0 "
            "f32[2,6,5]");
  EXPECT_EQ(TypeOf(Call("RMSNormalization", {F32({1, 6}), F32({2, 6})})),
            "input 1 is f32[2,6], expected a scale that broadcasts to input 0 f32[1,6]");
  EXPECT_EQ(TypeOf(Call("Col2Im", {F32({1, 12, 5})},
                        {{"image_shape", Ints{3, 4}}, {"block_shape", Ints{2, 3}}})),
            "input 0 is f32[1,12,5], expected [n, channels * 6, 4]: 4 blocks of [2,3] in an image "
            "of [3,4]");
  const Ints wide(3, 1 << 24);
  EXPECT_EQ(
      TypeOf(Call("Col2Im", {F32({1, 0, 1})}, {{"image_shape", wide}, {"block_shape", wide}})),
      "input 0 is f32[1,0,1], expected [n, channels * 1099511627777, 1]: 1 blocks of "
      "[16777216,16777216,16777216] in an image of [16777216,16777216,16777216]");
  EXPECT_EQ(TypeOf(Call("Attention", {F32({1, 1, 0}), F32({1, 1, 0}), F32({1, 1, 0})},
                        {{"q_num_heads", int64_t{1} << 62}, {"kv_num_heads", int64_t{1}}})),
            "attribute \"q_num_heads\" has the value 4611686018427387904, expected "
            "-2147483648..2147483648");
  EXPECT_EQ(TypeOf(Call("DeformConv", {F32({1, 4, 5, 5}), F32({6, 4, 3, 3}), F32({1, 9, 3, 3})})),
            "input 2 is f32[1,9,3,3], expected [1,18,3,3]");
  EXPECT_EQ(TypeOf(Call("TensorScatter", {heads, F32({2, 4, 8, 8})})),
            "inputs 0 and 1 are f32[2,4,7,8] and f32[2,4,8,8], expected as many dims, equal but "
            "for axis 2, which is not the first and may be shorter in input 1");
  EXPECT_EQ(TypeOf(Call("BitwiseOr", {F32({3}), F32({3})})),
            "inputs are f32, expected an integer type");
  EXPECT_EQ(TypeOf(Call("SwiGLU", {F32({3}), F32({1})})),
            "inputs 0 and 1 are f32[3] and f32[1], expected one shape");
  EXPECT_EQ(
      TypeOf(Call("QuantizeLinear", {F32({3, 8}), F32({3, 2})}, {{"block_size", int64_t{3}}})),
      "input 1 is f32[3,2] and attribute \"block_size\" is 3, expected [3,3] for input 0 "
      "f32[3,8]");
}

TEST(Ops, SymbolicDimsFlowThrough) {
  Dim seq = Dim::Symbol(0);
  EXPECT_EQ(TypeOf(Call("MatMul", {F32({1, seq, 8}), F32({8, 16})})), "f32[1,s0,16]");
  EXPECT_EQ(TypeOf(Call("Softmax", {F32({seq, 8})})), "f32[s0,8]");
  EXPECT_EQ(TypeOf(Call("Reshape", {F32({1, seq, 8})}, {{"shape", Ints{0, 0, 2, 4}}})),
            "f32[1,s0,2,4]");
}

TEST(Ops, BadCallsSayWhatIsWrong) {
  EXPECT_EQ(TypeOf(Call("MatMul", {F32({2, 3}), F32({4, 5})})),
            "dim 1 of input 0 f32[2,3] is 3 but dim 0 of input 1 f32[4,5] is 4");
  EXPECT_EQ(TypeOf(Call("Softmax", {F32({2, 3, 4})}, {{"axis", int64_t{4}}})),
            "axis 4 out of range for rank 3; expected -3..2");
  EXPECT_EQ(TypeOf(Call("Add", {F32({3}), F32({4})})),
            "inputs do not broadcast: dim 0 of input 1 f32[4] is 4 where an earlier input has 3");
  EXPECT_EQ(TypeOf(Call("Reshape", {F32({6})}, {{"shape", Ints{4, -1}}})),
            "cannot reshape [6] (6 elements) to [4,-1]");
  EXPECT_EQ(TypeOf(Call("Add", {F32({3})})), "has 1 inputs, expected 2");
  EXPECT_EQ(TypeOf(Call("Relu", {F32({3})}, {{"beta", int64_t{1}}})), "unknown attribute \"beta\"");
}

// An empty dim in common says nothing about those behind it.
TEST(Reshape, EmptyTensorsTakeAnyEmptyShape) {
  EXPECT_EQ(
      TypeOf(Call("Reshape", {F32({0, 3})}, {{"shape", Ints{0, 0}}, {"allowzero", int64_t{1}}})),
      "f32[0,0]");
  EXPECT_EQ(
      TypeOf(Call("Reshape", {F32({0, 0})}, {{"shape", Ints{0, 3}}, {"allowzero", int64_t{1}}})),
      "f32[0,3]");
}

TEST(Attributes, IntegersAreFarFromOverflowUnlessAnyIsMeant) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(
      TypeOf(Call("GatherND", {F32({2, 2, 2}), {DType::kI64, {2, 1}}}, {{"batch_dims", kLeast}})),
      "attribute \"batch_dims\" has the value -9223372036854775808, expected "
      "-2147483648..2147483648");
  EXPECT_EQ(TypeOf(Call("Transpose", {F32({2, 3})}, {{"perm", Ints{0, kMost}}})),
            "attribute \"perm\" has the value 9223372036854775807, expected "
            "-2147483648..2147483648");
  EXPECT_EQ(TypeOf(Call("Softmax", {F32({2, 3})}, {{"axis", (int64_t{1} << 31)}})),
            "axis 2147483648 out of range for rank 2; expected -2..1");
  EXPECT_EQ(TypeOf(Call("Slice", {F32({5})}, {{"starts", Ints{kLeast}}, {"ends", Ints{kMost}}})),
            "f32[5]");
  // Those that say with any value what they mean with it.
  EXPECT_EQ(TypeOf(Call("Shape", {F32({2, 3})}, {{"start", int64_t{1}}, {"end", kMost}})),
            "i64[1]");
  EXPECT_EQ(TypeOf(Call("Shape", {F32({2, 3})}, {{"start", kLeast}, {"end", int64_t{-1}}})),
            "i64[1]");
  EXPECT_EQ(TypeOf(Call("Shape", {F32({2, 3})}, {{"start", kMost}, {"end", kLeast}})), "i64[0]");
  for (int64_t k : {kLeast, kMost}) {
    for (const char* op : {"Trilu", "com.microsoft.Trilu", "EyeLike"}) {
      EXPECT_EQ(TypeOf(Call(op, {F32({2, 3})}, {{"k", k}})), "f32[2,3]") << op;
    }
  }
}

TEST(MicrosoftOps, ShapesAreDerived) {
  auto own = [](std::string_view op, std::vector<TensorType> inputs, AttrMap attrs = {},
                int outputs = 1) {
    return TypeOf(Call(StrCat("com.microsoft.", op), std::move(inputs), std::move(attrs), outputs));
  };
  const Dim rows = Dim::Symbol(0);
  EXPECT_EQ(own("FastGelu", {F32({2, rows, 6}), F32({6})}), "f32[2,s0,6]");
  EXPECT_EQ(own("FusedMatMul", {F32({5, 3, 7}), F32({11, 3, 7})},
                {{"transBatchA", int64_t{1}},
                 {"transBatchB", int64_t{1}},
                 {"transB", int64_t{1}},
                 {"alpha", 0.5}}),
            "f32[3,5,11]");
  EXPECT_EQ(own("SkipLayerNormalization",
                {F32({2, rows, 6}), F32({2, rows, 6}), F32({6}), F32({6}), F32({6})}, {}, 4),
            "f32[2,s0,6] f32[2,s0,1] f32[2,s0,1] f32[2,s0,6]");
  EXPECT_EQ(own("BiasSplitGelu", {F32({2, 3, 8}), F32({8})}), "f32[2,3,4]");
  EXPECT_EQ(own("NhwcFusedConv", {F32({1, 9, 7, 3}), F32({5, 3, 3, 3})}), "f32[1,7,5,5]");
  const AttrMap heads = {{"num_heads", int64_t{3}}};
  EXPECT_EQ(own("MultiHeadAttention", {F32({2, 5, 12}), F32({2, 7, 12}), F32({2, 7, 9})}, heads, 3),
            "f32[2,5,9] f32[2,3,7,4] f32[2,3,7,3]");
  const TensorType packed = F32({2, 5, 3, 3, 4});
  EXPECT_EQ(own("MultiHeadAttention", {packed}, heads), "f32[2,5,12]");
  const AttrMap grouped = {{"num_heads", int64_t{4}},
                           {"kv_num_heads", int64_t{2}},
                           {"total_sequence_length", int64_t{7}}};
  EXPECT_EQ(own("GroupQueryAttention",
                {F32({2, 1, 32}),
                 F32({2, 1, 16}),
                 F32({2, 1, 16}),
                 F32({2, 2, 9, 8}),
                 F32({2, 2, 9, 8}),
                 {DType::kI32, {2}}},
                grouped, 3),
            "f32[2,1,32] f32[2,2,9,8] f32[2,2,9,8]");
  // What is past is for a run to know.
  const AttrMap counted = {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}};
  const TensorType past = F32({2, 2, 9, 8});
  EXPECT_EQ(own("GroupQueryAttention",
                {F32({2, 1, 32}), F32({2, 1, 16}), F32({2, 1, 16}), past, past, {DType::kI32, {2}}},
                counted, 3),
            "f32[2,1,32] f32[2,2,10,8] f32[2,2,10,8]");
  const TensorType one = F32({});
  const TensorType u8 = {DType::kU8, {}};
  EXPECT_EQ(
      own("QLinearConcat", {one, u8, {DType::kU8, {2, 3}}, one, u8, {DType::kU8, {2, 4}}, one, u8},
          {{"axis", int64_t{1}}}),
      "u8[2,7]");
  EXPECT_EQ(own("MatMulNBits", {F32({2, 3, 70}), {DType::kU8, {9, 3, 16}}, F32({9, 3})},
                {{"K", int64_t{70}}, {"N", int64_t{9}}, {"block_size", int64_t{32}}}),
            "f32[2,3,9]");
  EXPECT_EQ(own("NhwcConv", {F32({1, 9, 7, 4}), F32({5, 3, 3, 4}), F32({5})}), "f32[1,7,5,5]");
  EXPECT_EQ(own("QLinearReduceMean", {{DType::kU8, {2, 3, 4}}, one, u8, one, u8},
                {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}),
            "u8[2,4]");
}

TEST(DynamicQuantizeLstm, HasALengthThatMayStayOpen) {
  std::vector<std::optional<TensorType>> inputs = {F32({Dim::Symbol(0), 2, 6}),
                                                   TensorType{DType::kI8, {1, 6, 20}},
                                                   TensorType{DType::kI8, {1, 5, 20}}};
  inputs.resize(10);
  inputs[7] = F32({1});
  inputs[9] = F32({1, 20});
  EXPECT_EQ(TypeOf(OpCall(*FindOp("com.microsoft.DynamicQuantizeLSTM"), inputs, {}, 3)),
            "f32[s0,1,2,5] f32[1,2,5] f32[1,2,5]");
}

TEST(Ops, OfAnyNumberOfInputsNoneMayBeAbsent) {
  const std::pair<const char*, AttrMap> ops[] = {{"Concat", {{"axis", int64_t{0}}}},
                                                 {"Einsum", {{"equation", std::string("i,i->i")}}},
                                                 {"Max", {}},
                                                 {"Mean", {}},
                                                 {"Min", {}},
                                                 {"Sum", {}}};
  for (const auto& [op, attrs] : ops) {
    EXPECT_EQ(TypeOf(OpCall(*FindOp(op), {F32({2}), std::nullopt}, attrs)),
              "input 1 is absent but required")
        << op;
    EXPECT_EQ(TypeOf(OpCall(*FindOp(op), {std::nullopt, F32({2})}, attrs)),
              "input 0 is absent but required")
        << op;
  }
  const TensorType one = F32({});
  const TensorType u8 = {DType::kU8, {}};
  EXPECT_EQ(TypeOf(OpCall(*FindOp("com.microsoft.QLinearConcat"),
                          {one, u8, TensorType{DType::kU8, {2}}, std::nullopt, u8,
                           TensorType{DType::kU8, {2}}, one, u8},
                          {{"axis", int64_t{0}}})),
            "input 3 is absent but required");
}

// Heads that are none, too many for the elements, or more than anything counts.
TEST(AttentionOps, NumbersOfHeadsThatDoNotFitAreRefused) {
  const TensorType x = F32({2, 5, 12});
  const TensorType at = {DType::kI64, {2, 5}};
  const TensorType u8 = {DType::kU8, {}};
  for (const int64_t heads : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{5}, int64_t{24},
                              int64_t{1} << 31, int64_t{1} << 62}) {
    const AttrMap own = {{"num_heads", heads}};
    const std::pair<std::string, std::string> cases[] = {
        {"Attention",
         TypeOf(Call("Attention", {x, x, x}, {{"q_num_heads", heads}, {"kv_num_heads", heads}}))},
        {"own Attention", TypeOf(Call("com.microsoft.Attention", {x, F32({12, 36})}, own))},
        {"MultiHeadAttention", TypeOf(Call("com.microsoft.MultiHeadAttention", {x, x, x}, own))},
        {"GroupQueryAttention",
         TypeOf(OpCall(*FindOp("com.microsoft.GroupQueryAttention"),
                       {x, x, x, std::nullopt, std::nullopt, TensorType{DType::kI32, {2}}},
                       {{"num_heads", heads},
                        {"kv_num_heads", heads},
                        {"total_sequence_length", int64_t{5}}}))},
        {"QAttention",
         TypeOf(
             Call("com.microsoft.QAttention",
                  {{DType::kU8, {2, 5, 12}}, {DType::kU8, {12, 36}}, F32({36}), F32({}), F32({})},
                  own))},
        {"RotaryEmbedding",
         TypeOf(Call("RotaryEmbedding", {x, F32({9, 6}), F32({9, 6}), at}, own))},
        {"own RotaryEmbedding",
         TypeOf(Call("com.microsoft.RotaryEmbedding", {x, at, F32({9, 6}), F32({9, 6})}, own))},
    };
    for (const auto& [name, answer] : cases) {
      if (heads == 1 || (heads == 0 && name == "own RotaryEmbedding")) {
        EXPECT_EQ(answer, "f32[2,5,12]") << name;
      } else {
        // In words that hold the number and what it should divide.
        EXPECT_THAT(answer, ::testing::HasSubstr(StrCat(heads))) << name;
        EXPECT_THAT(answer, ::testing::HasSubstr("expected")) << name;
      }
    }
  }
}

TEST(BitCast, IsOfOneWidth) {
  const TensorType x = {DType::kI16, {3}};
  EXPECT_EQ(TypeOf(Call("BitCast", {x}, {{"to", int64_t{4}}})), "u16[3]");
  EXPECT_EQ(TypeOf(Call("BitCast", {x}, {{"to", int64_t{6}}})),
            "attribute \"to\" is i32, input 0 is i16; expected types of one width");
  EXPECT_EQ(TypeOf(Call("BitCast", {F32({3})}, {{"to", int64_t{6}}})), "i32[3]");
  EXPECT_EQ(TypeOf(Call("BitCast", {{DType::kBool, {3}}}, {{"to", int64_t{17}}})),
            "the bits of bool as f8e4m3fn; of bool, supported as those of integers");
}

TEST(QuantizeLinear, WhatItGivesMayBeAnAttribute) {
  const TensorType one = F32({});
  EXPECT_EQ(TypeOf(Call("QuantizeLinear", {F32({3}), one}, {{"output_dtype", int64_t{5}}})),
            "i16[3]");
  EXPECT_EQ(TypeOf(Call("QuantizeLinear", {F32({3}), one, {DType::kU8, {}}},
                        {{"output_dtype", int64_t{3}}})),
            "attribute \"output_dtype\" says i8, input 2 is u8[]; expected one type");
  EXPECT_EQ(TypeOf(Call("DequantizeLinear", {{DType::kI8, {4}}, F32({2})},
                        {{"axis", int64_t{0}}, {"block_size", int64_t{2}}})),
            "f32[4]");
  EXPECT_EQ(
      TypeOf(Call("DequantizeLinear", {{DType::kI32, {4}}, F32({1})}, {{"axis", int64_t{1}}})),
      "f32[4]");
}

TEST(MicrosoftOps, BadCallsSayWhatIsWrong) {
  auto own = [](std::string_view op, std::vector<TensorType> inputs, AttrMap attrs = {}) {
    return TypeOf(Call(StrCat("com.microsoft.", op), std::move(inputs), std::move(attrs)));
  };
  EXPECT_EQ(own("BiasGelu", {F32({2, 6}), F32({2})}),
            "input 1 is f32[2], expected f32[6], along the last dim of f32[2,6]");
  EXPECT_EQ(own("SkipLayerNormalization", {F32({2, 6}), F32({2, 6}), F32({5})}),
            "input 2 is f32[5], expected the 6 elements of the last dim of input 0 f32[2,6]");
  const std::vector<TensorType> conv = {F32({1, 3, 9, 7}), F32({5, 3, 3, 3})};
  EXPECT_EQ(own("FusedConv", conv, {{"activation", std::string("Mish")}}),
            "attribute \"activation\" is \"Mish\"; supported: Clip, Elu, HardSigmoid, LeakyRelu, "
            "Relu, Selu, Sigmoid, Softplus, Softsign, Tanh, ThresholdedRelu");
  EXPECT_EQ(own("FusedConv", conv, {{"activation", std::string("Clip")}}),
            "attribute \"activation_params\" has 0 numbers, expected 2 of Clip");
  EXPECT_EQ(own("MultiHeadAttention", {F32({2, 5, 12}), F32({2, 7, 12}), F32({2, 7, 12})},
                {{"num_heads", int64_t{3}}, {"unidirectional", int64_t{1}}}),
            "attribute \"unidirectional\" with 7 keys for 5 rows behind a past of 0; supported: a "
            "key for each row");
  EXPECT_EQ(own("Attention", {F32({2, 5, 10}), F32({10, 35})}, {{"num_heads", int64_t{3}}}),
            "the projection has 35 columns for attribute \"num_heads\" 3; expected queries, keys "
            "and values of multiples of it, the first two of one width, all of one if "
            "\"qkv_hidden_sizes\" does not say them");
  EXPECT_EQ(own("Attention", {F32({2, 5, 10}), F32({10, 36})},
                {{"num_heads", int64_t{3}}, {"do_rotary", int64_t{1}}}),
            "attribute \"do_rotary\" is 1; supported: 0");
  const TensorType rows = F32({2, 5, 16});
  EXPECT_EQ(own("GroupQueryAttention",
                {rows, rows, rows, F32({2, 2, 0, 8}), F32({2, 2, 0, 8}), {DType::kI32, {2}}},
                {{"num_heads", int64_t{2}},
                 {"kv_num_heads", int64_t{2}},
                 {"total_sequence_length", int64_t{9}}}),
            "input 6 (total_sequence_length) is 9 for 5 new rows and room for 0 of the past");
  // Inputs are counted as the node does: total_sequence_length, number 6, is an attribute here.
  auto grouped = [&](std::vector<std::optional<TensorType>> inputs, AttrMap attrs) {
    inputs.insert(inputs.begin(),
                  {rows, rows, rows, std::nullopt, std::nullopt, TensorType{DType::kI32, {2}}});
    attrs.Set("num_heads", int64_t{2});
    attrs.Set("kv_num_heads", int64_t{2});
    attrs.Set("total_sequence_length", int64_t{5});
    return TypeOf(OpCall(*FindOp("com.microsoft.GroupQueryAttention"), std::move(inputs), attrs));
  };
  const AttrMap turning = {{"do_rotary", int64_t{1}}};
  EXPECT_EQ(grouped({F32({9, 4}), F32({9, 3})}, turning),
            "input 8 (sin_cache) is f32[9,3], expected f32[9,4] like cos_cache");
  EXPECT_EQ(grouped({F32({9, 5}), F32({9, 5})}, turning),
            "input 7 (cos_cache) is f32[9,5], expected [positions, n], n at most half of the 8 "
            "elements of a head");
  EXPECT_EQ(grouped({std::nullopt, std::nullopt, std::nullopt, F32({5, 5})}, {}),
            "input 10 (attention_bias) is f32[5,5], expected f32[2,2,5,5], of which the first two "
            "dims may be 1");
  EXPECT_EQ(grouped({std::nullopt, std::nullopt, std::nullopt, std::nullopt, F32({2})}, {}),
            "input 11 (head_sink) is not supported");
  const TensorType at = {DType::kI64, {2, 5}};
  const AttrMap two = {{"num_heads", int64_t{2}}};
  EXPECT_EQ(own("RotaryEmbedding", {rows, at, F32({9, 4}), F32({8, 4})}, two),
            "input 3 (sin_cache) is f32[8,4], expected f32[9,4] like cos_cache");
  EXPECT_EQ(own("RotaryEmbedding", {rows, at, F32({9, 3}), F32({9, 3})}, two),
            "input 2 (cos_cache) is f32[9,3], expected f32[positions,4], half of the 8 elements of "
            "a head that turn");
  EXPECT_EQ(own("RotaryEmbedding", {rows, at, F32({9, 5}), F32({9, 5})}),
            "input 2 (cos_cache) is f32[9,5], expected [positions, n], 2 n a divisor of the 16 "
            "elements of a row of input 0 f32[2,5,16]");
  EXPECT_EQ(own("QLinearAdd", {F32({2}), F32({})}), "input 3 is absent but required");
  EXPECT_EQ(own("DynamicQuantizeLSTM",
                {F32({4, 2, 6}), {DType::kI8, {1, 20, 6}}, {DType::kI8, {1, 5, 20}}}),
            "input W is i8[1,20,6], expected [1,6,20]");
  EXPECT_EQ(own("DynamicQuantizeLSTM",
                {F32({4, 2, 6}), {DType::kI8, {1, 6, 20}}, {DType::kI8, {1, 5, 20}}}),
            "input W_scale is absent, expected f32[1] or f32[1,20]");
  EXPECT_EQ(own("MatMulNBits", {F32({3, 70}), {DType::kU8, {9, 3, 8}}, F32({9, 3})},
                {{"K", int64_t{70}}, {"N", int64_t{9}}, {"block_size", int64_t{32}}}),
            "input 1 is u8[9,3,8], expected u8[9,3,16]");
}

TEST(Ops, NothingCanBeGatheredFromAnEmptyAxis) {
  auto gather = [](std::vector<Dim> data, std::vector<Dim> indices) {
    return TypeOf(Call("Gather", {F32(Shape(data)), {DType::kI64, Shape(indices)}}));
  };
  EXPECT_EQ(gather({0, 4}, {2}),
            "axis 0 of input 0 f32[0,4] has no element that an index could name");
  EXPECT_EQ(gather({0, 4}, {}),
            "axis 0 of input 0 f32[0,4] has no element that an index could name");
  EXPECT_EQ(gather({0, 4}, {2, 0}), "f32[2,0,4]");
  EXPECT_EQ(gather({3, 0}, {2}), "f32[2,0]");
}

TEST(Ops, AnyNumberOfInputsGivesAnExpressionThatParses) {
  for (const char* op : {"Sum", "Max", "Min", "Concat"}) {
    AttrMap attrs;
    if (std::string_view(op) == "Concat") attrs.Set("axis", int64_t{0});
    for (size_t n : {size_t{1}, size_t{2}, size_t{3}, size_t{300}, size_t{4096}}) {
      OpCall call(*FindOp(op), std::vector<std::optional<TensorType>>(n, F32({2})), attrs);
      auto body = call.def().body(call, 0);
      ASSERT_TRUE(body.ok()) << op << " " << n << ": " << body.status();
      EXPECT_TRUE(body->Verify(std::vector<TensorType>(n, F32({2}))).ok()) << op << " " << n;
      std::string text = body->value.ToString();
      Lexer in(text);
      auto back = Expr::Parse(in, std::vector<DType>(n, DType::kF32));
      ASSERT_TRUE(back.ok()) << op << " " << n << ": " << back.status();
      EXPECT_TRUE(*back == body->value);
    }
  }
}

TEST(Ops, BlocksOfNothingAreNothing) {
  AttrMap two = {{"blocksize", int64_t{2}}};
  EXPECT_EQ(TypeOf(Call("DepthToSpace", {F32({1, 0, 2, 3})}, two)), "f32[1,0,4,6]");
  EXPECT_EQ(TypeOf(Call("DepthToSpace", {F32({0, 8, 2, 3})}, two)), "f32[0,2,4,6]");
  EXPECT_EQ(TypeOf(Call("SpaceToDepth", {F32({1, 3, 0, 6})}, two)), "f32[1,12,0,3]");
}

TEST(Ops, BlocksAreOfABoundedSize) {
  for (const char* op : {"DepthToSpace", "SpaceToDepth"}) {
    for (int64_t size : {int64_t{0}, int64_t{1025}, int64_t{1} << 31}) {
      EXPECT_EQ(TypeOf(Call(op, {F32({1, kMaxExtent, 0, 0})}, {{"blocksize", size}})),
                StrCat("attribute \"blocksize\" is ", size, ", expected 1..1024"));
    }
  }
}

OpCall Scatter(const TensorType& data, HostTensor indices, const TensorType& updates,
               const std::string& reduction) {
  return Call("ScatterND", {data, updates},
              {{"indices", std::make_shared<const HostTensor>(std::move(indices))},
               {"reduction", reduction}});
}

TEST(ScatterNd, UpdatesWithoutIndicesAreLimited) {
  EXPECT_EQ(TypeOf(Scatter(F32({2}), HostTensor(DType::kI64, {3, 0}), F32({3, 2}), "none")),
            "f32[2]");
  HostTensor none(DType::kI64, {int64_t{1} << 40, 0});
  EXPECT_EQ(TypeOf(Scatter(F32({2}), std::move(none), F32({int64_t{1} << 40, 2}), "none")),
            "scatters 1099511627776 updates; supported: 4194304");
}

TEST(ScatterNd, RoundsOverManyRowsTakeNoMemoryForTheRows) {
  constexpr int64_t kRows = int64_t{1} << 24;
  auto repeated = [&](int64_t times) {
    return Scatter(F32({kRows}), HostTensor(DType::kI64, {times, 1}), F32({times}), "add");
  };
  StepCount count;
  EXPECT_TRUE(InferOutputTypes(repeated(16), &count).ok());
  EXPECT_EQ(count.constant_bytes, 0);
  // More updates of one row, and rows apart from each other, find their places by a constant.
  EXPECT_TRUE(InferOutputTypes(repeated(1000), &count).ok());
  EXPECT_LT(count.constant_bytes, 8 * 1000 + 100);
  for (const char* reduction : {"add", "none"}) {
    HostTensor apart(DType::kI64, {40, 1});
    for (int64_t i = 0; i < 40; ++i) apart.SetInt(i, i % 20 * 2);
    count = {};
    EXPECT_TRUE(
        InferOutputTypes(Scatter(F32({kRows}), std::move(apart), F32({40}), reduction), &count)
            .ok());
    EXPECT_LT(count.constant_bytes, 8 * 40 + 100);
    EXPECT_LT(count.loop_ops, 30);
  }
}

TEST(Ops, IntegersThatOnnxAllowsAreNotSupportedRatherThanWrong) {
  for (const char* op : {"Shrink", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}) {
    auto types = InferOutputTypes(Call(op, {{DType::kI32, {2, 3}}}));
    EXPECT_TRUE(absl::IsUnimplemented(types.status())) << op << ": " << types.status();
    EXPECT_EQ(Message(types.status()), "input 0 is i32; supported: float types") << op;
  }
}

TEST(IndexMap, RangesAreCutByGuards) {
  auto axis = [](int a) { return IndexRange{0, a == 0 ? 8 : 3}; };
  auto range = [&](const IndexExpr& e, const std::vector<Guard>& guards = {}) {
    IndexRange r = RangeOf(e, axis, guards);
    return r.empty() ? "empty" : StrCat(r.begin, "..", r.end);
  };
  IndexExpr e = IndexExpr::Axis(0, 2) + IndexExpr::Axis(1, -5) + IndexExpr(1);
  EXPECT_EQ(range(e), "-9..16");
  EXPECT_EQ(range(e, {{0, 2, 4}}), "-5..8");
  EXPECT_EQ(range(e, {{1, 1, 9}, {1, 0, 2}}), "-4..11");
  EXPECT_EQ(range(e, {{0, 4, 4}}), "empty");
  EXPECT_EQ(range(IndexExpr(7), {{0, 4, 4}}), "7..8");
}

TEST(IndexMap, GuardsPrintAndParse) {
  auto name = [](int a) { return StrCat("d", a); };
  auto find = [](std::string_view word) { return word == "d0" ? 0 : word == "d1" ? 1 : -1; };
  std::vector<Guard> guards = {{0, 2, 4}, {1, -1, 3}};
  std::string text = GuardsToString(guards, name);
  EXPECT_EQ(text, " where d0 in [2, 4] and d1 in [-1, 3]");
  Lexer in(text);
  EXPECT_EQ(ParseGuards(in, find).value(), guards);
  Lexer unknown("where d2 in [0, 1]");
  EXPECT_FALSE(ParseGuards(unknown, find).ok());
}

TEST(Ops, EveryBodySatisfiesItsInvariants) {
  // Each op with inputs it accepts: the derived body must verify, so that no definition can be
  // silently wrong.
  TensorType x = F32({4, 6});
  TensorType flag{DType::kBool, {4, 6}};
  for (const OpDef* def : AllOps()) {
    if (!def->body) continue;
    for (const TensorType& type : {x, flag}) {
      for (int n = def->min_inputs; n <= std::min(def->max_inputs, 3); ++n) {
        OpCall call(*def, std::vector<std::optional<TensorType>>(static_cast<size_t>(n), type), {});
        auto body = def->body
                        ? (CheckCall(call).ok() ? def->body(call, 0) : absl::InternalError(""))
                        : absl::InternalError("");
        if (!body.ok()) continue;
        EXPECT_TRUE(body->Verify(std::vector<TensorType>(static_cast<size_t>(n), type)).ok())
            << def->name << ": "
            << body->Verify(std::vector<TensorType>(static_cast<size_t>(n), type));
      }
    }
  }
}

TEST(LoopBody, SplittingAnAxisKeepsTheType) {
  auto call = Call("MatMul", {F32({4, 12}), F32({12, 5})});
  auto body = call.def().body(call, 0);
  ASSERT_TRUE(body.ok());
  LoopBody split = SplitAxis(*body, 2, 3);
  EXPECT_EQ(split.axes.size(), 4u);
  EXPECT_TRUE(split.Verify({F32({4, 12}), F32({12, 5})}).ok());
  EXPECT_EQ(split.OutputType(), body->OutputType());
}

}  // namespace
}  // namespace fusion
