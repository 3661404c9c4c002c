#include "core/op/forms/attention.h"

namespace fusion {

namespace {

// Part `which` of x [batch, rows, heads, parts, n] as [batch, heads, rows, n].
absl::StatusOr<Decomposition::Value> PackedPart(Decomposition& d, Decomposition::Value x,
                                                int64_t which) {
  ASSIGN_OR_RETURN(auto part, PickAlong(d, x, 3, which));
  return d.Apply("Transpose", {part}, {{"perm", Dims{0, 2, 1, 3}}});
}

// Queries, keys and values, [batch, heads, rows or keys, n], without a past.
struct HeadsOfAll {
  Decomposition::Value part[3] = {};
  bool cached = false;  // keys and values are as a past holds them
};

absl::StatusOr<HeadsOfAll> HeadsOfInputs(Decomposition& d, int64_t heads) {
  const OpCall& call = d.call();
  HeadsOfAll out;
  const int ranks[3] = {call.shape(0).rank(), call.has_input(1) ? call.shape(1).rank() : 0,
                        call.has_input(2) ? call.shape(2).rank() : 0};
  const bool whole = ranks[0] == 5 && ranks[1] == 0 && ranks[2] == 0;
  const bool pairs = ranks[0] == 3 && ranks[1] == 5 && ranks[2] == 0;
  const bool apart = ranks[0] == 3 && ranks[1] == 3 && ranks[2] == 3;
  out.cached = ranks[0] == 3 && ranks[1] == 4 && ranks[2] == 4;
  if (!whole && !pairs && !apart && !out.cached) {
    return InvalidArgument("inputs 0 to 2 (query, key, value) have the ranks ", ranks[0], ", ",
                           ranks[1], " and ", ranks[2],
                           " (0: absent), expected 3, 3 and 3; 3, 4 and 4; 3, 5 and 0; or 5, 0 and "
                           "0");
  }
  if ((whole || pairs) && call.has_input(3)) {
    return Unimplemented("input 3 (bias) is not supported where input ", whole ? 0 : 1,
                         " is packed");
  }
  Decomposition::Value parts[3] = {d.in(0), d.in(1), d.in(2)};
  if (out.cached && (call.shape(1).dim(1) != Dim(heads) || call.shape(2).dim(1) != Dim(heads))) {
    return InvalidArgument("inputs 1 and 2 (key, value) are ", call.in(1).ToString(), " and ",
                           call.in(2).ToString(), ", expected ", heads, " heads as dim 1");
  }
  if (call.has_input(3)) {
    int64_t widths[3] = {call.shape(0).dim(2).value(), call.shape(0).dim(2).value(), 0};
    widths[2] = out.cached ? heads * call.shape(2).dim(3).value() : call.shape(2).dim(2).value();
    const int64_t all = widths[0] + widths[1] + widths[2];
    if (call.in(3) != TensorType{call.dtype(0), Shape({all})}) {
      return InvalidArgument("input 3 (bias) is ", call.in(3).ToString(), ", expected ",
                             DTypeName(call.dtype(0)), "[", all, "], that of queries, keys and ",
                             "values");
    }
    // What is cached has its bias.
    for (int64_t i = 0, begin = 0; i < (out.cached ? 1 : 3); begin += widths[i++]) {
      ASSIGN_OR_RETURN(auto bias, SliceAlong(d, d.in(3), 0, begin, begin + widths[i]));
      ASSIGN_OR_RETURN(parts[i], d.Apply("Add", {parts[i], bias}));
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (whole || (pairs && i > 0)) {
      const int from = whole ? 0 : 1;
      const Shape& packed = call.shape(from);
      if (packed.dim(2) != Dim(heads) || packed.dim(3) != Dim(whole ? 3 : 2)) {
        return InvalidArgument("input ", from, " is ", call.in(from).ToString(),
                               ", expected [batch, rows, ", heads, ", ", whole ? 3 : 2, ", n]");
      }
      ASSIGN_OR_RETURN(out.part[i], PackedPart(d, d.in(from), whole ? i : i - 1));
    } else if (i > 0 && out.cached) {
      out.part[i] = parts[i];
    } else {
      ASSIGN_OR_RETURN(out.part[i], IntoHeads(d, parts[i], heads));
    }
  }
  return out;
}

}  // namespace

/// y = softmax(q k^T * scale + mask + attention_bias) v over `num_heads` heads. Inputs are query,
/// key and value [batch, rows or keys, heads * n] (packed: [.., heads, 2 or 3, n]; key and value as
/// a past has them: [batch, heads, keys, n]), their bias, key_padding_mask
/// (core/op/forms/attention.h), attention_bias, and keys and values of the past, which come first;
/// all behind query may be absent. Outputs 1 and 2, if named: keys and values of the next call's
/// past. With `unidirectional` no row sees a later one.
OpDef DefineMicrosoftMultiHeadAttention() {
  return {
      .name = "com.microsoft.MultiHeadAttention",
      .max_inputs = 10,
      .params = {{.name = "num_heads", .kind = ParamSpec::kInt, .required = true},
                 {.name = "mask_filter_value", .kind = ParamSpec::kFloat},
                 {.name = "scale", .kind = ParamSpec::kFloat},
                 {.name = "unidirectional", .kind = ParamSpec::kInt}},
      .max_outputs = 3,
      .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
        const OpCall& call = d.call();
        RETURN_IF_ERROR(CheckNoInput(call, 8, "past_sequence_length, of a shared buffer"));
        RETURN_IF_ERROR(CheckNoInput(call, 9, "cache_indirection, of a beam search"));
        RETURN_IF_ERROR(CheckFloat(call, 0));
        for (int i = 0; i < call.inputs(); ++i) {
          if (call.has_input(i)) RETURN_IF_ERROR(StaticDims(call, i).status());
        }
        const int64_t heads = call.attrs().Int("num_heads", 0);
        ASSIGN_OR_RETURN(HeadsOfAll all, HeadsOfInputs(d, heads));
        const DType type = call.dtype(0);
        int64_t past = 0;
        if (call.has_input(6) != call.has_input(7)) {
          return InvalidArgument(
              "of inputs 6 and 7 (past_key and past_value) one is absent, "
              "expected both or none");
        }
        for (int i = 1; i < 3 && call.has_input(6); ++i) {
          if (all.cached) {
            return InvalidArgument("input 6 (past_key) beside keys that are a past already, ",
                                   call.in(1).ToString());
          }
          ASSIGN_OR_RETURN(all.part[i],
                           d.Apply("Concat", {d.in(5 + i), all.part[i]}, {{"axis", int64_t{2}}}));
          past = call.shape(5 + i).dim(2).value();
        }
        SetOutputs(d, {all.part[1], all.part[2]});
        const Dims q = d.type(all.part[0]).shape.ToDims();
        const int64_t keys = d.type(all.part[1]).shape.dim(2).value();
        AttentionForm form = {.q = all.part[0],
                              .k = all.part[1],
                              .v = all.part[2],
                              .scale = call.attrs().Float("scale", 0)};
        const Dims scores = {q[0], heads, q[2], keys};
        HiddenKeys hidden = {.mask = 4};
        if (call.attrs().Int("unidirectional", 0) != 0) {
          if (keys != past + q[2]) {
            return Unimplemented("attribute \"unidirectional\" with ", keys, " keys for ", q[2],
                                 " rows behind a past of ", past,
                                 "; supported: a key for each row");
          }
          hidden.window = {.first = d.Scalar(DType::kI64, static_cast<double>(past)), .behind = 0};
        }
        ASSIGN_OR_RETURN(form.addends, AddendsOf(d, hidden, scores, type));
        if (call.has_input(5)) {
          RETURN_IF_ERROR(CheckAttentionBias(call, 5, type, scores));
          form.addends.push_back(d.in(5));
        }
        ASSIGN_OR_RETURN(auto y, Attend(d, form));
        return OutOfHeads(d, y);
      }};
}

}  // namespace fusion
