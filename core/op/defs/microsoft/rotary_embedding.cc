#include "core/op/forms/attention.h"

namespace fusion {

/// y = x with pairs of elements of each head turned by the angles of their positions. Inputs are x
/// [batch, rows, heads * n] or [batch, heads, rows, n], the positions (one for each row, or [1]:
/// that of row 0), and tables of cosines and sines [positions, m], 2 m <= n. `interleaved`: pairs
/// are neighbours, else m apart.
OpDef DefineMicrosoftRotaryEmbedding() {
  return {.name = "com.microsoft.RotaryEmbedding",
          .min_inputs = 4,
          .max_inputs = 4,
          .params = {{.name = "interleaved", .kind = ParamSpec::kInt},
                     {.name = "is_packed_batching", .kind = ParamSpec::kInt},
                     {.name = "num_heads", .kind = ParamSpec::kInt},
                     {.name = "rotary_embedding_dim", .kind = ParamSpec::kInt},
                     {.name = "scale", .kind = ParamSpec::kFloat}},
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            RETURN_IF_ERROR(CheckFloat(call, 0));
            RETURN_IF_ERROR(CheckOnlyInt(call, "is_packed_batching", 0));
            if (call.attrs().Float("scale", 1) != 1) {
              return Unimplemented("attribute \"scale\" is ", call.attrs().Float("scale", 1),
                                   "; supported: 1");
            }
            ASSIGN_OR_RETURN(Dims x, StaticDims(call, 0));
            if (x.size() != 3 && x.size() != 4) {
              return InvalidArgument("input 0 is ", call.in(0).ToString(),
                                     ", expected [batch, rows, heads * n] or [batch, heads, rows, "
                                     "n]");
            }
            int64_t turned = call.attrs().Int("rotary_embedding_dim", 0);
            int64_t heads = call.attrs().Int("num_heads", 0);
            const Shape& table = call.shape(2);
            if (x.size() == 3 && heads == 0) {
              if (turned != 0) {
                return InvalidArgument(
                    "attribute \"num_heads\" is 0, expected how many heads input 0 has, of whose "
                    "elements \"rotary_embedding_dim\" turns some");
              }
              // Then a head is what the tables turn.
              const bool known = table.rank() == 2 && table.dim(1).is_static();
              const int64_t pairs = known ? table.dim(1).value() : 0;
              if (pairs < 1 || x[2] % pairs != 0 || x[2] / pairs % 2 != 0) {
                return InvalidArgument("input 2 (cos_cache) is ", call.in(2).ToString(),
                                       ", expected [positions, n], 2 n a divisor of the ", x[2],
                                       " elements of a row of input 0 ", call.in(0).ToString());
              }
              heads = x[2] / pairs / 2;
            }
            if (x.size() == 3 && (heads < 1 || x[2] % heads != 0)) {
              return InvalidArgument("attribute \"num_heads\" is ", heads,
                                     ", expected a divisor of the ", x[2],
                                     " elements of a row of input 0 ", call.in(0).ToString());
            }
            const int64_t head = x.size() == 3 ? x[2] / heads : x[3];
            if (turned == 0) turned = head;
            RETURN_IF_ERROR(CheckRotaryTables(call, 2, turned, head));
            auto y = d.in(0);
            if (x.size() == 3) {
              ASSIGN_OR_RETURN(y, IntoHeads(d, y, heads));
            }
            const int64_t rows = x[x.size() - 2];
            auto places = d.in(1);
            if (call.shape(1) == Shape({1})) {
              ASSIGN_OR_RETURN(auto count, CountTo(d, rows));
              ASSIGN_OR_RETURN(places, CastTo(d, places, DType::kI64));
              ASSIGN_OR_RETURN(places, d.Apply("Add", {count, places}));
            } else if (call.shape(1) != Shape({x[0], rows})) {
              return InvalidArgument("input 1 is ", call.in(1).ToString(), ", expected [1] or [",
                                     x[0], ",", rows, "]");
            }
            ASSIGN_OR_RETURN(auto cosines, AnglesAt(d, 2, places));
            ASSIGN_OR_RETURN(auto sines, AnglesAt(d, 3, places));
            const bool interleaved = call.attrs().Int("interleaved", 0) != 0;
            ASSIGN_OR_RETURN(y, Rotated(d, y, cosines, sines, interleaved));
            return x.size() == 3 ? OutOfHeads(d, y) : y;
          }};
}

}  // namespace fusion
