#include "core/op/forms.h"

namespace fusion {

/// y[i_perm0, i_perm1, ...] = x[i_0, i_1, ...]; without perm the dims are reversed
OpDef DefineTranspose() {
  return {.name = "Transpose",
          .params = {{.name = "perm", .kind = ParamSpec::kInts}},
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            int rank = call.shape(0).rank();
            std::vector<int64_t> perm = call.attrs().Ints("perm");
            if (!call.attrs().Has("perm")) {
              for (int d = rank - 1; d >= 0; --d) perm.push_back(d);
            }
            ASSIGN_OR_RETURN(std::vector<int> sorted, call.NormaliseAxes(perm, rank));
            if (static_cast<int>(sorted.size()) != rank) {
              return InvalidArgument("perm [", StrJoin(perm, ","), "] has ", perm.size(),
                                     " entries, rank is ", rank);
            }
            std::vector<Dim> extents;
            IndexMap index(static_cast<size_t>(rank));
            for (int d = 0; d < rank; ++d) {
              ASSIGN_OR_RETURN(int from, call.NormaliseAxis(perm[static_cast<size_t>(d)], rank));
              extents.push_back(call.shape(0).dim(from));
              index[static_cast<size_t>(from)] = IndexExpr::Axis(d);
            }
            return ViewBody(call, extents, std::move(index));
          }};
}

}  // namespace fusion
