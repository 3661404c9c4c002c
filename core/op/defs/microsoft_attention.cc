#include <cmath>

#include "core/op/forms.h"

namespace fusion {

namespace {

using AttentionValue = Decomposition::Value;

struct AttentionDims {
  int64_t batch = 0;
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t head = 0;
};

absl::StatusOr<AttentionDims> AttentionDimsOf(const OpCall& call) {
  for (int i = 4; i < call.inputs(); ++i) {
    if (call.has_input(i)) {
      return Unimplemented("input ", i, " (past, bias or length of the past) is not supported");
    }
  }
  RETURN_IF_ERROR(CheckFloat(call, 0));
  ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
  ASSIGN_OR_RETURN(Dims w, StaticDims(call, 1));
  const int64_t heads = call.attrs().Int("num_heads", 0);
  if (x.size() != 3 || w.size() != 2 || w[0] != x[2] || heads < 1 || w[1] % 3 != 0 ||
      w[1] / 3 % heads != 0 || w[1] == 0) {
    return InvalidArgument("inputs 0 and 1 are ", call.in(0).ToString(), " and ",
                           call.in(1).ToString(),
                           ", expected [batch, rows, n] and [n, 3 * m], m a "
                           "multiple of attribute \"num_heads\" (",
                           heads, ")");
  }
  if (call.in(2) != TensorType{call.dtype(0), Shape({w[1]})} || call.dtype(1) != call.dtype(0)) {
    return InvalidArgument("inputs 1 and 2 are ", call.in(1).ToString(), " and ",
                           call.in(2).ToString(), ", expected the type of input 0, and ", w[1],
                           " entries of input 2");
  }
  return AttentionDims{.batch = x[0], .rows = x[1], .heads = heads, .head = w[1] / 3 / heads};
}

// Part `which` of the projection [batch, rows, 3 * heads * head] as [batch, heads, rows, head].
absl::StatusOr<AttentionValue> HeadsOf(Decomposition& d, AttentionValue all, int64_t which,
                                       const AttentionDims& dims) {
  const int64_t width = dims.heads * dims.head;
  ASSIGN_OR_RETURN(auto part, SliceAlong(d, all, 2, which * width, (which + 1) * width));
  ASSIGN_OR_RETURN(part, d.Apply("Reshape", {part},
                                 {{"shape", Dims{dims.batch, dims.rows, dims.heads, dims.head}},
                                  {"allowzero", int64_t{1}}}));
  return d.Apply("Transpose", {part}, {{"perm", Dims{0, 2, 1, 3}}});
}

// scores [batch, heads, rows, keys] + what hides keys: `fill` where `seen` does not hold.
absl::StatusOr<AttentionValue> Hidden(Decomposition& d, AttentionValue scores, AttentionValue seen,
                                      double fill) {
  const DType type = d.type(scores).dtype;
  ASSIGN_OR_RETURN(auto bias, d.Apply("Where", {seen, d.Scalar(type, 0), d.Scalar(type, fill)}));
  return d.Apply("Add", {scores, bias});
}

// Which keys the mask lets each batch see, [batch, 1, 1, keys]: those before its length, or those
// with a mask above 0.
absl::StatusOr<AttentionValue> SeenKeys(Decomposition& d, const AttentionDims& dims) {
  const OpCall& call = d.call();
  const bool lengths = call.shape(3) == Shape({dims.batch});
  if (call.dtype(3) != DType::kI32 ||
      (!lengths && call.shape(3) != Shape({dims.batch, dims.rows}))) {
    return Unimplemented("input 3 (mask_index) is ", call.in(3).ToString(), "; supported: i32[",
                         dims.batch, "] and i32[", dims.batch, ",", dims.rows, "]");
  }
  ASSIGN_OR_RETURN(auto mask, CastTo(d, d.in(3), DType::kI64));
  AttentionValue seen = 0;
  if (lengths) {
    ASSIGN_OR_RETURN(auto key, CountTo(d, dims.rows));
    ASSIGN_OR_RETURN(mask, d.Apply("Unsqueeze", {mask}, {{"axes", Dims{1}}}));
    ASSIGN_OR_RETURN(seen, d.Apply("Less", {key, mask}));
  } else {
    ASSIGN_OR_RETURN(seen, d.Apply("Greater", {mask, d.Scalar(DType::kI64, 0)}));
  }
  return d.Apply("Unsqueeze", {seen}, {{"axes", Dims{1, 2}}});
}

// Rows see the keys up to their own.
absl::StatusOr<AttentionValue> SeenBefore(Decomposition& d, const AttentionDims& dims) {
  ASSIGN_OR_RETURN(auto key, CountTo(d, dims.rows));
  ASSIGN_OR_RETURN(auto row, d.Apply("Unsqueeze", {key}, {{"axes", Dims{1}}}));
  return d.Apply("LessOrEqual", {key, row});
}

absl::StatusOr<AttentionValue> Context(Decomposition& d, const AttentionDims& dims) {
  const OpCall& call = d.call();
  ASSIGN_OR_RETURN(auto all, d.Apply("MatMul", {d.in(0), d.in(1)}));
  ASSIGN_OR_RETURN(all, d.Apply("Add", {all, d.in(2)}));
  ASSIGN_OR_RETURN(auto q, HeadsOf(d, all, 0, dims));
  ASSIGN_OR_RETURN(auto k, HeadsOf(d, all, 1, dims));
  ASSIGN_OR_RETURN(auto v, HeadsOf(d, all, 2, dims));
  ASSIGN_OR_RETURN(k, d.Apply("Transpose", {k}, {{"perm", Dims{0, 1, 3, 2}}}));
  ASSIGN_OR_RETURN(auto scores, d.Apply("MatMul", {q, k}));
  double scale = call.attrs().Float("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(dims.head));
  ASSIGN_OR_RETURN(scores, d.Apply("Mul", {scores, d.Scalar(call.dtype(0), scale)}));
  const double fill = call.attrs().Float("mask_filter_value", -10000);
  if (call.has_input(3)) {
    ASSIGN_OR_RETURN(auto seen, SeenKeys(d, dims));
    ASSIGN_OR_RETURN(scores, Hidden(d, scores, seen, fill));
  }
  if (call.attrs().Int("unidirectional", 0) != 0) {
    ASSIGN_OR_RETURN(auto seen, SeenBefore(d, dims));
    ASSIGN_OR_RETURN(scores, Hidden(d, scores, seen, fill));
  }
  ASSIGN_OR_RETURN(auto shares, d.Apply("Softmax", {scores}, {{"axis", int64_t{-1}}}));
  return d.Apply("MatMul", {shares, v});
}

}  // namespace

/// y = softmax(q k^T * scale + mask) v over `num_heads` heads, [q, k, v] = x w + b: ONNX Runtime's
/// op for fused self-attention, without a past. Masks: lengths [batch] or [batch, keys]; with
/// `unidirectional` no row sees a later one.
OpDef DefineMicrosoftAttention() {
  return {
      .name = "com.microsoft.Attention",
      .min_inputs = 3,
      .max_inputs = 7,
      .params = {{.name = "num_heads", .kind = ParamSpec::kInt, .required = true},
                 {.name = "unidirectional", .kind = ParamSpec::kInt},
                 {.name = "mask_filter_value", .kind = ParamSpec::kFloat},
                 {.name = "scale", .kind = ParamSpec::kFloat}},
      .decompose = [](Decomposition& d) -> absl::StatusOr<AttentionValue> {
        ASSIGN_OR_RETURN(AttentionDims dims, AttentionDimsOf(d.call()));
        ASSIGN_OR_RETURN(auto context, Context(d, dims));
        ASSIGN_OR_RETURN(context, d.Apply("Transpose", {context}, {{"perm", Dims{0, 2, 1, 3}}}));
        return d.Apply("Reshape", {context},
                       {{"shape", Dims{dims.batch, dims.rows, dims.heads * dims.head}},
                        {"allowzero", int64_t{1}}});
      }};
}

}  // namespace fusion
