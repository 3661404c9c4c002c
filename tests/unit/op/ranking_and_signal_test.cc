#include <gtest/gtest.h>

#include "tests/support/op_call.h"

namespace fusion {
namespace {

using Ints = std::vector<int64_t>;

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }
TensorType I64(Shape shape) { return {DType::kI64, std::move(shape)}; }

int64_t LoopsOf(const OpCall& call) {
  StepCount count;
  auto types = InferOutputTypes(call, &count);
  EXPECT_TRUE(types.ok()) << types.status();
  return count.loop_ops;
}

OpCall TopK(const TensorType& x, int64_t k, int64_t axis = -1, int64_t largest = 1) {
  return Call("TopK", {x}, {{"k", k}, {"axis", axis}, {"largest", largest}}, 2);
}

TEST(TopK, GivesElementsAndWhereTheyAre) {
  EXPECT_EQ(TypeOf(TopK(F32({3, 40}), 2)), "f32[3,2] i64[3,2]");                // step by step
  EXPECT_EQ(TypeOf(TopK(I64({40, 3}), 30, 0, 0)), "i64[30,3] i64[30,3]");       // by rank
  EXPECT_EQ(TypeOf(TopK(F32({2, 999, 3}), 20, 1)), "f32[2,20,3] i64[2,20,3]");  // in blocks
  EXPECT_EQ(TypeOf(TopK(F32({0, 5}), 5)), "f32[0,5] i64[0,5]");
  EXPECT_EQ(TypeOf(TopK(F32({3, 0}), 0)), "f32[3,0] i64[3,0]");
}

TEST(TopK, RefusesWhatItCannotRank) {
  EXPECT_EQ(TypeOf(TopK(F32({3, 4}), 5)),
            "k is 5, expected 0..4, the extent of axis 1 of input 0 f32[3,4]");
  EXPECT_EQ(TypeOf(TopK({DType::kBool, {3, 4}}, 1)), "input 0 is bool, expected a numeric type");
  EXPECT_EQ(TypeOf(TopK(F32({3, 4}), 1, 2)), "axis 2 out of range for rank 2; expected -2..1");
  EXPECT_EQ(TypeOf(TopK(F32({3, Dim::Symbol(0)}), 1)),
            "ranks along the symbolic dim s0 of input 0 f32[3,s0]");
  EXPECT_EQ(TypeOf(TopK(F32({Dim::Symbol(0), 4}), 1)), "input 0 f32[s0,4] has the symbolic dim s0");
}

TEST(TopK, TakesFewLoopsHoweverLongTheRow) {
  EXPECT_LE(LoopsOf(TopK(F32({1, 50257}), 1)), 4);
  EXPECT_LE(LoopsOf(TopK(F32({1, 50257}), 16)), 40);
  EXPECT_LE(LoopsOf(TopK(F32({1, 1 << 20}), 17)), 150);
  EXPECT_LE(LoopsOf(TopK(F32({1, 100000}), 1000)), 60);
  EXPECT_LE(LoopsOf(TopK(F32({1, 1000}), 1000)), 4);
}

TEST(Pools, GiveIndicesAndTakeThem) {
  AttrMap window = {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}};
  for (int64_t order : {0, 1}) {
    window.Set("pads", Ints{1, 1, 1, 1});
    window.Set("storage_order", order);
    EXPECT_EQ(TypeOf(Call("MaxPool", {F32({1, 2, 9, 8})}, window, 2)), "f32[1,2,5,4] i64[1,2,5,4]");
  }
  window.Set("storage_order", int64_t{2});
  EXPECT_EQ(TypeOf(Call("MaxPool", {F32({1, 2, 9, 8})}, window, 2)),
            "attribute \"storage_order\" is 2, expected 0 or 1");
  AttrMap bare = {{"kernel_shape", Ints{3}}};
  EXPECT_EQ(TypeOf(Call("MaxPool", {F32({Dim::Symbol(0), 2, 9})}, bare, 2)),
            "f32[s0,2,7] i64[s0,2,7]");
  EXPECT_EQ(TypeOf(Call("MaxPool", {F32({2, Dim::Symbol(0), 9})}, bare, 2)),
            "positions behind the symbolic dim s0 of f32[2,s0,9]");

  AttrMap unpool = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const TensorType x = F32({1, 3, 2, 4});
  EXPECT_EQ(TypeOf(Call("MaxUnpool", {x, I64(x.shape)}, unpool)), "f32[1,3,4,8]");
  EXPECT_EQ(TypeOf(Call("MaxUnpool", {x, x}, unpool)),
            "input 1 is f32[1,3,2,4], expected i64[1,3,2,4]");
  unpool.Set("output_shape", Ints{1, 3, 5, 8});
  EXPECT_EQ(TypeOf(Call("MaxUnpool", {x, I64(x.shape)}, unpool)), "f32[1,3,5,8]");
  unpool.Set("output_shape", Ints{1, 3, 5, 7});
  EXPECT_EQ(TypeOf(Call("MaxUnpool", {x, I64(x.shape)}, unpool)),
            "output_shape is [1,3,5,7], expected at least [1,3,4,8], batch and channels the same");
}

TEST(Pools, OfNorms) {
  AttrMap window = {{"kernel_shape", Ints{3, 2}}, {"dilations", Ints{2, 1}}, {"p", int64_t{3}}};
  window.Set("ceil_mode", int64_t{1});
  window.Set("strides", Ints{2, 2});
  EXPECT_EQ(TypeOf(Call("LpPool", {F32({2, 3, 10, 7})}, window)), "f32[2,3,4,4]");
  EXPECT_EQ(TypeOf(Call("LpPool", {{DType::kI32, {2, 3, 10, 7}}}, window)),
            "input 0 is i32, expected a float type");
  EXPECT_EQ(TypeOf(Call("GlobalLpPool", {F32({2, 3, 4, 5})})), "f32[2,3,1,1]");
  EXPECT_EQ(TypeOf(Call("GlobalLpPool", {F32({2, 3})}, {{"p", int64_t{1}}})), "f32[2,3]");
  EXPECT_EQ(TypeOf(Call("GlobalLpPool", {F32({2, 3, 4})}, {{"p", int64_t{0}}})),
            "attribute \"p\" is 0, expected at least 1");
}

TEST(Dft, IsAProductWithAMatrix) {
  const TensorType real = F32({2, 10, 3, 1});
  EXPECT_EQ(TypeOf(Call("DFT", {real})), "f32[2,10,3,2]");
  EXPECT_EQ(
      TypeOf(Call("DFT", {real},
                  {{"axis", int64_t{1}}, {"onesided", int64_t{1}}, {"dft_length", int64_t{7}}})),
      "f32[2,4,3,2]");
  EXPECT_EQ(
      TypeOf(Call("DFT", {F32({8, 2})}, {{"inverse", int64_t{1}}, {"dft_length", int64_t{9}}})),
      "f32[9,2]");
  const AttrMap to_real = {{"inverse", int64_t{1}}, {"onesided", int64_t{1}}};
  EXPECT_EQ(TypeOf(Call("DFT", {F32({3, 6, 2})}, to_real)), "f32[3,10,1]");
  EXPECT_EQ(TypeOf(Call("DFT", {F32({Dim::Symbol(0), 8, 1})})), "f32[s0,8,2]");
  StepCount count;
  EXPECT_TRUE(InferOutputTypes(Call("DFT", {F32({400, 1})}), &count).ok());
  EXPECT_EQ(count.constant_bytes, 400 * 800 * 4);
}

TEST(Dft, SaysWhatItCannotTransform) {
  const TensorType real = F32({2, 10, 3, 1});
  EXPECT_EQ(
      TypeOf(Call("DFT", {real}, {{"axis", int64_t{-1}}})),
      "axis 3 is the last dim of input 0 f32[2,10,3,1], which holds real and imaginary parts");
  EXPECT_EQ(TypeOf(Call("DFT", {F32({2, 10, 3})})),
            "the last dim of the signal f32[2,10,3] is 3, expected 1 (real) or 2 (complex)");
  EXPECT_EQ(TypeOf(Call("DFT", {F32({2, 10, 2})}, {{"onesided", int64_t{1}}})),
            "attribute \"onesided\" is 1 for the complex signal f32[2,10,2], expected 0");
  EXPECT_EQ(TypeOf(Call("DFT", {real}, {{"dft_length", int64_t{0}}})),
            StrCat("the length of the transform is 0, expected 1..", kMaxExtent));
  EXPECT_EQ(TypeOf(Call("DFT", {F32({1, 1 << 20, 1})})),
            "a transform of 1048576 elements to 1048576 takes a matrix of 1048576 times 2097152; at"
            " most 16777216 elements are supported");
  EXPECT_EQ(TypeOf(Call("DFT", {F32({Dim::Symbol(0), 3, 1})}, {{"axis", int64_t{0}}})),
            "a transform along the symbolic dim s0 of input 0 f32[s0,3,1]");
}

TEST(Stft, CutsTheSignalIntoFrames) {
  const TensorType signal = F32({1, 128, 1});
  AttrMap attrs = {{"frame_step", int64_t{8}}};
  EXPECT_EQ(TypeOf(Call("STFT", {signal, F32({16})}, attrs)), "f32[1,15,9,2]");
  EXPECT_EQ(TypeOf(Call("STFT", {signal}, attrs)), "f32[1,1,65,2]");
  attrs.Set("frame_length", int64_t{20});
  EXPECT_EQ(TypeOf(Call("STFT", {signal}, attrs)), "f32[1,14,11,2]");
  attrs.Set("onesided", int64_t{0});
  EXPECT_EQ(TypeOf(Call("STFT", {F32({3, 128, 2})}, attrs)), "f32[3,14,20,2]");
  EXPECT_EQ(TypeOf(Call("STFT", {signal, F32({16})}, attrs)),
            "frame_length is 20, the window has 16 elements");
  attrs.Set("frame_length", int64_t{129});
  EXPECT_EQ(TypeOf(Call("STFT", {signal}, attrs)),
            "frames have 129 elements, expected 1..128, the length of the signal");
  EXPECT_EQ(TypeOf(Call("STFT", {signal}, {{"frame_step", int64_t{0}}})),
            StrCat("frame_step is 0, expected 1..", kMaxExtent));
  EXPECT_EQ(TypeOf(Call("STFT", {F32({1, 128})}, attrs)),
            "input 0 is f32[1,128], expected batch, signal and its parts");
}

TEST(Det, IsOfSquareMatricesOfAFewRows) {
  EXPECT_EQ(TypeOf(Call("Det", {F32({2, 3, 4, 4})})), "f32[2,3]");
  EXPECT_EQ(TypeOf(Call("Det", {F32({1, 1})})), "f32[]");
  EXPECT_EQ(TypeOf(Call("Det", {F32({5, 0, 0})})), "f32[5]");
  EXPECT_LE(LoopsOf(Call("Det", {F32({32, 32})})), 1000);
  EXPECT_EQ(TypeOf(Call("Det", {F32({3, 4})})), "input 0 is f32[3,4], expected square matrices");
  EXPECT_EQ(TypeOf(Call("Det", {F32({2, 33, 33})})),
            "determinants of 33 times 33 matrices; at most 32 rows are supported");
  EXPECT_EQ(TypeOf(Call("Det", {F32({Dim::Symbol(0), 3, 3})})),
            "input 0 f32[s0,3,3] has the symbolic dim s0");
}

// Two single items, 2 and 3, and three pairs.
AttrMap Grams() {
  return {{"min_gram_length", int64_t{1}},
          {"max_gram_length", int64_t{2}},
          {"max_skip_count", int64_t{1}},
          {"mode", std::string("TF")},
          {"ngram_counts", Ints{0, 2}},
          {"ngram_indexes", Ints{0, 1, 2, 5, 4}},
          {"pool_int64s", Ints{2, 3, 5, 4, 5, 6, 7, 8}}};
}

TEST(TfIdf, CountsGramsOfRows) {
  EXPECT_EQ(TypeOf(Call("TfIdfVectorizer", {I64({2, 6})}, Grams())), "f32[2,6]");
  EXPECT_EQ(TypeOf(Call("TfIdfVectorizer", {{DType::kI32, {12}}}, Grams())), "f32[6]");
  EXPECT_EQ(TypeOf(Call("TfIdfVectorizer", {I64({0})}, Grams())), "f32[6]");
  AttrMap shared = Grams();
  shared.Set("ngram_indexes", Ints{0, 1, 1, 0, 0});
  EXPECT_EQ(TypeOf(Call("TfIdfVectorizer", {I64({2, 6})}, shared)), "f32[2,2]");
  AttrMap none = Grams();
  none.Set("min_gram_length", int64_t{3});
  none.Set("max_gram_length", int64_t{3});
  EXPECT_EQ(TypeOf(Call("TfIdfVectorizer", {I64({2, 6})}, none)), "f32[2,6]");
}

TEST(TfIdf, SaysWhatIsWrongWithThePool) {
  auto with = [](std::string_view name, AttrValue value) {
    AttrMap attrs = Grams();
    attrs.Set(name, std::move(value));
    return TypeOf(Call("TfIdfVectorizer", {I64({2, 6})}, std::move(attrs)));
  };
  EXPECT_EQ(with("pool_strings", std::string("a,b")), "n-grams of strings: \"pool_strings\"");
  EXPECT_EQ(with("mode", std::string("IDFTF")),
            "attribute \"mode\" is \"IDFTF\", expected TF, IDF or TFIDF");
  EXPECT_EQ(with("ngram_counts", Ints{0, 3}),
            "attribute \"ngram_counts\" gives n-grams of length 2 the items 3..8 of 8 in"
            " \"pool_int64s\"");
  EXPECT_EQ(with("ngram_indexes", Ints{0, 1}),
            "attribute \"ngram_indexes\" has 2 entries, the pool 5 n-grams; expected as many, at"
            " least 1");
  EXPECT_EQ(with("ngram_indexes", Ints{0, 1, 2, -3, 4}),
            "attribute \"ngram_indexes\" has the entry -3");
  EXPECT_EQ(with("pool_int64s", Ints{2, 3, 5, 4, 5, 6, 5, 4}),
            "attribute \"pool_int64s\" has n-gram 4, [5,4], twice");
  EXPECT_EQ(with("weights", std::vector<double>{1, 2, 3, 4, 5}),
            "attribute \"weights\" has 5 entries, coordinate 5 of \"ngram_indexes\" has none");
  EXPECT_EQ(with("weights", std::vector<double>{1, 2}),
            "attribute \"weights\" has 2 entries, the pool 5 n-grams; expected as many");
  EXPECT_EQ(with("max_gram_length", int64_t{0}),
            StrCat("min_gram_length, max_gram_length and max_skip_count are 1, 0 and 1, expected"
                   " 1 <= min <= max and 0..",
                   kMaxExtent));
  EXPECT_EQ(TypeOf(Call("TfIdfVectorizer", {F32({2, 6})}, Grams())),
            "input 0 is f32[2,6], expected i64 or i32 of one or two dims");
  AttrMap far = Grams();
  far.Set("max_skip_count", int64_t{1} << 30);
  EXPECT_EQ(TypeOf(Call("TfIdfVectorizer", {I64({1, 1 << 20})}, far)),
            "n-grams at 1073741825 distances take more than 4096 comparisons of i64[1,1048576]");
}

}  // namespace
}  // namespace fusion
