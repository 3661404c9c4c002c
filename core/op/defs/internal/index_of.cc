#include <limits>

#include "core/op/forms.h"

namespace fusion {

/// The first (`last`: the last) coordinate along `axis` at which x is what `values` has there, or
/// NaN; the dim stays, with extent 1. x has at least one element along it.
OpDef DefineIndexOf() {
  return {.name = "IndexOf",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "last", .kind = ParamSpec::kInt}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            const int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), rank));
            std::vector<Dim> one = call.shape(0).dims();
            one[static_cast<size_t>(axis)] = Dim(1);
            if (call.shape(1) != Shape(one)) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected ",
                                     Shape(one).ToString());
            }
            LoopBody body;
            body.axes = NumberedAxes(call.shape(0).dims());
            body.reads.resize(2);
            for (int d = 0; d < rank; ++d) {
              const IndexExpr reduced = d == axis ? IndexExpr(0) : IndexExpr::Axis(d);
              body.reads[0].index.push_back(IndexExpr::Axis(d));
              body.reads[1].index.push_back(reduced);
              body.write.push_back(reduced);
            }
            Expr hit = Expr::Binary(ScalarOp::kEq, call.In(0), call.In(1));
            if (IsFloat(call.dtype(0))) {
              hit = Expr::Binary(ScalarOp::kOr, hit, Expr::Unary(ScalarOp::kIsNan, call.In(0)));
            }
            const bool last = call.attrs().Int("last", 0) != 0;
            const int64_t nowhere = last ? -1 : std::numeric_limits<int64_t>::max();
            body.value = Expr::Select(hit, Expr::Axis(axis), Expr::ConstInt(DType::kI64, nowhere));
            body.reduce = last ? Monoid::Max(DType::kI64) : Monoid::Min(DType::kI64);
            return body;
          }};
}

}  // namespace fusion
