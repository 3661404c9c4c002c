#include "core/op/forms.h"
#include "core/op/indexed/ranking.h"

namespace fusion {

/// y[.., i, ..] = how many elements of its row along `axis` come before x[.., i, ..] in the order
/// of core/op/indexed/ranking.h; both inputs are x
OpDef DefineRankAlong() {
  return {.name = "RankAlong",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = RankParams(),
          .internal = true,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            const int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), rank));
            ASSIGN_OR_RETURN(int64_t extent, RankedExtent(call, axis));
            if (call.in(1) != call.in(0)) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected ",
                                     call.in(0).ToString());
            }
            std::vector<Dim> extents = call.shape(0).dims();
            extents.push_back(extents[static_cast<size_t>(axis)]);
            LoopBody body;
            body.axes = NumberedAxes(extents);
            body.reads.resize(2);
            for (int d = 0; d < rank; ++d) {
              body.write.push_back(IndexExpr::Axis(d));
              body.reads[0].index.push_back(IndexExpr::Axis(d));
              body.reads[1].index.push_back(IndexExpr::Axis(d == axis ? rank : d));
            }
            const bool largest = RanksLargestFirst(call);
            const RankKey here = RankKeyOf(largest, call.In(0), Expr::Axis(axis), extent);
            const RankKey other = RankKeyOf(largest, call.In(1), Expr::Axis(rank), extent);
            body.value = Expr::Cast(ComesBefore(largest, other, here), DType::kI64);
            body.reduce = Monoid::Sum(DType::kI64);
            return body;
          }};
}

}  // namespace fusion
