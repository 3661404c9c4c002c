#include "core/op/forms.h"

#include <algorithm>
#include <limits>

namespace fusion {
namespace {

// Extent of an output dim from the extents of the inputs that have it: equal, or 1.
absl::StatusOr<Dim> BroadcastExtent(const OpCall& call, int rank, int d) {
  Dim extent(1);
  for (int i = 0; i < call.inputs(); ++i) {
    int offset = rank - call.shape(i).rank();
    if (d < offset) continue;
    const Dim& here = call.shape(i).dim(d - offset);
    if (here == Dim(1) || here == extent) continue;
    if (extent != Dim(1)) {
      return InvalidArgument("inputs do not broadcast: dim ", d - offset, " of input ", i, " ",
                             call.in(i).ToString(), " is ", here.ToString(),
                             " where an earlier input has ", extent.ToString());
    }
    extent = here;
  }
  return extent;
}

}  // namespace

std::vector<LoopAxis> NumberedAxes(const std::vector<Dim>& extents) {
  std::vector<LoopAxis> axes;
  for (size_t i = 0; i < extents.size(); ++i) axes.push_back({StrCat("d", i), extents[i]});
  return axes;
}

absl::StatusOr<LoopBody> ElementwiseBody(
    const OpCall& call, const std::function<Expr(const std::vector<Expr>&)>& value) {
  int rank = 0;
  for (int i = 0; i < call.inputs(); ++i) rank = std::max(rank, call.shape(i).rank());
  std::vector<Dim> extents;
  for (int d = 0; d < rank; ++d) {
    ASSIGN_OR_RETURN(Dim extent, BroadcastExtent(call, rank, d));
    extents.push_back(extent);
  }
  LoopBody body;
  body.axes = NumberedAxes(extents);
  std::vector<Expr> elements;
  for (int i = 0; i < call.inputs(); ++i) {
    Read read;
    int offset = rank - call.shape(i).rank();
    for (int d = offset; d < rank; ++d) {
      bool repeated =
          call.shape(i).dim(d - offset) == Dim(1) && extents[static_cast<size_t>(d)] != Dim(1);
      read.index.push_back(repeated ? IndexExpr(0) : IndexExpr::Axis(d));
    }
    body.reads.push_back(std::move(read));
    elements.push_back(call.In(i));
  }
  for (int d = 0; d < rank; ++d) body.write.push_back(IndexExpr::Axis(d));
  body.value = value(elements);
  return body;
}

OpDef UnaryOp(std::string name, ScalarOp op) {
  return {.name = std::move(name),
          .body = [op](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            bool real_only = GetScalarInfo(op).typing == ScalarTyping::kReal;
            if (real_only && !IsFloat(call.dtype(0))) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected a float type");
            }
            if (call.dtype(0) == DType::kBool) {
              return InvalidArgument("input 0 is bool, expected a numeric type");
            }
            return ElementwiseBody(
                call, [op](const std::vector<Expr>& in) { return Expr::Unary(op, in[0]); });
          }};
}

OpDef RealFunction(std::string name, std::vector<std::string> params,
                   std::function<Expr(const AttrMap& attrs, const Expr& x)> value) {
  std::vector<ParamSpec> specs;
  for (std::string& param : params) {
    specs.push_back({.name = std::move(param), .kind = ParamSpec::kFloat});
  }
  return {.name = std::move(name),
          .params = std::move(specs),
          .body = [value = std::move(value)](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            if (!IsFloat(call.dtype(0))) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected a float type");
            }
            return ElementwiseBody(
                call, [&](const std::vector<Expr>& in) { return value(call.attrs(), in[0]); });
          }};
}

Expr ConstLike(const Expr& x, double value) { return Expr::Const(x.type(), value); }

Expr ExpMinusOne(const Expr& x) {
  Expr half = Expr::Unary(ScalarOp::kTanh, x * ConstLike(x, 0.5));
  return half * (Expr::Unary(ScalarOp::kExp, x) + ConstLike(x, 1));
}

Expr HyperbolicCosine(const Expr& x) {
  // e^|x| / 2 as a product: e^|x| alone is infinite before the result is.
  Expr root = Expr::Unary(ScalarOp::kExp, Expr::Unary(ScalarOp::kAbs, x) * ConstLike(x, 0.5));
  Expr large = (root * ConstLike(x, 0.5)) * root;
  return large + ConstLike(x, 0.25) / large;
}

Expr SwishOf(const Expr& x, double alpha) {
  return x * Expr::Unary(ScalarOp::kSigmoid, alpha == 1 ? x : x * ConstLike(x, alpha));
}

Expr SoftplusOf(const Expr& x) {
  Expr small =
      Expr::Unary(ScalarOp::kExp, Expr::Unary(ScalarOp::kNeg, Expr::Unary(ScalarOp::kAbs, x)));
  Expr log = Expr::Unary(ScalarOp::kLog, ConstLike(x, 1) + small);
  return Expr::Binary(ScalarOp::kMax, x, ConstLike(x, 0)) + log;
}

absl::Status CheckFloatSupported(const OpCall& call) {
  if (IsFloat(call.dtype(0))) return absl::OkStatus();
  return Unimplemented("input 0 is ", DTypeName(call.dtype(0)), "; supported: float types");
}

absl::Status NormaliseOldBroadcast(OnnxCall& call) {
  if (call.opset >= 7) return absl::OkStatus();
  for (const char* name : {"axis", "broadcast"}) call.attrs.Erase(name);
  return absl::OkStatus();
}

OpDef BinaryOp(std::string name, ScalarOp op) {
  return {.name = std::move(name),
          .min_inputs = 2,
          .max_inputs = 2,
          .body = [op](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            RETURN_IF_ERROR(call.CheckSameType(0, 1));
            bool logic = GetScalarInfo(op).typing == ScalarTyping::kLogic;
            bool numeric = GetScalarInfo(op).typing == ScalarTyping::kNumeric;
            bool bits = GetScalarInfo(op).typing == ScalarTyping::kBits;
            if ((logic && call.dtype(0) != DType::kBool) ||
                (numeric && call.dtype(0) == DType::kBool) || (bits && !IsInteger(call.dtype(0)))) {
              return InvalidArgument("inputs are ", DTypeName(call.dtype(0)), ", expected ",
                                     logic  ? "bool"
                                     : bits ? "an integer type"
                                            : "a numeric type");
            }
            return ElementwiseBody(
                call, [op](const std::vector<Expr>& in) { return Expr::Binary(op, in[0], in[1]); });
          },
          .normalise = NormaliseOldBroadcast};
}

OpDef VariadicOp(std::string name, ScalarOp op) {
  return {.name = std::move(name),
          .max_inputs = kMaxVariadicInputs,
          .min_opset = 6,  // until 8 without broadcasting
          .body = [op](const OpCall& call, int) -> absl::StatusOr<LoopBody> {
            for (int i = 1; i < call.inputs(); ++i) RETURN_IF_ERROR(call.CheckSameType(0, i));
            if (call.dtype(0) == DType::kBool) {
              return InvalidArgument("inputs are bool, expected a numeric type");
            }
            return ElementwiseBody(call, [op](const std::vector<Expr>& in) {
              return BalancedTree(in, [op](size_t, const Expr& a, const Expr& b) {
                return Expr::Binary(op, a, b);
              });
            });
          }};
}

Expr BalancedTree(const std::vector<Expr>& leaves,
                  const std::function<Expr(size_t middle, const Expr& a, const Expr& b)>& join) {
  std::function<Expr(size_t, size_t)> tree = [&](size_t begin, size_t end) -> Expr {
    if (end - begin == 1) return leaves[begin];
    size_t middle = begin + (end - begin) / 2;
    return join(middle, tree(begin, middle), tree(middle, end));
  };
  return tree(0, leaves.size());
}

std::vector<ParamSpec> ReduceParams() {
  return {{.name = "axes", .kind = ParamSpec::kInts, .onnx_input = 1},
          {.name = "keepdims", .kind = ParamSpec::kInt},
          {.name = "noop_with_empty_axes", .kind = ParamSpec::kInt}};
}

absl::StatusOr<std::vector<int>> ReduceAxes(const OpCall& call) {
  int rank = call.shape(0).rank();
  std::vector<int64_t> named = call.attrs().Ints("axes");
  if (named.empty() && call.attrs().Int("noop_with_empty_axes", 0) == 0) {
    for (int i = 0; i < rank; ++i) named.push_back(i);
  }
  return call.NormaliseAxes(named, rank);
}

absl::StatusOr<LoopBody> ReduceBody(const OpCall& call, const Expr& value,
                                    std::string_view monoid) {
  ASSIGN_OR_RETURN(std::vector<int> axes, ReduceAxes(call));
  bool keep = call.attrs().Int("keepdims", 1) != 0;
  LoopBody body;
  body.axes = NumberedAxes(call.shape(0).dims());
  Read read;
  for (int d = 0; d < call.shape(0).rank(); ++d) {
    read.index.push_back(IndexExpr::Axis(d));
    bool reduced = std::binary_search(axes.begin(), axes.end(), d);
    if (!reduced) {
      body.write.push_back(IndexExpr::Axis(d));
    } else if (keep) {
      body.write.push_back(IndexExpr(0));
    }
  }
  body.reads = {read};
  body.value = value;
  if (!axes.empty()) {
    auto named = Monoid::Named(monoid, value.type());
    if (!named && (monoid == "max" || monoid == "min")) {
      return Unimplemented("input 0 is bool; supported: numeric types");
    }
    if (!named)
      return InvalidArgument("input 0 is ", DTypeName(value.type()), ", expected a numeric type");
    body.reduce = *named;
  }
  return body;
}

OpDef ReduceOp(std::string name, std::string_view monoid) {
  return {
      .name = std::move(name), .params = ReduceParams(), .body = [monoid](const OpCall& call, int) {
        return ReduceBody(call, call.In(0), monoid);
      }};
}

OpDef ReduceComposite(
    std::string name,
    std::function<absl::StatusOr<Decomposition::Value>(Decomposition& d, const AttrMap& over)>
        steps) {
  return {.name = std::move(name),
          .params = ReduceParams(),
          .decompose = [steps = std::move(steps)](Decomposition& d) {
            return steps(d, d.call().attrs());
          }};
}

OpDef IndexOfExtremum(std::string name, std::string_view extremum) {
  return {.name = std::move(name),
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "keepdims", .kind = ParamSpec::kInt},
                     {.name = "select_last_index", .kind = ParamSpec::kInt}},
          .decompose = [extremum](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            ASSIGN_OR_RETURN(int axis,
                             call.NormaliseAxis(call.attrs().Int("axis", 0), call.shape(0).rank()));
            if (call.shape(0).dim(axis) == Dim(0)) {
              return InvalidArgument("axis ", axis, " of input 0 ", call.in(0).ToString(),
                                     " has no element");
            }
            const Dims axes = {axis};
            ASSIGN_OR_RETURN(auto found, d.Apply(extremum, {d.in(0)}, {{"axes", axes}}));
            ASSIGN_OR_RETURN(auto at,
                             d.Apply("IndexOf", {d.in(0), found},
                                     {{"axis", int64_t{axis}},
                                      {"last", call.attrs().Int("select_last_index", 0)}}));
            if (call.attrs().Int("keepdims", 1) != 0) return at;
            return d.Apply("Squeeze", {at}, {{"axes", axes}});
          }};
}

absl::StatusOr<IndexedLoop> LoopOverIndices(const OpCall& call, int shape_of) {
  const Shape& indices = call.shape(0);
  const Shape& shape = call.shape(shape_of);
  const int rank = shape.rank();
  ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", 0), rank));
  const int64_t depth = call.attrs().Int("depth", 0);
  bool fits = call.dtype(0) == DType::kI64 && depth >= 0 && indices.rank() == rank;
  IndexedLoop loop{.body = {}, .along = rank, .hit = {}};
  std::vector<Dim> extents = shape.dims();
  extents[static_cast<size_t>(axis)] = Dim(depth);
  extents.push_back(shape.dim(axis));
  loop.body.axes = NumberedAxes(extents);
  loop.body.reads.resize(static_cast<size_t>(call.inputs()));
  for (int d = 0; fits && d < rank; ++d) {
    const IndexExpr read = IndexExpr::Axis(d == axis ? loop.along : d);
    const bool any = d != axis && indices.dim(d) == Dim(1);
    fits = any || indices.dim(d) == shape.dim(d);
    loop.body.reads[0].index.push_back(any ? IndexExpr(0) : read);
    if (call.inputs() > 1) loop.body.reads[1].index.push_back(read);
    loop.body.write.push_back(IndexExpr::Axis(d));
  }
  if (!fits) {
    return InvalidArgument("indices are ", call.in(0).ToString(), " for ",
                           call.in(shape_of).ToString(), " and ", depth, " along axis ", axis);
  }
  const Expr wrapped =
      Expr::Select(Expr::Binary(ScalarOp::kLt, call.In(0), Expr::ConstInt(DType::kI64, 0)),
                   call.In(0) + Expr::ConstInt(DType::kI64, depth), call.In(0));
  loop.hit = Expr::Binary(ScalarOp::kEq, wrapped, Expr::Axis(axis));
  return loop;
}

absl::StatusOr<Dims> StaticDims(const OpCall& call, int input) {
  Dims dims;
  for (const Dim& dim : call.shape(input).dims()) {
    if (!dim.is_static()) {
      return Unimplemented("input ", call.NumberOf(input), " ", call.in(input).ToString(),
                           " has the symbolic dim ", dim.ToString());
    }
    dims.push_back(dim.value());
  }
  return dims;
}

DType StatisticsType(DType type) { return type == DType::kF64 ? type : DType::kF32; }

absl::StatusOr<Decomposition::Value> PlusBias(Decomposition& d, Decomposition::Value x, int bias) {
  const TensorType& type = d.type(x);
  if (type.shape.rank() == 0) {
    return InvalidArgument("input ", bias, " goes along the last dim of ", type.ToString(),
                           ", which has none");
  }
  const TensorType wanted = {type.dtype, Shape({type.shape.dim(type.shape.rank() - 1)})};
  if (d.call().in(bias) != wanted) {
    return InvalidArgument("input ", bias, " is ", d.call().in(bias).ToString(), ", expected ",
                           wanted.ToString(), ", along the last dim of ", type.ToString());
  }
  return d.Apply("Add", {x, d.in(bias)});
}

absl::StatusOr<Decomposition::Value> ChannelsFirst(Decomposition& d, Decomposition::Value x) {
  const int64_t rank = d.type(x).shape.rank();
  Dims perm = {0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) perm.push_back(i);
  return d.Apply("Transpose", {x}, {{"perm", perm}});
}

absl::StatusOr<Decomposition::Value> ChannelsLast(Decomposition& d, Decomposition::Value x) {
  const int64_t rank = d.type(x).shape.rank();
  Dims perm = {0};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return d.Apply("Transpose", {x}, {{"perm", perm}});
}

AttrMap AttrsNamed(const OpCall& call, const std::vector<ParamSpec>& params) {
  AttrMap out;
  for (const auto& [name, value] : call.attrs()) {
    const auto named = [&, &name = name](const ParamSpec& p) { return p.name == name; };
    if (std::any_of(params.begin(), params.end(), named)) out.Set(name, value);
  }
  return out;
}

void SetOutputs(Decomposition& d, const std::vector<Decomposition::Value>& values) {
  for (int i = 1; i < d.call().outputs(); ++i) d.SetOutput(i, values[static_cast<size_t>(i - 1)]);
}

absl::Status CheckFloat(const OpCall& call, int input) {
  if (IsFloat(call.dtype(input))) return absl::OkStatus();
  return InvalidArgument("input ", call.NumberOf(input), " is ", DTypeName(call.dtype(input)),
                         ", expected a float type");
}

absl::Status CheckOnlyInt(const OpCall& call, std::string_view name, int64_t allowed) {
  const int64_t given = call.attrs().Int(name, allowed);
  if (given == allowed) return absl::OkStatus();
  return Unimplemented("attribute ", Quote(name), " is ", given, "; supported: ", allowed);
}

absl::Status CheckNoInput(const OpCall& call, int input, std::string_view what) {
  if (!call.has_input(input)) return absl::OkStatus();
  return Unimplemented("input ", call.NumberOf(input), " (", what, ") is not supported");
}

absl::StatusOr<Decomposition::Value> SliceAlong(Decomposition& d, Decomposition::Value x, int axis,
                                                int64_t begin, int64_t end) {
  return d.Apply("Slice", {x},
                 {{"starts", Dims{begin}}, {"ends", Dims{end}}, {"axes", Dims{axis}}});
}

absl::StatusOr<Decomposition::Value> PickAlong(Decomposition& d, Decomposition::Value x, int axis,
                                               int64_t at) {
  ASSIGN_OR_RETURN(auto part, SliceAlong(d, x, axis, at, at + 1));
  return d.Apply("Squeeze", {part}, {{"axes", Dims{axis}}});
}

absl::StatusOr<Decomposition::Value> CountTo(Decomposition& d, int64_t count) {
  auto number = [](int64_t value) {
    auto tensor = std::make_shared<HostTensor>(DType::kI64, Dims{});
    tensor->SetInt(0, value);
    return std::shared_ptr<const HostTensor>(std::move(tensor));
  };
  return d.Apply("Range", {},
                 {{"start", number(0)}, {"limit", number(count)}, {"delta", number(1)}});
}

absl::StatusOr<Decomposition::Value> CastTo(Decomposition& d, Decomposition::Value x, DType type) {
  if (d.type(x).dtype == type) return x;
  return d.Apply("Cast", {x}, {{"to", std::string(DTypeName(type))}});
}

absl::StatusOr<Spread> SpreadOver(Decomposition& d, Decomposition::Value x,
                                  const std::vector<int64_t>& axes) {
  DType type = d.type(x).dtype;
  if (!IsFloat(type)) {
    return InvalidArgument("input 0 is ", DTypeName(type), ", expected a float type");
  }
  AttrMap over = {{"axes", axes}};
  Spread out;
  ASSIGN_OR_RETURN(auto mean, d.Apply("ReduceMean", {x}, over));
  ASSIGN_OR_RETURN(out.centred, d.Apply("Sub", {x, mean}));
  ASSIGN_OR_RETURN(auto square, d.Apply("Mul", {out.centred, out.centred}));
  ASSIGN_OR_RETURN(out.variance, d.Apply("ReduceMean", {square}, over));
  return out;
}

absl::StatusOr<Decomposition::Value> Standardise(Decomposition& d, Decomposition::Value x,
                                                 const std::vector<int64_t>& axes, double epsilon) {
  ASSIGN_OR_RETURN(Spread spread, SpreadOver(d, x, axes));
  ASSIGN_OR_RETURN(auto safe,
                   d.Apply("Add", {spread.variance, d.Scalar(d.type(x).dtype, epsilon)}));
  ASSIGN_OR_RETURN(auto deviation, d.Apply("Sqrt", {safe}));
  return d.Apply("Div", {spread.centred, deviation});
}

absl::StatusOr<SoftmaxSteps> ExponentialsOf(Decomposition& d) {
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, SoftmaxAxes(d.call()));
  AttrMap over = {{"axes", axes}};
  SoftmaxSteps out;
  ASSIGN_OR_RETURN(auto max, d.Apply("ReduceMax", {d.in(0)}, over));
  ASSIGN_OR_RETURN(out.shifted, d.Apply("Sub", {d.in(0), max}));
  ASSIGN_OR_RETURN(out.exponentials, d.Apply("Exp", {out.shifted}));
  ASSIGN_OR_RETURN(out.sum, d.Apply("ReduceSum", {out.exponentials}, over));
  return out;
}

absl::StatusOr<std::vector<int64_t>> SoftmaxAxes(const OpCall& call) {
  int rank = call.shape(0).rank();
  ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -1), rank));
  std::vector<int64_t> axes = {axis};
  if (call.attrs().Int("flatten", 0) != 0) {
    for (int i = axis + 1; i < rank; ++i) axes.push_back(i);
  }
  return axes;
}

std::vector<ParamSpec> SoftmaxParams() {
  return {{.name = "axis", .kind = ParamSpec::kInt}, {.name = "flatten", .kind = ParamSpec::kInt}};
}

absl::Status NormaliseSoftmax(OnnxCall& call) {
  if (call.attrs.Has("flatten")) return InvalidArgument("unknown attribute \"flatten\"");
  if (call.opset < 13) {
    if (!call.attrs.Has("axis")) call.attrs.Set("axis", int64_t{1});
    call.attrs.Set("flatten", int64_t{1});
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> BlockSize(const OpCall& call) {
  if (call.shape(0).rank() != 4 || !call.shape(0).is_static()) {
    return InvalidArgument("input 0 ", call.in(0).ToString(), ", expected four static dims");
  }
  int64_t size = call.attrs().Int("blocksize", 0);
  if (size < 1 || size > kMaxBlockSize) {
    return InvalidArgument("attribute \"blocksize\" is ", size, ", expected 1..", kMaxBlockSize);
  }
  return size;
}

absl::StatusOr<Decomposition::Value> RegroupBlocks(Decomposition& d, const Dims& split,
                                                   const Dims& perm, const Dims& shape) {
  // allowzero: an extent of 0 means 0, not "copy the extent of the input".
  auto as = [](const Dims& dims) { return AttrMap{{"shape", dims}, {"allowzero", int64_t{1}}}; };
  ASSIGN_OR_RETURN(auto blocks, d.Apply("Reshape", {d.in(0)}, as(split)));
  ASSIGN_OR_RETURN(auto turned, d.Apply("Transpose", {blocks}, {{"perm", perm}}));
  return d.Apply("Reshape", {turned}, as(shape));
}

LoopBody ViewBody(const OpCall& call, const std::vector<Dim>& extents, IndexMap index) {
  LoopBody body;
  body.axes = NumberedAxes(extents);
  body.reads = {Read{.index = std::move(index), .guards = {}}};
  for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
    body.write.push_back(IndexExpr::Axis(d));
  }
  body.value = call.In(0);
  return body;
}

absl::StatusOr<Decomposition::Value> PerChannel(Decomposition& d, Decomposition::Value values,
                                                int rank) {
  std::vector<int64_t> axes;
  for (int64_t i = 1; i + 1 < rank; ++i) axes.push_back(i);
  if (axes.empty()) return values;
  return d.Apply("Unsqueeze", {values}, {{"axes", axes}});
}

absl::StatusOr<LoopBody> ReshapeBody(const OpCall& call, const Shape& shape) {
  const Shape& from = call.shape(0);
  // Symbolic extents are only passed through where both shapes name the same dim at the same place
  // from the front.
  LoopBody body;
  Read read;
  int lead = 0;
  while (lead < from.rank() && lead < shape.rank() && from.dim(lead) == shape.dim(lead)) {
    body.axes.push_back({StrCat("d", lead), from.dim(lead)});
    read.index.push_back(IndexExpr::Axis(lead));
    body.write.push_back(IndexExpr::Axis(lead));
    ++lead;
  }
  auto rest = [lead](const Shape& s) -> absl::StatusOr<Dims> {
    Dims out;
    for (int d = lead; d < s.rank(); ++d) {
      if (!s.dim(d).is_static()) {
        return Unimplemented("reshape splits or merges a symbolic dim in ", s.ToString());
      }
      out.push_back(s.dim(d).value());
    }
    return out;
  };
  ASSIGN_OR_RETURN(Dims in_dims, rest(from));
  ASSIGN_OR_RETURN(Dims out_dims, rest(shape));
  // Behind common empty dims the others may be any.
  if (NumElements(in_dims) == 0 || NumElements(out_dims) == 0) {
    return Unimplemented("reshape of an empty tensor");
  }

  // Walk both shapes from the minor end, cutting the longer remaining factor by the shorter one.
  // Atoms are collected minor first as (extent, input dim, output dim).
  struct Atom {
    int64_t extent;
    size_t in_dim;
    size_t out_dim;
  };
  std::vector<Atom> atoms;
  size_t i = in_dims.size();
  size_t j = out_dims.size();
  int64_t left_in = 1;
  int64_t left_out = 1;
  for (;;) {
    while (left_in == 1 && i > 0) left_in = in_dims[--i];
    while (left_out == 1 && j > 0) left_out = out_dims[--j];
    if (left_in == 1 && left_out == 1) break;
    int64_t cut = std::min(left_in, left_out);
    if (cut == 1 || left_in % cut != 0 || left_out % cut != 0) {
      return Unimplemented("reshape ", from.ToString(), " to ", shape.ToString(),
                           " has no common refinement");
    }
    atoms.push_back({cut, i, j});
    left_in /= cut;
    left_out /= cut;
  }
  std::reverse(atoms.begin(), atoms.end());
  std::vector<IndexExpr> in_index(in_dims.size());
  std::vector<IndexExpr> out_index(out_dims.size());
  for (const Atom& atom : atoms) {
    int axis = static_cast<int>(body.axes.size());
    body.axes.push_back({StrCat("d", axis), Dim(atom.extent)});
    in_index[atom.in_dim] = in_index[atom.in_dim] * atom.extent + IndexExpr::Axis(axis);
    out_index[atom.out_dim] = out_index[atom.out_dim] * atom.extent + IndexExpr::Axis(axis);
  }
  read.index.insert(read.index.end(), in_index.begin(), in_index.end());
  body.write.insert(body.write.end(), out_index.begin(), out_index.end());
  body.reads = {std::move(read)};
  body.value = call.In(0);
  return body;
}

}  // namespace fusion
