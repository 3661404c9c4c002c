#include "core/op/forms/lp_pooling.h"

#include "core/op/forms.h"

namespace fusion {

absl::StatusOr<int64_t> LpOrder(const OpCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  const int64_t p = call.attrs().Int("p", 2);
  if (p < 1) return InvalidArgument("attribute \"p\" is ", p, ", expected at least 1");
  return p;
}

absl::StatusOr<Decomposition::Value> LpPowers(Decomposition& d, Decomposition::Value x, int64_t p) {
  if (p == 2) return d.Apply("Mul", {x, x});
  ASSIGN_OR_RETURN(auto size, d.Apply("Abs", {x}));
  if (p == 1) return size;
  return d.Apply("Pow", {size, d.Scalar(d.type(x).dtype, static_cast<double>(p))});
}

absl::StatusOr<Decomposition::Value> LpRoot(Decomposition& d, Decomposition::Value sum, int64_t p) {
  if (p == 1) return sum;
  if (p == 2) return d.Apply("Sqrt", {sum});
  return d.Apply("Pow", {sum, d.Scalar(d.type(sum).dtype, 1 / static_cast<double>(p))});
}

}  // namespace fusion
