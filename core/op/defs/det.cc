#include "core/op/forms.h"

namespace fusion {

namespace {

// Rows of a matrix, each of them some twenty steps.
constexpr int64_t kMaxDetRows = 32;

using DetValue = Decomposition::Value;

// One step of the elimination.
struct DetStep {
  DetValue factor = 0;  // times the determinant of the rest
  DetValue rest = 0;    // one row and one column less
};

// Takes the row with the largest first element out of `a` [.., n, n], puts the first row in its
// place and takes a multiple of it off the others, so that their first elements vanish.
absl::StatusOr<DetStep> Eliminate(Decomposition& d, DetValue a, int64_t n) {
  const DType type = d.type(a).dtype;
  const int columns = d.type(a).shape.rank() - 1;
  const int rows = columns - 1;
  const AttrMap along_rows = {{"axis", int64_t{rows}}};
  ASSIGN_OR_RETURN(auto column, SliceAlong(d, a, columns, 0, 1));
  ASSIGN_OR_RETURN(auto size, d.Apply("Abs", {column}));
  ASSIGN_OR_RETURN(auto at, d.Apply("ArgMax", {size}, along_rows));
  Dims one_row = d.type(a).shape.ToDims();
  one_row[static_cast<size_t>(rows)] = 1;
  ASSIGN_OR_RETURN(auto whole_row, d.Apply("Expand", {at}, {{"shape", one_row}}));
  ASSIGN_OR_RETURN(auto pivots, d.Apply("GatherElements", {a, whole_row}, along_rows));
  ASSIGN_OR_RETURN(auto pivot, SliceAlong(d, pivots, columns, 0, 1));

  DetStep out;
  ASSIGN_OR_RETURN(auto stays, d.Apply("Equal", {at, d.Scalar(DType::kI64, 0)}));
  ASSIGN_OR_RETURN(auto negative, d.Apply("Neg", {pivot}));
  ASSIGN_OR_RETURN(out.factor, d.Apply("Where", {stays, pivot, negative}));

  HostTensor numbers(DType::kI64, {n - 1, 1});
  for (int64_t i = 1; i < n; ++i) numbers.SetInt(i - 1, i);
  ASSIGN_OR_RETURN(auto first, SliceAlong(d, a, rows, 0, 1));
  ASSIGN_OR_RETURN(auto below, SliceAlong(d, a, rows, 1, n));
  ASSIGN_OR_RETURN(auto taken, d.Apply("Equal", {d.Constant(std::move(numbers)), at}));
  ASSIGN_OR_RETURN(below, d.Apply("Where", {taken, first, below}));
  // A column of zeros is left as it is: the pivot, a factor of the determinant, is zero.
  ASSIGN_OR_RETURN(auto nothing, d.Apply("Equal", {pivot, d.Scalar(type, 0)}));
  ASSIGN_OR_RETURN(auto divisor, d.Apply("Where", {nothing, d.Scalar(type, 1), pivot}));
  ASSIGN_OR_RETURN(auto times, SliceAlong(d, below, columns, 0, 1));
  ASSIGN_OR_RETURN(times, d.Apply("Div", {times, divisor}));
  ASSIGN_OR_RETURN(auto off, SliceAlong(d, pivots, columns, 1, n));
  ASSIGN_OR_RETURN(off, d.Apply("Mul", {times, off}));
  ASSIGN_OR_RETURN(out.rest, SliceAlong(d, below, columns, 1, n));
  ASSIGN_OR_RETURN(out.rest, d.Apply("Sub", {out.rest, off}));
  return out;
}

}  // namespace

/// y = the determinant of each matrix in the last two dims: the product of the pivots of an
/// elimination with partial pivoting
OpDef DefineDet() {
  return {.name = "Det",
          .min_opset = 11,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckFloat(call, 0));
            RETURN_IF_ERROR(call.CheckRankAtLeast(0, 2));
            ASSIGN_OR_RETURN(Dims dims, StaticDims(call, 0));
            const int64_t n = dims.back();
            if (dims[dims.size() - 2] != n) {
              return InvalidArgument("input 0 is ", call.in(0).ToString(),
                                     ", expected square matrices");
            }
            if (n > kMaxDetRows) {
              return Unimplemented("determinants of ", n, " times ", n, " matrices; at most ",
                                   kMaxDetRows, " rows are supported");
            }
            dims.resize(dims.size() - 2);
            if (n == 0) {
              return d.Apply("Expand", {d.Scalar(call.dtype(0), 1)}, {{"shape", dims}});
            }
            std::vector<DetValue> factors;
            DetValue rest = d.in(0);
            for (int64_t left = n; left > 1; --left) {
              ASSIGN_OR_RETURN(DetStep step, Eliminate(d, rest, left));
              factors.push_back(step.factor);
              rest = step.rest;
            }
            DetValue product = rest;
            for (DetValue factor : factors) {
              ASSIGN_OR_RETURN(product, d.Apply("Mul", {product, factor}));
            }
            const auto rank = static_cast<int64_t>(dims.size());
            return d.Apply("Squeeze", {product}, {{"axes", Dims{rank, rank + 1}}});
          }};
}

}  // namespace fusion
