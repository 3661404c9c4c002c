#include "core/op/forms.h"

namespace fusion {

/// y[.., i, ..] = the `reduction` (sum, prod, min, max) of updates[.., j, ..] over the j along
/// `axis` at which indices[.., j, ..] is i; the extent of y along it is `depth`; negative indices
/// count from the end. Inputs are indices and updates; dims of indices with extent 1 beside `axis`
/// stand for any.
OpDef DefineReduceIndexed() {
  return {.name = "ReduceIndexed",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "axis", .kind = ParamSpec::kInt, .required = true},
                     {.name = "depth", .kind = ParamSpec::kInt, .required = true},
                     {.name = "reduction", .kind = ParamSpec::kString, .required = true}},
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            ASSIGN_OR_RETURN(IndexedLoop loop, LoopOverIndices(call, 1));
            std::optional<Monoid> monoid =
                Monoid::Named(*call.attrs().Find<std::string>("reduction"), call.dtype(1));
            if (!monoid || monoid->identity().size() != 1) {
              return InvalidArgument("reduction ",
                                     QuoteShort(*call.attrs().Find<std::string>("reduction")),
                                     ", expected sum, prod, min or max");
            }
            loop.body.value = Expr::Select(loop.hit, call.In(1), monoid->identity()[0]);
            loop.body.reduce = *std::move(monoid);
            return std::move(loop.body);
          }};
}

}  // namespace fusion
