#include <algorithm>

#include "core/op/forms.h"

namespace fusion {

namespace {

using ScatterValue = Decomposition::Value;

constexpr int64_t kMaxScatterRows = int64_t{1} << 24;
// As many pieces are put one behind the other; more are gathered.
constexpr size_t kMaxScatterPieces = 16;
// Updates of one row that are reduced one after the other.
constexpr size_t kMaxScatterRounds = 64;

// `data` as rows: what an index names; `updates` as rows of the same length.
struct ScatterShape {
  int64_t rows = 1;
  int64_t updates = 1;
  Dims rest;
};

absl::StatusOr<ScatterShape> ShapeOfScatter(const OpCall& call, const HostTensor& indices) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 1));
  RETURN_IF_ERROR(call.CheckSameType(0, 1));
  if (!call.shape(0).is_static()) {
    return Unimplemented("input 0 ", call.in(0).ToString(), " has symbolic dims");
  }
  Dims data = call.shape(0).ToDims();
  if (!IsInteger(indices.dtype()) || indices.dims().empty() || indices.dims().back() < 0 ||
      indices.dims().back() > static_cast<int64_t>(data.size())) {
    return InvalidArgument("indices are ", DTypeName(indices.dtype()), DimsToString(indices.dims()),
                           ", expected integers of at most ", data.size(), " columns for input 0 ",
                           call.in(0).ToString());
  }
  auto depth = indices.dims().back();
  ScatterShape out;
  out.rest.assign(data.begin() + depth, data.end());
  Dims expected(indices.dims().begin(), indices.dims().end() - 1);
  for (int64_t extent : expected) out.updates *= extent;
  expected.insert(expected.end(), out.rest.begin(), out.rest.end());
  if (call.shape(1) != Shape(expected)) {
    return InvalidArgument("updates are ", call.in(1).ToString(), ", expected ",
                           DimsToString(expected));
  }
  for (int64_t i = 0; i < depth; ++i) {
    int64_t extent = data[static_cast<size_t>(i)];
    if (extent > 0 && out.rows > kMaxScatterRows / extent) {
      return Unimplemented("scatters over more than ", kMaxScatterRows, " rows of ",
                           call.in(0).ToString());
    }
    out.rows *= extent;
  }
  return out;
}

// The row of `data` that each update names.
absl::StatusOr<std::vector<int64_t>> TargetRows(const OpCall& call, const HostTensor& indices,
                                                int64_t updates) {
  auto depth = static_cast<size_t>(indices.dims().back());
  std::vector<int64_t> rows;
  for (int64_t u = 0; u < updates; ++u) {
    int64_t row = 0;
    for (size_t k = 0; k < depth; ++k) {
      int64_t extent = call.shape(0).dim(static_cast<int>(k)).value();
      int64_t index = indices.GetInt(u * static_cast<int64_t>(depth) + static_cast<int64_t>(k));
      if (index < -extent || index >= extent) {
        return InvalidArgument("indices name ", index, " of dim ", k, " of input 0 ",
                               call.in(0).ToString());
      }
      row = row * extent + (index < 0 ? index + extent : index);
    }
    rows.push_back(row);
  }
  return rows;
}

// For each row the update that writes it, or -1. One round if later updates replace earlier ones,
// else the n-th round holds the n-th update of each row.
using ScatterRound = std::vector<int64_t>;

std::vector<ScatterRound> ScatterRounds(const std::vector<int64_t>& targets, int64_t rows,
                                        bool replace) {
  auto extent = static_cast<size_t>(rows);
  std::vector<ScatterRound> rounds;
  std::vector<size_t> seen(extent, 0);
  for (size_t u = 0; u < targets.size(); ++u) {
    auto row = static_cast<size_t>(targets[u]);
    size_t round = replace ? 0 : seen[row]++;
    if (round > kMaxScatterRounds) break;
    if (round == rounds.size()) rounds.emplace_back(extent, -1);
    rounds[round][row] = static_cast<int64_t>(u);
  }
  return rounds;
}

// A run of rows that are kept (from = -1) or taken from consecutive updates.
struct ScatterPiece {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t from = -1;
};

std::vector<ScatterPiece> PiecesOf(const ScatterRound& round) {
  std::vector<ScatterPiece> pieces;
  for (size_t r = 0; r < round.size(); ++r) {
    auto row = static_cast<int64_t>(r);
    bool goes_on = !pieces.empty() &&
                   (round[r] < 0 ? pieces.back().from < 0
                                 : pieces.back().from >= 0 &&
                                       round[r] == pieces.back().from + row - pieces.back().begin);
    if (goes_on) {
      ++pieces.back().end;
    } else {
      pieces.push_back({row, row + 1, round[r]});
    }
    if (pieces.size() > kMaxScatterPieces) break;
  }
  return pieces;
}

absl::StatusOr<ScatterValue> Rows(Decomposition& d, ScatterValue v, int64_t begin, int64_t end) {
  if (begin == 0 && Dim(end) == d.type(v).shape.dim(0)) return v;
  return d.Apply("Slice", {v}, {{"starts", Dims{begin}}, {"ends", Dims{end}}, {"axes", Dims{0}}});
}

// data with the rows of one round replaced by op(data, updates), or by the updates themselves.
absl::StatusOr<ScatterValue> ApplyRound(Decomposition& d, ScatterValue data, ScatterValue updates,
                                        const ScatterRound& round, std::string_view op) {
  std::vector<ScatterPiece> pieces = PiecesOf(round);
  if (pieces.size() <= kMaxScatterPieces) {
    std::vector<ScatterValue> parts;
    for (const ScatterPiece& p : pieces) {
      bool kept = p.from < 0;
      ScatterValue part = 0;
      if (kept || !op.empty()) {
        ASSIGN_OR_RETURN(part, Rows(d, data, p.begin, p.end));
      }
      if (!kept) {
        ASSIGN_OR_RETURN(auto update, Rows(d, updates, p.from, p.from + p.end - p.begin));
        if (op.empty()) {
          part = update;
        } else {
          ASSIGN_OR_RETURN(part, d.Apply(op, {part, update}));
        }
      }
      parts.push_back(part);
    }
    if (parts.size() == 1) return parts[0];
    return d.Apply("Concat", std::move(parts), {{"axis", int64_t{0}}});
  }
  auto extent = static_cast<int64_t>(round.size());
  HostTensor source(DType::kI64, {extent});
  Dims mask_dims(static_cast<size_t>(d.type(data).shape.rank()), 1);
  mask_dims[0] = extent;
  HostTensor written(DType::kBool, mask_dims);
  bool all = true;
  for (int64_t row = 0; row < extent; ++row) {
    int64_t from = round[static_cast<size_t>(row)];
    source.SetInt(row, std::max<int64_t>(from, 0));
    written.SetInt(row, from >= 0 ? 1 : 0);
    all &= from >= 0;
  }
  ASSIGN_OR_RETURN(auto gathered, d.Apply("Gather", {updates, d.Constant(std::move(source))}));
  if (!op.empty()) {
    ASSIGN_OR_RETURN(gathered, d.Apply(op, {data, gathered}));
  }
  if (all) return gathered;
  return d.Apply("Where", {d.Constant(std::move(written)), gathered, data});
}

}  // namespace

/// y = data with the rows that `indices` (a constant) name replaced by updates or, with `reduction`
/// add, mul, min or max, combined with them
OpDef DefineScatterNd() {
  return {
      .name = "ScatterND",
      .min_inputs = 2,
      .max_inputs = 2,
      .params = {{.name = "indices", .kind = ParamSpec::kTensor, .onnx_input = 1, .required = true},
                 {.name = "reduction", .kind = ParamSpec::kString}},
      .min_opset = 11,
      .decompose = [](Decomposition& d) -> absl::StatusOr<ScatterValue> {
        const OpCall& call = d.call();
        const HostTensor& indices =
            **call.attrs().Find<std::shared_ptr<const HostTensor>>("indices");
        static constexpr std::pair<std::string_view, std::string_view> kReductions[] = {
            {"none", ""}, {"add", "Add"}, {"mul", "Mul"}, {"min", "Min"}, {"max", "Max"}};
        const auto* reduction = call.attrs().Find<std::string>("reduction");
        const auto* how = std::find_if(
            std::begin(kReductions), std::end(kReductions),
            [&](const auto& r) { return r.first == (reduction ? *reduction : "none"); });
        if (how == std::end(kReductions)) {
          return InvalidArgument("attribute \"reduction\" is ", QuoteShort(*reduction),
                                 ", expected none, add, mul, min or max");
        }
        ASSIGN_OR_RETURN(ScatterShape shape, ShapeOfScatter(call, indices));
        ASSIGN_OR_RETURN(std::vector<int64_t> targets, TargetRows(call, indices, shape.updates));
        auto rounds = ScatterRounds(targets, shape.rows, how->second.empty());
        if (rounds.size() > kMaxScatterRounds) {
          return Unimplemented("indices name one row more than ", kMaxScatterRounds, " times");
        }
        if (rounds.empty()) return d.Apply("Identity", {d.in(0)});
        auto as_rows = [&](ScatterValue v, int64_t rows) {
          Dims dims = {rows};
          dims.insert(dims.end(), shape.rest.begin(), shape.rest.end());
          return d.Apply("Reshape", {v}, {{"shape", dims}, {"allowzero", int64_t{1}}});
        };
        ASSIGN_OR_RETURN(ScatterValue y, as_rows(d.in(0), shape.rows));
        ASSIGN_OR_RETURN(ScatterValue updates, as_rows(d.in(1), shape.updates));
        for (const ScatterRound& round : rounds) {
          ASSIGN_OR_RETURN(y, ApplyRound(d, y, updates, round, how->second));
        }
        return d.Apply("Reshape", {y},
                       {{"shape", call.shape(0).ToDims()}, {"allowzero", int64_t{1}}});
      }};
}

}  // namespace fusion
