#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

namespace {

// Far more than any model asks for; keeps every product of two inside 64 bits.
constexpr int64_t kMaxImageStep = int64_t{1} << 24;

/// How blocks lie in one dim of the image.
struct ImageDim {
  int64_t extent = 0;
  int64_t block = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t count = 0;  // blocks

  int64_t span() const { return (block - 1) * dilation + 1; }
};

absl::StatusOr<Dims> ImageAttr(const OpCall& call, std::string_view name, size_t entries,
                               int64_t least, int64_t fallback) {
  if (!call.attrs().Has(name)) return Dims(entries, fallback);
  Dims values = call.attrs().Ints(name);
  const bool fit = std::all_of(values.begin(), values.end(),
                               [&](int64_t v) { return v >= least && v <= kMaxImageStep; });
  if (values.size() == entries && fit) return values;
  return InvalidArgument(name, " is [", StrJoin(values, ","), "], expected ", entries,
                         " entries in ", least, "..", kMaxImageStep);
}

absl::StatusOr<std::vector<ImageDim>> ImageDimsOf(const OpCall& call) {
  const size_t spatial = call.attrs().Ints("image_shape").size();
  ASSIGN_OR_RETURN(Dims image, ImageAttr(call, "image_shape", spatial, 1, 1));
  ASSIGN_OR_RETURN(Dims block, ImageAttr(call, "block_shape", spatial, 1, 1));
  ASSIGN_OR_RETURN(Dims strides, ImageAttr(call, "strides", spatial, 1, 1));
  ASSIGN_OR_RETURN(Dims dilations, ImageAttr(call, "dilations", spatial, 1, 1));
  ASSIGN_OR_RETURN(Dims pads, ImageAttr(call, "pads", 2 * spatial, 0, 0));
  ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
  auto times = [](int64_t a, int64_t b) { return a > kMaxExtent / b ? kMaxExtent + 1 : a * b; };
  std::vector<ImageDim> dims;
  int64_t elements = 1;
  int64_t blocks = 1;
  for (size_t i = 0; i < spatial; ++i) {
    ImageDim dim{.extent = image[i],
                 .block = block[i],
                 .stride = strides[i],
                 .dilation = dilations[i],
                 .pad_begin = pads[i]};
    const int64_t room = dim.extent + dim.pad_begin + pads[spatial + i] - dim.span();
    if (room < 0) {
      return InvalidArgument("a block of ", dim.span(), " elements does not fit into dim ", i,
                             " of the image, ", dim.extent, " with ", dim.pad_begin, " + ",
                             pads[spatial + i], " padding");
    }
    dim.count = room / dim.stride + 1;
    elements = times(elements, dim.block);
    blocks = times(blocks, dim.count);
    dims.push_back(dim);
  }
  if (spatial == 0 || x.size() != 3 || elements > kMaxExtent || x[1] % elements != 0 ||
      x[2] != blocks) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(), ", expected [n, channels * ",
                           elements, ", ", blocks, "]: ", blocks, " blocks of [",
                           StrJoin(block, ","), "] in an image of [", StrJoin(image, ","), "]");
  }
  return dims;
}

// x [n, c, k.., blocks..] with the blocks of each dim as far apart as in the image, and zeros
// around them so that element o of the image is what lies at o + dilation * (last - k).
absl::StatusOr<Decomposition::Value> SpreadBlocks(Decomposition& d, Decomposition::Value x,
                                                  const std::vector<ImageDim>& dims) {
  const size_t spatial = dims.size();
  Dims shape = d.type(x).shape.ToDims();
  for (size_t i = 0; i < spatial; ++i) {
    if (dims[i].stride == 1) continue;
    const size_t at = 2 + spatial + i;
    ASSIGN_OR_RETURN(x, d.Apply("Unsqueeze", {x}, {{"axes", Dims{static_cast<int64_t>(at) + 1}}}));
    Dims behind(2 * (shape.size() + 1), 0);
    behind[shape.size() + 1 + at + 1] = dims[i].stride - 1;
    ASSIGN_OR_RETURN(x, d.Apply("Pad", {x}, {{"pads", behind}}));
    shape[at] *= dims[i].stride;
    ASSIGN_OR_RETURN(x, d.Apply("Reshape", {x}, {{"shape", shape}, {"allowzero", int64_t{1}}}));
  }
  Dims pads(2 * shape.size(), 0);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t at = 2 + spatial + i;
    const int64_t before = dims[i].span() - 1 - dims[i].pad_begin;
    pads[at] = before;
    pads[shape.size() + at] = dims[i].extent + dims[i].span() - 1 - before - shape[at];
  }
  return d.Apply("Pad", {x}, {{"pads", pads}});
}

}  // namespace

/// y[n, c, ..] = the sum of the elements of all blocks that lie there: the columns x[n, (c, k..),
/// block..] put back into an image, of `image_shape` and in blocks of `block_shape` (constants)
OpDef DefineCol2im() {
  return {.name = "Col2Im",
          .params =
              {{.name = "image_shape", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true},
               {.name = "block_shape", .kind = ParamSpec::kInts, .onnx_input = 2, .required = true},
               {.name = "dilations", .kind = ParamSpec::kInts},
               {.name = "pads", .kind = ParamSpec::kInts},
               {.name = "strides", .kind = ParamSpec::kInts}},
          .min_opset = 18,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(std::vector<ImageDim> dims, ImageDimsOf(call));
            const Dims x = call.shape(0).ToDims();
            const auto spatial = static_cast<int64_t>(dims.size());
            int64_t elements = 1;
            for (const ImageDim& dim : dims) elements *= dim.block;
            Dims shape = {x[0], x[1] / elements};
            for (const ImageDim& dim : dims) shape.push_back(dim.block);
            for (const ImageDim& dim : dims) shape.push_back(dim.count);
            ASSIGN_OR_RETURN(auto y, d.Apply("Reshape", {d.in(0)},
                                             {{"shape", shape}, {"allowzero", int64_t{1}}}));
            ASSIGN_OR_RETURN(y, SpreadBlocks(d, y, dims));
            // The last element of a block first.
            Dims axes;
            Dims ends;
            Dims dilations;
            for (int64_t i = 0; i < spatial; ++i) {
              const ImageDim& dim = dims[static_cast<size_t>(i)];
              axes.push_back(2 + i);
              ends.push_back(-dim.block - 1);
              dilations.push_back(dim.dilation);
            }
            ASSIGN_OR_RETURN(y, d.Apply("Slice", {y},
                                        {{"starts", Dims(dims.size(), -1)},
                                         {"ends", ends},
                                         {"axes", axes},
                                         {"steps", Dims(dims.size(), -1)}}));
            return d.Apply("ShiftedSum", {y}, {{"dilations", dilations}});
          }};
}

}  // namespace fusion
