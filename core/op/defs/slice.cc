#include <algorithm>
#include <limits>

#include "core/op/forms.h"

namespace fusion {

namespace {

struct Range {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// ONNX: negative bounds count from the end, then bounds are clamped; with a negative step the end
// may be "before 0".
absl::StatusOr<Range> Resolve(int64_t start, int64_t end, int64_t step, int64_t extent) {
  if (step == 0) return InvalidArgument("step 0");
  if (step == std::numeric_limits<int64_t>::min()) return InvalidArgument("step ", step);
  if (start < 0) start += extent;
  if (end < 0 && end >= -extent) {
    end += extent;
  } else if (end < 0) {
    end = step > 0 ? 0 : -1;
  }
  Range range{.start = 0, .step = step, .count = 0};
  if (step > 0) {
    range.start = std::clamp<int64_t>(start, 0, extent);
    end = std::clamp<int64_t>(end, 0, extent);
    if (end > range.start) range.count = (end - range.start - 1) / step + 1;
  } else {
    range.start = std::clamp<int64_t>(start, -1, extent - 1);
    end = std::clamp<int64_t>(end, -1, extent - 1);
    if (range.start > end) range.count = (range.start - end - 1) / -step + 1;
  }
  // One element or none: any step reads the same; 1 is the one form, and far from any overflow.
  if (range.count <= 1) range.step = 1;
  return range;
}

// Attributes of a call, with the defaults of those that it lacks.
struct Bounds {
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;
  std::vector<int64_t> steps;
};

Bounds BoundsOf(const OpCall& call) {
  Bounds out{call.attrs().Ints("starts"), call.attrs().Ints("ends"), call.attrs().Ints("axes"),
             call.attrs().Ints("steps")};
  if (!call.attrs().Has("axes")) {
    for (size_t i = 0; i < out.starts.size(); ++i) out.axes.push_back(static_cast<int64_t>(i));
  }
  if (!call.attrs().Has("steps")) out.steps.assign(out.starts.size(), 1);
  return out;
}

// Where bounds stand relative to the extent. In double: bounds may be the ends of int64_t.
void AddDecisions(const OpCall& call, DecisionLog* log) {
  using Keeps = ShapeDecision::Keeps;
  const Bounds bounds = BoundsOf(call);
  for (size_t i = 0; i < bounds.axes.size(); ++i) {
    absl::StatusOr<int> axis = call.NormaliseAxis(bounds.axes[i], call.shape(0).rank());
    if (!axis.ok() || !call.shape(0).dim(*axis).is_static()) continue;
    const auto extent = static_cast<double>(call.shape(0).dim(*axis).value());
    double ends[] = {static_cast<double>(bounds.starts[i]), static_cast<double>(bounds.ends[i])};
    for (double& end : ends) {
      log->Add(Keeps::kNegative, end);
      if (end < 0) end += extent;
      log->Add(Keeps::kOrder, end);
      log->Add(Keeps::kOrder, end - extent);
      end = std::clamp(end, 0.0, extent);
    }
    log->Add(Keeps::kOrder, ends[1] - ends[0]);
    log->Add(Keeps::kNumber, static_cast<double>(bounds.steps[i]));
  }
}

}  // namespace

/// y = x[start:end:step] along each of `axes`
OpDef DefineSlice() {
  return {
      .name = "Slice",
      .params = {{.name = "starts",
                  .kind = ParamSpec::kInts,
                  .onnx_input = 1,
                  .required = true,
                  .any_integer = true},
                 {.name = "ends",
                  .kind = ParamSpec::kInts,
                  .onnx_input = 2,
                  .required = true,
                  .any_integer = true},
                 {.name = "axes", .kind = ParamSpec::kInts, .onnx_input = 3},
                 {.name = "steps", .kind = ParamSpec::kInts, .onnx_input = 4, .any_integer = true}},
      .body = [](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
        int rank = call.shape(0).rank();
        const auto [starts, ends, axes, steps] = BoundsOf(call);
        if (ends.size() != starts.size() || axes.size() != starts.size() ||
            steps.size() != starts.size()) {
          return InvalidArgument("starts, ends, axes and steps have ", starts.size(), ", ",
                                 ends.size(), ", ", axes.size(), " and ", steps.size(), " entries");
        }
        std::vector<Dim> extents = call.shape(0).dims();
        IndexMap index;
        for (int d = 0; d < rank; ++d) index.push_back(IndexExpr::Axis(d));
        RETURN_IF_ERROR(call.NormaliseAxes(axes, rank).status());
        for (size_t i = 0; i < axes.size(); ++i) {
          ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(axes[i], rank));
          auto d = static_cast<size_t>(axis);
          if (!extents[d].is_static()) {
            return Unimplemented("slice of the symbolic dim ", extents[d].ToString());
          }
          ASSIGN_OR_RETURN(Range range, Resolve(starts[i], ends[i], steps[i], extents[d].value()));
          extents[d] = range.count;
          index[d] = IndexExpr::Axis(axis, range.step) + IndexExpr(range.start);
        }
        return ViewBody(call, extents, std::move(index));
      },
      .decisions = AddDecisions};
}

}  // namespace fusion
