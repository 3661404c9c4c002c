#include <algorithm>
#include <limits>

#include "core/op/forms.h"
#include "core/op/indexed/scatter.h"

namespace fusion {

namespace {

using ScatterValue = Decomposition::Value;

// Rows that are indexed.
constexpr int64_t kMaxScatterRows = int64_t{1} << 24;
constexpr int64_t kMaxScatterUpdates = int64_t{1} << 22;
// Rows for each of which a constant says which update it gets.
constexpr int64_t kMostGatheredRows = int64_t{1} << 16;
// As many pieces are put one behind the other; more are gathered.
constexpr size_t kMaxScatterPieces = 16;
// Updates of one row that are put together one after the other; where there are more, each update
// finds its row as if indices were computed.
constexpr size_t kMaxScatterRounds = 16;

// `data` as rows: what an index names; `updates` as rows of the same length.
struct ScatterShape {
  int64_t rows = 1;
  int64_t updates = 1;
  Dims rest;
};

absl::StatusOr<ScatterShape> ShapeOfScatter(const OpCall& call, DType dtype, const Dims& indices) {
  RETURN_IF_ERROR(call.CheckRankAtLeast(0, 1));
  RETURN_IF_ERROR(call.CheckSameType(0, 1));
  if (!call.shape(0).is_static()) {
    return Unimplemented("input 0 ", call.in(0).ToString(), " has symbolic dims");
  }
  Dims data = call.shape(0).ToDims();
  if (!IsInteger(dtype) || indices.empty() || indices.back() < 0 ||
      indices.back() > static_cast<int64_t>(data.size())) {
    return InvalidArgument("indices are ", DTypeName(dtype), DimsToString(indices),
                           ", expected integers of at most ", data.size(), " columns for input 0 ",
                           call.in(0).ToString());
  }
  auto depth = indices.back();
  ScatterShape out;
  out.rest.assign(data.begin() + depth, data.end());
  Dims expected(indices.begin(), indices.end() - 1);
  for (int64_t extent : expected) out.updates *= extent;
  expected.insert(expected.end(), out.rest.begin(), out.rest.end());
  if (call.shape(1) != Shape(expected)) {
    return InvalidArgument("updates are ", call.in(1).ToString(), ", expected ",
                           DimsToString(expected));
  }
  // Indices without columns carry no bytes, however many they are.
  if (out.updates > kMaxScatterUpdates) {
    return Unimplemented("scatters ", out.updates, " updates; supported: ", kMaxScatterUpdates);
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

// The rows that are written and the update that writes each, by row. One round if later updates
// replace earlier ones, else the n-th round holds the n-th update of each row.
struct RowUpdate {
  int64_t row = 0;
  int64_t update = 0;
};
using ScatterRound = std::vector<RowUpdate>;

// At most kMaxScatterRounds + 1 rounds.
std::vector<ScatterRound> ScatterRounds(const std::vector<int64_t>& targets, bool replace) {
  ScatterRound by_row;
  for (size_t u = 0; u < targets.size(); ++u) {
    by_row.push_back({targets[u], static_cast<int64_t>(u)});
  }
  std::stable_sort(by_row.begin(), by_row.end(),
                   [](const RowUpdate& a, const RowUpdate& b) { return a.row < b.row; });
  std::vector<ScatterRound> rounds;
  size_t round = 0;
  for (size_t i = 0; i < by_row.size(); ++i) {
    bool again = i > 0 && by_row[i].row == by_row[i - 1].row;
    if (again && replace) {
      rounds[0].back() = by_row[i];
      continue;
    }
    round = again ? round + 1 : 0;
    if (round > kMaxScatterRounds) break;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(by_row[i]);
  }
  return rounds;
}

// A run of rows that are kept (from = -1) or taken from consecutive updates.
struct ScatterPiece {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t from = -1;
};

// The pieces of all `rows`; more than kMaxScatterPieces of them are not complete.
std::vector<ScatterPiece> PiecesOf(const ScatterRound& round, int64_t rows) {
  std::vector<ScatterPiece> pieces;
  int64_t done = 0;
  for (const RowUpdate& u : round) {
    if (u.row > done) pieces.push_back({done, u.row, -1});
    bool goes_on = !pieces.empty() && pieces.back().from >= 0 &&
                   u.update == pieces.back().from + u.row - pieces.back().begin;
    if (goes_on) {
      ++pieces.back().end;
    } else {
      pieces.push_back({u.row, u.row + 1, u.update});
    }
    done = u.row + 1;
    if (pieces.size() > kMaxScatterPieces) return pieces;
  }
  if (done < rows) pieces.push_back({done, rows, -1});
  return pieces;
}

absl::StatusOr<ScatterValue> Rows(Decomposition& d, ScatterValue v, int64_t begin, int64_t end) {
  if (begin == 0 && Dim(end) == d.type(v).shape.dim(0)) return v;
  return SliceAlong(d, v, 0, begin, end);
}

// data with the rows of one round replaced by op(data, updates), or by the updates themselves.
absl::StatusOr<ScatterValue> JoinPieces(Decomposition& d, ScatterValue data, ScatterValue updates,
                                        const std::vector<ScatterPiece>& pieces,
                                        std::string_view op) {
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

// The same with two constants of one entry a row.
absl::StatusOr<ScatterValue> GatherUpdates(Decomposition& d, ScatterValue data,
                                           ScatterValue updates, const ScatterRound& round,
                                           int64_t rows, std::string_view op) {
  HostTensor source(DType::kI64, {rows});  // 0 where nothing is written
  Dims mask_dims(static_cast<size_t>(d.type(data).shape.rank()), 1);
  mask_dims[0] = rows;
  HostTensor written(DType::kBool, mask_dims);
  for (const RowUpdate& u : round) {
    source.SetInt(u.row, u.update);
    written.SetInt(u.row, 1);
  }
  ASSIGN_OR_RETURN(auto gathered, d.Apply("Gather", {updates, d.Constant(std::move(source))}));
  if (!op.empty()) {
    ASSIGN_OR_RETURN(gathered, d.Apply(op, {data, gathered}));
  }
  if (static_cast<int64_t>(round.size()) == rows) return gathered;
  return d.Apply("Where", {d.Constant(std::move(written)), gathered, data});
}

// Whether rounds are few, and each of few pieces or the only one, over not too many rows.
bool AreFew(const std::vector<ScatterRound>& rounds, int64_t rows) {
  if (rounds.size() == 1 && rows <= kMostGatheredRows) return true;
  return rounds.size() <= kMaxScatterRounds &&
         std::all_of(rounds.begin(), rounds.end(), [rows](const ScatterRound& round) {
           return PiecesOf(round, rows).size() <= kMaxScatterPieces;
         });
}

absl::StatusOr<ScatterValue> ApplyRounds(Decomposition& d, ScatterValue data, ScatterValue updates,
                                         const std::vector<ScatterRound>& rounds, int64_t rows,
                                         std::string_view op) {
  for (const ScatterRound& round : rounds) {
    std::vector<ScatterPiece> pieces = PiecesOf(round, rows);
    if (pieces.size() <= kMaxScatterPieces) {
      ASSIGN_OR_RETURN(data, JoinPieces(d, data, updates, pieces, op));
    } else {
      ASSIGN_OR_RETURN(data, GatherUpdates(d, data, updates, round, rows, op));
    }
  }
  return data;
}

// The row that each of the computed indices names: [updates, 1], negative if there is no such row.
absl::StatusOr<ScatterValue> ComputedRows(Decomposition& d, ScatterValue indices, int64_t updates) {
  const auto scalar = [&](int64_t value) {
    return d.Scalar(DType::kI64, static_cast<double>(value));
  };
  const int last = d.type(indices).shape.rank() - 1;
  const int64_t depth = d.type(indices).shape.dim(last).value();
  ASSIGN_OR_RETURN(indices, CastTo(d, indices, DType::kI64));
  ASSIGN_OR_RETURN(indices, d.Apply("Reshape", {indices}, {{"shape", Dims{updates, depth}}}));
  if (depth == 0) return Unimplemented("computed indices without columns");
  ScatterValue row = 0;
  ScatterValue inside = 0;
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t extent = d.call().shape(0).dim(static_cast<int>(k)).value();
    ASSIGN_OR_RETURN(auto at, SliceAlong(d, indices, 1, k, k + 1));
    ASSIGN_OR_RETURN(auto from_end, d.Apply("Add", {at, scalar(extent)}));
    ASSIGN_OR_RETURN(auto negative, d.Apply("Less", {at, scalar(0)}));
    ASSIGN_OR_RETURN(at, d.Apply("Where", {negative, from_end, at}));
    ASSIGN_OR_RETURN(auto below, d.Apply("Less", {at, scalar(extent)}));
    ASSIGN_OR_RETURN(auto here, d.Apply("GreaterOrEqual", {at, scalar(0)}));
    ASSIGN_OR_RETURN(here, d.Apply("And", {here, below}));
    if (k > 0) {
      ASSIGN_OR_RETURN(here, d.Apply("And", {inside, here}));
      ASSIGN_OR_RETURN(row, d.Apply("Mul", {row, scalar(extent)}));
      ASSIGN_OR_RETURN(at, d.Apply("Add", {row, at}));
    }
    row = at;
    inside = here;
  }
  return d.Apply("Where", {inside, row, scalar(std::numeric_limits<int32_t>::min())});
}

// The same with the row of each update, [updates, 1]: it goes where that says.
absl::StatusOr<ScatterValue> ScatterToRows(Decomposition& d, ScatterValue data,
                                           ScatterValue updates, ScatterValue rows,
                                           const ScatterShape& shape,
                                           const ScatterReduction& reduction) {
  int64_t length = 1;
  for (int64_t extent : shape.rest) length *= extent;
  ASSIGN_OR_RETURN(auto y, d.Apply("Reshape", {data}, {{"shape", Dims{shape.rows, length}}}));
  ASSIGN_OR_RETURN(updates,
                   d.Apply("Reshape", {updates}, {{"shape", Dims{shape.updates, length}}}));
  if (!reduction.op.empty()) return ScatterAlong(d, y, rows, updates, 0, reduction);
  ASSIGN_OR_RETURN(auto last,
                   d.Apply("LastIndexed", {rows}, {{"axis", int64_t{0}}, {"depth", shape.rows}}));
  const auto none = d.Scalar(DType::kI64, 0);
  ASSIGN_OR_RETURN(auto written, d.Apply("GreaterOrEqual", {last, none}));
  ASSIGN_OR_RETURN(last, d.Apply("Max", {last, none}));
  ASSIGN_OR_RETURN(last, d.Apply("Squeeze", {last}, {{"axes", Dims{1}}}));
  ASSIGN_OR_RETURN(auto found, d.Apply("Gather", {updates, last}));
  return d.Apply("Where", {written, found, y});
}

absl::StatusOr<ScatterValue> ScatterComputed(Decomposition& d, ScatterValue data,
                                             ScatterValue updates, const ScatterShape& shape,
                                             const ScatterReduction& reduction) {
  const bool nothing = std::find(shape.rest.begin(), shape.rest.end(), 0) != shape.rest.end();
  if (shape.updates == 0 || shape.rows == 0 || nothing) return data;
  ASSIGN_OR_RETURN(auto rows, ComputedRows(d, d.in(2), shape.updates));
  return ScatterToRows(d, data, updates, rows, shape, reduction);
}

// And with known indices, of which row `targets[u]` is that of update u.
absl::StatusOr<ScatterValue> ScatterKnown(Decomposition& d, ScatterValue data, ScatterValue updates,
                                          const std::vector<int64_t>& targets,
                                          const ScatterShape& shape,
                                          const ScatterReduction& reduction) {
  const bool nothing = std::find(shape.rest.begin(), shape.rest.end(), 0) != shape.rest.end();
  const auto rounds = ScatterRounds(targets, reduction.op.empty());
  if (rounds.empty() || nothing) return d.Apply("Identity", {data});
  if (!AreFew(rounds, shape.rows)) {
    HostTensor rows(DType::kI64, {shape.updates, 1});
    for (int64_t u = 0; u < shape.updates; ++u) rows.SetInt(u, targets[static_cast<size_t>(u)]);
    return ScatterToRows(d, data, updates, d.Constant(std::move(rows)), shape, reduction);
  }
  auto as_rows = [&](ScatterValue v, int64_t rows) {
    Dims dims = {rows};
    dims.insert(dims.end(), shape.rest.begin(), shape.rest.end());
    return d.Apply("Reshape", {v}, {{"shape", dims}, {"allowzero", int64_t{1}}});
  };
  ASSIGN_OR_RETURN(data, as_rows(data, shape.rows));
  ASSIGN_OR_RETURN(updates, as_rows(updates, shape.updates));
  return ApplyRounds(d, data, updates, rounds, shape.rows, reduction.op);
}

}  // namespace

/// y = data with the rows that `indices` name replaced by updates or, with `reduction` add, mul,
/// min or max, combined with them
OpDef DefineScatterNd() {
  return {.name = "ScatterND",
          .min_inputs = 2,
          .max_inputs = 3,
          .params = {{.name = "indices",
                      .kind = ParamSpec::kTensor,
                      .onnx_input = 1,
                      .unknown_is_operand = true},
                     {.name = "reduction", .kind = ParamSpec::kString}},
          .min_opset = 11,
          .decompose = [](Decomposition& d) -> absl::StatusOr<ScatterValue> {
            const OpCall& call = d.call();
            const auto* known = call.attrs().Find<std::shared_ptr<const HostTensor>>("indices");
            if ((known != nullptr) == call.has_input(2)) {
              return InvalidArgument("expected indices, as an input or as an attribute");
            }
            ASSIGN_OR_RETURN(const ScatterReduction reduction, ScatterReductionOf(call));
            if (known == nullptr && !call.shape(2).is_static()) {
              return Unimplemented("indices ", call.in(2).ToString(), " have symbolic dims");
            }
            ASSIGN_OR_RETURN(
                ScatterShape shape,
                ShapeOfScatter(call, known != nullptr ? (*known)->dtype() : call.dtype(2),
                               known != nullptr ? (*known)->dims() : call.shape(2).ToDims()));
            ScatterValue y = d.in(0);
            if (known == nullptr) {
              ASSIGN_OR_RETURN(y, ScatterComputed(d, y, d.in(1), shape, reduction));
            } else {
              ASSIGN_OR_RETURN(std::vector<int64_t> targets,
                               TargetRows(call, **known, shape.updates));
              ASSIGN_OR_RETURN(y, ScatterKnown(d, y, d.in(1), targets, shape, reduction));
            }
            return d.Apply("Reshape", {y},
                           {{"shape", call.shape(0).ToDims()}, {"allowzero", int64_t{1}}});
          }};
}

}  // namespace fusion
