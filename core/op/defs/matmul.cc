#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

/// c[..,m,n] = sum_k a[..,m,k] * b[..,k,n]; leading dims broadcast, rank-1 operands as in NumPy.
OpDef DefineMatmul() {
  return {.name = "MatMul",
          .min_inputs = 2,
          .max_inputs = 2,
          .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 1));
            RETURN_IF_ERROR(call.CheckRankAtLeast(1, 1));
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            if (call.dtype(0) == DType::kBool) {
              return InvalidArgument("inputs are bool, expected a numeric type");
            }
            const Shape& a = call.shape(0);
            const Shape& b = call.shape(1);
            bool row = a.rank() > 1;     // a has a dim m
            bool column = b.rank() > 1;  // b has a dim n
            int k_of_b = column ? b.rank() - 2 : 0;
            RETURN_IF_ERROR(call.CheckSameExtent(0, a.rank() - 1, 1, k_of_b));

            int batch_a = row ? a.rank() - 2 : 0;
            int batch_b = column ? b.rank() - 2 : 0;
            int batch = std::max(batch_a, batch_b);
            LoopBody body;
            Read read_a;
            Read read_b;
            for (int i = 0; i < batch; ++i) {
              int ia = i - (batch - batch_a);
              int ib = i - (batch - batch_b);
              Dim extent_a = ia >= 0 ? a.dim(ia) : Dim(1);
              Dim extent_b = ib >= 0 ? b.dim(ib) : Dim(1);
              if (extent_a != extent_b && extent_a != Dim(1) && extent_b != Dim(1)) {
                return InvalidArgument("batch dims do not broadcast: ", call.in(0).ToString(),
                                       " and ", call.in(1).ToString());
              }
              Dim extent = extent_a == Dim(1) ? extent_b : extent_a;
              int axis = static_cast<int>(body.axes.size());
              body.axes.push_back({StrCat("b", i), extent});
              body.write.push_back(IndexExpr::Axis(axis));
              if (ia >= 0) {
                read_a.index.push_back(extent_a == extent ? IndexExpr::Axis(axis) : IndexExpr(0));
              }
              if (ib >= 0) {
                read_b.index.push_back(extent_b == extent ? IndexExpr::Axis(axis) : IndexExpr(0));
              }
            }
            if (row) {
              int m = static_cast<int>(body.axes.size());
              body.axes.push_back({"m", a.dim(a.rank() - 2)});
              body.write.push_back(IndexExpr::Axis(m));
              read_a.index.push_back(IndexExpr::Axis(m));
            }
            int n = -1;
            if (column) {
              n = static_cast<int>(body.axes.size());
              body.axes.push_back({"n", b.dim(b.rank() - 1)});
              body.write.push_back(IndexExpr::Axis(n));
            }
            int k = static_cast<int>(body.axes.size());
            body.axes.push_back({"k", a.dim(a.rank() - 1)});
            read_a.index.push_back(IndexExpr::Axis(k));
            read_b.index.push_back(IndexExpr::Axis(k));
            if (column) read_b.index.push_back(IndexExpr::Axis(n));
            body.reads = {std::move(read_a), std::move(read_b)};
            body.value = call.In(0) * call.In(1);
            body.reduce = Monoid::Sum(call.dtype(0));
            return body;
          }};
}

}  // namespace fusion
