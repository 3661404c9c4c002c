#include <algorithm>
#include <utility>

#include "core/op/forms/attention.h"

namespace fusion {

namespace {

using GroupedValue = Decomposition::Value;

// The inputs behind total_sequence_length, which is an attribute for us.
enum GroupedInput {
  kCachedKey = 3,
  kCachedValue,
  kSeqlens,
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQuerySeqlens,
  kGroupedInputs
};

struct GroupedSizes {
  int64_t batch = 0;
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head = 0;
  int64_t total = 0;     // keys of the longest batch entry; at most, where a run decides
  int64_t capacity = 0;  // rows of the past
  bool prompt = false;   // nothing is past
  bool counted = false;  // only a run knows what is past: seqlens_k says so

  // Every entry of the batch has as many past rows, known here.
  bool one_past() const { return !counted && (prompt || batch == 1); }
};

absl::Status CheckGroupedSupported(const OpCall& call) {
  for (const char* name : {"kv_cache_bit_width", "sliding_window_cache", "qk_output"}) {
    RETURN_IF_ERROR(CheckOnlyInt(call, name, 0));
  }
  RETURN_IF_ERROR(CheckOnlyInt(call, "causal", 1));
  const int64_t window = call.attrs().Int("local_window_size", -1);
  if (window == 0 || window < -1 || window > kMaxExtent) {
    return InvalidArgument("attribute \"local_window_size\" is ", window,
                           ", expected -1 or at least 1");
  }
  if (call.attrs().Int("smooth_softmax", -1) > 0) {
    return Unimplemented("attribute \"smooth_softmax\" is 1; supported: -1 and 0");
  }
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    const auto* type = call.attrs().Find<std::string>(name);
    if (type != nullptr && !type->empty() && *type != "NONE") {
      return Unimplemented("attribute ", Quote(name), " is ", QuoteShort(*type),
                           "; supported: NONE");
    }
  }
  const std::pair<int, std::string_view> missing[] = {{kSink, "head_sink"},
                                                      {kKeyScale, "k_scale"},
                                                      {kValueScale, "v_scale"},
                                                      {kQuerySeqlens, "query_seqlens"}};
  for (const auto& [input, name] : missing) {
    RETURN_IF_ERROR(CheckNoInput(call, input, name));
  }
  return absl::OkStatus();
}

absl::StatusOr<GroupedSizes> GroupedSizesOf(const OpCall& call) {
  RETURN_IF_ERROR(CheckGroupedSupported(call));
  RETURN_IF_ERROR(CheckFloat(call, 0));
  for (int i = 0; i < call.inputs(); ++i) {
    if (call.has_input(i)) RETURN_IF_ERROR(StaticDims(call, i).status());
  }
  if (call.shape(0).rank() != 3) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(), ", expected [batch, rows, n]");
  }
  const Dims q = call.shape(0).ToDims();
  GroupedSizes out = {.batch = q[0],
                      .rows = q[1],
                      .heads = call.attrs().Int("num_heads", 0),
                      .kv_heads = call.attrs().Int("kv_num_heads", 0),
                      .total = call.attrs().Int("total_sequence_length", 0),
                      .counted = !call.attrs().Has("total_sequence_length")};
  const bool packed = !call.has_input(1);
  const bool counted = out.heads <= kMaxExtent && out.kv_heads <= kMaxExtent;
  const int64_t parts = !counted ? 1 : packed ? out.heads + 2 * out.kv_heads : out.heads;
  if (out.heads < 1 || out.kv_heads < 1 || !counted || out.heads % out.kv_heads != 0 ||
      q[2] % parts != 0) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(), " with ", out.heads, " and ",
                           out.kv_heads,
                           " heads of queries and keys, expected a multiple of these numbers as "
                           "last dim, and the first to be a multiple of the second");
  }
  out.head = q[2] / parts;
  const TensorType keys = {call.dtype(0), Shape({q[0], q[1], out.kv_heads * out.head})};
  for (int i = 1; i < 3; ++i) {
    if (call.has_input(i) == packed || (!packed && call.in(i) != keys)) {
      return InvalidArgument("input ", i, " is ",
                             call.has_input(i) ? call.in(i).ToString() : "absent", ", expected ",
                             packed ? "none: input 1 is absent" : keys.ToString());
    }
  }
  out.prompt = !out.counted && out.rows == out.total;
  if (!call.has_input(kSeqlens) || call.in(kSeqlens).dtype != DType::kI32 ||
      call.shape(kSeqlens) != Shape({q[0]})) {
    return InvalidArgument("input 5 (seqlens_k) is ",
                           call.has_input(kSeqlens) ? call.in(kSeqlens).ToString() : "absent",
                           ", expected i32[", q[0], "]");
  }
  if (call.has_input(kCachedKey)) {
    const TensorType& past = call.in(kCachedKey);
    if (past.dtype != call.dtype(0) || past.shape.rank() != 4 ||
        past.shape != Shape({q[0], out.kv_heads, past.shape.dim(2), out.head}) ||
        !call.has_input(kCachedValue) || call.in(kCachedValue) != past) {
      return InvalidArgument("input 3 (past_key) is ", past.ToString(), ", expected ",
                             DTypeName(call.dtype(0)), "[", q[0], ",", out.kv_heads, ",past,",
                             out.head, "], and input 4 to be like it");
    }
    out.capacity = past.shape.dim(2).value();
  }
  if (out.counted) {
    // As many rows as there can be: those of the past, and the new ones behind what is past.
    out.total = out.capacity + out.rows;
    return out;
  }
  if (out.total < out.rows || (!out.prompt && out.capacity < out.total - out.rows)) {
    return InvalidArgument("input 6 (total_sequence_length) is ", out.total, " for ", out.rows,
                           " new rows and room for ", out.capacity, " of the past");
  }
  return out;
}

// How many rows are past, as it broadcasts to [batch, 1, rows, keys].
absl::StatusOr<GroupedValue> PastRows(Decomposition& d, const GroupedSizes& sizes) {
  if (sizes.one_past()) {
    return d.Scalar(DType::kI64, static_cast<double>(sizes.total - sizes.rows));
  }
  ASSIGN_OR_RETURN(auto last, CastTo(d, d.in(kSeqlens), DType::kI64));
  const auto shift = d.Scalar(DType::kI64, static_cast<double>(1 - sizes.rows));
  ASSIGN_OR_RETURN(last, d.Apply("Add", {last, shift}));
  if (sizes.counted) {  // a prompt with padding
    ASSIGN_OR_RETURN(last, d.Apply("Max", {last, d.Scalar(DType::kI64, 0)}));
  }
  return d.Apply("Unsqueeze", {last}, {{"axes", Dims{1, 2, 3}}});
}

// The first row of each batch entry that is padding, behind what it has of a prompt, as it
// broadcasts to the scores. A batch of one has none: total_sequence_length is seqlens_k + 1.
absl::StatusOr<GroupedValue> PromptEnd(Decomposition& d) {
  ASSIGN_OR_RETURN(auto end, CastTo(d, d.in(kSeqlens), DType::kI64));
  ASSIGN_OR_RETURN(end, d.Apply("Add", {end, d.Scalar(DType::kI64, 1)}));
  return d.Apply("Unsqueeze", {end}, {{"axes", Dims{1, 2, 3}}});
}

// y [batch, heads, rows, n] with zeros in the rows that see no key: padding whose window begins
// behind the prompt.
absl::StatusOr<GroupedValue> WithoutUnseeing(Decomposition& d, const KeyWindow& window,
                                             GroupedValue y) {
  ASSIGN_OR_RETURN(auto row, CountTo(d, d.type(y).shape.dim(2).value()));
  ASSIGN_OR_RETURN(row, d.Apply("Unsqueeze", {row}, {{"axes", Dims{1}}}));
  const auto before = d.Scalar(DType::kI64, static_cast<double>(window.before));
  ASSIGN_OR_RETURN(auto first, d.Apply("Sub", {row, before}));
  ASSIGN_OR_RETURN(auto seeing, d.Apply("Less", {first, window.end}));
  return d.Apply("Where", {seeing, y, d.Scalar(d.type(y).dtype, 0)});
}

// Keys or values of the past with the new rows behind what is past of them, and then what else is
// in the past: max(capacity, total) rows.
absl::StatusOr<GroupedValue> PresentOf(Decomposition& d, const GroupedSizes& sizes, int past,
                                       GroupedValue rows, GroupedValue past_rows) {
  if (!d.call().has_input(past)) return rows;
  const int64_t before = sizes.total - sizes.rows;
  if (sizes.one_past()) {
    std::vector<GroupedValue> pieces;
    if (before > 0) {
      ASSIGN_OR_RETURN(auto piece, SliceAlong(d, d.in(past), 2, 0, before));
      pieces.push_back(piece);
    }
    pieces.push_back(rows);
    if (sizes.capacity > sizes.total) {
      ASSIGN_OR_RETURN(auto piece, SliceAlong(d, d.in(past), 2, sizes.total, sizes.capacity));
      pieces.push_back(piece);
    }
    if (pieces.size() == 1) return rows;
    return d.Apply("Concat", std::move(pieces), {{"axis", int64_t{2}}});
  }
  // Entries of the batch have pasts of their own: row j of one comes from the new rows where past
  // <= j < past + rows.
  ASSIGN_OR_RETURN(auto all, d.Apply("Concat", {d.in(past), rows}, {{"axis", int64_t{2}}}));
  ASSIGN_OR_RETURN(all, d.Apply("Transpose", {all}, {{"perm", Dims{0, 2, 1, 3}}}));
  ASSIGN_OR_RETURN(auto at, CountTo(d, std::max(sizes.capacity, sizes.total)));
  ASSIGN_OR_RETURN(auto begin, d.Apply("Squeeze", {past_rows}, {{"axes", Dims{2, 3}}}));
  ASSIGN_OR_RETURN(auto since, d.Apply("Sub", {at, begin}));
  ASSIGN_OR_RETURN(auto begun, d.Apply("GreaterOrEqual", {since, d.Scalar(DType::kI64, 0)}));
  const auto count = d.Scalar(DType::kI64, static_cast<double>(sizes.rows));
  ASSIGN_OR_RETURN(auto open, d.Apply("Less", {since, count}));
  ASSIGN_OR_RETURN(auto fresh, d.Apply("And", {begun, open}));
  const auto capacity = d.Scalar(DType::kI64, static_cast<double>(sizes.capacity));
  ASSIGN_OR_RETURN(since, d.Apply("Add", {since, capacity}));
  const auto last = d.Scalar(DType::kI64, static_cast<double>(sizes.capacity - 1));
  ASSIGN_OR_RETURN(at, d.Apply("Min", {at, last}));
  ASSIGN_OR_RETURN(at, d.Apply("Where", {fresh, since, at}));
  ASSIGN_OR_RETURN(all, d.Apply("GatherAt", {all, at}, {{"batch_dims", int64_t{1}}}));
  // In memory of its own what lies behind the new rows is zero, as in ONNX Runtime; a past that has
  // room for them keeps it.
  if (!sizes.counted && sizes.total > sizes.capacity) {
    ASSIGN_OR_RETURN(open, d.Apply("Unsqueeze", {open}, {{"axes", Dims{2, 3}}}));
    ASSIGN_OR_RETURN(all, d.Apply("Where", {open, all, d.Scalar(d.type(all).dtype, 0)}));
  }
  return d.Apply("Transpose", {all}, {{"perm", Dims{0, 2, 1, 3}}});
}

// The first `total` of the present rows, each head of them for all heads of queries that share it.
absl::StatusOr<GroupedValue> ForAllHeads(Decomposition& d, const GroupedSizes& sizes,
                                         GroupedValue x) {
  if (d.type(x).shape.dim(2) != Dim(sizes.total)) {
    ASSIGN_OR_RETURN(x, SliceAlong(d, x, 2, 0, sizes.total));
  }
  return ForHeadsOfQueries(d, x, sizes.heads / sizes.kv_heads);
}

struct GroupedHeads {
  GroupedValue part[3] = {};
};

// Queries, keys and values [batch, heads, rows, head], normalised and turned as the call says.
absl::StatusOr<GroupedHeads> GroupedHeadsOf(Decomposition& d, const GroupedSizes& sizes,
                                            GroupedValue past_rows) {
  const OpCall& call = d.call();
  GroupedHeads out;
  const int64_t heads[3] = {sizes.heads, sizes.kv_heads, sizes.kv_heads};
  for (int64_t i = 0, begin = 0; i < 3; begin += heads[i++] * sizes.head) {
    GroupedValue x = d.in(static_cast<int>(i));
    if (!call.has_input(1)) {
      ASSIGN_OR_RETURN(x, SliceAlong(d, d.in(0), 2, begin, begin + heads[i] * sizes.head));
    }
    ASSIGN_OR_RETURN(out.part[i], IntoHeads(d, x, heads[i]));
  }
  if (call.has_input(kQueryNorm) != call.has_input(kKeyNorm)) {
    return InvalidArgument(
        "of inputs 14 and 15 (q_norm_weight and k_norm_weight) one is absent, "
        "expected both or none");
  }
  for (int i = 0; i < 2 && call.has_input(kQueryNorm); ++i) {
    const double both = call.attrs().Float("qk_norm_epsilon", 1e-6F);
    const double epsilon = call.attrs().Float(i == 0 ? "q_norm_epsilon" : "k_norm_epsilon", both);
    ASSIGN_OR_RETURN(out.part[i],
                     d.Apply("SimplifiedLayerNormalization", {out.part[i], d.in(kQueryNorm + i)},
                             {{"epsilon", epsilon}}));
  }
  if (call.attrs().Int("do_rotary", 0) == 0) return out;
  if (!call.has_input(kCosines) || !call.has_input(kSines)) {
    return InvalidArgument(
        "inputs 7 and 8 (cos_cache and sin_cache) are absent, expected both "
        "with attribute \"do_rotary\"");
  }
  GroupedValue places = d.in(kPositions);
  if (!call.has_input(kPositions)) {
    ASSIGN_OR_RETURN(places, CountTo(d, sizes.rows));
    if (d.type(past_rows).shape.rank() == 4) {
      ASSIGN_OR_RETURN(past_rows, d.Apply("Squeeze", {past_rows}, {{"axes", Dims{2, 3}}}));
    }
    ASSIGN_OR_RETURN(places, d.Apply("Add", {places, past_rows}));
  } else if (call.shape(kPositions) != Shape({sizes.batch, sizes.rows})) {
    return InvalidArgument("input 9 (position_ids) is ", call.in(kPositions).ToString(),
                           ", expected [", sizes.batch, ",", sizes.rows, "]");
  }
  // The tables say how much of a head turns.
  const Shape& table = call.shape(kCosines);
  const int64_t pairs = table.rank() == 2 ? table.dim(1).value() : 0;
  if (pairs < 1 || pairs > sizes.head / 2) {
    return InvalidArgument("input 7 (cos_cache) is ", call.in(kCosines).ToString(),
                           ", expected [positions, n], n at most half of the ", sizes.head,
                           " elements of a head");
  }
  RETURN_IF_ERROR(CheckRotaryTables(call, kCosines, 2 * pairs, sizes.head));
  ASSIGN_OR_RETURN(auto cosines, AnglesAt(d, kCosines, places));
  ASSIGN_OR_RETURN(auto sines, AnglesAt(d, kSines, places));
  const bool interleaved = call.attrs().Int("rotary_interleaved", 0) != 0;
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(out.part[i], Rotated(d, out.part[i], cosines, sines, interleaved));
  }
  return out;
}

}  // namespace

/// y = softmax(q k^T * scale + attention_bias) v over `num_heads` heads of queries, of which
/// several share one of the `kv_num_heads` heads of keys and values; these stand behind those of
/// the past, for entry b of the batch behind the first seqlens_k[b] + 1 - rows of it (none if
/// total_sequence_length, if a constant, is the number of rows; where only a run knows it,
/// seqlens_k alone counts, and the past is given back longer by the new rows). Inputs are as ONNX
/// Runtime has them: query, key, value [batch, rows, heads * n] (or all three side by side in
/// query), past_key and past_value [batch, heads, past, n], seqlens_k, total_sequence_length,
/// cos_cache and sin_cache (with `do_rotary`: queries and keys are turned by their position),
/// position_ids, attention_bias, and weights by which queries and keys are normalised. No row sees
/// a later one and, with `local_window_size`, only as many; of the prompts of a batch, what lies
/// behind seqlens_k[b] is padding and is not seen. Outputs 1 and 2, if named: the past of the next
/// call.
OpDef DefineMicrosoftGroupQueryAttention() {
  std::vector<ParamSpec> params = {
      {.name = "num_heads", .kind = ParamSpec::kInt, .required = true},
      {.name = "kv_num_heads", .kind = ParamSpec::kInt, .required = true},
      {.name = "total_sequence_length",
       .kind = ParamSpec::kInt,
       .onnx_input = 6,
       .unknown_is_absent = true}};
  for (const char* name :
       {"scale", "softcap", "q_norm_epsilon", "k_norm_epsilon", "qk_norm_epsilon"}) {
    params.push_back({.name = name, .kind = ParamSpec::kFloat});
  }
  for (const char* name :
       {"causal", "do_rotary", "rotary_interleaved", "local_window_size", "smooth_softmax",
        "kv_cache_bit_width", "sliding_window_cache", "qk_output"}) {
    params.push_back({.name = name, .kind = ParamSpec::kInt});
  }
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    params.push_back({.name = name, .kind = ParamSpec::kString});
  }
  return {
      .name = "com.microsoft.GroupQueryAttention",
      .max_inputs = kGroupedInputs,
      .params = std::move(params),
      .max_outputs = 3,
      .decompose = [](Decomposition& d) -> absl::StatusOr<GroupedValue> {
        const OpCall& call = d.call();
        ASSIGN_OR_RETURN(const GroupedSizes sizes, GroupedSizesOf(call));
        ASSIGN_OR_RETURN(auto past_rows, PastRows(d, sizes));
        ASSIGN_OR_RETURN(GroupedHeads heads, GroupedHeadsOf(d, sizes, past_rows));
        ASSIGN_OR_RETURN(auto keys, PresentOf(d, sizes, kCachedKey, heads.part[1], past_rows));
        ASSIGN_OR_RETURN(auto values, PresentOf(d, sizes, kCachedValue, heads.part[2], past_rows));
        SetOutputs(d, {keys, values});
        AttentionForm form = {.q = heads.part[0],
                              .scale = call.attrs().Float("scale", 0),
                              .softcap = call.attrs().Float("softcap", 0)};
        ASSIGN_OR_RETURN(form.k, ForAllHeads(d, sizes, keys));
        ASSIGN_OR_RETURN(form.v, ForAllHeads(d, sizes, values));
        const Dims scores = {sizes.batch, sizes.heads, sizes.rows, sizes.total};
        // A window of w holds the row's own key and w - 1 before it.
        const int64_t window = call.attrs().Int("local_window_size", -1);
        HiddenKeys hidden = {
            .window = {.first = past_rows, .before = window < 0 ? -1 : window - 1, .behind = 0}};
        const bool padded = (sizes.counted || (sizes.prompt && sizes.batch > 1)) && sizes.rows > 1;
        if (padded) {
          ASSIGN_OR_RETURN(hidden.window.end, PromptEnd(d));
        }
        ASSIGN_OR_RETURN(form.addends, AddendsOf(d, hidden, scores, call.dtype(0)));
        if (call.has_input(kBias)) {
          RETURN_IF_ERROR(CheckAttentionBias(call, kBias, call.dtype(0), scores));
          form.addends.push_back(d.in(kBias));
        }
        ASSIGN_OR_RETURN(auto y, Attend(d, form));
        if (padded && window >= 0) {
          ASSIGN_OR_RETURN(y, WithoutUnseeing(d, hidden.window, y));
        }
        return OutOfHeads(d, y);
      }};
}

}  // namespace fusion
