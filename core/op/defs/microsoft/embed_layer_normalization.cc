#include "core/op/forms.h"
#include "core/op/forms/normalisation.h"

namespace fusion {

namespace {

// Rows of the table that input `table` is, one for each index.
absl::StatusOr<Decomposition::Value> Embedded(Decomposition& d, int table,
                                              Decomposition::Value indices) {
  const OpCall& call = d.call();
  if (call.shape(table).rank() != 2 || call.dtype(table) != call.dtype(2) ||
      call.shape(table).dim(1) != call.shape(2).dim(1)) {
    return InvalidArgument("input ", table, " is ", call.in(table).ToString(),
                           ", expected rows like those of input 2 ", call.in(2).ToString());
  }
  return d.Apply("Gather", {d.in(table), indices});
}

}  // namespace

/// s = word[input_ids] + position[position_ids] + segment[segment_ids], y = LayerNormalization(s) *
/// gamma + beta. Without segment_ids or the segment table nothing is added, without position_ids
/// they are 0, 1, ... Output 1, i32: how many of each row's mask entries are 1 (without a mask 0);
/// output 2: s.
OpDef DefineMicrosoftEmbedLayerNormalization() {
  return {.name = "com.microsoft.EmbedLayerNormalization",
          .min_inputs = 1,
          .max_inputs = 9,
          .params = {{.name = "epsilon", .kind = ParamSpec::kFloat},
                     {.name = "mask_index_type", .kind = ParamSpec::kInt}},
          .max_outputs = 3,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            for (int i : {2, 3, 5, 6}) {
              if (!call.has_input(i))
                return InvalidArgument("input ", i, " is absent but required");
            }
            if (call.shape(0).rank() != 2 || call.shape(2).rank() != 2) {
              return InvalidArgument("inputs 0 and 2 are ", call.in(0).ToString(), " and ",
                                     call.in(2).ToString(),
                                     ", expected [batch, rows] and a table of rank 2");
            }
            ASSIGN_OR_RETURN(auto sum, Embedded(d, 2, d.in(0)));
            Decomposition::Value places = 0;
            if (call.has_input(8)) {
              places = d.in(8);
            } else {
              ASSIGN_OR_RETURN(Dims ids, StaticDims(call, 0));
              ASSIGN_OR_RETURN(places, CountTo(d, ids[1]));
            }
            ASSIGN_OR_RETURN(places, Embedded(d, 3, places));
            if (call.has_input(1) != call.has_input(4)) {
              return InvalidArgument(
                  "of inputs 1 and 4 (segment_ids and segment_embedding) one is "
                  "absent, expected both or none");
            }
            // In the order in which ONNX Runtime rounds.
            ASSIGN_OR_RETURN(sum, d.Apply("Add", {sum, places}));
            if (call.has_input(1)) {
              ASSIGN_OR_RETURN(auto segments, Embedded(d, 4, d.in(1)));
              ASSIGN_OR_RETURN(sum, d.Apply("Add", {sum, segments}));
            }
            if (call.outputs() > 1) {
              Decomposition::Value counts = 0;
              if (call.has_input(7)) {
                ASSIGN_OR_RETURN(auto one, d.Apply("Equal", {d.in(7), d.Scalar(call.dtype(7), 1)}));
                ASSIGN_OR_RETURN(one, CastTo(d, one, DType::kI32));
                ASSIGN_OR_RETURN(counts, d.Apply("ReduceSum", {one},
                                                 {{"axes", Dims{1}}, {"keepdims", int64_t{0}}}));
              } else {
                ASSIGN_OR_RETURN(const Dims ids, StaticDims(call, 0));
                ASSIGN_OR_RETURN(counts, d.Apply("Expand", {d.Scalar(DType::kI32, 0)},
                                                 {{"shape", Dims{ids[0]}}}));
              }
              SetOutputs(d, {counts, sum});
            }
            return d.Apply("LayerNormalization", {sum, d.in(5), d.in(6)}, SkipNormAttrs(call));
          }};
}

}  // namespace fusion
