#include "core/op/forms/attention.h"

#include <cmath>
#include <limits>

namespace fusion {

using Value = Decomposition::Value;

namespace {

absl::StatusOr<Value> AsShape(Decomposition& d, Value x, const Dims& shape) {
  return d.Apply("Reshape", {x}, {{"shape", shape}, {"allowzero", int64_t{1}}});
}

}  // namespace

absl::StatusOr<Value> IntoHeads(Decomposition& d, Value x, int64_t heads) {
  const Shape& shape = d.type(x).shape;
  if (shape.rank() != 3 || !shape.is_static() || heads < 1 || shape.dim(2).value() % heads != 0) {
    return InvalidArgument("queries, keys or values are ", d.type(x).ToString(),
                           ", expected [batch, rows, n], n a multiple of the ", heads, " heads");
  }
  const Dims dims = shape.ToDims();
  ASSIGN_OR_RETURN(x, AsShape(d, x, {dims[0], dims[1], heads, dims[2] / heads}));
  return d.Apply("Transpose", {x}, {{"perm", Dims{0, 2, 1, 3}}});
}

absl::StatusOr<Value> OutOfHeads(Decomposition& d, Value x) {
  const Dims dims = d.type(x).shape.ToDims();
  ASSIGN_OR_RETURN(x, d.Apply("Transpose", {x}, {{"perm", Dims{0, 2, 1, 3}}}));
  return AsShape(d, x, {dims[0], dims[2], dims[1] * dims[3]});
}

absl::StatusOr<Value> ForHeadsOfQueries(Decomposition& d, Value x, int64_t times) {
  if (times == 1) return x;
  const Dims dims = d.type(x).shape.ToDims();
  ASSIGN_OR_RETURN(x, d.Apply("Unsqueeze", {x}, {{"axes", Dims{2}}}));
  ASSIGN_OR_RETURN(
      x, d.Apply("Expand", {x}, {{"shape", Dims{dims[0], dims[1], times, dims[2], dims[3]}}}));
  return AsShape(d, x, {dims[0], dims[1] * times, dims[2], dims[3]});
}

absl::StatusOr<Value> SeenThrough(Decomposition& d, const KeyWindow& window, int64_t rows,
                                  int64_t keys) {
  ASSIGN_OR_RETURN(auto key, CountTo(d, keys));
  ASSIGN_OR_RETURN(auto row, CountTo(d, rows));
  ASSIGN_OR_RETURN(row, d.Apply("Unsqueeze", {row}, {{"axes", Dims{1}}}));
  if (window.first != KeyWindow::kFromZero) {
    ASSIGN_OR_RETURN(row, d.Apply("Add", {row, window.first}));
  }
  auto number = [&](int64_t n) { return d.Scalar(DType::kI64, static_cast<double>(n)); };
  Value seen = -1;
  if (window.behind >= 0) {
    Value last = row;
    if (window.behind > 0) {
      ASSIGN_OR_RETURN(last, d.Apply("Add", {row, number(window.behind)}));
    }
    ASSIGN_OR_RETURN(seen, d.Apply("LessOrEqual", {key, last}));
  }
  auto see_only = [&](Value condition) -> absl::Status {
    if (seen >= 0) {
      ASSIGN_OR_RETURN(condition, d.Apply("And", {seen, condition}));
    }
    seen = condition;
    return absl::OkStatus();
  };
  if (window.before >= 0) {
    ASSIGN_OR_RETURN(auto first, d.Apply("Sub", {row, number(window.before)}));
    ASSIGN_OR_RETURN(auto begun, d.Apply("GreaterOrEqual", {key, first}));
    RETURN_IF_ERROR(see_only(begun));
  }
  if (window.end != KeyWindow::kAll) {
    ASSIGN_OR_RETURN(auto open, d.Apply("Less", {key, window.end}));
    RETURN_IF_ERROR(see_only(open));
  }
  return seen;
}

absl::StatusOr<Value> AddendOf(Decomposition& d, Value seen, Value hidden) {
  return d.Apply("Where", {seen, d.Scalar(d.type(hidden).dtype, 0), hidden});
}

namespace {

// Where a mask pushes this far down nothing of a score is left in any float type, in f64 neither.
constexpr double kAbsorbs = -1e30;

// As it broadcasts to [batch, heads, rows, keys].
absl::StatusOr<Value> SeenByMask(Decomposition& d, int input, int64_t batch, int64_t rows,
                                 int64_t keys) {
  const TensorType& type = d.call().in(input);
  const bool places =
      type.shape.rank() == 1 && (type.shape == Shape({batch}) || type.shape == Shape({2 * batch}) ||
                                 type.shape == Shape({3 * batch + 2}));
  const bool raw = type.shape == Shape({batch, keys}) || type.shape == Shape({batch, rows, keys});
  if (type.dtype != DType::kI32 || (!places && !raw)) {
    return Unimplemented("input ", input, " (a mask) is ", type.ToString(), "; supported: i32 [",
                         batch, "], [", 2 * batch, "], [", 3 * batch + 2, "], [", batch, ",", keys,
                         "] and [", batch, ",", rows, ",", keys, "]");
  }
  if (raw) {
    ASSIGN_OR_RETURN(auto seen, d.Apply("Greater", {d.in(input), d.Scalar(DType::kI32, 0)}));
    const Dims axes = type.shape.rank() == 2 ? Dims{1, 2} : Dims{1};
    return d.Apply("Unsqueeze", {seen}, {{"axes", axes}});
  }
  ASSIGN_OR_RETURN(auto key, CountTo(d, keys));
  // Entry `part` of each batch as it broadcasts to the scores.
  auto entries = [&](int64_t part) -> absl::StatusOr<Value> {
    ASSIGN_OR_RETURN(auto some, SliceAlong(d, d.in(input), 0, part * batch, (part + 1) * batch));
    ASSIGN_OR_RETURN(some, CastTo(d, some, DType::kI64));
    return d.Apply("Unsqueeze", {some}, {{"axes", Dims{1, 2, 3}}});
  };
  ASSIGN_OR_RETURN(auto end, entries(0));
  ASSIGN_OR_RETURN(auto seen, d.Apply("Less", {key, end}));
  if (type.shape != Shape({2 * batch})) return seen;
  ASSIGN_OR_RETURN(auto begin, entries(1));
  ASSIGN_OR_RETURN(auto begun, d.Apply("GreaterOrEqual", {key, begin}));
  return d.Apply("And", {seen, begun});
}

}  // namespace

absl::StatusOr<std::vector<Value>> AddendsOf(Decomposition& d, const HiddenKeys& hidden,
                                             const Dims& scores, DType type) {
  std::vector<Value> addends;
  const bool masked = hidden.mask >= 0 && d.call().has_input(hidden.mask);
  Value near = 0;
  if (hidden.window.hides()) {
    ASSIGN_OR_RETURN(near, SeenThrough(d, hidden.window, scores[2], scores[3]));
    const auto never = d.Scalar(type, -std::numeric_limits<double>::infinity());
    ASSIGN_OR_RETURN(auto addend, AddendOf(d, near, never));
    addends.push_back(addend);
  }
  if (!masked) return addends;
  ASSIGN_OR_RETURN(auto seen, SeenByMask(d, hidden.mask, scores[0], scores[2], scores[3]));
  const double value = d.call().attrs().Float("mask_filter_value", -10000);
  auto fill = d.Scalar(type, value);
  if (value > kAbsorbs) {
    // Pushing down all that a row could see changes nothing but the rounding of its scores.
    Value open = seen;
    if (hidden.window.hides()) {
      ASSIGN_OR_RETURN(open, d.Apply("And", {open, near}));
    }
    ASSIGN_OR_RETURN(open, CastTo(d, open, type));
    ASSIGN_OR_RETURN(open, d.Apply("ReduceMax", {open}, {{"axes", Dims{-1}}}));
    ASSIGN_OR_RETURN(fill, d.Apply("Mul", {open, fill}));
  }
  ASSIGN_OR_RETURN(auto addend, AddendOf(d, seen, fill));
  addends.push_back(addend);
  return addends;
}

absl::Status CheckAttentionBias(const OpCall& call, int input, DType type, const Dims& scores) {
  const TensorType& given = call.in(input);
  bool fits = given.dtype == type && given.shape.rank() == 4;
  for (int i = 0; fits && i < 4; ++i) {
    const Dim extent = scores[static_cast<size_t>(i)];
    fits = given.shape.dim(i) == extent || (i < 2 && given.shape.dim(i) == Dim(1));
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("input ", call.NumberOf(input), " (attention_bias) is ", given.ToString(),
                         ", expected ", TensorType{type, Shape(scores)}.ToString(),
                         ", of which the first two dims may be 1");
}

absl::StatusOr<Value> HeadProducts(Decomposition& d, Value q, Value k) {
  ASSIGN_OR_RETURN(k, d.Apply("Transpose", {k}, {{"perm", Dims{0, 1, 3, 2}}}));
  return d.Apply("MatMul", {q, k});
}

absl::StatusOr<Value> Capped(Decomposition& d, Value scores, double c) {
  if (!(c > 0)) return scores;
  const DType type = d.type(scores).dtype;
  ASSIGN_OR_RETURN(scores, d.Apply("Div", {scores, d.Scalar(type, c)}));
  ASSIGN_OR_RETURN(scores, d.Apply("Tanh", {scores}));
  return d.Apply("Mul", {scores, d.Scalar(type, c)});
}

absl::StatusOr<Value> Attend(Decomposition& d, const AttentionForm& form) {
  const DType type = d.type(form.q).dtype;
  ASSIGN_OR_RETURN(auto scores, HeadProducts(d, form.q, form.k));
  double scale = form.scale;
  if (scale == 0) {
    scale = 1 / std::sqrt(static_cast<double>(d.type(form.q).shape.dim(3).value()));
  }
  ASSIGN_OR_RETURN(scores, d.Apply("Mul", {scores, d.Scalar(type, scale)}));
  ASSIGN_OR_RETURN(scores, Capped(d, scores, form.softcap));
  for (Value addend : form.addends) {
    ASSIGN_OR_RETURN(scores, d.Apply("Add", {scores, addend}));
  }
  ASSIGN_OR_RETURN(auto shares, d.Apply("Softmax", {scores}, {{"axis", int64_t{-1}}}));
  return d.Apply("MatMul", {shares, form.v});
}

std::vector<ParamSpec> ProjectedAttentionParams() {
  return {{.name = "num_heads", .kind = ParamSpec::kInt, .required = true},
          {.name = "unidirectional", .kind = ParamSpec::kInt},
          {.name = "mask_filter_value", .kind = ParamSpec::kFloat},
          {.name = "scale", .kind = ParamSpec::kFloat},
          {.name = "qkv_hidden_sizes", .kind = ParamSpec::kInts},
          {.name = "do_rotary", .kind = ParamSpec::kInt},
          {.name = "rotary_embedding_dim", .kind = ParamSpec::kInt},
          {.name = "past_present_share_buffer", .kind = ParamSpec::kInt}};
}

namespace {

// The widths of queries, keys and values that lie side by side in `width` columns.
absl::StatusOr<Dims> ProjectedWidths(const OpCall& call, int64_t width, int64_t heads) {
  const Dims given = call.attrs().Ints("qkv_hidden_sizes", Dims(3, width / 3));
  bool fits = heads >= 1 && given.size() == 3 && given[0] == given[1];
  int64_t sum = 0;
  for (size_t i = 0; fits && i < 3; ++i) {
    fits = given[i] >= heads && given[i] <= width && given[i] % heads == 0;
    sum += given[i];
  }
  if (fits && sum == width) return given;
  return InvalidArgument("the projection has ", width, " columns for attribute \"num_heads\" ",
                         heads,
                         call.attrs().Has("qkv_hidden_sizes")
                             ? StrCat(" and \"qkv_hidden_sizes\" [", StrJoin(given, ","), "]")
                             : "",
                         "; expected queries, keys and values of multiples of it, the first two of "
                         "one width, all of one if \"qkv_hidden_sizes\" does not say them");
}

}  // namespace

absl::StatusOr<Value> AttendProjected(Decomposition& d, Value all,
                                      const ProjectedAttention& inputs) {
  const OpCall& call = d.call();
  RETURN_IF_ERROR(CheckOnlyInt(call, "do_rotary", 0));
  RETURN_IF_ERROR(CheckOnlyInt(call, "past_present_share_buffer", 0));
  const Dims shape = d.type(all).shape.ToDims();
  const DType type = d.type(all).dtype;
  const int64_t heads = call.attrs().Int("num_heads", 0);
  ASSIGN_OR_RETURN(const Dims widths, ProjectedWidths(call, shape[2], heads));
  Value parts[3] = {};
  for (int64_t i = 0, begin = 0; i < 3; begin += widths[static_cast<size_t>(i++)]) {
    const int64_t end = begin + widths[static_cast<size_t>(i)];
    ASSIGN_OR_RETURN(auto part, SliceAlong(d, all, 2, begin, end));
    ASSIGN_OR_RETURN(parts[i], IntoHeads(d, part, heads));
  }
  int64_t past = 0;
  if (call.has_input(inputs.past)) {
    const TensorType& given = call.in(inputs.past);
    const Shape& s = given.shape;
    if (given.dtype != type || s.rank() != 5 || !s.is_static() || widths[0] != widths[2] ||
        s != Shape({2, shape[0], heads, s.dim(3), widths[0] / heads})) {
      return InvalidArgument("input ", inputs.past, " (past) is ", given.ToString(), ", expected ",
                             DTypeName(type), "[2,", shape[0], ",", heads, ",past,",
                             widths[0] / heads, "] and keys and values of one width");
    }
    past = s.dim(3).value();
    for (int64_t i = 0; i < 2; ++i) {
      ASSIGN_OR_RETURN(auto half, PickAlong(d, d.in(inputs.past), 0, i));
      ASSIGN_OR_RETURN(parts[i + 1],
                       d.Apply("Concat", {half, parts[i + 1]}, {{"axis", int64_t{2}}}));
    }
  }
  if (call.outputs() > 1) {
    Value halves[2] = {};
    for (int i = 0; i < 2; ++i) {
      ASSIGN_OR_RETURN(halves[i], d.Apply("Unsqueeze", {parts[i + 1]}, {{"axes", Dims{0}}}));
    }
    ASSIGN_OR_RETURN(auto present,
                     d.Apply("Concat", {halves[0], halves[1]}, {{"axis", int64_t{0}}}));
    d.SetOutput(1, present);
  }
  const int64_t rows = shape[1];
  const int64_t keys = past + rows;
  AttentionForm form = {
      .q = parts[0], .k = parts[1], .v = parts[2], .scale = call.attrs().Float("scale", 0)};
  const Dims scores = {shape[0], heads, rows, keys};
  HiddenKeys hidden = {.mask = inputs.mask};
  if (call.attrs().Int("unidirectional", 0) != 0) {
    hidden.window = {.first = d.Scalar(DType::kI64, static_cast<double>(past)), .behind = 0};
  }
  ASSIGN_OR_RETURN(form.addends, AddendsOf(d, hidden, scores, type));
  if (inputs.bias >= 0 && call.has_input(inputs.bias)) {
    RETURN_IF_ERROR(CheckAttentionBias(call, inputs.bias, type, scores));
    form.addends.push_back(d.in(inputs.bias));
  }
  ASSIGN_OR_RETURN(auto y, Attend(d, form));
  return OutOfHeads(d, y);
}

absl::Status CheckRotaryTables(const OpCall& call, int cosines, int64_t turned, int64_t head) {
  const TensorType& table = call.in(cosines);
  const TensorType wanted = {
      call.dtype(0), Shape({table.shape.rank() == 2 ? table.shape.dim(0) : Dim(0), turned / 2})};
  if (turned < 2 || turned % 2 != 0 || turned > head) {
    return InvalidArgument("attribute \"rotary_embedding_dim\" makes ", turned,
                           " elements of a head turn, expected an even number up to the ", head,
                           " that it has");
  }
  if (table != wanted) {
    return InvalidArgument("input ", call.NumberOf(cosines), " (cos_cache) is ", table.ToString(),
                           ", expected ", DTypeName(wanted.dtype), "[positions,", turned / 2,
                           "], half of the ", turned, " elements of a head that turn");
  }
  if (call.in(cosines + 1) != wanted) {
    return InvalidArgument("input ", call.NumberOf(cosines + 1), " (sin_cache) is ",
                           call.in(cosines + 1).ToString(), ", expected ", wanted.ToString(),
                           " like cos_cache");
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> AnglesAt(Decomposition& d, int table, Value positions) {
  ASSIGN_OR_RETURN(auto angles, d.Apply("Gather", {d.in(table), positions}));
  if (d.type(angles).shape.rank() == 2) return angles;
  return d.Apply("Unsqueeze", {angles}, {{"axes", Dims{1}}});
}

absl::StatusOr<Value> Rotated(Decomposition& d, Value x, Value cosines, Value sines,
                              bool interleaved) {
  const Shape shape = d.type(x).shape;
  const Shape angles = d.type(cosines).shape;
  const int64_t pairs = angles.dim(angles.rank() - 1).value();
  const int64_t width = shape.dim(3).value();
  Value low = 0;
  Value high = 0;
  if (interleaved) {
    ASSIGN_OR_RETURN(auto turned, SliceAlong(d, x, 3, 0, 2 * pairs));
    ASSIGN_OR_RETURN(turned, d.Apply("Reshape", {turned}, {{"shape", Dims{0, 0, 0, pairs, 2}}}));
    for (int64_t i = 0; i < 2; ++i) {
      ASSIGN_OR_RETURN((i == 0 ? low : high), PickAlong(d, turned, 4, i));
    }
  } else {
    ASSIGN_OR_RETURN(low, SliceAlong(d, x, 3, 0, pairs));
    ASSIGN_OR_RETURN(high, SliceAlong(d, x, 3, pairs, 2 * pairs));
  }
  // a cos + sign * b sin
  auto mixed = [&](Value a, Value b, std::string_view sign) -> absl::StatusOr<Value> {
    ASSIGN_OR_RETURN(auto p, d.Apply("Mul", {a, cosines}));
    ASSIGN_OR_RETURN(auto q, d.Apply("Mul", {b, sines}));
    return d.Apply(sign, {p, q});
  };
  ASSIGN_OR_RETURN(auto first, mixed(low, high, "Sub"));
  ASSIGN_OR_RETURN(auto second, mixed(high, low, "Add"));
  if (interleaved) {
    for (Value* half : {&first, &second}) {
      ASSIGN_OR_RETURN(*half, d.Apply("Unsqueeze", {*half}, {{"axes", Dims{4}}}));
    }
  }
  ASSIGN_OR_RETURN(auto y, d.Apply("Concat", {first, second}, {{"axis", int64_t{-1}}}));
  if (interleaved) {
    ASSIGN_OR_RETURN(y, d.Apply("Reshape", {y}, {{"shape", Dims{0, 0, 0, 2 * pairs}}}));
  }
  if (2 * pairs == width) return y;
  ASSIGN_OR_RETURN(auto rest, SliceAlong(d, x, 3, 2 * pairs, width));
  return d.Apply("Concat", {y, rest}, {{"axis", int64_t{3}}});
}

}  // namespace fusion
