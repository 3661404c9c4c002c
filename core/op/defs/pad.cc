#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

namespace {

// Pads that repeat elements are written down element by element while they are turned into pieces.
constexpr int64_t kMaxRepeatedExtent = int64_t{1} << 20;

// Before opset 11 pads and value were attributes.
absl::Status NormalisePad(OnnxCall& call) {
  if (call.opset >= 11) return absl::OkStatus();
  if (!call.attrs.Has("pads")) return InvalidArgument("attribute \"pads\" is missing");
  if (call.inputs.empty() || !call.inputs[0]) return absl::OkStatus();
  HostTensor value(call.inputs[0]->dtype, {});
  value.SetDouble(0, call.attrs.Float("value", 0));
  call.attrs.Erase("value");
  call.attrs.Set("constant_value", std::make_shared<const HostTensor>(std::move(value)));
  return absl::OkStatus();
}

// Elements before and behind each dim: [begin_0, .., begin_r-1, end_0, .., end_r-1].
absl::StatusOr<std::vector<int64_t>> AllPads(const OpCall& call) {
  int rank = call.shape(0).rank();
  std::vector<int64_t> pads = call.attrs().Ints("pads");
  std::vector<int64_t> axes = call.attrs().Ints("axes");
  if (!call.attrs().Has("axes")) {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  }
  RETURN_IF_ERROR(call.NormaliseAxes(axes, rank).status());
  if (pads.size() != 2 * axes.size()) {
    return InvalidArgument("pads has ", pads.size(), " entries, expected ", 2 * axes.size(),
                           ": begin and end of ", axes.size(), " axes");
  }
  std::vector<int64_t> all(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(axes[i], rank));
    all[static_cast<size_t>(axis)] = pads[i];
    all[static_cast<size_t>(axis + rank)] = pads[i + axes.size()];
  }
  for (int64_t pad : all) {
    if (pad < -kMaxExtent || pad > kMaxExtent) return InvalidArgument("pads has the entry ", pad);
  }
  return all;
}

absl::StatusOr<Decomposition::Value> PadWithConstant(Decomposition& d, std::vector<int64_t> pads) {
  using Tensor = std::shared_ptr<const HostTensor>;
  if (d.call().has_input(1)) {
    return d.Apply("PadConstant", {d.in(0), d.in(1)}, {{"pads", std::move(pads)}});
  }
  HostTensor fill(d.call().dtype(0), {});
  if (const auto* given = d.call().attrs().Find<Tensor>("constant_value")) {
    const HostTensor& value = **given;
    if (value.elements() != 1 || value.dtype() != fill.dtype()) {
      return InvalidArgument("constant_value is ", DTypeName(value.dtype()),
                             DimsToString(value.dims()), ", expected one ",
                             DTypeName(fill.dtype()));
    }
    fill = value.Reshaped({});
  }
  return d.Apply(
      "PadConstant", {d.in(0)},
      {{"pads", std::move(pads)}, {"value", std::make_shared<const HostTensor>(std::move(fill))}});
}

enum class Mode { kReflect, kEdge, kWrap };

// Which element of a dim of `extent` is shown at `i`, which may lie before or behind it.
int64_t SourceOf(Mode mode, int64_t i, int64_t extent) {
  if (mode == Mode::kEdge || extent == 1) return std::clamp<int64_t>(i, 0, extent - 1);
  int64_t period = mode == Mode::kWrap ? extent : 2 * (extent - 1);
  int64_t within = (i % period + period) % period;
  return within < extent ? within : period - within;
}

// Elements of a padded dim, one after the other, that are elements of the dim itself in steps of
// 1, -1 or 0.
struct Run {
  int64_t first = 0;  // of the dim itself
  int64_t length = 0;
  int64_t step = 0;
};

// The runs of a dim of `extent` that gets `before` and `behind` more elements, `count` in all.
// Fewer than all of them if they are more than `most`: one more than that.
std::vector<Run> RunsOf(Mode mode, int64_t extent, int64_t before, int64_t count, size_t most) {
  std::vector<Run> runs;
  auto source = [&](int64_t i) { return SourceOf(mode, i - before, extent); };
  for (int64_t at = 0; at < count && runs.size() <= most;) {
    Run run{.first = source(at), .length = 1};
    run.step = at + 1 < count ? source(at + 1) - run.first : 0;
    // A wrapped run starts anew: it does not go on with a step of its own.
    if (run.step < -1 || run.step > 1) run.step = 1;
    while (at + run.length < count &&
           source(at + run.length) == run.first + run.length * run.step) {
      ++run.length;
    }
    at += run.length;
    runs.push_back(run);
  }
  return runs;
}

// The elements of a run, cut out of `x`.
absl::StatusOr<Decomposition::Value> CutOut(Decomposition& d, Decomposition::Value x, int axis,
                                            const Run& run) {
  const int64_t direction = run.step < 0 ? -1 : 1;
  int64_t end = run.first + (run.step == 0 ? 1 : run.length) * direction;
  // -1 would count from the end: "before 0" is said with a number below every dim.
  if (end < 0) end = -kMaxExtent;
  ASSIGN_OR_RETURN(auto piece, d.Apply("Slice", {x},
                                       {{"starts", std::vector<int64_t>{run.first}},
                                        {"ends", std::vector<int64_t>{end}},
                                        {"axes", std::vector<int64_t>{axis}},
                                        {"steps", std::vector<int64_t>{direction}}}));
  if (run.step != 0 || run.length == 1) return piece;
  std::vector<int64_t> shape(static_cast<size_t>(d.type(x).shape.rank()), 1);
  shape[static_cast<size_t>(axis)] = run.length;
  return d.Apply("Expand", {piece}, {{"shape", shape}});
}

// x with `before` and `behind` more elements along `axis`: a concatenation of runs.
absl::StatusOr<Decomposition::Value> RepeatAround(Decomposition& d, Decomposition::Value x,
                                                  Mode mode, int axis, int64_t before,
                                                  int64_t behind) {
  const Dim& dim = d.type(x).shape.dim(axis);
  if (!dim.is_static()) return Unimplemented("padding of the symbolic dim ", dim.ToString());
  int64_t extent = dim.value();
  int64_t count = extent + before + behind;
  if (count < 0 || count > kMaxRepeatedExtent || (extent == 0 && count > 0)) {
    return InvalidArgument("pads ", before, " and ", behind, " give dim ", axis, " of extent ",
                           extent, " the extent ", count);
  }
  if (before < 0 || behind < 0) {
    // Cut first: what is repeated is what is left.
    const int64_t begin = std::max<int64_t>(-before, 0);
    const int64_t end = std::max(begin, extent + std::min<int64_t>(behind, 0));
    ASSIGN_OR_RETURN(x, SliceAlong(d, x, axis, begin, end));
    return RepeatAround(d, x, mode, axis, std::max<int64_t>(before, 0),
                        std::max<int64_t>(behind, 0));
  }
  // Counted before anything is built of them: they may be as many as elements.
  const std::vector<Run> runs = RunsOf(mode, extent, before, count, kMaxVariadicInputs);
  if (runs.size() > kMaxVariadicInputs) {
    return Unimplemented("pads ", before, " and ", behind, " repeat dim ", axis, " of extent ",
                         extent, " more than ", kMaxVariadicInputs, " times");
  }
  if (runs.empty()) {
    return d.Apply("Slice", {x},
                   {{"starts", std::vector<int64_t>{0}},
                    {"ends", std::vector<int64_t>{0}},
                    {"axes", std::vector<int64_t>{axis}}});
  }
  std::vector<Decomposition::Value> pieces;
  for (const Run& run : runs) {
    ASSIGN_OR_RETURN(pieces.emplace_back(), CutOut(d, x, axis, run));
  }
  if (pieces.size() == 1) return pieces[0];
  return d.Apply("Concat", std::move(pieces), {{"axis", int64_t{axis}}});
}

}  // namespace

/// y = x with more elements around it (`mode`: constant, whose value may be an input, reflect,
/// edge, wrap); negative pads cut some off
OpDef DefinePad() {
  return {.name = "Pad",
          .max_inputs = 2,
          .params = {{.name = "pads", .kind = ParamSpec::kInts, .onnx_input = 1, .required = true},
                     {.name = "constant_value",
                      .kind = ParamSpec::kTensor,
                      .onnx_input = 2,
                      .unknown_is_operand = true},
                     {.name = "axes", .kind = ParamSpec::kInts, .onnx_input = 3},
                     {.name = "mode", .kind = ParamSpec::kString}},
          .min_opset = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(std::vector<int64_t> pads, AllPads(call));
            const auto* mode = call.attrs().Find<std::string>("mode");
            if (mode == nullptr || *mode == "constant") return PadWithConstant(d, std::move(pads));
            Mode how = Mode::kReflect;
            if (*mode == "edge") {
              how = Mode::kEdge;
            } else if (*mode == "wrap") {
              how = Mode::kWrap;
            } else if (*mode != "reflect") {
              return InvalidArgument("attribute \"mode\" is ", QuoteShort(*mode),
                                     ", expected constant, reflect, edge or wrap");
            }
            Decomposition::Value y = d.in(0);
            for (int axis = 0; axis < rank; ++axis) {
              int64_t before = pads[static_cast<size_t>(axis)];
              int64_t behind = pads[static_cast<size_t>(axis + rank)];
              if (before == 0 && behind == 0) continue;
              ASSIGN_OR_RETURN(y, RepeatAround(d, y, how, axis, before, behind));
            }
            if (y == d.in(0)) return d.Apply("Identity", {y});
            return y;
          },
          .normalise = NormalisePad};
}

}  // namespace fusion
