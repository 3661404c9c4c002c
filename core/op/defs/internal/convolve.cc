#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

/// y[n, g*CO + co, o..] = sum_{ci, k..} x[n, g*CI + ci, o*stride + k*dilation ..] * w[g*CO + co,
/// ci, k..]: the windows of an input that needs no padding, `group` independent sets of channels
OpDef DefineConvolve() {
  return {.name = "Convolve",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "strides", .kind = ParamSpec::kInts},
                     {.name = "dilations", .kind = ParamSpec::kInts},
                     {.name = "group", .kind = ParamSpec::kInt}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 3));
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            const Shape& x = call.shape(0);
            const Shape& w = call.shape(1);
            int64_t groups = call.attrs().Int("group", 1);
            if (w.rank() != x.rank() || !w.is_static() || groups < 1 ||
                w.dim(0).value() % groups != 0 || x.dim(1) != w.dim(1) * groups) {
              return InvalidArgument("inputs ", call.in(0).ToString(), " and ",
                                     call.in(1).ToString(), " do not fit ", groups, " groups");
            }
            Dims extents = w.ToDims();
            ASSIGN_OR_RETURN(std::vector<Slide> slides,
                             SlidesOf(call, {extents.begin() + 2, extents.end()}));
            int64_t channels = extents[0] / groups;  // written by one group
            LoopBody body;
            auto axis = [&](std::string name, Dim extent) {
              body.axes.push_back({std::move(name), extent});
              return static_cast<int>(body.axes.size()) - 1;
            };
            body.write = {IndexExpr::Axis(axis("n", x.dim(0)))};
            IndexExpr group(0);
            if (groups > 1) group = IndexExpr::Axis(axis("g", groups));
            IndexExpr co = group * channels + IndexExpr::Axis(axis("co", channels));
            body.write.push_back(co);
            std::vector<int> output = AppendOutputAxes(slides, &body);
            IndexExpr ci = IndexExpr::Axis(axis("ci", extents[1]));
            std::vector<int> kernel = AppendKernelAxes(slides, &body);

            Read read_x{.index = {body.write[0], group * extents[1] + ci}, .guards = {}};
            IndexMap where = SlideIndex(slides, output, kernel);
            read_x.index.insert(read_x.index.end(), where.begin(), where.end());
            Read read_w{.index = {co, ci}, .guards = {}};
            for (int k : kernel) read_w.index.push_back(IndexExpr::Axis(k));
            body.reads = {std::move(read_x), std::move(read_w)};
            body.value = call.In(0) * call.In(1);
            body.reduce = Monoid::Sum(call.dtype(0));
            return body;
          }};
}

}  // namespace fusion
