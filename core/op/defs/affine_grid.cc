#include "core/op/forms.h"
#include "core/op/forms/resampling.h"

namespace fusion {

namespace {

// Coordinates between -1 and 1 of `extent` elements: of their centres or, with `align_corners`, so
// that the first and the last lie at the ends. [extent, 1, ..], `behind` more dims.
absl::StatusOr<Decomposition::Value> GridCoordinates(Decomposition& d, int64_t extent,
                                                     bool align_corners, size_t behind,
                                                     DType type) {
  // ONNX's reference begins at -1 where there is no last element to go to.
  if (align_corners && extent == 1) return d.Scalar(type, -1);
  ASSIGN_OR_RETURN(auto at, CountTo(d, extent));
  ASSIGN_OR_RETURN(at, CastTo(d, at, type));
  ASSIGN_OR_RETURN(at, d.Apply("Mul", {at, d.Scalar(type, 2)}));
  const auto count = static_cast<double>(extent);
  ASSIGN_OR_RETURN(at, d.Apply("Sub", {at, d.Scalar(type, count - 1)}));
  const double steps = align_corners ? count - 1 : count;
  ASSIGN_OR_RETURN(at, d.Apply("Div", {at, d.Scalar(type, steps)}));
  Dims axes;
  for (size_t i = 1; i <= behind; ++i) axes.push_back(static_cast<int64_t>(i));
  return d.Apply("Unsqueeze", {at}, {{"axes", axes}});
}

absl::Status CheckAffineGrid(const OpCall& call, const Dims& size) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  const Shape& theta = call.shape(0);
  if ((spatial != 2 && spatial != 3) || theta.rank() != 3 || theta.dim(0) != Dim(size[0]) ||
      theta.dim(1) != Dim(spatial) || theta.dim(2) != Dim(spatial + 1)) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(), " and size is [",
                           StrJoin(size, ","),
                           "], expected [n,2,3] for n, c, h, w or [n,3,4] for n, c, d, h, w");
  }
  for (int64_t extent : size) {
    if (extent < 0 || extent > kMaxExtent) {
      return InvalidArgument("size has the entry ", extent, ", expected 0..", kMaxExtent);
    }
  }
  return absl::OkStatus();
}

}  // namespace

/// y[n, h, w, i] = theta[n, i, :] (x[w], y[h], 1): the places that GridSample reads so that each
/// batch entry is moved by its affine map; with three spatial dims theta[n, i, :] (x, y, z, 1). The
/// extents are `size` (a constant): n, c, h, w or n, c, d, h, w
OpDef DefineAffineGrid() {
  return {.name = "AffineGrid",
          .params = {{.name = "size", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true},
                     {.name = "align_corners", .kind = ParamSpec::kInt}},
          .min_opset = 20,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const Dims size = call.attrs().Ints("size");
            RETURN_IF_ERROR(CheckAffineGrid(call, size));
            const bool align = call.attrs().Int("align_corners", 0) != 0;
            const DType type = InterpolationType(call.dtype(0));
            const size_t spatial = size.size() - 2;
            ASSIGN_OR_RETURN(auto theta, CastTo(d, d.in(0), type));
            // [n, 1, .., i] of each column of theta; the last one is what is added.
            auto column = [&](size_t j) -> absl::StatusOr<Decomposition::Value> {
              const auto at = static_cast<int64_t>(j);
              ASSIGN_OR_RETURN(auto part, SliceAlong(d, theta, 2, at, at + 1));
              Dims dims(spatial + 2, 1);
              dims.front() = size[0];
              dims.back() = static_cast<int64_t>(spatial);
              return d.Apply("Reshape", {part}, {{"shape", dims}, {"allowzero", int64_t{1}}});
            };
            ASSIGN_OR_RETURN(auto y, column(spatial));
            for (size_t j = spatial; j-- > 0;) {
              // x runs along the last spatial dim.
              ASSIGN_OR_RETURN(auto x,
                               GridCoordinates(d, size[size.size() - 1 - j], align, j + 1, type));
              ASSIGN_OR_RETURN(auto factor, column(j));
              ASSIGN_OR_RETURN(auto term, d.Apply("Mul", {factor, x}));
              ASSIGN_OR_RETURN(y, d.Apply("Add", {term, y}));
            }
            Dims dims = {size[0]};
            dims.insert(dims.end(), size.begin() + 2, size.end());
            dims.push_back(static_cast<int64_t>(spatial));
            // Where every coordinate is one number.
            if (d.type(y).shape != Shape(dims)) {
              ASSIGN_OR_RETURN(y, d.Apply("Expand", {y}, {{"shape", dims}}));
            }
            return CastTo(d, y, call.dtype(0));
          }};
}

}  // namespace fusion
