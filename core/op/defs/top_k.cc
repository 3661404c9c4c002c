#include "core/op/forms.h"
#include "core/op/ranking.h"

namespace fusion {

namespace {

// A few elements of a row of n are found one after the other, each by two loops over the row that
// wait for those before: 2 k n comparisons. Ranks take n * n in one loop: better unless k is well
// below n.
constexpr int64_t kMaxTopSteps = 16;
constexpr int64_t kElementsPerTopStep = 4;

// Long rows are ranked in blocks of 4 k elements, of which a quarter is left: 4 k n comparisons
// instead of n * n. Fewer than 4 blocks are not worth a round.
constexpr int64_t kElementsPerRank = 4;
constexpr int64_t kFewestRankBlocks = 4;

struct TopKRequest {
  int axis = 0;
  int64_t extent = 0;
  int64_t k = 0;
  AttrMap order;  // "axis" and "largest", as the steps want them
};

// Elements and where they are in input 0 along the axis; -1: all are there, in order.
struct RankedElements {
  Decomposition::Value values = -1;
  Decomposition::Value indices = -1;
};

absl::StatusOr<TopKRequest> TopKOf(const OpCall& call) {
  TopKRequest top;
  ASSIGN_OR_RETURN(top.axis,
                   call.NormaliseAxis(call.attrs().Int("axis", -1), call.shape(0).rank()));
  ASSIGN_OR_RETURN(top.extent, RankedExtent(call, top.axis));
  RETURN_IF_ERROR(StaticDims(call, 0).status());
  top.k = call.attrs().Int("k", 0);
  if (top.k < 0 || top.k > top.extent) {
    return InvalidArgument("k is ", top.k, ", expected 0..", top.extent, ", the extent of axis ",
                           top.axis, " of input 0 ", call.in(0).ToString());
  }
  top.order = {{"axis", int64_t{top.axis}}, {"largest", call.attrs().Int("largest", 1)}};
  return top;
}

// k times the element that comes next.
absl::StatusOr<RankedElements> FirstInSteps(Decomposition& d, const TopKRequest& top) {
  std::vector<Decomposition::Value> places;
  std::vector<Decomposition::Value> previous;
  for (int64_t i = 0; i < top.k; ++i) {
    std::vector<Decomposition::Value> inputs = {d.in(0)};
    inputs.insert(inputs.end(), previous.begin(), previous.end());
    ASSIGN_OR_RETURN(auto value, d.Apply("NextValue", inputs, top.order));
    inputs.insert(inputs.begin() + 1, value);
    ASSIGN_OR_RETURN(auto place, d.Apply("NextPlace", inputs, top.order));
    previous = {value, place};
    places.push_back(place);
  }
  RankedElements out = {.values = -1, .indices = places[0]};
  const AttrMap along = {{"axis", int64_t{top.axis}}};
  if (top.k > 1) {
    ASSIGN_OR_RETURN(out.indices, d.Apply("Concat", std::move(places), along));
  }
  if (IsFloat(d.call().dtype(0))) {
    const auto extent = d.Scalar(DType::kI64, static_cast<double>(top.extent));
    ASSIGN_OR_RETURN(out.indices, d.Apply("Mod", {out.indices, extent}));
  }
  ASSIGN_OR_RETURN(out.values, d.Apply("GatherElements", {d.in(0), out.indices}, along));
  return out;
}

// Each element goes where its rank says: the number of those that come before it.
absl::StatusOr<RankedElements> FirstByRank(Decomposition& d, const RankedElements& from, int axis,
                                           const TopKRequest& top) {
  AttrMap order = top.order;
  order.Set("axis", int64_t{axis});
  ASSIGN_OR_RETURN(auto rank, d.Apply("RankAlong", {from.values, from.values}, std::move(order)));
  AttrMap to = {{"axis", int64_t{axis}}, {"depth", top.k}};
  RankedElements out;
  if (from.indices < 0) {
    ASSIGN_OR_RETURN(out.indices, d.Apply("LastIndexed", {rank}, to));
  }
  // One element has each rank: it is the largest of them.
  to.Set("reduction", std::string("max"));
  ASSIGN_OR_RETURN(out.values, d.Apply("ReduceIndexed", {rank, from.values}, to));
  if (from.indices >= 0) {
    ASSIGN_OR_RETURN(out.indices, d.Apply("ReduceIndexed", {rank, from.indices}, std::move(to)));
  }
  return out;
}

// The first k of each whole block, with what is behind the blocks: the others are not among the
// first k of all. The order of equal elements stays.
absl::StatusOr<RankedElements> FirstOfBlocks(Decomposition& d, const RankedElements& from,
                                             int64_t block, const TopKRequest& top) {
  Dims dims = d.type(from.values).shape.ToDims();
  const auto at = static_cast<size_t>(top.axis);
  const int64_t extent = dims[at];
  const int64_t blocks = extent / block;
  auto reshaped = [&](Decomposition::Value v, const Dims& shape) {
    return d.Apply("Reshape", {v}, {{"shape", shape}, {"allowzero", int64_t{1}}});
  };
  Dims cut = dims;
  cut[at] = block;
  cut.insert(cut.begin() + top.axis, blocks);
  auto in_blocks = [&](Decomposition::Value v) -> absl::StatusOr<Decomposition::Value> {
    ASSIGN_OR_RETURN(v, SliceAlong(d, v, top.axis, 0, blocks * block));
    return reshaped(v, cut);
  };
  dims[at] = blocks * top.k;
  auto with_rest = [&](Decomposition::Value first,
                       Decomposition::Value all) -> absl::StatusOr<Decomposition::Value> {
    ASSIGN_OR_RETURN(first, reshaped(first, dims));
    if (blocks * block == extent) return first;
    ASSIGN_OR_RETURN(auto rest, SliceAlong(d, all, top.axis, blocks * block, extent));
    return d.Apply("Concat", {first, rest}, {{"axis", int64_t{top.axis}}});
  };
  RankedElements whole;
  ASSIGN_OR_RETURN(whole.values, in_blocks(from.values));
  ASSIGN_OR_RETURN(whole.indices, in_blocks(from.indices));
  ASSIGN_OR_RETURN(RankedElements first, FirstByRank(d, whole, top.axis + 1, top));
  RankedElements out;
  ASSIGN_OR_RETURN(out.values, with_rest(first.values, from.values));
  ASSIGN_OR_RETURN(out.indices, with_rest(first.indices, from.indices));
  return out;
}

// The coordinates of input 0 along the axis, as a tensor of its shape.
absl::StatusOr<Decomposition::Value> AllIndices(Decomposition& d, const TopKRequest& top) {
  ASSIGN_OR_RETURN(auto range, CountTo(d, top.extent));
  const Dims dims = d.call().shape(0).ToDims();
  Dims behind;
  for (size_t i = static_cast<size_t>(top.axis) + 1; i < dims.size(); ++i) {
    behind.push_back(static_cast<int64_t>(behind.size()) + 1);
  }
  if (!behind.empty()) {
    ASSIGN_OR_RETURN(range, d.Apply("Unsqueeze", {range}, {{"axes", behind}}));
  }
  return d.Apply("Expand", {range}, {{"shape", dims}});
}

absl::StatusOr<RankedElements> FirstElements(Decomposition& d, const TopKRequest& top) {
  RankedElements from = {.values = d.in(0), .indices = -1};
  if (top.k == 0) {
    ASSIGN_OR_RETURN(from.values, SliceAlong(d, from.values, top.axis, 0, 0));
    ASSIGN_OR_RETURN(from.indices, CastTo(d, from.values, DType::kI64));
    return from;
  }
  if (top.k <= kMaxTopSteps && top.k * kElementsPerTopStep <= top.extent) {
    return FirstInSteps(d, top);
  }
  const int64_t block = kElementsPerRank * top.k;
  for (int64_t left = top.extent; left >= kFewestRankBlocks * block;) {
    if (from.indices < 0) {
      ASSIGN_OR_RETURN(from.indices, AllIndices(d, top));
    }
    ASSIGN_OR_RETURN(from, FirstOfBlocks(d, from, block, top));
    left = d.type(from.values).shape.dim(top.axis).value();
  }
  return FirstByRank(d, from, top.axis, top);
}

}  // namespace

/// y = the first k elements along `axis`, the largest first (`largest` = 0: the smallest), and, as
/// output 1, where they are, i64; of equal ones the first. NaN counts as larger than any number.
/// Unsorted results (`sorted` = 0) are sorted too.
OpDef DefineTopK() {
  return {.name = "TopK",
          .params = {{.name = "k", .kind = ParamSpec::kInt, .onnx_input = 1, .required = true},
                     {.name = "axis", .kind = ParamSpec::kInt},
                     {.name = "largest", .kind = ParamSpec::kInt},
                     {.name = "sorted", .kind = ParamSpec::kInt}},
          .max_outputs = 2,
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            ASSIGN_OR_RETURN(TopKRequest top, TopKOf(d.call()));
            ASSIGN_OR_RETURN(RankedElements first, FirstElements(d, top));
            if (d.call().outputs() > 1) d.SetOutput(1, first.indices);
            return first.values;
          }};
}

}  // namespace fusion
