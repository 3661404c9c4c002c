#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// y = x with pads[d] elements equal to `value` before and pads[rank + d] behind it along each dim
/// d; where they are negative, as many are cut off
OpDef DefinePadConstant() {
  return {.name = "PadConstant",
          .params = {{.name = "pads", .kind = ParamSpec::kInts, .required = true},
                     {.name = "value", .kind = ParamSpec::kTensor, .required = true}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            int rank = call.shape(0).rank();
            std::vector<int64_t> pads = call.attrs().Ints("pads");
            const HostTensor& fill =
                **call.attrs().Find<std::shared_ptr<const HostTensor>>("value");
            if (pads.size() != static_cast<size_t>(2 * rank) || fill.elements() != 1 ||
                fill.dtype() != call.dtype(0)) {
              return InvalidArgument("pads has ", pads.size(), " entries for rank ", rank,
                                     " and value is ", DTypeName(fill.dtype()), " for ",
                                     call.in(0).ToString());
            }
            LoopBody body;
            Read read;
            std::vector<Dim> extents;
            std::vector<Expr> inside;
            for (int d = 0; d < rank; ++d) {
              int64_t before = pads[static_cast<size_t>(d)];
              int64_t behind = pads[static_cast<size_t>(d + rank)];
              Dim extent = call.shape(0).dim(d);
              read.index.push_back(IndexExpr::Axis(d) + IndexExpr(-before));
              body.write.push_back(IndexExpr::Axis(d));
              extents.push_back(extent + Dim(before + behind));
              if (before == 0 && behind == 0) continue;
              if (!extent.is_static()) {
                return Unimplemented("padding of the symbolic dim ", extent.ToString());
              }
              int64_t out = extents.back().value();
              if (out < 0 || out > kMaxExtent) {
                return InvalidArgument("pads [", StrJoin(pads, ","), "] give dim ", d, " of ",
                                       call.shape(0).ToString(), " the extent ", out);
              }
              Guard guard{.axis = d,
                          .begin = std::clamp<int64_t>(before, 0, out),
                          .end = std::clamp<int64_t>(before + extent.value(), 0, out)};
              if (guard.begin == 0 && guard.end == out) continue;
              inside.push_back(Expr::Within(d, guard.begin, guard.end));
              read.guards.push_back(guard);
            }
            body.axes = NumberedAxes(extents);
            body.reads = {std::move(read)};
            body.value = call.In(0);
            if (inside.empty()) return body;
            Expr all = BalancedTree(inside, [](size_t, const Expr& a, const Expr& b) {
              return Expr::Binary(ScalarOp::kAnd, a, b);
            });
            Expr value = IsFloat(fill.dtype()) ? Expr::Const(fill.dtype(), fill.GetDouble(0))
                                               : Expr::ConstInt(fill.dtype(), fill.GetInt(0));
            body.value = Expr::Select(all, call.In(0), value);
            return body;
          }};
}

}  // namespace fusion
