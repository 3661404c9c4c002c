#include "core/op/indexed/ranking.h"

#include <limits>

#include "core/op/forms.h"

namespace fusion {

RankKey RankKeyOf(bool largest, const Expr& x, const Expr& coordinate, int64_t extent) {
  if (!IsFloat(x.type())) return {.value = x, .place = coordinate};
  // NaN is mapped to infinity; its place puts it before the infinities if the largest come first,
  // else after them.
  const Expr nan = Expr::Unary(ScalarOp::kIsNan, x);
  const Expr behind = coordinate + Expr::ConstInt(DType::kI64, extent);
  return {.value = Expr::Select(nan, ConstLike(x, std::numeric_limits<double>::infinity()), x),
          .place = largest ? Expr::Select(nan, coordinate, behind)
                           : Expr::Select(nan, behind, coordinate)};
}

Expr ComesBefore(bool largest, const RankKey& a, const RankKey& b) {
  const Expr ahead = Expr::Binary(largest ? ScalarOp::kGt : ScalarOp::kLt, a.value, b.value);
  const Expr same = Expr::Binary(ScalarOp::kEq, a.value, b.value);
  const Expr first = Expr::Binary(ScalarOp::kLt, a.place, b.place);
  return Expr::Binary(ScalarOp::kOr, ahead, Expr::Binary(ScalarOp::kAnd, same, first));
}

std::vector<ParamSpec> RankParams() {
  return {{.name = "axis", .kind = ParamSpec::kInt}, {.name = "largest", .kind = ParamSpec::kInt}};
}

bool RanksLargestFirst(const OpCall& call) { return call.attrs().Int("largest", 1) != 0; }

absl::StatusOr<int64_t> RankedExtent(const OpCall& call, int axis) {
  if (call.dtype(0) == DType::kBool) {
    return InvalidArgument("input 0 is bool, expected a numeric type");
  }
  const Dim& extent = call.shape(0).dim(axis);
  if (!extent.is_static()) {
    return Unimplemented("ranks along the symbolic dim ", extent.ToString(), " of input 0 ",
                         call.in(0).ToString());
  }
  return extent.value();
}

absl::StatusOr<RestLoop> LoopOverRest(const OpCall& call, int previous) {
  const int rank = call.shape(0).rank();
  ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), rank));
  ASSIGN_OR_RETURN(int64_t extent, RankedExtent(call, axis));
  if (call.inputs() != previous && call.inputs() != previous + 2) {
    return InvalidArgument("has ", call.inputs(), " inputs, expected ", previous, " or ",
                           previous + 2);
  }
  std::vector<Dim> one = call.shape(0).dims();
  one[static_cast<size_t>(axis)] = Dim(1);
  RestLoop loop;
  loop.body.axes = NumberedAxes(call.shape(0).dims());
  loop.body.reads.resize(static_cast<size_t>(call.inputs()));
  for (int i = 1; i < call.inputs(); ++i) {
    const TensorType expected{i == previous + 1 ? DType::kI64 : call.dtype(0), Shape(one)};
    if (call.in(i) != expected) {
      return InvalidArgument("input ", i, " is ", call.in(i).ToString(), ", expected ",
                             expected.ToString());
    }
  }
  for (int d = 0; d < rank; ++d) {
    const IndexExpr left = d == axis ? IndexExpr(0) : IndexExpr::Axis(d);
    loop.body.write.push_back(left);
    for (Read& read : loop.body.reads) read.index.push_back(left);
    loop.body.reads[0].index.back() = IndexExpr::Axis(d);
  }
  const bool largest = RanksLargestFirst(call);
  loop.key = RankKeyOf(largest, call.In(0), Expr::Axis(axis), extent);
  loop.rest = Expr::ConstInt(DType::kBool, 1);
  if (call.inputs() > previous) {
    loop.rest = ComesBefore(largest, {.value = call.In(previous), .place = call.In(previous + 1)},
                            loop.key);
  }
  return loop;
}

}  // namespace fusion
