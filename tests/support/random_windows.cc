#include "tests/support/random_windows.h"

#include <random>

#include "core/graph/build/builder.h"

namespace fusion {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), builder_("windows") {}

  Graph Run() {
    dims_ = {1 + Below(2), 1 + Below(5)};
    const int64_t spatial = 1 + Below(3);
    for (int64_t d = 0; d < spatial; ++d)
      dims_.push_back(spatial == 3 ? 3 + Below(4) : 4 + Below(9));
    image_ = builder_.AddInput("x", Type(dims_));
    const int64_t windows = 1 + Below(2);
    for (int64_t i = 0; i < windows; ++i) {
      Pointwise();
      Below(3) == 0 ? Pool() : Convolution();
    }
    Pointwise();
    builder_.MarkOutput(image_);
    auto graph = builder_.Build();
    FUSION_CHECK(graph.ok(), Message(graph.status()));
    return *std::move(graph);
  }

 private:
  static TensorType Type(const Dims& dims) { return {DType::kF32, Shape(dims)}; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  TensorId Add(std::string_view op, std::vector<TensorId> inputs, AttrMap attrs) {
    auto made = builder_.AddNode(op, inputs, std::move(attrs), StrCat("node", nodes_++));
    FUSION_CHECK(made.ok(), Message(made.status()));
    return *made;
  }

  void Pointwise() {
    constexpr std::string_view kOps[] = {"Sigmoid", "Relu", "Tanh", "Neg", "Abs"};
    for (int64_t i = Below(3); i > 0; --i) image_ = Add(kOps[Below(5)], {image_}, {});
    if (Below(3) == 0) {
      Dims per_channel(dims_.size() - 1, 1);
      per_channel[0] = dims_[1];
      TensorId scale = builder_.AddWeight(StrCat("scale", nodes_), Type(per_channel));
      image_ = Add(Below(2) == 0 ? "Mul" : "Add", {image_, scale}, {});
    }
  }

  // Windows that fit, and the extents of what they give.
  AttrMap Windows(std::vector<int64_t>* kernel, Dims* out, bool dilated) {
    const size_t spatial = dims_.size() - 2;
    std::vector<int64_t> strides;
    std::vector<int64_t> dilations;
    std::vector<int64_t> pads(2 * spatial, 0);
    for (size_t d = 0; d < spatial; ++d) {
      int64_t extent = dims_[d + 2];
      int64_t k = 1 + Below(std::min<int64_t>(3, extent));
      int64_t dilation = dilated && k > 1 && (k - 1) * 2 + 1 <= extent ? 1 + Below(2) : 1;
      strides.push_back(1 + Below(3));
      dilations.push_back(dilation);
      pads[d] = Below(k);
      pads[d + spatial] = Below(k);
      kernel->push_back(k);
      int64_t room = extent + pads[d] + pads[d + spatial] - (k - 1) * dilation - 1;
      out->push_back(room / strides.back() + 1);
    }
    return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  }

  void Convolution() {
    const bool depthwise = Below(3) == 0;
    const int64_t channels = depthwise ? dims_[1] : 1 + Below(6);
    std::vector<int64_t> kernel;
    Dims out = {dims_[0], channels};
    AttrMap attrs = Windows(&kernel, &out, /*dilated=*/true);
    attrs.Set("group", depthwise ? dims_[1] : int64_t{1});
    Dims weight = {channels, depthwise ? 1 : dims_[1]};
    weight.insert(weight.end(), kernel.begin(), kernel.end());
    TensorId w = builder_.AddWeight(StrCat("w", nodes_), Type(weight));
    TensorId made = Add("Conv", {image_, w}, std::move(attrs));
    // A residual, as far as it fits.
    if (out == dims_ && Below(2) == 0) made = Add("Add", {made, image_}, {});
    image_ = made;
    dims_ = std::move(out);
  }

  void Pool() {
    std::vector<int64_t> kernel;
    Dims out = {dims_[0], dims_[1]};
    AttrMap attrs = Windows(&kernel, &out, /*dilated=*/false);
    attrs.Erase("dilations");
    attrs.Set("kernel_shape", kernel);
    image_ = Add(Below(2) == 0 ? "MaxPool" : "AveragePool", {image_}, std::move(attrs));
    dims_ = std::move(out);
  }

  std::mt19937_64 random_;
  GraphBuilder builder_;
  Dims dims_;
  TensorId image_ = 0;
  int nodes_ = 0;
};

}  // namespace

Graph RandomWindowGraph(uint64_t seed) { return Generator(seed).Run(); }

}  // namespace fusion
