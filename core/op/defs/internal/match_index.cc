#include "core/op/forms.h"

namespace fusion {

/// y[.., k, ..] = indices[..] is k, with a new dim of extent `depth` at `axis`; negative indices
/// count from the end
OpDef DefineMatchIndex() {
  return {.name = "MatchIndex",
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "depth", .kind = ParamSpec::kInt, .required = true}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const int64_t depth = call.attrs().Int("depth", 0);
            if (call.dtype(0) != DType::kI64 || depth < 0 || depth > kMaxExtent) {
              return InvalidArgument("input 0 is ", call.in(0).ToString(), " for a depth of ",
                                     depth, ", expected i64 and 0 to ", kMaxExtent);
            }
            const int rank = call.shape(0).rank() + 1;
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -1), rank));
            std::vector<Dim> extents = call.shape(0).dims();
            extents.insert(extents.begin() + axis, Dim(depth));
            LoopBody body;
            body.axes = NumberedAxes(extents);
            body.reads.resize(1);
            for (int d = 0; d < rank; ++d) {
              body.write.push_back(IndexExpr::Axis(d));
              if (d != axis) body.reads[0].index.push_back(IndexExpr::Axis(d));
            }
            const Expr zero = Expr::ConstInt(DType::kI64, 0);
            Expr wrapped =
                Expr::Select(Expr::Binary(ScalarOp::kLt, call.In(0), zero),
                             call.In(0) + Expr::ConstInt(DType::kI64, depth), call.In(0));
            body.value = Expr::Binary(ScalarOp::kEq, wrapped, Expr::Axis(axis));
            return body;
          }};
}

}  // namespace fusion
