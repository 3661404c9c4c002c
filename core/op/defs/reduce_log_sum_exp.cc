#include "core/op/forms.h"

namespace fusion {

/// logarithm of the sum of exponentials over axes; the maximum, if finite, is taken out so that no
/// exponential overflows
OpDef DefineReduceLogSumExp() {
  return ReduceComposite(
      "ReduceLogSumExp",
      [](Decomposition& d, const AttrMap& over) -> absl::StatusOr<Decomposition::Value> {
        RETURN_IF_ERROR(CheckFloatSupported(d.call()));
        DType type = d.call().dtype(0);
        AttrMap kept = over;
        kept.Set("keepdims", int64_t{1});
        ASSIGN_OR_RETURN(auto max, d.Apply("ReduceMax", {d.in(0)}, kept));
        // A difference of equal infinities would be NaN.
        double finite = LargestFinite(type);
        ASSIGN_OR_RETURN(max, d.Apply("Min", {max, d.Scalar(type, finite)}));
        ASSIGN_OR_RETURN(max, d.Apply("Max", {max, d.Scalar(type, -finite)}));
        ASSIGN_OR_RETURN(auto shifted, d.Apply("Sub", {d.in(0), max}));
        ASSIGN_OR_RETURN(auto e, d.Apply("Exp", {shifted}));
        ASSIGN_OR_RETURN(auto sum, d.Apply("ReduceSum", {e}, kept));
        ASSIGN_OR_RETURN(auto log, d.Apply("Log", {sum}));
        ASSIGN_OR_RETURN(auto y, d.Apply("Add", {log, max}));
        ASSIGN_OR_RETURN(std::vector<int> axes, ReduceAxes(d.call()));
        if (over.Int("keepdims", 1) != 0 || axes.empty()) return y;
        return d.Apply("Squeeze", {y}, {{"axes", std::vector<int64_t>(axes.begin(), axes.end())}});
      });
}

}  // namespace fusion
