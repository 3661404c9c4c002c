#include "core/op/indexed/ranking.h"

namespace fusion {

/// y = the place of the key (RankKey) that comes first along `axis`, or first after the one of
/// which inputs 2 and 3 are value and place; input 1 is its value (NextValue). The dim stays, with
/// extent 1.
OpDef DefineNextPlace() {
  return {.name = "NextPlace",
          .min_inputs = 2,
          .max_inputs = 4,
          .params = RankParams(),
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            ASSIGN_OR_RETURN(RestLoop loop, LoopOverRest(call, /*previous=*/2));
            Monoid first = Monoid::Min(DType::kI64);
            const Expr& nowhere = first.identity()[0];
            const Expr found = Expr::Binary(ScalarOp::kEq, loop.key.value, call.In(1));
            loop.body.value =
                Expr::Select(loop.rest, Expr::Select(found, loop.key.place, nowhere), nowhere);
            loop.body.reduce = std::move(first);
            return std::move(loop.body);
          }};
}

}  // namespace fusion
