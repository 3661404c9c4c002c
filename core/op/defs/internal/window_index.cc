#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

namespace {

// `e` as an expression of the coordinates.
Expr CoordinateSum(const IndexExpr& e) {
  Expr sum = Expr::ConstInt(DType::kI64, e.constant());
  for (const IndexExpr::Term& t : e.terms()) {
    sum = sum + Expr::Axis(t.axis) * Expr::ConstInt(DType::kI64, t.coefficient);
  }
  return sum;
}

// `padded`, where the windows read, counted without the padding.
absl::StatusOr<IndexMap> WithoutPadding(const OpCall& call, IndexMap padded) {
  const std::vector<int64_t> pads = call.attrs().Ints("pads");
  const std::vector<int64_t> extents = call.attrs().Ints("extents");
  if (pads.size() != padded.size() || extents.size() != padded.size()) {
    return InvalidArgument("pads and extents have ", pads.size(), " and ", extents.size(),
                           " entries, expected ", padded.size());
  }
  for (size_t d = 0; d < padded.size(); ++d) padded[d] += IndexExpr(-pads[d]);
  return padded;
}

// `hit`, and the element at `index` is none of the padding.
Expr HitInside(const std::vector<Slide>& slides, const std::vector<int64_t>& extents,
               const IndexMap& index, Expr hit) {
  auto require = [&](ScalarOp op, const IndexExpr& at, int64_t bound) {
    const Expr holds = Expr::Binary(op, CoordinateSum(at), Expr::ConstInt(DType::kI64, bound));
    hit = Expr::Binary(ScalarOp::kAnd, holds, hit);
  };
  for (size_t d = 0; d < slides.size(); ++d) {
    const Slide& s = slides[d];
    const int64_t first = index[d].constant();
    const int64_t last = first + (s.count - 1) * s.stride + (s.kernel - 1) * s.dilation;
    if (first < 0) require(ScalarOp::kGe, index[d], 0);
    if (last >= extents[d]) require(ScalarOp::kLt, index[d], extents[d]);
  }
  return hit;
}

// Row-major position of an element without padding.
absl::StatusOr<IndexExpr> RowMajorPosition(const OpCall& call, const IndexMap& lead,
                                           const IndexMap& spatial) {
  const std::vector<int64_t> extents = call.attrs().Ints("extents");
  IndexExpr position(0);
  int64_t weight = 1;
  for (size_t d = spatial.size(); d-- > 0;) {
    position += spatial[d] * weight;
    weight *= extents[d];
  }
  for (size_t d = lead.size(); d-- > 0;) {
    position += lead[d] * weight;
    const Dim& extent = call.shape(0).dim(static_cast<int>(d));
    if (d > 0 && !extent.is_static()) {
      return Unimplemented("positions behind the symbolic dim ", extent.ToString(), " of ",
                           call.in(0).ToString());
    }
    if (d > 0) weight *= extent.value();
  }
  return position;
}

}  // namespace

/// y[.., o..] = where, in row-major order, the first element of each window over the last dims of x
/// lies that is what `values` has there, or NaN; the largest i64 for a window of padding alone. x
/// has padding around the last dims, `pads` elements before each; positions are those in the tensor
/// without it, of `extents`.
OpDef DefineWindowIndex() {
  return {.name = "WindowIndex",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "kernel_shape", .kind = ParamSpec::kInts, .required = true},
                     {.name = "extents", .kind = ParamSpec::kInts, .required = true},
                     {.name = "pads", .kind = ParamSpec::kInts, .required = true},
                     {.name = "strides", .kind = ParamSpec::kInts},
                     {.name = "dilations", .kind = ParamSpec::kInts}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const std::vector<int64_t> kernel = call.attrs().Ints("kernel_shape");
            ASSIGN_OR_RETURN(std::vector<Slide> slides, SlidesOf(call, kernel));
            const auto lead = call.shape(0).rank() - static_cast<int>(kernel.size());
            const std::vector<Dim>& dims = call.shape(0).dims();
            LoopBody body;
            body.axes = NumberedAxes({dims.begin(), dims.begin() + lead});
            for (int d = 0; d < lead; ++d) body.write.push_back(IndexExpr::Axis(d));
            const IndexMap outside = body.write;
            const std::vector<int> output = AppendOutputAxes(slides, &body);
            const IndexMap where = SlideIndex(slides, output, AppendKernelAxes(slides, &body));
            std::vector<Dim> windows_of(dims.begin(), dims.begin() + lead);
            for (const Slide& s : slides) windows_of.emplace_back(s.count);
            const TensorType expected{call.dtype(0), Shape(std::move(windows_of))};
            if (call.in(1) != expected) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected ",
                                     expected.ToString());
            }
            ASSIGN_OR_RETURN(IndexMap unpadded, WithoutPadding(call, where));
            ASSIGN_OR_RETURN(IndexExpr position, RowMajorPosition(call, outside, unpadded));
            body.reads = {Read{.index = outside, .guards = {}},
                          Read{.index = body.write, .guards = {}}};
            body.reads[0].index.insert(body.reads[0].index.end(), where.begin(), where.end());
            Expr hit = Expr::Binary(ScalarOp::kEq, call.In(0), call.In(1));
            if (IsFloat(call.dtype(0))) {
              hit = Expr::Binary(ScalarOp::kOr, hit, Expr::Unary(ScalarOp::kIsNan, call.In(0)));
            }
            hit = HitInside(slides, call.attrs().Ints("extents"), unpadded, hit);
            body.reduce = Monoid::Min(DType::kI64);
            body.value = Expr::Select(hit, CoordinateSum(position), body.reduce->identity()[0]);
            return body;
          }};
}

}  // namespace fusion
