#include "core/op/forms.h"

namespace fusion {

namespace {

absl::Status CheckTensorScatter(const OpCall& call, int axis) {
  RETURN_IF_ERROR(call.CheckSameType(0, 1));
  ASSIGN_OR_RETURN(Dims past, StaticDims(call, 0));
  ASSIGN_OR_RETURN(Dims update, StaticDims(call, 1));
  bool fits = axis > 0 && update.size() == past.size();
  for (size_t i = 0; fits && i < past.size(); ++i) {
    fits = static_cast<int>(i) == axis ? update[i] <= past[i] : update[i] == past[i];
  }
  if (!fits) {
    return InvalidArgument("inputs 0 and 1 are ", call.in(0).ToString(), " and ",
                           call.in(1).ToString(), ", expected as many dims, equal but for axis ",
                           axis, ", which is not the first and may be shorter in input 1");
  }
  if (call.has_input(2) && call.in(2) != TensorType{DType::kI64, Shape({past[0]})}) {
    return InvalidArgument("input 2 is ", call.in(2).ToString(), ", expected i64[", past[0],
                           "]: where each batch entry is written");
  }
  return absl::OkStatus();
}

}  // namespace

/// y = past with y[b, .., write_indices[b] + i, ..] = update[b, .., i, ..] along `axis`; with mode
/// circular modulo the extent of past. An element that two would be written to does not exist:
/// update is not longer than past. What mode linear would write behind the end is left out.
OpDef DefineTensorScatter() {
  return {.name = "TensorScatter",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "mode", .kind = ParamSpec::kString}},
          .min_opset = 24,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            const int rank = call.shape(0).rank();
            ASSIGN_OR_RETURN(int axis, call.NormaliseAxis(call.attrs().Int("axis", -2), rank));
            RETURN_IF_ERROR(CheckTensorScatter(call, axis));
            const auto* mode = call.attrs().Find<std::string>("mode");
            const bool circular = mode != nullptr && *mode == "circular";
            if (mode != nullptr && !circular && *mode != "linear") {
              return InvalidArgument("attribute \"mode\" is ", QuoteShort(*mode),
                                     ", expected linear or circular");
            }
            const int64_t rows = call.shape(0).dim(axis).value();
            const int64_t written = call.shape(1).dim(axis).value();
            if (!call.has_input(2)) {
              // From the first row on, whatever the mode.
              if (written == rows) return d.Apply("Identity", {d.in(1)});
              ASSIGN_OR_RETURN(auto rest, SliceAlong(d, d.in(0), axis, written, rows));
              return d.Apply("Concat", {d.in(1), rest}, {{"axis", int64_t{axis}}});
            }
            if (written == 0) return d.Apply("Identity", {d.in(0)});
            // The row of update that each row of the cache would be: [batch, 1, .., rows, 1, ..].
            Dims batch_only;
            Dims rows_only;
            for (int64_t i = 1; i < rank; ++i) batch_only.push_back(i);
            for (int64_t i = 1; i < rank - axis; ++i) rows_only.push_back(i);
            auto number = [&](int64_t n) { return d.Scalar(DType::kI64, static_cast<double>(n)); };
            ASSIGN_OR_RETURN(auto row, CountTo(d, rows));
            if (!rows_only.empty()) {
              ASSIGN_OR_RETURN(row, d.Apply("Unsqueeze", {row}, {{"axes", rows_only}}));
            }
            ASSIGN_OR_RETURN(auto begin, d.Apply("Unsqueeze", {d.in(2)}, {{"axes", batch_only}}));
            ASSIGN_OR_RETURN(row, d.Apply("Sub", {row, begin}));
            if (circular) {
              ASSIGN_OR_RETURN(row, d.Apply("Mod", {row, number(rows)}));
            }
            ASSIGN_OR_RETURN(auto below, d.Apply("Less", {row, number(written)}));
            ASSIGN_OR_RETURN(auto above, d.Apply("GreaterOrEqual", {row, number(0)}));
            ASSIGN_OR_RETURN(auto is_written, d.Apply("And", {below, above}));
            ASSIGN_OR_RETURN(row, d.Apply("Max", {row, number(0)}));
            ASSIGN_OR_RETURN(row, d.Apply("Min", {row, number(written - 1)}));
            ASSIGN_OR_RETURN(row, d.Apply("Expand", {row}, {{"shape", call.shape(0).ToDims()}}));
            ASSIGN_OR_RETURN(auto found,
                             d.Apply("GatherElements", {d.in(1), row}, {{"axis", int64_t{axis}}}));
            return d.Apply("Where", {is_written, found, d.in(0)});
          }};
}

}  // namespace fusion
