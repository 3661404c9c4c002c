#include "core/op/forms.h"

namespace fusion {

/// y = the inputs one behind the other along `axis`: each element is read from the input whose
/// range it falls into
OpDef DefineConcat() {
  return {.name = "Concat",
          .max_inputs = kMaxVariadicInputs,
          .params = {{.name = "axis", .kind = ParamSpec::kInt, .required = true}},
          .min_opset = 4,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), rank));
            LoopBody body;
            int64_t begin = 0;
            for (int i = 0; i < call.inputs(); ++i) {
              RETURN_IF_ERROR(call.CheckSameType(0, i));
              if (call.shape(i).rank() != rank) {
                return InvalidArgument("input ", i, " ", call.in(i).ToString(),
                                       " has another rank than input 0 ", call.in(0).ToString());
              }
              for (int d = 0; d < rank; ++d) {
                if (d != axis) RETURN_IF_ERROR(call.CheckSameExtent(0, d, i, d));
              }
              const Dim& extent = call.shape(i).dim(axis);
              if (!extent.is_static()) {
                return Unimplemented("concat along the symbolic dim ", extent.ToString());
              }
              Read read;
              for (int d = 0; d < rank; ++d) {
                read.index.push_back(IndexExpr::Axis(d) + IndexExpr(d == axis ? -begin : 0));
              }
              read.guards = {{.axis = axis, .begin = begin, .end = begin + extent.value()}};
              body.reads.push_back(std::move(read));
              if (extent.value() > kMaxTensorBytes - begin) {
                return InvalidArgument("the inputs have more than ", kMaxTensorBytes,
                                       " elements along axis ", axis);
              }
              begin += extent.value();
            }
            std::vector<Dim> extents = call.shape(0).dims();
            extents[static_cast<size_t>(axis)] = begin;
            body.axes = NumberedAxes(extents);
            for (int d = 0; d < rank; ++d) body.write.push_back(IndexExpr::Axis(d));
            std::vector<Expr> pieces;
            for (int i = 0; i < call.inputs(); ++i) pieces.push_back(call.In(i));
            body.value = BalancedTree(pieces, [&](size_t middle, const Expr& a, const Expr& b) {
              return Expr::Select(Expr::Within(axis, 0, body.reads[middle].guards[0].begin), a, b);
            });
            if (call.inputs() == 1) body.reads[0].guards.clear();
            return body;
          }};
}

}  // namespace fusion
