#include <algorithm>

#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"
#include "core/op/indexed/selection.h"

namespace fusion {

namespace {

using Value = Decomposition::Value;

// The optional input i, one number, or `value`.
absl::StatusOr<Value> NumberOr(Decomposition& d, int i, double value) {
  const OpCall& call = d.call();
  if (!call.has_input(i)) return d.Scalar(DType::kF32, value);
  ASSIGN_OR_RETURN(Dims dims, StaticDims(call, i));
  if (call.dtype(i) != DType::kF32 || (dims != Dims{} && dims != Dims{1})) {
    return InvalidArgument("a threshold is ", call.in(i).ToString(), ", expected f32[1]");
  }
  return d.Apply("Reshape", {d.in(i)}, {{"shape", Dims{}}});
}

absl::StatusOr<int64_t> MostOf(const OpCall& call) {
  const auto* given =
      call.attrs().Find<std::shared_ptr<const HostTensor>>("max_output_boxes_per_class");
  if (given == nullptr) return 0;
  const HostTensor& most = **given;
  if (most.elements() != 1 || IsFloat(most.dtype())) {
    return InvalidArgument("max_output_boxes_per_class is ", DTypeName(most.dtype()),
                           DimsToString(most.dims()), ", expected one i64");
  }
  return std::max<int64_t>(most.GetInt(0), 0);
}

// What is chosen of each batch and class: i64 [batch, classes, count], -1 where there are no more.
absl::StatusOr<Value> ChooseBoxes(Decomposition& d, int64_t count) {
  const OpCall& call = d.call();
  const int64_t centred = call.attrs().Int("center_point_box", 0);
  if (centred != 0 && centred != 1) {
    return InvalidArgument("center_point_box is ", centred, ", expected 0 or 1");
  }
  ASSIGN_OR_RETURN(Value part, NumberOr(d, 2, 0));
  std::vector<Value> inputs = {d.in(0), d.in(1), part};
  const bool limited = call.has_input(3);
  if (limited) {
    ASSIGN_OR_RETURN(Value limit, NumberOr(d, 3, 0));
    inputs.push_back(limit);
  }
  return d.Apply(BoxChoice::kName, std::move(inputs),
                 {{"count", count}, {"centred", centred}, {"limited", int64_t{limited}}});
}

absl::StatusOr<Value> DecomposeSuppression(Decomposition& d) {
  const OpCall& call = d.call();
  ASSIGN_OR_RETURN(Dims boxes, StaticDims(call, 0));
  ASSIGN_OR_RETURN(Dims scores, StaticDims(call, 1));
  const bool fits = boxes.size() == 3 && scores.size() == 3 && boxes[2] == 4 &&
                    boxes[0] == scores[0] && boxes[1] == scores[2];
  if (!fits || call.dtype(0) != DType::kF32 || call.dtype(1) != DType::kF32) {
    return InvalidArgument("inputs are ", call.in(0).ToString(), " and ", call.in(1).ToString(),
                           ", expected f32[batch,boxes,4] and f32[batch,classes,boxes]");
  }
  ASSIGN_OR_RETURN(int64_t most, MostOf(call));
  const Dims places = {scores[0], scores[1], std::min(most, scores[2])};
  if (NumElements(places) == 0) {
    d.SetOutput(1, d.Scalar(DType::kI64, 0));
    return d.Constant(HostTensor(DType::kI64, {0, 3}));
  }
  ASSIGN_OR_RETURN(Value box, ChooseBoxes(d, places[2]));
  ASSIGN_OR_RETURN(box, Flattened(d, box));
  ASSIGN_OR_RETURN(Value found, d.Apply("GreaterOrEqual", {box, d.Scalar(DType::kI64, 0)}));
  ASSIGN_OR_RETURN(Selection rows, ChosenElements(d, found));
  ASSIGN_OR_RETURN(Value where, CoordinatesOf(d, rows.places, places, 1));
  ASSIGN_OR_RETURN(where, SliceAlong(d, where, 1, 0, 2));
  ASSIGN_OR_RETURN(box, d.Apply("Gather", {box, rows.places}));
  ASSIGN_OR_RETURN(box, d.Apply("Unsqueeze", {box}, {{"axes", Dims{1}}}));
  d.SetOutput(1, rows.count);
  return d.Apply("Concat", {where, box}, {{"axis", int64_t{1}}});
}

}  // namespace

/// [batch, class, box] of the boxes that are chosen, by batch, class and descending score: per
/// class at most `max_output_boxes_per_class` (a constant) times the best of those left, without
/// those that share more than input 2 (a part of their union) with one chosen before, and without
/// scores up to input 3. Of equal scores the first. A run decides how many there are.
OpDef DefineNonMaxSuppression() {
  return {.name = "NonMaxSuppression",
          .min_inputs = 2,
          .max_inputs = 4,
          .params = {{.name = "center_point_box", .kind = ParamSpec::kInt},
                     {.name = "max_output_boxes_per_class",
                      .kind = ParamSpec::kTensor,
                      .onnx_input = 2}},
          .min_opset = 10,
          .max_outputs = 2,
          .counted =
              [](const OpCall&) {
                return std::vector<OpDef::Counted>{{0, 0}};
              },
          .decompose = DecomposeSuppression};
}

}  // namespace fusion
