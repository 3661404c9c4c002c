#include <algorithm>

#include "core/op/forms.h"
#include "core/op/forms/windows.h"

namespace fusion {

namespace {

// Windows of one dim that may be counted one by one.
constexpr int64_t kMaxCountedWindows = int64_t{1} << 20;

// How many elements of window `i` are averaged: those inside the input, or inside the padding that
// was asked for. What a ceil_mode window covers beyond that never counts.
int64_t AveragedElements(const Window& w, int64_t i, bool with_padding) {
  int64_t low = with_padding ? 0 : w.pad_begin;
  int64_t high = w.pad_begin + w.extent + (with_padding ? w.pad_end : 0);
  // Elements of the window that lie before `bound`.
  auto before = [&](int64_t bound) {
    int64_t distance = bound - i * w.stride;
    if (distance <= 0) return int64_t{0};
    return std::min((distance + w.dilation - 1) / w.dilation, w.kernel);
  };
  return before(high) - before(low);
}

// Of every window of a dim; one number if they are all the same.
absl::StatusOr<std::vector<int64_t>> Counts(const Window& w, size_t dim, bool with_padding) {
  if (w.count == 0) return std::vector<int64_t>{w.kernel};
  bool starts_inside = with_padding || w.pad_begin == 0;
  if (starts_inside && AveragedElements(w, w.count - 1, with_padding) == w.kernel) {
    return std::vector<int64_t>{w.kernel};
  }
  if (w.count > kMaxCountedWindows) {
    return ResourceExhausted("averages ", w.count, " partly padded windows of spatial dim ", dim,
                             "; supported: ", kMaxCountedWindows);
  }
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < w.count; ++i) counts.push_back(AveragedElements(w, i, with_padding));
  bool equal =
      std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
  if (equal) counts.resize(1);
  return counts;
}

// `sums` of the windows divided by their numbers of elements: first by those that are the same
// along a dim, then dim by dim.
absl::StatusOr<Decomposition::Value> DivideByCounts(Decomposition& d, Decomposition::Value sums,
                                                    const std::vector<Window>& windows,
                                                    bool with_padding) {
  DType type = d.type(sums).dtype;
  double same = 1;
  std::vector<HostTensor> varying;
  for (size_t dim = 0; dim < windows.size(); ++dim) {
    ASSIGN_OR_RETURN(std::vector<int64_t> counts, Counts(windows[dim], dim, with_padding));
    if (counts.size() == 1) {
      same *= static_cast<double>(counts[0]);
      continue;
    }
    Dims extents(windows.size() - dim, 1);
    extents[0] = static_cast<int64_t>(counts.size());
    HostTensor divisor(type, extents);
    for (size_t i = 0; i < counts.size(); ++i) {
      divisor.SetDouble(static_cast<int64_t>(i), static_cast<double>(counts[i]));
    }
    varying.push_back(std::move(divisor));
  }
  if (same != 1 || varying.empty()) {
    ASSIGN_OR_RETURN(sums, d.Apply("Div", {sums, d.Scalar(type, same)}));
  }
  for (HostTensor& divisor : varying) {
    ASSIGN_OR_RETURN(sums, d.Apply("Div", {sums, d.Constant(std::move(divisor))}));
  }
  return sums;
}

}  // namespace

/// y = the mean of each window: of its elements inside the input or, with count_include_pad, inside
/// the padding as well
OpDef DefineAveragePool() {
  std::vector<ParamSpec> params = WindowParams();
  params.push_back({.name = "ceil_mode", .kind = ParamSpec::kInt});
  params.push_back({.name = "count_include_pad", .kind = ParamSpec::kInt});
  return {.name = "AveragePool",
          .params = std::move(params),
          .decompose = [](Decomposition& d) -> absl::StatusOr<Decomposition::Value> {
            const OpCall& call = d.call();
            if (!IsFloat(call.dtype(0))) {
              return InvalidArgument("input 0 is ", DTypeName(call.dtype(0)),
                                     ", expected a float type");
            }
            ASSIGN_OR_RETURN(std::vector<Window> windows, PoolWindowsOf(call));
            ASSIGN_OR_RETURN(auto x,
                             FillAround(d, d.in(0), windows, Expr::Const(call.dtype(0), 0)));
            AttrMap attrs = StrideAttrs(windows);
            attrs.Set("kernel_shape", call.attrs().Ints("kernel_shape"));
            attrs.Set("reduce", std::string("sum"));
            ASSIGN_OR_RETURN(auto sum, d.Apply("WindowReduce", {x}, std::move(attrs)));
            bool with_padding = call.attrs().Int("count_include_pad", 0) != 0;
            return DivideByCounts(d, sum, windows, with_padding);
          }};
}

}  // namespace fusion
