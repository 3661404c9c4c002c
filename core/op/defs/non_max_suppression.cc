#include <limits>

#include "core/op/forms.h"
#include "core/op/selection.h"

namespace fusion {

namespace {

using Value = Decomposition::Value;

// Steps, each of which waits for those before.
constexpr int64_t kMostSteps = 1024;

// Opposite corners and areas of boxes, all of one shape.
struct Boxes {
  Value top = 0;
  Value left = 0;
  Value bottom = 0;
  Value right = 0;
  Value area = 0;
};

struct Suppression {
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t boxes = 0;
  int64_t steps = 0;  // the most that are chosen of one class
  Boxes all;          // [batch, 1, boxes]
  Value threshold = 0;
};

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

// Columns of [batch, boxes, 4].
absl::StatusOr<Value> Column(Decomposition& d, int64_t i) {
  ASSIGN_OR_RETURN(Value column, SliceAlong(d, d.in(0), 2, i, i + 1));
  return d.Apply("Transpose", {column}, {{"perm", Dims{0, 2, 1}}});
}

// The smaller and the larger end of an extent.
absl::Status SetEnds(Decomposition& d, bool centred, Value a, Value b, Value* low, Value* high) {
  if (!centred) {
    ASSIGN_OR_RETURN(*low, d.Apply("Min", {a, b}));
    ASSIGN_OR_RETURN(*high, d.Apply("Max", {a, b}));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Value half, d.Apply("Mul", {b, d.Scalar(DType::kF32, 0.5)}));
  ASSIGN_OR_RETURN(*low, d.Apply("Sub", {a, half}));
  ASSIGN_OR_RETURN(*high, d.Apply("Add", {a, half}));
  return absl::OkStatus();
}

absl::StatusOr<Value> Product(Decomposition& d, Value a, Value b, Value c, Value e) {
  ASSIGN_OR_RETURN(Value height, d.Apply("Sub", {a, b}));
  ASSIGN_OR_RETURN(Value width, d.Apply("Sub", {c, e}));
  return d.Apply("Mul", {height, width});
}

absl::StatusOr<Boxes> BoxesOf(Decomposition& d) {
  const int64_t centred = d.call().attrs().Int("center_point_box", 0);
  if (centred != 0 && centred != 1) {
    return InvalidArgument("center_point_box is ", centred, ", expected 0 or 1");
  }
  std::vector<Value> c;
  for (int64_t i = 0; i < 4; ++i) {
    ASSIGN_OR_RETURN(Value column, Column(d, i));
    c.push_back(column);
  }
  Boxes out;
  // [y1, x1, y2, x2] of any two opposite corners, or [x, y, width, height] of the centre.
  if (centred == 1) {
    RETURN_IF_ERROR(SetEnds(d, true, c[1], c[3], &out.top, &out.bottom));
    RETURN_IF_ERROR(SetEnds(d, true, c[0], c[2], &out.left, &out.right));
  } else {
    RETURN_IF_ERROR(SetEnds(d, false, c[0], c[2], &out.top, &out.bottom));
    RETURN_IF_ERROR(SetEnds(d, false, c[1], c[3], &out.left, &out.right));
  }
  ASSIGN_OR_RETURN(out.area, Product(d, out.bottom, out.top, out.right, out.left));
  return out;
}

absl::StatusOr<Suppression> SuppressionOf(Decomposition& d) {
  const OpCall& call = d.call();
  ASSIGN_OR_RETURN(Dims boxes, StaticDims(call, 0));
  ASSIGN_OR_RETURN(Dims scores, StaticDims(call, 1));
  const bool fits = boxes.size() == 3 && scores.size() == 3 && boxes[2] == 4 &&
                    boxes[0] == scores[0] && boxes[1] == scores[2];
  if (!fits || call.dtype(0) != DType::kF32 || call.dtype(1) != DType::kF32) {
    return InvalidArgument("inputs are ", call.in(0).ToString(), " and ", call.in(1).ToString(),
                           ", expected f32[batch,boxes,4] and f32[batch,classes,boxes]");
  }
  Suppression out{.batch = boxes[0], .classes = scores[1], .boxes = boxes[1]};
  ASSIGN_OR_RETURN(int64_t most, MostOf(call));
  out.steps = std::min(most, out.boxes);
  if (out.steps > kMostSteps) {
    return Unimplemented("max_output_boxes_per_class is ", most, " of ", out.boxes,
                         " boxes; at most ", kMostSteps, " are supported, one step each");
  }
  ASSIGN_OR_RETURN(out.all, BoxesOf(d));
  ASSIGN_OR_RETURN(out.threshold, NumberOr(d, 2, 0));
  return out;
}

// Box number `best` [batch, classes, 1] of each class.
absl::StatusOr<Boxes> BoxesAt(Decomposition& d, const Suppression& s, Value best) {
  Boxes out;
  auto at = [&](Value from) -> absl::StatusOr<Value> {
    ASSIGN_OR_RETURN(Value wide,
                     d.Apply("Expand", {from}, {{"shape", Dims{s.batch, s.classes, s.boxes}}}));
    return d.Apply("GatherElements", {wide, best}, {{"axis", int64_t{2}}});
  };
  ASSIGN_OR_RETURN(out.top, at(s.all.top));
  ASSIGN_OR_RETURN(out.left, at(s.all.left));
  ASSIGN_OR_RETURN(out.bottom, at(s.all.bottom));
  ASSIGN_OR_RETURN(out.right, at(s.all.right));
  ASSIGN_OR_RETURN(out.area, at(s.all.area));
  return out;
}

// What two extents share, at least 0.
absl::StatusOr<Value> Shared(Decomposition& d, Value low_a, Value high_a, Value low_b,
                             Value high_b) {
  ASSIGN_OR_RETURN(Value low, d.Apply("Max", {low_a, low_b}));
  ASSIGN_OR_RETURN(Value high, d.Apply("Min", {high_a, high_b}));
  ASSIGN_OR_RETURN(Value length, d.Apply("Sub", {high, low}));
  return d.Apply("Max", {length, d.Scalar(DType::kF32, 0)});
}

// bool [batch, classes, boxes]: the box has more than `threshold` of both in common with `chosen`.
absl::StatusOr<Value> Overlaps(Decomposition& d, const Suppression& s, const Boxes& chosen) {
  const Value zero = d.Scalar(DType::kF32, 0);
  ASSIGN_OR_RETURN(Value height, Shared(d, s.all.top, s.all.bottom, chosen.top, chosen.bottom));
  ASSIGN_OR_RETURN(Value width, Shared(d, s.all.left, s.all.right, chosen.left, chosen.right));
  ASSIGN_OR_RETURN(Value common, d.Apply("Mul", {height, width}));
  ASSIGN_OR_RETURN(Value both, d.Apply("Add", {s.all.area, chosen.area}));
  ASSIGN_OR_RETURN(both, d.Apply("Sub", {both, common}));
  ASSIGN_OR_RETURN(Value part, d.Apply("Div", {common, both}));
  ASSIGN_OR_RETURN(Value over, d.Apply("Greater", {part, s.threshold}));
  // Boxes without area have nothing in common with any.
  ASSIGN_OR_RETURN(Value some, d.Apply("Greater", {common, zero}));
  return d.Apply("And", {over, some});
}

// What is chosen, [batch, classes, steps].
struct Chosen {
  Value box = 0;
  Value found = 0;  // bool
};

// bool [batch, classes, boxes]: the score is above input 3, if that is given. NaN is no score.
absl::StatusOr<Value> Candidates(Decomposition& d) {
  if (!d.call().has_input(3)) {
    ASSIGN_OR_RETURN(Value nan, d.Apply("IsNaN", {d.in(1)}));
    return d.Apply("Not", {nan});
  }
  ASSIGN_OR_RETURN(Value limit, NumberOr(d, 3, 0));
  return d.Apply("Greater", {d.in(1), limit});
}

// Step by step the best box that is left; those that overlap it are out.
absl::StatusOr<Chosen> ChooseBoxes(Decomposition& d, const Suppression& s) {
  ASSIGN_OR_RETURN(Value left, Candidates(d));
  const Value worst = d.Scalar(DType::kF32, -std::numeric_limits<double>::infinity());
  const AttrMap last = {{"axes", Dims{2}}, {"keepdims", int64_t{1}}};
  ASSIGN_OR_RETURN(Value number, CountTo(d, s.boxes));
  std::vector<Value> boxes;
  std::vector<Value> found;
  for (int64_t i = 0; i < s.steps; ++i) {
    ASSIGN_OR_RETURN(Value score, d.Apply("Where", {left, d.in(1), worst}));
    ASSIGN_OR_RETURN(Value top, d.Apply("ReduceMax", {score}, last));
    ASSIGN_OR_RETURN(Value is_top, d.Apply("Equal", {score, top}));
    ASSIGN_OR_RETURN(is_top, d.Apply("And", {is_top, left}));
    ASSIGN_OR_RETURN(is_top, CastTo(d, is_top, DType::kI32));
    ASSIGN_OR_RETURN(Value best,
                     d.Apply("ArgMax", {is_top}, {{"axis", int64_t{2}}, {"keepdims", int64_t{1}}}));
    ASSIGN_OR_RETURN(Value any, CastTo(d, left, DType::kI32));
    ASSIGN_OR_RETURN(any, d.Apply("ReduceMax", {any}, last));
    ASSIGN_OR_RETURN(any, CastTo(d, any, DType::kBool));
    boxes.push_back(best);
    found.push_back(any);
    if (i + 1 == s.steps) break;
    ASSIGN_OR_RETURN(Boxes chosen, BoxesAt(d, s, best));
    ASSIGN_OR_RETURN(Value over, Overlaps(d, s, chosen));
    ASSIGN_OR_RETURN(Value itself, d.Apply("Equal", {number, best}));
    ASSIGN_OR_RETURN(Value out, d.Apply("Or", {over, itself}));
    ASSIGN_OR_RETURN(out, d.Apply("Not", {out}));
    ASSIGN_OR_RETURN(left, d.Apply("And", {left, out}));
  }
  Chosen out;
  ASSIGN_OR_RETURN(out.box, d.Apply("Concat", boxes, {{"axis", int64_t{2}}}));
  ASSIGN_OR_RETURN(out.found, d.Apply("Concat", found, {{"axis", int64_t{2}}}));
  return out;
}

absl::StatusOr<Value> DecomposeSuppression(Decomposition& d) {
  ASSIGN_OR_RETURN(Suppression s, SuppressionOf(d));
  if (s.batch * s.classes * s.steps == 0) {
    d.SetOutput(1, d.Scalar(DType::kI64, 0));
    return d.Constant(HostTensor(DType::kI64, {0, 3}));
  }
  ASSIGN_OR_RETURN(Chosen chosen, ChooseBoxes(d, s));
  ASSIGN_OR_RETURN(Value found, Flattened(d, chosen.found));
  ASSIGN_OR_RETURN(Selection rows, ChosenElements(d, found));
  ASSIGN_OR_RETURN(Value where, CoordinatesOf(d, rows.places, {s.batch, s.classes, s.steps}, 1));
  ASSIGN_OR_RETURN(where, SliceAlong(d, where, 1, 0, 2));
  ASSIGN_OR_RETURN(Value box, Flattened(d, chosen.box));
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
