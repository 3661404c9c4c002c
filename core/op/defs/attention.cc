#include "core/op/forms/attention.h"

#include <cmath>
#include <limits>

#include "core/tensor/onnx_dtype.h"

namespace fusion {

namespace {

/// The inputs of Attention, by number.
enum OnnxAttentionInput { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kValidKeys };
/// What output 3 shows.
enum OnnxAttentionScores { kProducts, kCapped, kBiased, kShares };

struct OnnxAttentionDims {
  int64_t batch = 0;
  int64_t heads = 0;  // of queries
  int64_t kv_heads = 0;
  int64_t rows = 0;  // queries
  int64_t past = 0;  // keys
  int64_t keys = 0;  // past ones included
  int64_t head = 0;
  int64_t value_head = 0;
  bool flat =
      false;  // inputs 0 to 2 are [batch, rows, heads * head], not [batch, heads, rows, head]
};

absl::Status CheckAttentionTypes(const OpCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kQuery));
  for (int i : {kKey, kValue, kPastKey, kPastValue}) {
    if (call.has_input(i)) RETURN_IF_ERROR(call.CheckSameType(kQuery, i));
  }
  if (call.has_input(kMask) && call.dtype(kMask) != DType::kBool) {
    RETURN_IF_ERROR(CheckFloat(call, kMask));
  }
  if (call.has_input(kPastKey) != call.has_input(kPastValue)) {
    return InvalidArgument("inputs 4 and 5 (past_key, past_value): one is given, expected both");
  }
  if (call.has_input(kValidKeys) && call.has_input(kPastKey)) {
    return InvalidArgument("input 6 (nonpad_kv_seqlen) is given together with past_key");
  }
  return absl::OkStatus();
}

// An input as [batch, heads, rows, head].
absl::StatusOr<Dims> HeadDimsOf(const OpCall& call, int input, std::string_view attribute) {
  ASSIGN_OR_RETURN(Dims dims, StaticDims(call, input));
  const int64_t heads = call.attrs().Int(attribute, 0);
  if (dims.size() == 4 && (heads == 0 || heads == dims[1])) return dims;
  if (dims.size() == 3 && heads > 0 && heads <= kMaxExtent && dims[2] % heads == 0) {
    return Dims{dims[0], heads, dims[1], dims[2] / heads};
  }
  return InvalidArgument("input ", input, " is ", call.in(input).ToString(), " and attribute ",
                         Quote(attribute), " is ", heads,
                         ", expected [batch, heads, rows, head], or [batch, rows, n] and a "
                         "divisor of n");
}

absl::StatusOr<OnnxAttentionDims> OnnxAttentionDimsOf(const OpCall& call) {
  RETURN_IF_ERROR(CheckAttentionTypes(call));
  ASSIGN_OR_RETURN(Dims q, HeadDimsOf(call, kQuery, "q_num_heads"));
  ASSIGN_OR_RETURN(Dims k, HeadDimsOf(call, kKey, "kv_num_heads"));
  ASSIGN_OR_RETURN(Dims v, HeadDimsOf(call, kValue, "kv_num_heads"));
  const bool one_rank = call.shape(kQuery).rank() == call.shape(kKey).rank() &&
                        call.shape(kQuery).rank() == call.shape(kValue).rank();
  const bool keys_fit = k[0] == q[0] && k[3] == q[3] && k[1] > 0 && q[1] % k[1] == 0;
  if (!one_rank || !keys_fit || v[0] != k[0] || v[1] != k[1] || v[2] != k[2]) {
    return InvalidArgument("inputs 0 to 2 are ", call.in(kQuery).ToString(), ", ",
                           call.in(kKey).ToString(), " and ", call.in(kValue).ToString(),
                           ", expected one rank and batch, as many keys as values, heads of "
                           "queries that are a multiple of theirs, and keys as long as queries");
  }
  OnnxAttentionDims dims{.batch = q[0],
                         .heads = q[1],
                         .kv_heads = k[1],
                         .rows = q[2],
                         .past = 0,
                         .keys = k[2],
                         .head = q[3],
                         .value_head = v[3],
                         .flat = call.shape(kQuery).rank() == 3};
  // Of what has no element, too.
  RETURN_IF_ERROR(
      CheckedNumElements(Dims{dims.batch, dims.rows, dims.heads, dims.value_head}, 1).status());
  if (call.has_input(kPastKey)) {
    const Shape& past = call.shape(kPastKey);
    if (past.rank() == 4 && past.dim(2).is_static()) dims.past = past.dim(2).value();
    if (past != Shape({q[0], k[1], dims.past, k[3]}) ||
        call.shape(kPastValue) != Shape({q[0], k[1], dims.past, v[3]})) {
      return InvalidArgument("inputs 4 and 5 are ", call.in(kPastKey).ToString(), " and ",
                             call.in(kPastValue).ToString(), ", expected [", q[0], ",", k[1],
                             ",past,", k[3], "] and [", q[0], ",", k[1], ",past,", v[3], "]");
    }
    dims.keys += dims.past;
  }
  if (call.has_input(kValidKeys) &&
      call.in(kValidKeys) != TensorType{DType::kI64, Shape({dims.batch})}) {
    return InvalidArgument("input 6 is ", call.in(kValidKeys).ToString(), ", expected i64[",
                           dims.batch, "]: the keys of each batch entry that are no padding");
  }
  return dims;
}

/// The steps of an Attention.
class OnnxAttention {
 public:
  using Value = Decomposition::Value;

  OnnxAttention(Decomposition& d, const OnnxAttentionDims& dims)
      : d_(d), dims_(dims), type_(d.call().dtype(kQuery)) {}

  absl::StatusOr<Value> Run() {
    ASSIGN_OR_RETURN(auto k, Cached(kKey, kPastKey));
    ASSIGN_OR_RETURN(auto v, Cached(kValue, kPastValue));
    RETURN_IF_ERROR(SetOutput(1, k));
    RETURN_IF_ERROR(SetOutput(2, v));
    ASSIGN_OR_RETURN(auto scores, Scores(k));
    RETURN_IF_ERROR(AddBias());
    if (bias_ >= 0) {
      ASSIGN_OR_RETURN(scores, d_.Apply("Add", {scores, bias_}));
    }
    RETURN_IF_ERROR(Show(kBiased, scores));
    ASSIGN_OR_RETURN(const DType precision, Precision());
    ASSIGN_OR_RETURN(auto shares, CastTo(d_, scores, precision));
    ASSIGN_OR_RETURN(shares, d_.Apply("Softmax", {shares}, {{"axis", int64_t{-1}}}));
    ASSIGN_OR_RETURN(shares, CastTo(d_, shares, type_));
    if (Shown() == kShares) {
      ASSIGN_OR_RETURN(auto shown, WhereSeen(shares));
      RETURN_IF_ERROR(Show(kShares, shown));
    }
    ASSIGN_OR_RETURN(v, ForHeadsOfQueries(d_, v, dims_.heads / dims_.kv_heads));
    ASSIGN_OR_RETURN(auto y, d_.Apply("MatMul", {shares, v}));
    ASSIGN_OR_RETURN(y, WhereSeen(y));
    return dims_.flat ? OutOfHeads(d_, y) : y;
  }

 private:
  // Input `input` as [batch, heads, rows, head].
  absl::StatusOr<Value> InHeads(int input, int64_t heads) {
    if (!dims_.flat) return d_.in(input);
    return IntoHeads(d_, d_.in(input), heads);
  }

  // Keys or values, behind the past ones.
  absl::StatusOr<Value> Cached(int input, int past) {
    ASSIGN_OR_RETURN(auto x, InHeads(input, dims_.kv_heads));
    if (!d_.call().has_input(past)) return x;
    return d_.Apply("Concat", {d_.in(past), x}, {{"axis", int64_t{2}}});
  }

  absl::Status SetOutput(int index, Value v) {
    if (d_.call().outputs() <= index) return absl::OkStatus();
    if (v < d_.call().inputs()) {
      ASSIGN_OR_RETURN(v, d_.Apply("Identity", {v}));
    }
    d_.SetOutput(index, v);
    return absl::OkStatus();
  }

  int64_t Shown() const { return d_.call().attrs().Int("qk_matmul_output_mode", kProducts); }

  absl::Status Show(OnnxAttentionScores what, Value v) {
    return what == Shown() ? SetOutput(3, v) : absl::OkStatus();
  }

  // Scaled products of queries and keys, capped.
  absl::StatusOr<Value> Scores(Value k) {
    const AttrMap& attrs = d_.call().attrs();
    ASSIGN_OR_RETURN(auto q, InHeads(kQuery, dims_.heads));
    const double scale =
        attrs.Float("scale", 1 / std::sqrt(static_cast<double>(std::max<int64_t>(dims_.head, 1))));
    ASSIGN_OR_RETURN(q, d_.Apply("Mul", {q, d_.Scalar(type_, scale)}));
    ASSIGN_OR_RETURN(k, ForHeadsOfQueries(d_, k, dims_.heads / dims_.kv_heads));
    ASSIGN_OR_RETURN(auto scores, HeadProducts(d_, q, k));
    RETURN_IF_ERROR(Show(kProducts, scores));
    ASSIGN_OR_RETURN(scores, Capped(d_, scores, attrs.Float("softcap", 0)));
    RETURN_IF_ERROR(Show(kCapped, scores));
    return scores;
  }

  absl::StatusOr<DType> Precision() const {
    const auto* code = d_.call().attrs().Find<int64_t>("softmax_precision");
    if (code == nullptr) return type_;
    std::optional<DType> type = DTypeFromOnnx(*code);
    if (type && IsFloat(*type)) return *type;
    return InvalidArgument("attribute \"softmax_precision\" is ", OnnxTypeName(*code),
                           ", expected the number of a float type");
  }

  // Keys that are no padding and lie near enough to the position of a row, which counts the keys
  // before it.
  absl::Status SeeWindow() {
    const AttrMap& attrs = d_.call().attrs();
    const bool causal = attrs.Int("is_causal", 0) != 0;
    // Beyond any extent a window is none.
    const int64_t left = std::min(attrs.Int("left_window_size", -1), kMaxExtent);
    const int64_t right = causal ? 0 : std::min(attrs.Int("right_window_size", -1), kMaxExtent);
    if (left < -1 || attrs.Int("right_window_size", -1) < -1) {
      return InvalidArgument(R"(attributes "left_window_size" and "right_window_size" are )", left,
                             " and ", attrs.Int("right_window_size", -1), ", expected at least -1");
    }
    KeyWindow window = {.before = left, .behind = right};
    auto number = [&](int64_t n) { return d_.Scalar(DType::kI64, static_cast<double>(n)); };
    if (d_.call().has_input(kValidKeys)) {
      // The first keys of each batch entry, for the last dims of the scores.
      ASSIGN_OR_RETURN(window.end,
                       d_.Apply("Unsqueeze", {d_.in(kValidKeys)}, {{"axes", Dims{1, 2, 3}}}));
      if (left >= 0 || right >= 0) {
        ASSIGN_OR_RETURN(window.first, d_.Apply("Sub", {window.end, number(dims_.rows)}));
      }
    } else if (dims_.past > 0) {
      window.first = number(dims_.past);
    }
    if (!window.hides()) return absl::OkStatus();
    may_hide_all_ = left >= 0 || window.end != KeyWindow::kAll;
    ASSIGN_OR_RETURN(seen_, SeenThrough(d_, window, dims_.rows, dims_.keys));
    return absl::OkStatus();
  }

  // The mask with as many keys as there are: what it does not speak of is hidden.
  absl::StatusOr<Value> WholeMask() {
    const OpCall& call = d_.call();
    ASSIGN_OR_RETURN(Dims mask, StaticDims(call, kMask));
    const Dims scores = {dims_.batch, dims_.heads, dims_.rows, dims_.keys};
    bool fits = !mask.empty() && mask.size() <= 4 && mask.back() <= dims_.keys;
    for (size_t i = 1; fits && i < mask.size(); ++i) {
      const int64_t extent = mask[mask.size() - 1 - i];
      fits = extent == 1 || extent == scores[3 - i];
    }
    if (!fits) {
      return InvalidArgument("input 3 is ", call.in(kMask).ToString(),
                             ", expected what broadcasts to [", StrJoin(scores, ","),
                             "], or has fewer keys");
    }
    if (mask.back() == dims_.keys) return d_.in(kMask);
    if (mask.back() == 1) {
      return Unimplemented("input 3 is ", call.in(kMask).ToString(), " for ", dims_.keys,
                           " keys: its last dim may be meant for all of them, or for the first");
    }
    HostTensor hidden(call.dtype(kMask), {});
    if (IsFloat(hidden.dtype())) hidden.SetDouble(0, -std::numeric_limits<double>::infinity());
    Dims pads(2 * mask.size(), 0);
    pads.back() = dims_.keys - mask.back();
    return d_.Apply("Pad", {d_.in(kMask)},
                    {{"pads", pads},
                     {"constant_value", std::make_shared<const HostTensor>(std::move(hidden))}});
  }

  // What is added to the scores, if anything: -infinity hides a key.
  absl::Status AddBias() {
    const OpCall& call = d_.call();
    RETURN_IF_ERROR(SeeWindow());
    Value mask = -1;
    if (call.has_input(kMask)) {
      ASSIGN_OR_RETURN(mask, WholeMask());
      may_hide_all_ = true;
      if (call.dtype(kMask) == DType::kBool) {
        if (seen_ >= 0) {
          ASSIGN_OR_RETURN(mask, d_.Apply("And", {seen_, mask}));
        }
        seen_ = mask;
        mask = -1;
      } else {
        ASSIGN_OR_RETURN(mask, CastTo(d_, mask, type_));
      }
    }
    bias_ = mask;
    if (seen_ < 0) return absl::OkStatus();
    const Value hidden = d_.Scalar(type_, -std::numeric_limits<double>::infinity());
    ASSIGN_OR_RETURN(bias_, AddendOf(d_, seen_, hidden));
    if (mask < 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(bias_, d_.Apply("Add", {bias_, mask}));
    return absl::OkStatus();
  }

  // x, [.., rows, n], with zeros in the rows that see no key.
  absl::StatusOr<Value> WhereSeen(Value x) {
    if (!may_hide_all_) return x;
    if (none_seen_ < 0) {
      ASSIGN_OR_RETURN(auto most, d_.Apply("ReduceMax", {bias_}, {{"axes", Dims{-1}}}));
      const Value hidden = d_.Scalar(type_, -std::numeric_limits<double>::infinity());
      ASSIGN_OR_RETURN(none_seen_, d_.Apply("Equal", {most, hidden}));
    }
    return d_.Apply("Where", {none_seen_, d_.Scalar(type_, 0), x});
  }

  Decomposition& d_;
  const OnnxAttentionDims& dims_;
  DType type_;
  Value seen_ = -1;  // bool, broadcasts to the scores
  Value bias_ = -1;  // what is added to them
  Value none_seen_ = -1;
  bool may_hide_all_ = false;
};

}  // namespace

/// y = softmax(q k^T * scale + bias) v for each head; heads of queries may share those of keys and
/// values, which go on behind past ones (outputs 1 and 2). The bias hides what the mask, the
/// windows or `is_causal` do not let a row see, and adds a mask of floats; a row that sees nothing
/// is 0. With `softcap` c scores s are c tanh(s / c) before. Output 3 shows the scores as
/// `qk_matmul_output_mode` says: 0 products, 1 capped, 2 with the bias, 3 after softmax.
OpDef DefineAttention() {
  return {.name = "Attention",
          .min_inputs = 3,
          .max_inputs = 7,
          .params = {{.name = "is_causal", .kind = ParamSpec::kInt},
                     {.name = "kv_num_heads", .kind = ParamSpec::kInt},
                     {.name = "left_window_size", .kind = ParamSpec::kInt, .any_integer = true},
                     {.name = "q_num_heads", .kind = ParamSpec::kInt},
                     {.name = "qk_matmul_output_mode", .kind = ParamSpec::kInt},
                     {.name = "right_window_size", .kind = ParamSpec::kInt, .any_integer = true},
                     {.name = "scale", .kind = ParamSpec::kFloat},
                     {.name = "softcap", .kind = ParamSpec::kFloat},
                     {.name = "softmax_precision", .kind = ParamSpec::kInt}},
          .min_opset = 23,
          .max_outputs = 4,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const int64_t shown = call.attrs().Int("qk_matmul_output_mode", kProducts);
            if (shown < kProducts || shown > kShares) {
              return InvalidArgument("attribute \"qk_matmul_output_mode\" is ", shown,
                                     ", expected 0..3");
            }
            ASSIGN_OR_RETURN(OnnxAttentionDims dims, OnnxAttentionDimsOf(call));
            return OnnxAttention(d, dims).Run();
          }};
}

}  // namespace fusion
