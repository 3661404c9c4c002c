#include "core/op/forms.h"

namespace fusion {

/// y[n, c, o..] = the sum over k.. of x[n, c, k.., o + dilations * k ..]
OpDef DefineShiftedSum() {
  return {
      .name = "ShiftedSum",
      .params = {{.name = "dilations", .kind = ParamSpec::kInts, .required = true}},
      .internal = true,
      .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
        const std::vector<int64_t> dilations = call.attrs().Ints("dilations");
        const auto spatial = static_cast<int>(dilations.size());
        ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
        std::vector<Dim> extents;
        bool fits = call.shape(0).rank() == 2 * spatial + 2;
        for (int d = 0; fits && d < 2; ++d) extents.emplace_back(x[static_cast<size_t>(d)]);
        for (int i = 0; fits && i < spatial; ++i) {
          const int64_t kernel = x[static_cast<size_t>(2 + i)];
          const int64_t dilation = dilations[static_cast<size_t>(i)];
          const int64_t all = x[static_cast<size_t>(2 + spatial + i)];
          fits = dilation > 0 && kernel > 0 && (all - 1) / dilation >= kernel - 1;
          extents.emplace_back(all - (kernel - 1) * dilation);
        }
        std::optional<Monoid> sum = Monoid::Named("sum", call.dtype(0));
        if (!fits || !sum) {
          return InvalidArgument("input 0 is ", call.in(0).ToString(),
                                 ", expected a numeric type and two dims, then ", spatial,
                                 " of windows and as many that hold them");
        }
        for (int i = 0; i < spatial; ++i) extents.emplace_back(x[static_cast<size_t>(2 + i)]);
        LoopBody body;
        body.axes = NumberedAxes(extents);
        Read read;
        for (int d = 0; d < 2; ++d) read.index.push_back(IndexExpr::Axis(d));
        for (int i = 0; i < spatial; ++i) read.index.push_back(IndexExpr::Axis(2 + spatial + i));
        for (int i = 0; i < spatial; ++i) {
          read.index.push_back(IndexExpr::Axis(2 + i) +
                               IndexExpr::Axis(2 + spatial + i, dilations[static_cast<size_t>(i)]));
        }
        for (int d = 0; d < 2 + spatial; ++d) body.write.push_back(IndexExpr::Axis(d));
        body.reads = {std::move(read)};
        body.value = call.In(0);
        body.reduce = *std::move(sum);
        return body;
      }};
}

}  // namespace fusion
