#include "core/op/forms.h"

namespace fusion {

/// y = x repeated repeats[d] times along each dim d
OpDef DefineTile() {
  return {
      .name = "Tile",
      .params = {{.name = "repeats", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true}},
      .min_opset = 6,
      .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
        const Shape& x = call.shape(0);
        std::vector<int64_t> repeats = call.attrs().Ints("repeats");
        if (static_cast<int>(repeats.size()) != x.rank()) {
          return InvalidArgument("repeats has ", repeats.size(), " entries, input 0 ",
                                 call.in(0).ToString(), " has rank ", x.rank());
        }
        LoopBody body;
        Read read;
        for (int d = 0; d < x.rank(); ++d) {
          int64_t count = repeats[static_cast<size_t>(d)];
          if (count < 0 || count > kMaxExtent) {
            return InvalidArgument("repeats [", StrJoin(repeats, ","), "] has the entry ", count);
          }
          IndexExpr write;
          if (count != 1) {
            if (!x.dim(d).is_static()) {
              return Unimplemented("repeats the symbolic dim ", x.dim(d).ToString());
            }
            RETURN_IF_ERROR(CheckedNumElements({count, x.dim(d).value()}, 1).status());
            write = IndexExpr::Axis(static_cast<int>(body.axes.size()), x.dim(d).value());
            body.axes.push_back({StrCat("r", d), Dim(count)});
          }
          IndexExpr within = IndexExpr::Axis(static_cast<int>(body.axes.size()));
          body.axes.push_back({StrCat("d", d), x.dim(d)});
          body.write.push_back(write + within);
          read.index.push_back(within);
        }
        body.reads = {std::move(read)};
        body.value = call.In(0);
        return body;
      }};
}

}  // namespace fusion
