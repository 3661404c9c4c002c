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
            Monoid last = Monoid::Max(DType::kI64);
            // Nowhere is the least number there is, so that it takes an indexed reduction.
            loop.body.value = Expr::Select(loop.hit, Expr::Axis(loop.along), last.identity()[0]);
            loop.body.reduce = std::move(last);
            return std::move(loop.body);
          }};
}

}  // namespace fusion
