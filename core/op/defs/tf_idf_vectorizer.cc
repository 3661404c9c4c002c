#include <algorithm>
#include <set>

#include "core/op/forms.h"

namespace fusion {

namespace {

// Items that are compared with a pool: each of every n-gram at every distance.
constexpr int64_t kMaxGramComparisons = 4096;
// Coordinates of the result.
constexpr int64_t kMaxGramCoordinates = int64_t{1} << 24;

using GramValue = Decomposition::Value;

// The n-grams of one length.
struct GramPool {
  int64_t length = 0;
  int64_t first = 0;           // number of the first one among all n-grams
  std::vector<int64_t> items;  // one n-gram behind the other

  int64_t count() const { return static_cast<int64_t>(items.size()) / length; }
};

struct GramSpec {
  std::vector<GramPool> pools;       // of the lengths that are counted
  std::vector<int64_t> coordinates;  // of all n-grams
  std::vector<double> weights;       // of the coordinates; empty: 1
  int64_t max_skip = 0;
  int64_t row = 0;  // coordinates of the result
};

absl::Status CheckGrams(const GramPool& pool) {
  std::set<std::vector<int64_t>> seen;
  for (int64_t g = 0; g < pool.count(); ++g) {
    const auto begin = pool.items.begin() + g * pool.length;
    if (seen.emplace(begin, begin + pool.length).second) continue;
    return InvalidArgument("attribute \"pool_int64s\" has n-gram ", pool.first + g, ", [",
                           StrJoin(std::vector<int64_t>(begin, begin + pool.length), ","),
                           "], twice");
  }
  return absl::OkStatus();
}

// The pool cut where "ngram_counts" says: n-grams of length 1 first.
absl::StatusOr<std::vector<GramPool>> CutPool(const AttrMap& attrs) {
  const std::vector<int64_t> pool = attrs.Ints("pool_int64s");
  std::vector<int64_t> cuts = attrs.Ints("ngram_counts");
  cuts.push_back(static_cast<int64_t>(pool.size()));
  std::vector<GramPool> out;
  int64_t first = 0;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    const auto length = static_cast<int64_t>(i) + 1;
    const bool inside = cuts[i] >= 0 && cuts[i] <= cuts[i + 1] && cuts[i + 1] <= cuts.back();
    if (!inside || (cuts[i + 1] - cuts[i]) % length != 0) {
      return InvalidArgument("attribute \"ngram_counts\" gives n-grams of length ", length,
                             " the items ", cuts[i], "..", cuts[i + 1], " of ", pool.size(),
                             " in \"pool_int64s\"");
    }
    out.push_back({.length = length,
                   .first = first,
                   .items = {pool.begin() + cuts[i], pool.begin() + cuts[i + 1]}});
    first += out.back().count();
  }
  return out;
}

// Where `grams` n-grams are counted and what they weigh.
absl::Status SetCoordinates(const AttrMap& attrs, int64_t grams, GramSpec* spec) {
  spec->coordinates = attrs.Ints("ngram_indexes");
  if (grams == 0 || grams != static_cast<int64_t>(spec->coordinates.size())) {
    return InvalidArgument("attribute \"ngram_indexes\" has ", spec->coordinates.size(),
                           " entries, the pool ", grams, " n-grams; expected as many, at least 1");
  }
  const auto [low, high] = std::minmax_element(spec->coordinates.begin(), spec->coordinates.end());
  if (*low < 0) return InvalidArgument("attribute \"ngram_indexes\" has the entry ", *low);
  if (*high >= kMaxGramCoordinates) {
    return Unimplemented("attribute \"ngram_indexes\" has the entry ", *high, "; supported: 0..",
                         kMaxGramCoordinates - 1);
  }
  spec->row = *high + 1;
  const auto* weights = attrs.Find<std::vector<double>>("weights");
  if (weights == nullptr || weights->empty()) return absl::OkStatus();
  const auto count = static_cast<int64_t>(weights->size());
  if (count != grams) {
    return InvalidArgument("attribute \"weights\" has ", count, " entries, the pool ", grams,
                           " n-grams; expected as many");
  }
  if (count < spec->row) {
    return InvalidArgument("attribute \"weights\" has ", count, " entries, coordinate ", *high,
                           " of \"ngram_indexes\" has none");
  }
  spec->weights = *weights;
  return absl::OkStatus();
}

absl::StatusOr<GramSpec> GramSpecOf(const AttrMap& attrs) {
  if (attrs.Has("pool_strings")) return Unimplemented("n-grams of strings: \"pool_strings\"");
  GramSpec spec;
  const int64_t shortest = attrs.Int("min_gram_length", 0);
  const int64_t longest = attrs.Int("max_gram_length", 0);
  spec.max_skip = attrs.Int("max_skip_count", 0);
  if (shortest < 1 || longest < shortest || spec.max_skip < 0 || spec.max_skip > kMaxExtent) {
    return InvalidArgument("min_gram_length, max_gram_length and max_skip_count are ", shortest,
                           ", ", longest, " and ", spec.max_skip,
                           ", expected 1 <= min <= max and 0..", kMaxExtent);
  }
  ASSIGN_OR_RETURN(std::vector<GramPool> pools, CutPool(attrs));
  const int64_t grams = pools.empty() ? 0 : pools.back().first + pools.back().count();
  RETURN_IF_ERROR(SetCoordinates(attrs, grams, &spec));
  for (GramPool& pool : pools) {
    if (pool.length < shortest || pool.length > longest || pool.items.empty()) continue;
    RETURN_IF_ERROR(CheckGrams(pool));
    spec.pools.push_back(std::move(pool));
  }
  return spec;
}

// The first items of all n-grams, the second ones, and so on: [n-grams, 1] each.
std::vector<GramValue> ItemColumns(Decomposition& d, const GramPool& pool) {
  std::vector<GramValue> columns;
  for (int64_t i = 0; i < pool.length; ++i) {
    HostTensor column(DType::kI64, {pool.count(), 1});
    for (int64_t g = 0; g < pool.count(); ++g) {
      column.SetInt(g, pool.items[static_cast<size_t>(g * pool.length + i)]);
    }
    columns.push_back(d.Constant(std::move(column)));
  }
  return columns;
}

// How often each n-gram of the pool occurs at `starts` places of the rows of x [rows, 1, items],
// its items `distance` apart: f32 [rows, n-grams].
absl::StatusOr<GramValue> CountAt(Decomposition& d, GramValue x,
                                  const std::vector<GramValue>& columns, int64_t distance,
                                  int64_t starts) {
  GramValue hits = -1;
  int64_t begin = 0;
  for (GramValue column : columns) {
    ASSIGN_OR_RETURN(auto items, SliceAlong(d, x, 2, begin, begin + starts));
    ASSIGN_OR_RETURN(auto same, d.Apply("Equal", {items, column}));
    if (hits >= 0) {
      ASSIGN_OR_RETURN(same, d.Apply("And", {hits, same}));
    }
    hits = same;
    begin += distance;
  }
  ASSIGN_OR_RETURN(hits, CastTo(d, hits, DType::kF32));
  return d.Apply("ReduceSum", {hits}, {{"axes", Dims{2}}, {"keepdims", int64_t{0}}});
}

// The same at all distances, of which single items have one. Raises `comparisons`, which are
// limited.
absl::StatusOr<GramValue> CountGrams(Decomposition& d, GramValue x, const GramPool& pool,
                                     int64_t max_skip, int64_t* comparisons) {
  const Dims dims = d.type(x).shape.ToDims();
  const std::vector<GramValue> columns = ItemColumns(d, pool);
  const int64_t farthest = pool.length == 1 ? 1 : max_skip + 1;
  GramValue total = -1;
  for (int64_t distance = 1; distance <= farthest; ++distance) {
    const int64_t starts = dims[2] - distance * (pool.length - 1);
    if (starts <= 0) break;
    *comparisons += pool.length;
    if (*comparisons > kMaxGramComparisons) {
      return Unimplemented("n-grams at ", max_skip + 1, " distances take more than ",
                           kMaxGramComparisons, " comparisons of ", d.call().in(0).ToString());
    }
    ASSIGN_OR_RETURN(auto count, CountAt(d, x, columns, distance, starts));
    if (total >= 0) {
      ASSIGN_OR_RETURN(count, d.Apply("Add", {total, count}));
    }
    total = count;
  }
  if (total >= 0) return total;
  return d.Apply("Expand", {d.Scalar(DType::kF32, 0)}, {{"shape", Dims{dims[0], pool.count()}}});
}

// `counts` [rows, n-grams], each added to its coordinate: [rows, spec.row].
absl::StatusOr<GramValue> AtCoordinates(Decomposition& d, GramValue counts,
                                        const std::vector<int64_t>& coordinates, int64_t row) {
  const auto grams = static_cast<int64_t>(coordinates.size());
  // The n-gram at each coordinate; behind the last one, where there is none.
  HostTensor source(DType::kI64, {row});
  for (int64_t c = 0; c < row; ++c) source.SetInt(c, grams);
  bool in_order = grams == row;
  bool alone = true;
  for (int64_t g = 0; g < grams; ++g) {
    const int64_t c = coordinates[static_cast<size_t>(g)];
    in_order = in_order && c == g;
    alone = alone && source.GetInt(c) == grams;
    source.SetInt(c, g);
  }
  if (in_order) return counts;
  if (alone) {
    if (grams < row) {
      ASSIGN_OR_RETURN(counts, d.Apply("Pad", {counts}, {{"pads", Dims{0, 0, 0, 1}}}));
    }
    return d.Apply("Gather", {counts, d.Constant(std::move(source))}, {{"axis", int64_t{1}}});
  }
  HostTensor target(DType::kI64, {1, grams});
  for (int64_t g = 0; g < grams; ++g) target.SetInt(g, coordinates[static_cast<size_t>(g)]);
  return d.Apply("ReduceIndexed", {d.Constant(std::move(target)), counts},
                 {{"axis", int64_t{1}}, {"depth", row}, {"reduction", std::string("sum")}});
}

absl::StatusOr<GramValue> Weighted(Decomposition& d, GramValue counts, const GramSpec& spec) {
  const std::string& mode = *d.call().attrs().Find<std::string>("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return InvalidArgument("attribute \"mode\" is ", QuoteShort(mode),
                           ", expected TF, IDF or TFIDF");
  }
  if (mode == "TF" || (mode == "TFIDF" && spec.weights.empty())) return counts;
  GramValue weight = d.Scalar(DType::kF32, 1);
  if (!spec.weights.empty()) {
    HostTensor weights(DType::kF32, {spec.row});
    for (int64_t c = 0; c < spec.row; ++c) {
      weights.SetDouble(c, spec.weights[static_cast<size_t>(c)]);
    }
    weight = d.Constant(std::move(weights));
  }
  if (mode == "TFIDF") return d.Apply("Mul", {counts, weight});
  const GramValue zero = d.Scalar(DType::kF32, 0);
  ASSIGN_OR_RETURN(auto occurs, d.Apply("Greater", {counts, zero}));
  return d.Apply("Where", {occurs, weight, zero});
}

absl::StatusOr<GramValue> DecomposeTfIdf(Decomposition& d) {
  const OpCall& call = d.call();
  ASSIGN_OR_RETURN(GramSpec spec, GramSpecOf(call.attrs()));
  ASSIGN_OR_RETURN(Dims dims, StaticDims(call, 0));
  const bool one_row = dims.size() == 1;
  if (dims.empty() || dims.size() > 2 ||
      (call.dtype(0) != DType::kI64 && call.dtype(0) != DType::kI32)) {
    return InvalidArgument("input 0 is ", call.in(0).ToString(),
                           ", expected i64 or i32 of one or two dims");
  }
  ASSIGN_OR_RETURN(auto x, CastTo(d, d.in(0), DType::kI64));
  ASSIGN_OR_RETURN(x, d.Apply("Unsqueeze", {x}, {{"axes", one_row ? Dims{0, 1} : Dims{1}}}));
  std::vector<GramValue> parts;
  std::vector<int64_t> coordinates;
  int64_t comparisons = 0;
  for (const GramPool& pool : spec.pools) {
    ASSIGN_OR_RETURN(parts.emplace_back(), CountGrams(d, x, pool, spec.max_skip, &comparisons));
    const auto first = spec.coordinates.begin() + pool.first;
    coordinates.insert(coordinates.end(), first, first + pool.count());
  }
  GramValue y = -1;
  if (parts.empty()) {
    const Dims shape = {one_row ? 1 : dims[0], spec.row};
    ASSIGN_OR_RETURN(y, d.Apply("Expand", {d.Scalar(DType::kF32, 0)}, {{"shape", shape}}));
  } else {
    ASSIGN_OR_RETURN(y, d.Apply("Concat", std::move(parts), {{"axis", int64_t{1}}}));
    ASSIGN_OR_RETURN(y, AtCoordinates(d, y, coordinates, spec.row));
  }
  ASSIGN_OR_RETURN(y, Weighted(d, y, spec));
  if (!one_row) return y;
  return d.Apply("Squeeze", {y}, {{"axes", Dims{0}}});
}

}  // namespace

/// y[r, c] = how often the n-grams with coordinate c of a pool of n-grams occur in row r of x, the
/// items of an n-gram next to each other or up to `max_skip_count` items apart, all at one distance
/// (mode TF); the weight of c if one occurs, else 0 (IDF); the number times the weight (TFIDF). A
/// row is all of x if it has one dim.
OpDef DefineTfIdfVectorizer() {
  auto required = [](std::string name, ParamSpec::Kind kind) {
    return ParamSpec{.name = std::move(name), .kind = kind, .required = true};
  };
  return {.name = "TfIdfVectorizer",
          .params = {required("max_gram_length", ParamSpec::kInt),
                     required("max_skip_count", ParamSpec::kInt),
                     required("min_gram_length", ParamSpec::kInt),
                     required("mode", ParamSpec::kString),
                     required("ngram_counts", ParamSpec::kInts),
                     required("ngram_indexes", ParamSpec::kInts),
                     {.name = "pool_int64s", .kind = ParamSpec::kInts, .any_integer = true},
                     {.name = "pool_strings", .kind = ParamSpec::kString},
                     {.name = "weights", .kind = ParamSpec::kFloats}},
          .min_opset = 9,
          .decompose = DecomposeTfIdf};
}

}  // namespace fusion
