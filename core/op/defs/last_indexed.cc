#include "core/op/forms.h"

namespace fusion {

/// y[.., i, ..] = the last coordinate j along `axis` at which indices[.., j, ..] is i, or a
/// negative number; the extent of y along it is `depth`; negative indices count from the end
OpDef DefineLastIndexed() {
  return {.name = "LastIndexed",
          .params = {{.name = "axis", .kind = ParamSpec::kInt, .required = true},
                     {.name = "depth", .kind = ParamSpec::kInt, .required = true}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            ASSIGN_OR_RETURN(IndexedLoop loop, LoopOverIndices(call, 0));
            loop.body.value =
                Expr::Select(loop.hit, Expr::Axis(loop.along), Expr::ConstInt(DType::kI64, -1));
            loop.body.reduce = Monoid::Max(DType::kI64);
            return std::move(loop.body);
          }};
}

}  // namespace fusion
