#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

/// y[.., o..] = the elements of each window over the last dims of x, reduced by the monoid
/// `reduce`; x needs no padding
OpDef DefineWindowReduce() {
  return {.name = "WindowReduce",
          .params = {{.name = "kernel_shape", .kind = ParamSpec::kInts, .required = true},
                     {.name = "reduce", .kind = ParamSpec::kString, .required = true},
                     {.name = "strides", .kind = ParamSpec::kInts},
                     {.name = "dilations", .kind = ParamSpec::kInts}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            std::vector<int64_t> kernel = call.attrs().Ints("kernel_shape");
            ASSIGN_OR_RETURN(std::vector<Slide> slides, SlidesOf(call, kernel));
            LoopBody body;
            int lead = call.shape(0).rank() - static_cast<int>(kernel.size());
            for (int d = 0; d < lead; ++d) {
              std::string name = d == 0 ? "n" : d == 1 ? "c" : StrCat("d", d);
              body.axes.push_back({std::move(name), call.shape(0).dim(d)});
              body.write.push_back(IndexExpr::Axis(d));
            }
            Read read{.index = body.write, .guards = {}};
            std::vector<int> output = AppendOutputAxes(slides, &body);
            IndexMap where = SlideIndex(slides, output, AppendKernelAxes(slides, &body));
            read.index.insert(read.index.end(), where.begin(), where.end());
            body.reads = {std::move(read)};
            body.value = call.In(0);
            body.reduce = Monoid::Named(*call.attrs().Find<std::string>("reduce"), call.dtype(0));
            if (!body.reduce) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected a numeric type");
            }
            return body;
          }};
}

}  // namespace fusion
