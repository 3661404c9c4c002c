// Values of the ops that ONNX has had since opset 18, against plain loops over their definitions:
// the tests that Debian packages end at opset 17.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/graph/build/builder.h"
#include "core/graph/evaluate/evaluate.h"

namespace fusion {
namespace {

using Ints = std::vector<int64_t>;
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Numbers between -1 and 1 that look random.
HostTensor Numbers(const Dims& dims, double scale = 1, DType type = DType::kF64) {
  HostTensor out(type, dims);
  for (int64_t i = 0; i < out.elements(); ++i) {
    out.SetDouble(i, scale * std::sin(static_cast<double>(7 * i * i + 3 * i + 1)));
  }
  return out;
}

HostTensor Integers(DType type, const Dims& dims, const Ints& values) {
  HostTensor out(type, dims);
  for (int64_t i = 0; i < out.elements(); ++i) out.SetInt(i, values[static_cast<size_t>(i)]);
  return out;
}

std::vector<HostTensor> OutputsOf(std::string_view op,
                                  const std::vector<std::optional<HostTensor>>& given,
                                  AttrMap attrs, size_t outputs = 1) {
  GraphBuilder b;
  std::vector<TensorId> ids;
  std::vector<HostTensor> inputs;
  for (const auto& x : given) {
    if (!x) {
      ids.push_back(kNoTensor);
      continue;
    }
    ids.push_back(b.AddInput(StrCat("x", inputs.size()), {x->dtype(), Shape(x->dims())}));
    inputs.push_back(*x);
  }
  auto made =
      b.AddMultiNode(*FindOp(op), ids, std::move(attrs), "", std::vector<std::string>(outputs));
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  for (TensorId id : *made) b.MarkOutput(id);
  auto graph = b.Build();
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  auto none = [](TensorId) -> absl::StatusOr<const HostTensor*> { return NotFound("no weights"); };
  auto out = Evaluate(*graph, inputs, none);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : std::vector<HostTensor>();
}

void ExpectValues(const HostTensor& got, const std::vector<double>& wanted, double error = 1e-12) {
  ASSERT_EQ(got.elements(), static_cast<int64_t>(wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double value = got.GetDouble(static_cast<int64_t>(i));
    if (std::isnan(wanted[i]) || std::isinf(wanted[i])) {
      EXPECT_EQ(StrCat(value), StrCat(wanted[i])) << i;
    } else {
      EXPECT_NEAR(value, wanted[i], error * std::max(1.0, std::abs(wanted[i]))) << i;
    }
  }
}

// Element [i, j, ..] of a tensor.
double At(const HostTensor& x, const Ints& index) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d) at = at * x.dims()[d] + index[d];
  return x.GetDouble(at);
}

struct AttentionCase {
  const char* name;
  int64_t past;
  bool causal;
  int64_t left;
  double softcap;
  bool mask;
  bool padded;  // with numbers of valid keys
};

class AttentionValues : public ::testing::TestWithParam<AttentionCase> {};

// Two batch entries, four heads of queries that read two of keys.
TEST_P(AttentionValues, AreThoseOfTheFormula) {
  const AttentionCase& c = GetParam();
  const int64_t rows = 5;
  const int64_t keys = c.past + 6;
  const HostTensor q = Numbers({2, 4, rows, 3}, 2);
  const HostTensor k = Numbers({2, 2, 6, 3}, 3);
  const HostTensor v = Numbers({2, 2, 6, 4});
  const HostTensor past_k = Numbers({2, 2, c.past, 3}, 1.5);
  const HostTensor past_v = Numbers({2, 2, c.past, 4}, 2.5);
  HostTensor mask(DType::kBool, {rows, keys});
  // Row 2 sees nothing.
  for (int64_t i = 0; i < mask.elements(); ++i) {
    mask.SetInt(i, i / keys != 2 && i % 3 != 1 ? 1 : 0);
  }
  const HostTensor valid = Integers(DType::kI64, {2}, {4, 0});
  std::vector<std::optional<HostTensor>> inputs = {q, k, v};
  inputs.resize(7);
  if (c.mask) inputs[3] = mask;
  if (c.past > 0) inputs[4] = past_k;
  if (c.past > 0) inputs[5] = past_v;
  if (c.padded) inputs[6] = valid;
  std::vector<HostTensor> got = OutputsOf("Attention", inputs,
                                          {{"is_causal", int64_t{c.causal ? 1 : 0}},
                                           {"left_window_size", c.left},
                                           {"qk_matmul_output_mode", int64_t{3}},
                                           {"scale", 0.7},
                                           {"softcap", c.softcap}},
                                          4);
  ASSERT_EQ(got.size(), 4U);
  auto key = [&](int64_t b, int64_t h, int64_t j, int64_t e) {
    return j < c.past ? At(past_k, {b, h / 2, j, e}) : At(k, {b, h / 2, j - c.past, e});
  };
  auto value = [&](int64_t b, int64_t h, int64_t j, int64_t e) {
    return j < c.past ? At(past_v, {b, h / 2, j, e}) : At(v, {b, h / 2, j - c.past, e});
  };
  std::vector<double> shares;
  std::vector<double> wanted;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t h = 0; h < 4; ++h) {
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t place = i + (c.padded ? valid.GetInt(b) - rows : c.past);
        std::vector<double> weight(static_cast<size_t>(keys), 0);
        double sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const bool hidden = (c.causal && j > place) || (c.left >= 0 && j < place - c.left) ||
                              (c.mask && At(mask, {i, j}) == 0) ||
                              (c.padded && j >= valid.GetInt(b));
          if (hidden) continue;
          double score = 0;
          for (int64_t e = 0; e < 3; ++e) score += 0.7 * At(q, {b, h, i, e}) * key(b, h, j, e);
          if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
          weight[static_cast<size_t>(j)] = std::exp(score);
          sum += std::exp(score);
        }
        for (double& w : weight) w = sum == 0 ? 0 : w / sum;
        shares.insert(shares.end(), weight.begin(), weight.end());
        for (int64_t e = 0; e < 4; ++e) {
          double y = 0;
          for (int64_t j = 0; j < keys; ++j) {
            y += weight[static_cast<size_t>(j)] * value(b, h, j, e);
          }
          wanted.push_back(y);
        }
      }
    }
  }
  ExpectValues(got[0], wanted);
  ExpectValues(got[3], shares);
  EXPECT_EQ(got[1].dims(), (Dims{2, 2, keys, 3}));
  EXPECT_EQ(At(got[2], {1, 1, c.past, 2}), At(v, {1, 1, 0, 2}));
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionValues,
    ::testing::Values(AttentionCase{"plain", 0, false, -1, 0, false, false},
                      AttentionCase{"causal", 0, true, -1, 0, false, false},
                      AttentionCase{"causal_behind_a_past", 3, true, -1, 2, false, false},
                      AttentionCase{"window", 2, true, 3, 0, false, false},
                      AttentionCase{"masked_row", 0, false, -1, 0, true, false},
                      AttentionCase{"masked_and_causal", 3, true, -1, 1, true, false},
                      AttentionCase{"padded_cache", 0, true, -1, 0, false, true}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(NewerOpValues, FlatHeadsAreThoseOfHeads) {
  const HostTensor flat = Numbers({1, 3, 8});
  HostTensor heads(DType::kF64, {1, 2, 3, 4});
  for (int64_t i = 0; i < 24; ++i) {
    heads.SetDouble(i, At(flat, {0, i / 4 % 3, i / 12 * 4 + i % 4}));
  }
  const AttrMap two = {{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}};
  const HostTensor a = OutputsOf("Attention", {flat, flat, flat}, two).at(0);
  const HostTensor b = OutputsOf("Attention", {heads, heads, heads}, {}).at(0);
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_NEAR(b.GetDouble(i), At(a, {0, i / 4 % 3, i / 12 * 4 + i % 4}), 1e-12) << i;
  }
}

TEST(NewerOpValues, RotationsTurnPairs) {
  const HostTensor x = Numbers({2, 3, 4, 10});
  const HostTensor cos = Numbers({7, 4}, 0.5);
  const HostTensor sin = Numbers({7, 4}, 0.25);
  const HostTensor at = Integers(DType::kI64, {2, 4}, {0, 6, 3, 2, 1, 1, 5, 4});
  for (int64_t in_turn : {0, 1}) {
    std::vector<double> wanted;
    for (int64_t i = 0; i < x.elements(); ++i) {
      const Ints place = {i / 120, i / 40 % 3, i / 10 % 4, i % 10};
      const int64_t e = place[3];
      if (e >= 8) {
        wanted.push_back(x.GetDouble(i));
        continue;
      }
      const int64_t pair = in_turn != 0 ? e / 2 : e % 4;
      const bool second = in_turn != 0 ? e % 2 == 1 : e >= 4;
      Ints other = place;
      other[3] = in_turn != 0 ? e + (second ? -1 : 1) : e + (second ? -4 : 4);
      const auto row = static_cast<int64_t>(At(at, {place[0], place[2]}));
      const double c = At(cos, {row, pair});
      const double s = At(sin, {row, pair});
      wanted.push_back(x.GetDouble(i) * c + (second ? 1 : -1) * At(x, other) * s);
    }
    ExpectValues(OutputsOf("RotaryEmbedding", {x, cos, sin, at},
                           {{"interleaved", in_turn}, {"rotary_embedding_dim", int64_t{8}}})
                     .at(0),
                 wanted);
  }
}

TEST(NewerOpValues, GroupsAreNormalisedByThemselves) {
  const HostTensor x = Numbers({2, 6, 5}, 3);
  const HostTensor of_channels = Numbers({6}, 2);
  const HostTensor of_groups = Numbers({3}, 2);
  for (bool per_group : {false, true}) {
    const HostTensor& scale = per_group ? of_groups : of_channels;
    std::vector<double> wanted;
    for (int64_t i = 0; i < x.elements(); ++i) {
      const int64_t group = i / 10;  // of two channels
      double mean = 0;
      double square = 0;
      for (int64_t j = 10 * group; j < 10 * group + 10; ++j) {
        mean += x.GetDouble(j) / 10;
        square += x.GetDouble(j) * x.GetDouble(j) / 10;
      }
      const double factor = scale.GetDouble(per_group ? group % 3 : i / 5 % 6);
      const double y = (x.GetDouble(i) - mean) / std::sqrt(square - mean * mean + 0.01);
      wanted.push_back(y * factor + factor);
    }
    ExpectValues(OutputsOf("GroupNormalization", {x, scale, scale},
                           {{"epsilon", 0.01},
                            {"num_groups", int64_t{3}},
                            {"scale_of_groups", int64_t{per_group ? 1 : 0}}})
                     .at(0),
                 wanted);
  }
}

TEST(NewerOpValues, RootsOfMeanSquaresAreTakenInFloats) {
  // Squares that f16 does not hold.
  const HostTensor x = HostTensor::FromValues(DType::kF16, {1, 2}, {300.0F, 400.0F});
  const HostTensor scale = HostTensor::FromValues(DType::kF16, {2}, {1.0F, 2.0F});
  ExpectValues(OutputsOf("RMSNormalization", {x, scale}, {}).at(0),
               {0.6 * std::sqrt(2.0), 1.6 * std::sqrt(2.0)}, 1e-3);
}

TEST(NewerOpValues, BitsOfNegativeNumbersAreThoseOfTheirComplement) {
  const HostTensor a = Integers(DType::kI8, {4}, {-128, -1, 77, 5});
  const HostTensor b = Integers(DType::kI8, {4}, {127, -86, 15, -3});
  ExpectValues(OutputsOf("BitwiseAnd", {a, b}, {}).at(0), {0, -86, 13, 5});
  ExpectValues(OutputsOf("BitwiseOr", {a, b}, {}).at(0), {-1, -1, 79, -3});
  ExpectValues(OutputsOf("BitwiseXor", {a, b}, {}).at(0), {-1, 85, 66, -8});
  ExpectValues(OutputsOf("BitwiseNot", {a}, {}).at(0), {127, 0, -78, -6});
  const HostTensor by = Integers(DType::kI8, {4}, {7, 1, 3, 9});
  const AttrMap right = {{"direction", std::string("RIGHT")}};
  ExpectValues(OutputsOf("BitShift", {a, by}, right).at(0), {-1, -1, 9, 0});
  const HostTensor bytes = Integers(DType::kU8, {2}, {0, 200});
  ExpectValues(OutputsOf("BitwiseNot", {bytes}, {}).at(0), {255, 55});
}

TEST(NewerOpValues, RemaindersOfFloatsHaveTheSignOfTheDivisor) {
  const HostTensor a = HostTensor::FromValues(DType::kF64, {5}, {-4.3, 7.2, 5.0, -6.0, 8.0});
  const HostTensor b = HostTensor::FromValues(DType::kF64, {5}, {2.1, -3.4, 8.0, 2.0, kNotANumber});
  ExpectValues(
      OutputsOf("Mod", {a, b}, {}).at(0),
      {-4.3 - 2.1 * std::floor(-4.3 / 2.1), 7.2 + 3.4 * std::floor(7.2 / -3.4), 5, 0, kNotANumber});
}

TEST(NewerOpValues, HalfOfASpectrumGivesARealSignalBack) {
  for (int64_t length : {6, 7}) {
    const HostTensor x = Numbers({2, length, 1});
    const HostTensor half = OutputsOf("DFT", {x}, {{"onesided", int64_t{1}}}).at(0);
    const HostTensor y =
        OutputsOf("DFT", {half},
                  {{"dft_length", length}, {"inverse", int64_t{1}}, {"onesided", int64_t{1}}})
            .at(0);
    EXPECT_EQ(y.dims(), x.dims());
    for (int64_t i = 0; i < 2 * length; ++i) EXPECT_NEAR(y.GetDouble(i), x.GetDouble(i), 1e-12);
  }
}

TEST(NewerOpValues, CausalWindowsSeeWhatCameBefore) {
  const HostTensor x = Numbers({2, 3, 4});
  const HostTensor w = Numbers({3, 1, 3}, 2);
  const HostTensor bias = Numbers({3});
  const HostTensor past = Numbers({2, 3, 2}, 5);
  for (bool has_past : {false, true}) {
    std::vector<double> wanted;
    std::vector<double> state;
    for (int64_t i = 0; i < x.elements(); ++i) {
      const Ints at = {i / 12, i / 4 % 3, i % 4};
      double y = At(bias, {at[1]});
      for (int64_t k = 0; k < 3; ++k) {
        const int64_t place = at[2] + k - 2;
        const double before = has_past && place < 0 ? At(past, {at[0], at[1], place + 2}) : 0;
        y += At(w, {at[1], 0, k}) * (place < 0 ? before : At(x, {at[0], at[1], place}));
      }
      wanted.push_back(y / (1 + std::exp(-y)));
      if (at[2] >= 2) state.push_back(x.GetDouble(i));
    }
    std::vector<std::optional<HostTensor>> inputs = {x, w, bias};
    if (has_past) inputs.emplace_back(past);
    const std::vector<HostTensor> got =
        OutputsOf("CausalConvWithState", inputs, {{"activation", std::string("silu")}}, 2);
    ASSERT_EQ(got.size(), 2U);
    ExpectValues(got[0], wanted);
    ExpectValues(got[1], state);
  }
}

TEST(NewerOpValues, RangesOfHalvesCountFurtherThanHalvesDo) {
  auto number = [](float x) {
    return std::make_shared<const HostTensor>(HostTensor::FromValues(DType::kF16, {}, {x}));
  };
  const HostTensor y = OutputsOf("Range", {},
                                 {{"delta", number(0.5F)},
                                  {"limit", number(1026)},
                                  {"start", number(0)},
                                  {"stash_type", int64_t{1}}})
                           .at(0);
  EXPECT_EQ(y.elements(), 2052);
  EXPECT_EQ(y.GetDouble(2050), 1025);  // 2051 is no half
  EXPECT_EQ(y.GetDouble(2047), 1023.5);
}

TEST(NewerOpValues, ProductsRunAlongAnAxis) {
  const HostTensor x = HostTensor::FromValues(DType::kF64, {2, 3}, {2.0, 3.0, 4.0, -1.0, 0.5, 6.0});
  auto product = [&](int64_t exclusive, int64_t reverse) {
    return OutputsOf("CumProd", {x},
                     {{"axis", Ints{1}}, {"exclusive", exclusive}, {"reverse", reverse}})
        .at(0);
  };
  ExpectValues(product(0, 0), {2, 6, 24, -1, -0.5, -3});
  ExpectValues(product(1, 0), {1, 2, 6, 1, -1, -0.5});
  ExpectValues(product(0, 1), {24, 12, 4, -3, 3, 6});
  ExpectValues(product(1, 1), {12, 4, 1, 3, 6, 1});
}

TEST(NewerOpValues, TheMiddleIsCutOutOrPutIn) {
  const HostTensor x = HostTensor::FromValues(DType::kF64, {5}, {1.0, 2.0, 3.0, 4.0, 5.0});
  auto middle = [&](int64_t extent) {
    return OutputsOf("CenterCropPad", {x}, {{"shape", Ints{extent}}}).at(0);
  };
  ExpectValues(middle(2), {2, 3});
  ExpectValues(middle(3), {2, 3, 4});
  ExpectValues(middle(7), {0, 1, 2, 3, 4, 5, 0});
  ExpectValues(middle(8), {0, 1, 2, 3, 4, 5, 0, 0});
}

TEST(NewerOpValues, GridsAreMovedByTheirMap) {
  const HostTensor theta = Numbers({2, 2, 3});
  for (int64_t align : {0, 1}) {
    std::vector<double> wanted;
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t h = 0; h < 3; ++h) {
        for (int64_t w = 0; w < 4; ++w) {
          const auto row = static_cast<double>(h);
          const auto column = static_cast<double>(w);
          const double y = align != 0 ? row - 1 : (2 * row + 1) / 3 - 1;
          const double x = align != 0 ? column * 2 / 3 - 1 : (2 * column + 1) / 4 - 1;
          for (int64_t i = 0; i < 2; ++i) {
            wanted.push_back(At(theta, {n, i, 0}) * x + At(theta, {n, i, 1}) * y +
                             At(theta, {n, i, 2}));
          }
        }
      }
    }
    ExpectValues(
        OutputsOf("AffineGrid", {theta}, {{"align_corners", align}, {"size", Ints{2, 5, 3, 4}}})
            .at(0),
        wanted);
  }
}

TEST(NewerOpValues, BlocksAreAddedUpInTheImage) {
  const HostTensor x = Numbers({2, 12, 6});  // 2 channels in blocks of [2, 3]; 3 by 2 of them
  std::vector<double> wanted(2 * 2 * 6 * 5, 0);
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t block = i % 6;
    const int64_t k = i / 6 % 6;
    const int64_t row = block / 2 * 2 + k / 3 * 2 - 1;  // stride 2, dilation 2, padding 1
    const int64_t column = block % 2 * 3 + k % 3;       // stride 3
    if (row < 0 || row >= 6 || column < 0 || column >= 5) continue;
    wanted[static_cast<size_t>((i / 36 * 6 + row) * 5 + column)] += x.GetDouble(i);
  }
  ExpectValues(OutputsOf("Col2Im", {x},
                         {{"block_shape", Ints{2, 3}},
                          {"dilations", Ints{2, 1}},
                          {"image_shape", Ints{6, 5}},
                          {"pads", Ints{1, 0, 0, 1}},
                          {"strides", Ints{2, 3}}})
                   .at(0),
               wanted);
}

TEST(NewerOpValues, DeformedWindowsReadBetweenElements) {
  const HostTensor x = Numbers({1, 4, 5, 4});
  const HostTensor w = Numbers({4, 2, 2, 2}, 0.5);
  const HostTensor moved = Numbers({1, 16, 3, 2}, 2.5);
  const HostTensor mask = Numbers({1, 8, 3, 2});
  const HostTensor bias = Numbers({4});
  auto read = [&](int64_t c, double row, double column) {
    double y = 0;
    for (int64_t i = 0; i < 4; ++i) {
      const double r = std::floor(row) + static_cast<double>(i / 2);
      const double s = std::floor(column) + static_cast<double>(i % 2);
      if (r < 0 || r > 4 || s < 0 || s > 3) continue;
      y += (1 - std::abs(row - r)) * (1 - std::abs(column - s)) *
           At(x, {0, c, static_cast<int64_t>(r), static_cast<int64_t>(s)});
    }
    return y;
  };
  std::vector<double> wanted;
  for (int64_t o = 0; o < 4; ++o) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        double y = At(bias, {o});
        for (int64_t c = 0; c < 2; ++c) {
          const int64_t channel = o / 2 * 2 + c;  // two groups
          for (int64_t k = 0; k < 4; ++k) {
            const int64_t tap = channel / 2 * 4 + k;  // two sets of offsets
            const double row =
                static_cast<double>(2 * i + k / 2 - 1) + At(moved, {0, 2 * tap, i, j});
            const double column =
                static_cast<double>(2 * j + k % 2) + At(moved, {0, 2 * tap + 1, i, j});
            y +=
                At(w, {o, c, k / 2, k % 2}) * At(mask, {0, tap, i, j}) * read(channel, row, column);
          }
        }
        wanted.push_back(y);
      }
    }
  }
  ExpectValues(OutputsOf("DeformConv", {x, w, moved, bias, mask},
                         {{"group", int64_t{2}},
                          {"offset_group", int64_t{2}},
                          {"pads", Ints{1, 0, 0, 0}},
                          {"strides", Ints{2, 2}}})
                   .at(0),
               wanted);
}

TEST(NewerOpValues, RowsAreWrittenWhereTheIndicesSay) {
  const HostTensor cache = Numbers({2, 2, 5, 3});
  const HostTensor update = Numbers({2, 2, 2, 3}, 7);
  const HostTensor at = Integers(DType::kI64, {2}, {1, 4});
  for (bool circular : {false, true}) {
    std::vector<double> wanted;
    for (int64_t i = 0; i < cache.elements(); ++i) {
      const Ints place = {i / 30, i / 15 % 2, i / 3 % 5, i % 3};
      int64_t row = place[2] - at.GetInt(place[0]);
      if (circular) row = (row + 5) % 5;
      wanted.push_back(row >= 0 && row < 2 ? At(update, {place[0], place[1], row, place[3]})
                                           : cache.GetDouble(i));
    }
    ExpectValues(OutputsOf("TensorScatter", {cache, update, at},
                           {{"mode", std::string(circular ? "circular" : "linear")}})
                     .at(0),
                 wanted);
  }
  const HostTensor first = OutputsOf("TensorScatter", {cache, update}, {}).at(0);
  EXPECT_EQ(At(first, {1, 1, 1, 2}), At(update, {1, 1, 1, 2}));
  EXPECT_EQ(At(first, {1, 1, 2, 2}), At(cache, {1, 1, 2, 2}));
}

TEST(NewerOpValues, BinsOfRegionsHoldTheirLargest) {
  const HostTensor x = Numbers({2, 1, 6, 7});
  // Regions that bins share rows of, of one element, and outside of x.
  const HostTensor rois = HostTensor::FromValues(
      DType::kF64, {3, 5},
      {1.0, 1.0, 0.0, 9.0, 8.0, 0.0, 4.0, 4.0, 4.0, 4.0, 1.0, 12.0, 2.0, 20.0, 4.0});
  std::vector<double> wanted;
  for (int64_t r = 0; r < 3; ++r) {
    double borders[4];
    for (int64_t i = 0; i < 4; ++i) borders[i] = std::round(At(rois, {r, i + 1}) * 0.5);
    const double rows = std::max(borders[3] - borders[1] + 1, 1.0) / 3;
    const double columns = std::max(borders[2] - borders[0] + 1, 1.0) / 2;
    for (int64_t bin = 0; bin < 6; ++bin) {
      const auto i = static_cast<double>(bin / 2);
      const auto j = static_cast<double>(bin % 2);
      double most = -HUGE_VAL;
      for (int64_t e = 0; e < 42; ++e) {
        const auto row = static_cast<double>(e / 7) - borders[1];
        const auto column = static_cast<double>(e % 7) - borders[0];
        const bool inside = row >= std::floor(i * rows) && row < std::ceil((i + 1) * rows) &&
                            column >= std::floor(j * columns) &&
                            column < std::ceil((j + 1) * columns);
        if (inside)
          most = std::max(most, At(x, {static_cast<int64_t>(At(rois, {r, 0})), 0, e / 7, e % 7}));
      }
      wanted.push_back(most == -HUGE_VAL ? 0 : most);
    }
  }
  ExpectValues(
      OutputsOf("MaxRoiPool", {x, rois}, {{"pooled_shape", Ints{3, 2}}, {"spatial_scale", 0.5}})
          .at(0),
      wanted);
}

// The same result whether total_sequence_length is a constant or only a run knows it.
TEST(NewerOpValues, GroupQueryAttentionCountsWhatIsPastByItself) {
  struct Case {
    int64_t batch;
    int64_t rows;
    int64_t total;
    Ints last;  // seqlens_k
  };
  for (const Case& c :
       {Case{2, 1, 7, {6, 3}}, Case{1, 1, 4, {3}}, Case{2, 5, 5, {4, 2}}, Case{1, 3, 8, {7}}}) {
    auto type = DType::kF32;
    const HostTensor q = Numbers({c.batch, c.rows, 32}, 1, type);
    const HostTensor k = Numbers({c.batch, c.rows, 16}, 0.9, type);
    const HostTensor v = Numbers({c.batch, c.rows, 16}, 0.8, type);
    const HostTensor past = Numbers({c.batch, 2, 9, 8}, 0.7, type);
    const HostTensor last = Integers(DType::kI32, {c.batch}, c.last);
    AttrMap attrs = {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}};
    const std::vector<std::optional<HostTensor>> inputs = {q, k, v, past, past, last};
    const auto counted = OutputsOf("com.microsoft.GroupQueryAttention", inputs, attrs, 3);
    attrs.Set("total_sequence_length", c.total);
    const auto known = OutputsOf("com.microsoft.GroupQueryAttention", inputs, attrs, 3);
    ASSERT_EQ(counted.size(), 3U);
    ASSERT_EQ(known.size(), 3U);
    for (size_t o = 0; o < 3; ++o) {
      // Only a run knows that not all of the past counts: there is room for the new rows behind it.
      Dims longer = known[o].dims();
      if (o > 0) longer[2] = 9 + c.rows;
      ASSERT_EQ(counted[o].dims(), longer);
      for (int64_t i = 0; i < known[o].elements(); ++i) {
        const int64_t own = known[o].dims()[2] * 8;
        const int64_t at = o == 0 ? i : i / own * longer[2] * 8 + i % own;
        // Of a prompt, rows of padding attend to what they please.
        const int64_t row = o == 0 ? i / 32 % c.rows : 0;
        const auto entry = static_cast<size_t>(o == 0 ? i / 32 / c.rows : 0);
        if (o == 0 && c.rows == c.total && row > c.last[entry]) continue;
        ASSERT_NEAR(counted[o].GetDouble(at), known[o].GetDouble(i), 1e-5)
            << "output " << o << ", element " << i << ", rows " << c.rows;
      }
    }
  }
}

// A bin of two elements has two samples a side.
TEST(NewerOpValues, RegionsHaveAsManySamplesAsElements) {
  const HostTensor x = Numbers({1, 2, 9, 12});
  HostTensor rois(DType::kF64, {2, 4});
  const double borders[] = {1, 1, 5, 7, 4, 2, 8, 8};
  for (int64_t i = 0; i < 8; ++i) rois.SetDouble(i, borders[i]);
  const HostTensor batch = Integers(DType::kI64, {2}, {0, 0});
  for (const char* mode : {"avg", "max"}) {
    AttrMap attrs = {
        {"output_height", int64_t{3}}, {"output_width", int64_t{2}}, {"mode", std::string(mode)}};
    const HostTensor adaptive = OutputsOf("RoiAlign", {x, rois, batch}, attrs).at(0);
    attrs.Set("sampling_ratio", int64_t{2});
    const HostTensor fixed = OutputsOf("RoiAlign", {x, rois, batch}, attrs).at(0);
    ASSERT_EQ(adaptive.dims(), fixed.dims());
    for (int64_t i = 0; i < fixed.elements(); ++i) {
      EXPECT_NEAR(adaptive.GetDouble(i), fixed.GetDouble(i), 1e-12) << mode << " " << i;
    }
  }
}

// Number `i` of what a bin samples from begin to begin + length in [-1, extent].
struct RoiLine {
  double begin, length;
  int64_t bins, extent;

  int64_t count() const {
    return std::max<int64_t>(static_cast<int64_t>(std::ceil(length / static_cast<double>(bins))),
                             0);
  }
  double Place(int64_t bin, int64_t i) const {
    const double one = length / static_cast<double>(bins);
    return begin + static_cast<double>(bin) * one +
           (static_cast<double>(i) + 0.5) * one / static_cast<double>(count());
  }
  bool Counts(double place) const { return place >= -1 && place <= static_cast<double>(extent); }
  // Weights of the elements around a place.
  std::vector<std::pair<int64_t, double>> Around(double place) const {
    place = std::clamp(place, 0.0, static_cast<double>(extent - 1));
    const auto low = static_cast<int64_t>(std::floor(place));
    const double behind = place - static_cast<double>(low);
    return {{low, 1 - behind}, {std::min(low + 1, extent - 1), behind}};
  }
};

// RoiAlign as its definition says, one bin of one channel [height, width] at `x`.
double RoiBin(const HostTensor& x, int64_t base, const RoiLine& h, const RoiLine& w, int64_t i,
              int64_t j, bool max) {
  double sum = 0;
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t a = 0; a < h.count(); ++a) {
    for (int64_t b = 0; b < w.count(); ++b) {
      const double y = h.Place(i, a);
      const double z = w.Place(j, b);
      const bool counts = h.Counts(y) && w.Counts(z);
      for (const auto& [row, of_row] : h.Around(y)) {
        for (const auto& [column, of_column] : w.Around(z)) {
          const double value =
              counts ? x.GetDouble(base + row * w.extent + column) * of_row * of_column : 0;
          sum += value;
          largest = std::max(largest, value);
        }
      }
    }
  }
  const int64_t count = h.count() * w.count();
  if (count == 0) return 0;
  return max ? largest : sum / static_cast<double>(count);
}

// Regions within the tensor, larger than it, partly and wholly outside of it, and turned round.
TEST(NewerOpValues, SamplesOfLargeRegionsAllCount) {
  constexpr int64_t kHeight = 5;
  constexpr int64_t kWidth = 7;
  const double borders[][4] = {{0.3, 0.2, 6.1, 4.7}, {-4, -3, 11, 12},   {-200.25, -1000, 300, 900},
                               {4, 4, 20, 30},       {100, 1, 180, 3.5}, {3, 3, 1, 1.5},
                               {-3, 2, 50, 2.25},    {-1e4, -3, 1e4, 9}};
  constexpr int64_t kRegions = std::size(borders);
  const HostTensor x = Numbers({2, 2, kHeight, kWidth});
  HostTensor rois(DType::kF64, {kRegions, 4});
  for (int64_t r = 0; r < kRegions; ++r) {
    for (int64_t k = 0; k < 4; ++k) rois.SetDouble(r * 4 + k, borders[r][k]);
  }
  const HostTensor batch = Integers(DType::kI64, {kRegions}, {0, 1, 1, 0, 1, 0, 1, 1});
  for (const bool max : {false, true}) {
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {7, 4}}) {
      const HostTensor y = OutputsOf("RoiAlign", {x, rois, batch},
                                     {{"output_height", rows},
                                      {"output_width", columns},
                                      {"mode", std::string(max ? "max" : "avg")}})
                               .at(0);
      ASSERT_EQ(y.dims(), (Dims{kRegions, 2, rows, columns}));
      for (int64_t at = 0; at < y.elements(); ++at) {
        const int64_t j = at % columns;
        const int64_t i = at / columns % rows;
        const int64_t c = at / columns / rows % 2;
        const int64_t r = at / columns / rows / 2;
        const double* b = borders[r];
        const RoiLine h = {b[1] - 0.5, b[3] - b[1], rows, kHeight};
        const RoiLine w = {b[0] - 0.5, b[2] - b[0], columns, kWidth};
        const int64_t base = (batch.GetInt(r) * 2 + c) * kHeight * kWidth;
        EXPECT_NEAR(y.GetDouble(at), RoiBin(x, base, h, w, i, j, max), 1e-9)
            << "max " << max << ", region " << r << ", bin " << i << " " << j;
      }
    }
  }
}

TEST(NewerOpValues, BitsOfIntegersAreThoseOfOthers) {
  ExpectValues(
      OutputsOf("BitCast", {Integers(DType::kI8, {3}, {-1, 5, -128})}, {{"to", int64_t{2}}}).at(0),
      {255, 5, 128});
  ExpectValues(
      OutputsOf("BitCast", {Integers(DType::kU32, {2}, {0xFFFFFFFE, 7})}, {{"to", int64_t{6}}})
          .at(0),
      {-2, 7});
  ExpectValues(
      OutputsOf("BitCast", {Integers(DType::kBool, {2}, {1, 0})}, {{"to", int64_t{2}}}).at(0),
      {1, 0});
}

TEST(NewerOpValues, ScalesOfBlocksAreForTheirElements) {
  const HostTensor x =
      HostTensor::FromValues(DType::kF32, {1, 5}, {1.0F, 2.5F, 3.5F, -70.0F, 9e9F});
  const HostTensor scale = HostTensor::FromValues(DType::kF32, {1, 3}, {0.5F, 1.0F, 2.0F});
  const HostTensor zero = Integers(DType::kI16, {1, 3}, {3, -100, 7});
  const AttrMap blocks = {{"axis", int64_t{1}}, {"block_size", int64_t{2}}};
  const HostTensor q = OutputsOf("QuantizeLinear", {x, scale, zero}, blocks).at(0);
  ExpectValues(q, {5, 8, -96, -170, 32767});
  ExpectValues(OutputsOf("DequantizeLinear", {q, scale, zero}, blocks).at(0),
               {1, 2.5, 4, -70, 65520});
}

}  // namespace
}  // namespace fusion
