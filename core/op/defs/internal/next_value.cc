#include "core/op/indexed/ranking.h"

namespace fusion {

/// y = the value of the key (RankKey) that comes first along `axis`, or first after the one of
/// which inputs 1 and 2 are value and place; the dim stays, with extent 1
OpDef DefineNextValue() {
  return {.name = "NextValue",
          .max_inputs = 3,
          .params = RankParams(),
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            ASSIGN_OR_RETURN(RestLoop loop, LoopOverRest(call, /*previous=*/1));
            const bool largest = RanksLargestFirst(call);
            Monoid next = *Monoid::Named(largest ? "max" : "min", call.dtype(0));
            loop.body.value = Expr::Select(loop.rest, loop.key.value, next.identity()[0]);
            loop.body.reduce = std::move(next);
            return std::move(loop.body);
          }};
}

}  // namespace fusion
