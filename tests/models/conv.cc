#include <cmath>

#include "tests/models/layers.h"
#include "tests/models/models.h"

namespace fusion {
namespace {

std::vector<NamedDim> ImageDims(const ModelParams& p) {
  return {{p.batch}, {p.channels}, {p.image}, {p.image}};
}

// All channels to all channels, 3x3, same extents.
std::string Conv3x3(OnnxBuilder& b, const std::string& module, const std::string& x,
                    const ModelParams& p, bool bias) {
  auto scope = b.Enter(module);
  float scale = 1 / std::sqrt(9 * static_cast<float>(p.channels));
  std::vector<std::string> inputs = {x, b.Weight("weight", {p.channels, p.channels, 3, 3}, scale)};
  if (bias) inputs.push_back(b.Weight("bias", {p.channels}, 0.02f));
  return b.Op("Conv", inputs,
              {OnnxBuilder::Ints("kernel_shape", {3, 3}), OnnxBuilder::Ints("pads", {1, 1, 1, 1})});
}

std::string BatchNorm(OnnxBuilder& b, const std::string& module, const std::string& x,
                      const ModelParams& p) {
  auto scope = b.Enter(module);
  std::string scale = b.Gain("weight", p.channels);
  std::string shift = b.Weight("bias", {p.channels}, 0.02f);
  std::string mean = b.Weight("running_mean", {p.channels}, 0.02f);
  return b.Op("BatchNormalization", {x, scale, shift, mean, b.Gain("running_var", p.channels)});
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
  std::string y;
  {
    auto scope = b.Enter("depthwise");
    y = b.Op(
        "Conv",
        {x, b.Weight("weight", {p.channels, 1, 3, 3}, 0.3f), b.Weight("bias", {p.channels}, 0.02f)},
        {OnnxBuilder::Ints("kernel_shape", {3, 3}), OnnxBuilder::Ints("pads", {1, 1, 1, 1}),
         OnnxBuilder::Int("group", p.channels)});
  }
  y = b.Op("Clip", {y, b.F32(0), b.F32(6)});
  {
    auto scope = b.Enter("pointwise");
    y = b.Op("Conv",
             {y, b.Weight("weight", {p.channels, p.channels, 1, 1}, 0.1f),
              b.Weight("bias", {p.channels}, 0.02f)},
             {OnnxBuilder::Ints("kernel_shape", {1, 1})});
  }
  b.Output(b.Op("Add", {x, y}), DType::kF32, ImageDims(p));
}

}  // namespace fusion
