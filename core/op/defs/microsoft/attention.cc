#include "core/op/forms/attention.h"

namespace fusion {

/// y = softmax(q k^T * scale + mask + attention_bias) v over `num_heads` heads, [q, k, v] = x w +
/// b, keys and values behind those of a past: ONNX Runtime's op for fused self-attention. Inputs
/// are x, w, b, the mask (core/op/forms/attention.h), the past [2, batch, heads, past, n] and
/// attention_bias; all from b on may be absent. Output 1, if named: the past of the next call. With
/// `unidirectional` no row sees a later one.
OpDef DefineMicrosoftAttention() {
  return {.name = "com.microsoft.Attention",
          .min_inputs = 2,
          .max_inputs = 7,
          .params = ProjectedAttentionParams(),
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckNoInput(call, 6, "past_sequence_length, of a shared buffer"));
            RETURN_IF_ERROR(CheckFloat(call, 0));
            ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
            ASSIGN_OR_RETURN(Dims w, StaticDims(call, 1));
            if (x.size() != 3 || w.size() != 2 || w[0] != x[2] || call.dtype(1) != call.dtype(0)) {
              return InvalidArgument("inputs 0 and 1 are ", call.in(0).ToString(), " and ",
                                     call.in(1).ToString(),
                                     ", expected [batch, rows, n] and [n, m] of one type");
            }
            ASSIGN_OR_RETURN(auto all, d.Apply("MatMul", {d.in(0), d.in(1)}));
            if (call.has_input(2)) {
              ASSIGN_OR_RETURN(all, PlusBias(d, all, 2));
            }
            return AttendProjected(d, all, {.mask = 3, .past = 4, .bias = 5});
          }};
}

}  // namespace fusion
