#include "core/op/forms.h"
#include "core/op/forms/attention.h"

namespace fusion {

namespace {

using RotaryValue = Decomposition::Value;

struct RotaryDims {
  int64_t rotated = 0;  // elements of a head that are turned: the first ones
  int64_t head = 0;
  bool flat = false;  // x is [batch, rows, heads * head], not [batch, heads, rows, head]
};

absl::StatusOr<RotaryDims> RotaryDimsOf(const OpCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  for (int i = 1; i < 3; ++i) RETURN_IF_ERROR(call.CheckSameType(0, i));
  const Shape& x = call.shape(0);
  const int64_t heads = call.attrs().Int("num_heads", 0);
  RotaryDims dims{.flat = x.rank() == 3};
  if ((x.rank() != 3 && x.rank() != 4) || !x.dim(x.rank() - 1).is_static()) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(),
                           ", expected [batch, heads, rows, head] or [batch, rows, heads * head]");
  }
  dims.head = x.dim(x.rank() - 1).value();
  if (dims.flat) {
    if (heads < 1 || dims.head % heads != 0) {
      return InvalidArgument("attribute \"num_heads\" is ", heads, ", expected a divisor of the ",
                             dims.head, " elements of a row of input 0 ", call.in(0).ToString());
    }
    dims.head /= heads;
  }
  dims.rotated = call.attrs().Int("rotary_embedding_dim", 0);
  if (dims.rotated == 0) dims.rotated = dims.head;
  if (dims.rotated < 2 || dims.rotated % 2 != 0 || dims.rotated > dims.head) {
    return InvalidArgument("attribute \"rotary_embedding_dim\" is ", dims.rotated,
                           ", expected an even number up to the ", dims.head,
                           " elements of a head");
  }
  return dims;
}

// Tables of positions, or the angles of each row.
absl::Status CheckAngles(const OpCall& call, const RotaryDims& dims) {
  const bool by_position = call.has_input(3);
  const Shape& x = call.shape(0);
  const Dim rows = x.dim(dims.flat ? 1 : 2);
  if (by_position && call.shape(3) != Shape({x.dim(0), rows})) {
    return InvalidArgument("input 3 (position_ids) is ", call.in(3).ToString(), ", expected [",
                           x.dim(0).ToString(), ",", rows.ToString(), "] for input 0 ",
                           call.in(0).ToString());
  }
  if (by_position) return CheckRotaryTables(call, 1, dims.rotated, dims.head);
  const TensorType wanted = {call.dtype(0), Shape({x.dim(0), rows, Dim(dims.rotated / 2)})};
  for (int i = 1; i < 3; ++i) {
    if (call.in(i) == wanted) continue;
    return InvalidArgument("input ", i, i == 1 ? " (cos_cache) is " : " (sin_cache) is ",
                           call.in(i).ToString(), ", expected ", wanted.ToString(),
                           ": position_ids are absent");
  }
  return absl::OkStatus();
}

// Input `input`, cosines or sines, as [batch, 1, rows, n] or, of a flat x, [batch, rows, 1, n]: n
// numbers for each row, those of its position if positions are given.
absl::StatusOr<RotaryValue> AnglesOf(Decomposition& d, int input, const RotaryDims& dims) {
  RotaryValue angles = d.in(input);
  if (d.call().has_input(3)) {
    ASSIGN_OR_RETURN(angles, d.Apply("Gather", {angles, d.in(3)}, {{"axis", int64_t{0}}}));
  }
  return d.Apply("Unsqueeze", {angles}, {{"axes", Dims{dims.flat ? 2 : 1}}});
}

}  // namespace

/// y = x with the first `rotary_embedding_dim` elements of each head turned in pairs: (a cos - b
/// sin, a sin + b cos), where a and b are the halves of these or, if `interleaved`, neighbours;
/// cosines and sines are those of a row's position, or of the row
OpDef DefineRotaryEmbedding() {
  return {
      .name = "RotaryEmbedding",
      .min_inputs = 3,
      .max_inputs = 4,
      .params = {{.name = "interleaved", .kind = ParamSpec::kInt},
                 {.name = "num_heads", .kind = ParamSpec::kInt},
                 {.name = "rotary_embedding_dim", .kind = ParamSpec::kInt}},
      .min_opset = 23,
      .decompose = [](Decomposition& d) -> absl::StatusOr<RotaryValue> {
        const OpCall& call = d.call();
        ASSIGN_OR_RETURN(RotaryDims dims, RotaryDimsOf(call));
        RETURN_IF_ERROR(CheckAngles(call, dims));
        ASSIGN_OR_RETURN(auto cos, AnglesOf(d, 1, dims));
        ASSIGN_OR_RETURN(auto sin, AnglesOf(d, 2, dims));
        RotaryValue x = d.in(0);
        if (dims.flat) {
          const int64_t heads = call.attrs().Int("num_heads", 0);
          ASSIGN_OR_RETURN(x, d.Apply("Reshape", {x}, {{"shape", Dims{0, 0, heads, dims.head}}}));
        }
        const bool in_turn = call.attrs().Int("interleaved", 0) != 0;
        ASSIGN_OR_RETURN(auto y, Rotated(d, x, cos, sin, in_turn));
        if (!dims.flat) return y;
        return d.Apply("Reshape", {y}, {{"shape", Dims{0, 0, -1}}});
      }};
}

}  // namespace fusion
