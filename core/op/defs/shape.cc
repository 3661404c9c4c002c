#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y = the extents of x from `start` to `end`, i64
OpDef DefineShape() {
  return {.name = "Shape",
          .params = {{.name = "start", .kind = ParamSpec::kInt, .any_integer = true},
                     {.name = "end", .kind = ParamSpec::kInt, .any_integer = true}},
          .value_of_types = [](const OpCall& call) -> absl::StatusOr<HostTensor> {
            if (!call.shape(0).is_static()) {
              return Unimplemented("the shape ", call.shape(0).ToString(),
                                   " is symbolic; bind its dims");
            }
            Dims dims = call.shape(0).ToDims();
            auto rank = static_cast<int64_t>(dims.size());
            auto clamp = [rank](int64_t i) {
              i = std::clamp(i, -rank, rank);
              return i < 0 ? i + rank : i;
            };
            int64_t begin = clamp(call.attrs().Int("start", 0));
            int64_t end = std::max(begin, clamp(call.attrs().Int("end", rank)));
            HostTensor value(DType::kI64, {end - begin});
            for (int64_t i = begin; i < end; ++i) {
              value.SetInt(i - begin, dims[static_cast<size_t>(i)]);
            }
            return value;
          }};
}

}  // namespace fusion
