#include <cmath>

#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

std::vector<NamedDim> ImageDims(const ModelParams& p) {
  return {{p.batch}, {p.channels}, {p.image}, {p.image}};
}

// The numbers of a convolution without bias: square windows, half of them around the image.
struct ConvShape {
  int64_t from = 1;
  int64_t to = 1;
  int64_t window = 1;
  int64_t stride = 1;
};

// Conv, BatchNormalization; of 8 bits, with the latter in weights and bias, as quantisers leave it.
std::string ConvNorm(OnnxBuilder& b, const std::string& module, const std::string& x,
                     const ConvShape& shape) {
  auto scope = b.Enter(module);
  const int64_t window = shape.window;
  const int64_t pad = window / 2;
  const float scale = std::sqrt(2 / static_cast<float>(shape.from * window * window));
  const OnnxBuilder::Attributes attributes = {
      OnnxBuilder::Ints("kernel_shape", {window, window}),
      OnnxBuilder::Ints("strides", {shape.stride, shape.stride}),
      OnnxBuilder::Ints("pads", {pad, pad, pad, pad})};
  const Dims dims = {shape.to, shape.from, window, window};
  if (b.qdq()) return b.Convolution(x, "conv", dims, scale, attributes);
  std::string y = b.Op("Conv", {x, b.Weight("conv", dims, scale)}, attributes);
  std::string gain = b.Gain("weight", shape.to);
  std::string shift = b.Weight("bias", {shape.to}, 0.02f);
  std::string mean = b.Weight("running_mean", {shape.to}, 0.02f);
  return b.Op("BatchNormalization", {y, gain, shift, mean, b.Gain("running_var", shape.to)});
}

// 1x1 to fewer channels, 3x3, 1x1 to four times as many, and what came in added.
std::string Bottleneck(OnnxBuilder& b, const std::string& module, const std::string& x,
                       int64_t from, int64_t inner, int64_t stride) {
  auto scope = b.Enter(module);
  std::string y = b.Op("Relu", {ConvNorm(b, "0", x, {.from = from, .to = inner})});
  y = b.Op("Relu", {ConvNorm(b, "1", y, {inner, inner, 3, stride})});
  y = ConvNorm(b, "2", y, {.from = inner, .to = 4 * inner});
  std::string past = x;
  if (from != 4 * inner) past = ConvNorm(b, "downsample", x, {from, 4 * inner, 1, stride});
  return b.Op("Relu", {b.Op("Add", {y, past})});
}

// All channels to all channels, 3x3, same extents.
std::string Conv3x3(OnnxBuilder& b, const std::string& module, const std::string& x,
                    const ModelParams& p, bool bias) {
  const Dims dims = {p.channels, p.channels, 3, 3};
  const float scale = 1 / std::sqrt(9 * static_cast<float>(p.channels));
  const OnnxBuilder::Attributes attributes = {OnnxBuilder::Ints("kernel_shape", {3, 3}),
                                              OnnxBuilder::Ints("pads", {1, 1, 1, 1})};
  if (bias) return b.Convolution(x, module, dims, scale, attributes);
  auto scope = b.Enter(module);
  return b.Op("Conv", {x, b.Weight("weight", dims, scale)}, attributes);
}

std::string BatchNorm(OnnxBuilder& b, const std::string& module, const std::string& x,
                      const ModelParams& p) {
  auto scope = b.Enter(module);
  std::string scale = b.Gain("weight", p.channels);
  std::string shift = b.Weight("bias", {p.channels}, 0.02f);
  std::string mean = b.Weight("running_mean", {p.channels}, 0.02f);
  return b.Op("BatchNormalization", {x, scale, shift, mean, b.Gain("running_var", p.channels)});
}

// Every channel by itself, 3x3, same extents.
std::string Depthwise(OnnxBuilder& b, const std::string& x, int64_t channels) {
  auto scope = b.Enter("depthwise");
  return b.Op(
      "Conv",
      {x, b.Weight("weight", {channels, 1, 3, 3}, 0.3f), b.Weight("bias", {channels}, 0.02f)},
      {OnnxBuilder::Ints("kernel_shape", {3, 3}), OnnxBuilder::Ints("pads", {1, 1, 1, 1}),
       OnnxBuilder::Int("group", channels)});
}

// 1x1.
std::string Pointwise(OnnxBuilder& b, const std::string& module, const std::string& x, int64_t from,
                      int64_t to) {
  return b.Convolution(x, module, {to, from, 1, 1}, 0.1f,
                       {OnnxBuilder::Ints("kernel_shape", {1, 1})});
}

std::string Relu6(OnnxBuilder& b, const std::string& x) {
  return b.Op("Clip", {x, b.F32(0), b.F32(6)});
}

}  // namespace

void BuildConvBiasLeakyRelu(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, ImageDims(p));
  for (int64_t i = 0; i < p.depth; ++i) {
    x = b.Op("LeakyRelu", {Conv3x3(b, StrCat("conv.", i), x, p, /*bias=*/true)},
             {OnnxBuilder::Float("alpha", 0.1f)});
  }
  b.Output(x, DType::kF32, ImageDims(p));
}

void BuildConvBnRelu(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, ImageDims(p));
  for (int64_t i = 0; i < p.depth; ++i) {
    std::string y = Conv3x3(b, StrCat("conv.", i), x, p, /*bias=*/false);
    x = b.Op("Relu", {BatchNorm(b, StrCat("bn.", i), y, p)});
  }
  b.Output(x, DType::kF32, ImageDims(p));
}

void BuildConvResidualRelu(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, ImageDims(p));
  for (int64_t i = 0; i < p.depth; ++i) {
    std::string y = Conv3x3(b, StrCat("conv.", i), x, p, /*bias=*/true);
    x = b.Op("Relu", {b.Op("Add", {y, x})});
  }
  b.Output(x, DType::kF32, ImageDims(p));
}

// Depthwise 3x3, ReLU6, pointwise 1x1, residual.
void BuildMbConv(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, ImageDims(p));
  std::string y = Relu6(b, Depthwise(b, x, p.channels));
  y = Pointwise(b, "pointwise", y, p.channels, p.channels);
  b.Output(b.Op("Add", {x, y}), DType::kF32, ImageDims(p));
}

void BuildConv1x1(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, ImageDims(p));
  x = b.Op("Relu", {Pointwise(b, "pointwise", x, p.channels, p.channels)});
  b.Output(x, DType::kF32, ImageDims(p));
}

void BuildDepthwise(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, ImageDims(p));
  b.Output(Relu6(b, Depthwise(b, x, p.channels)), DType::kF32, ImageDims(p));
}

void BuildResNet50(OnnxBuilder& b, const ModelParams& p) {
  struct Stage {
    int64_t blocks;
    int64_t inner;
    int64_t stride;
  };
  constexpr Stage kStages[] = {{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}};
  constexpr int64_t kClasses = 1000;
  std::string x = b.Input("x", DType::kF32, {{p.batch}, {3}, {p.image}, {p.image}});
  x = b.Op("Relu", {ConvNorm(b, "stem", x, {3, 64, 7, 2})});
  x = b.Op("MaxPool", {x},
           {OnnxBuilder::Ints("kernel_shape", {3, 3}), OnnxBuilder::Ints("strides", {2, 2}),
            OnnxBuilder::Ints("pads", {1, 1, 1, 1})});
  int64_t from = 64;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.blocks; ++i) {
      x = Bottleneck(b, StrCat("layer", stage.inner, ".", i), x, from, stage.inner,
                     i == 0 ? stage.stride : 1);
      from = 4 * stage.inner;
    }
  }
  x = b.Op("Flatten", {b.Op("GlobalAveragePool", {x})}, {OnnxBuilder::Int("axis", 1)});
  b.Output(GemmLinear(b, "fc", x, from, kClasses), DType::kF32, {{p.batch}, {kClasses}});
}

// The block of MobileNetV2.
void BuildInvertedBottleneck(OnnxBuilder& b, const ModelParams& p) {
  const int64_t inner = 6 * p.channels;
  std::string x = b.Input("x", DType::kF32, ImageDims(p));
  std::string y = Relu6(b, Pointwise(b, "expand", x, p.channels, inner));
  y = Relu6(b, Depthwise(b, y, inner));
  y = Pointwise(b, "project", y, inner, p.channels);
  b.Output(b.Op("Add", {x, y}), DType::kF32, ImageDims(p));
}

// The block of ResNet-v2: what is normalised and activated is the input of a convolution.
void BuildPreactivation(OnnxBuilder& b, const ModelParams& p) {
  std::string x = b.Input("x", DType::kF32, ImageDims(p));
  for (int64_t i = 0; i < p.depth; ++i) {
    std::string y = x;
    for (int64_t j = 0; j < 2; ++j) {
      std::string at = StrCat(i, ".", j);
      y = b.Op("Relu", {BatchNorm(b, StrCat("bn.", at), y, p)});
      y = Conv3x3(b, StrCat("conv.", at), y, p, /*bias=*/true);
    }
    x = b.Op("Add", {x, y});
  }
  b.Output(x, DType::kF32, ImageDims(p));
}

}  // namespace fusion
