#include <algorithm>
#include <numeric>

#include "core/op/forms.h"

namespace fusion {

namespace {

// Operand `i` as MatMul reads it. With transBatch its rows are dim 0 and the batch dims follow;
// then trans swaps the last two. Operands of rank 1 stay as they are.
absl::StatusOr<Decomposition::Value> OperandOf(Decomposition& d, int i) {
  const OpCall& call = d.call();
  const size_t rank = static_cast<size_t>(call.shape(i).rank());
  if (rank < 2) return d.in(i);
  Dims perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (call.attrs().Int(i == 0 ? "transBatchA" : "transBatchB", 0) != 0) {
    std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  }
  if (call.attrs().Int(i == 0 ? "transA" : "transB", 0) != 0) {
    std::swap(perm[rank - 2], perm[rank - 1]);
  }
  if (std::is_sorted(perm.begin(), perm.end())) return d.in(i);
  return d.Apply("Transpose", {d.in(i)}, {{"perm", perm}});
}

}  // namespace

/// y = alpha * op(a) op(b), where op moves dim 0 before the last one (transBatchA, transBatchB) and
/// then swaps the last two (transA, transB), each if asked
OpDef DefineMicrosoftFusedMatMul() {
  return {.name = "com.microsoft.FusedMatMul",
          .min_inputs = 2,
          .max_inputs = 2,
          .params = {{.name = "alpha", .kind = ParamSpec::kFloat},
                     {.name = "transA", .kind = ParamSpec::kInt},
                     {.name = "transB", .kind = ParamSpec::kInt},
                     {.name = "transBatchA", .kind = ParamSpec::kInt},
                     {.name = "transBatchB", .kind = ParamSpec::kInt}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            RETURN_IF_ERROR(CheckFloat(d.call(), 0));
            ASSIGN_OR_RETURN(auto a, OperandOf(d, 0));
            ASSIGN_OR_RETURN(auto b, OperandOf(d, 1));
            ASSIGN_OR_RETURN(auto y, d.Apply("MatMul", {a, b}));
            const double alpha = d.call().attrs().Float("alpha", 1);
            if (alpha == 1) return y;
            return d.Apply("Mul", {y, d.Scalar(d.call().dtype(0), alpha)});
          }};
}

}  // namespace fusion
