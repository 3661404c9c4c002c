#include "core/op/forms.h"
#include "core/op/indexed/opaque.h"
#include "core/op/indexed/ranking.h"

namespace fusion {

namespace {

// Few elements of a short row are found one after the other, each by two loops over the row: these
// fuse with what is around them. One element is so found in a row of any length.
constexpr int64_t kMostSteps = 4;
constexpr int64_t kMostStepElements = 512;
constexpr int64_t kElementsPerStep = 4;
// In a very short row each element is compared with all others: one loop, which fuses as well.
constexpr int64_t kMostRankedElements = 16;

struct TopKRequest {
  int axis = 0;
  int64_t extent = 0;
  int64_t k = 0;
  AttrMap order;  // "axis" and "largest", as the steps want them
};

// Elements and where they are in input 0 along the axis.
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
absl::StatusOr<RankedElements> FirstByRank(Decomposition& d, const TopKRequest& top) {
  ASSIGN_OR_RETURN(auto rank, d.Apply("RankAlong", {d.in(0), d.in(0)}, top.order));
  AttrMap to = {{"axis", int64_t{top.axis}}, {"depth", top.k}};
  RankedElements out;
  ASSIGN_OR_RETURN(out.indices, d.Apply("LastIndexed", {rank}, to));
  // One element has each rank: it is the largest of them.
  to.Set("reduction", std::string("max"));
  ASSIGN_OR_RETURN(out.values, d.Apply("ReduceIndexed", {rank, d.in(0)}, to));
  return out;
}

// The order of the row, by a kernel of its own: about n log k steps.
absl::StatusOr<RankedElements> FirstByOrder(Decomposition& d, const TopKRequest& top) {
  ASSIGN_OR_RETURN(const DType wide, WideType(d.call(), 0));
  ASSIGN_OR_RETURN(Decomposition::Value x, CastTo(d, d.in(0), wide));
  AttrMap order = top.order;
  order.Set("count", top.k);
  RankedElements out;
  ASSIGN_OR_RETURN(out.indices, d.Apply(RowOrder::kName, {x}, std::move(order)));
  ASSIGN_OR_RETURN(
      out.values, d.Apply("GatherElements", {d.in(0), out.indices}, {{"axis", int64_t{top.axis}}}));
  return out;
}

absl::StatusOr<RankedElements> FirstElements(Decomposition& d, const TopKRequest& top) {
  if (top.k == 0) {
    RankedElements none;
    ASSIGN_OR_RETURN(none.values, SliceAlong(d, d.in(0), top.axis, 0, 0));
    ASSIGN_OR_RETURN(none.indices, CastTo(d, none.values, DType::kI64));
    return none;
  }
  const bool short_row = top.k <= kMostSteps && top.k * kElementsPerStep <= top.extent &&
                         top.extent <= kMostStepElements;
  if (top.k == 1 || short_row) return FirstInSteps(d, top);
  if (top.extent <= kMostRankedElements) return FirstByRank(d, top);
  return FirstByOrder(d, top);
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
