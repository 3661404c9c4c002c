#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

namespace {

// What stands where x does not: an attribute, or the one element of input 1.
absl::StatusOr<Expr> FillOf(const OpCall& call) {
  if (call.has_input(1)) {
    RETURN_IF_ERROR(call.CheckSameType(0, 1));
    const Shape& shape = call.shape(1);
    if (shape.is_static() && shape.rank() <= 1 && NumElements(shape.ToDims()) == 1) {
      return call.In(1);
    }
    return InvalidArgument("constant_value is ", call.in(1).ToString(), ", expected one element");
  }
  const auto* given = call.attrs().Find<std::shared_ptr<const HostTensor>>("value");
  if (given == nullptr || (*given)->elements() != 1 || (*given)->dtype() != call.dtype(0)) {
    return InvalidArgument("value is ", given == nullptr ? "absent" : DTypeName((*given)->dtype()),
                           " for ", call.in(0).ToString());
  }
  const HostTensor& fill = **given;
  return IsFloat(fill.dtype()) ? Expr::Const(fill.dtype(), fill.GetDouble(0))
                               : Expr::ConstInt(fill.dtype(), fill.GetInt(0));
}

}  // namespace

/// y = x with pads[d] elements equal to `value`, or to input 1, before and pads[rank + d] behind it
/// along each dim d; where they are negative, as many are cut off
OpDef DefinePadConstant() {
  return {.name = "PadConstant",
          .max_inputs = 2,
          .params = {{.name = "pads", .kind = ParamSpec::kInts, .required = true},
                     {.name = "value", .kind = ParamSpec::kTensor}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            int rank = call.shape(0).rank();
            std::vector<int64_t> pads = call.attrs().Ints("pads");
            if (pads.size() != static_cast<size_t>(2 * rank)) {
              return InvalidArgument("pads has ", pads.size(), " entries for rank ", rank);
            }
            ASSIGN_OR_RETURN(const Expr value, FillOf(call));
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
            if (call.has_input(1)) {
              body.reads.push_back(
                  {.index = IndexMap(static_cast<size_t>(call.shape(1).rank()), IndexExpr(0)),
                   .guards = {}});
            }
            body.value = call.In(0);
            if (inside.empty()) return body;
            Expr all = BalancedTree(inside, [](size_t, const Expr& a, const Expr& b) {
              return Expr::Binary(ScalarOp::kAnd, a, b);
            });
            body.value = Expr::Select(all, call.In(0), value);
            return body;
          }};
}

}  // namespace fusion
