#include <cmath>

#include "core/op/forms.h"

namespace fusion {

namespace {

__extension__ typedef __int128 Wide;
constexpr double kMaxElements = 0x1p40;

// max(ceil((limit - start) / delta), 0); integers are counted exactly.
absl::StatusOr<int64_t> CountElements(const HostTensor& start, const HostTensor& limit,
                                      const HostTensor& delta) {
  double count = 0;
  if (IsFloat(start.dtype())) {
    double step = delta.GetDouble(0);
    if (step == 0 || std::isnan(step)) return InvalidArgument("delta is ", step);
    count = std::ceil((limit.GetDouble(0) - start.GetDouble(0)) / step);
  } else {
    Wide step = delta.GetInt(0);
    if (step == 0) return InvalidArgument("delta is 0");
    Wide distance = static_cast<Wide>(limit.GetInt(0)) - start.GetInt(0);
    if (step < 0) {
      step = -step;
      distance = -distance;
    }
    count = distance > 0 ? static_cast<double>((distance - 1) / step + 1) : 0;
  }
  if (!(count < kMaxElements)) return InvalidArgument("a range of ", count, " elements");
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

}  // namespace

/// y = start, start + delta, ... below (or above) limit
OpDef DefineRange() {
  using Tensor = std::shared_ptr<const HostTensor>;
  return {
      .name = "Range",
      .min_inputs = 0,
      .max_inputs = 0,
      .params = {{.name = "start", .kind = ParamSpec::kTensor, .onnx_input = 0, .required = true},
                 {.name = "limit", .kind = ParamSpec::kTensor, .onnx_input = 1, .required = true},
                 {.name = "delta", .kind = ParamSpec::kTensor, .onnx_input = 2, .required = true},
                 {.name = "stash_type", .kind = ParamSpec::kInt}},
      .min_opset = 11,
      .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
        const HostTensor& start = **call.attrs().Find<Tensor>("start");
        const HostTensor& limit = **call.attrs().Find<Tensor>("limit");
        const HostTensor& delta = **call.attrs().Find<Tensor>("delta");
        DType type = start.dtype();
        for (const HostTensor* t : {&start, &limit, &delta}) {
          if (t->elements() != 1 || t->dtype() != type || type == DType::kBool) {
            return InvalidArgument("start, limit and delta must be scalars of one numeric type");
          }
        }
        ASSIGN_OR_RETURN(int64_t count, CountElements(start, limit, delta));
        LoopBody body;
        body.axes = {{"i", Dim(count)}};
        body.write = {IndexExpr::Axis(0)};
        // Halves do not hold every coordinate.
        const DType wide = IsHalf(type) ? DType::kF32 : type;
        auto scalar = [wide](const HostTensor& t) {
          return IsFloat(wide) ? Expr::Const(wide, t.GetDouble(0))
                               : Expr::ConstInt(wide, t.GetInt(0));
        };
        Expr value = scalar(start) + Expr::Cast(Expr::Axis(0), wide) * scalar(delta);
        body.value = Expr::Cast(value, type);
        return body;
      }};
}

}  // namespace fusion
