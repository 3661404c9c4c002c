#include "core/op/forms/resampling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/threads/job.h"
#include "core/op/forms.h"

namespace fusion {
namespace {

using Value = Decomposition::Value;

// Taps up to which a sum is written out; longer ones are a reduction.
constexpr int64_t kMaxWrittenTaps = 4;

/// What one dim of the result is made of: `taps` elements of the original for each of `resized`.
struct TapTable {
  int64_t original = 0;
  int64_t resized = 0;
  int64_t taps = 0;
  std::vector<int64_t> first;   // [resized]: an element, or a place outside
  std::vector<int64_t> behind;  // [taps]: how far behind that
  std::vector<double> weight;   // [resized, taps]; empty: all are 1
  std::vector<bool> inside;     // [resized]; false: extrapolated

  size_t At(int64_t i, int64_t tap) const { return static_cast<size_t>(i * taps + tap); }
  int64_t Index(int64_t i, int64_t tap) const {
    const int64_t at = first[static_cast<size_t>(i)] + behind[static_cast<size_t>(tap)];
    return std::clamp<int64_t>(at, 0, original - 1);
  }
  bool HasUnitWeights() const {
    return std::all_of(weight.begin(), weight.end(), [](double w) { return w == 1; });
  }
};

double OriginalCoordinate(ResampleCoordinates coordinates, const ResampledDim& dim, int64_t i) {
  const auto x = static_cast<double>(i);
  const auto last = static_cast<double>(dim.original - 1);
  switch (coordinates) {
    case ResampleCoordinates::kHalfPixel:
      return (x + 0.5) / dim.scale - 0.5;
    case ResampleCoordinates::kHalfPixelSymmetric: {
      const double adjustment = static_cast<double>(dim.resized) / dim.length;
      const double offset = static_cast<double>(dim.original) / 2 * (1 - adjustment);
      return offset + (x + 0.5) / dim.scale - 0.5;
    }
    case ResampleCoordinates::kPytorchHalfPixel:
      return dim.resized > 1 ? (x + 0.5) / dim.scale - 0.5 : 0;
    case ResampleCoordinates::kTfHalfPixelForNn:
      return (x + 0.5) / dim.scale;
    case ResampleCoordinates::kAlignCorners:
      return dim.resized > 1 ? x * last / (dim.length - 1) : 0;
    case ResampleCoordinates::kAsymmetric:
      return x / dim.scale;
    case ResampleCoordinates::kTfCropAndResize:
      if (dim.resized <= 1) return 0.5 * (dim.roi_begin + dim.roi_end) * last;
      return dim.roi_begin * last + x * (dim.roi_end - dim.roi_begin) * last / (dim.length - 1);
  }
  return x;
}

double NearestElement(ResampleRounding rounding, double scale, double x) {
  switch (rounding) {
    case ResampleRounding::kRoundPreferFloor:
      return std::ceil(x - 0.5);
    case ResampleRounding::kRoundPreferCeil:
      return std::floor(x + 0.5);
    case ResampleRounding::kFloor:
      return std::floor(x);
    case ResampleRounding::kCeil:
      return std::ceil(x);
    case ResampleRounding::kFloorOrCeil:
      return scale < 1 ? std::ceil(x) : std::floor(x);
  }
  return x;
}

// The weight of an element at `distance` from the place that is read.
double FilterWeight(const Resampling& how, double distance) {
  const double x = std::fabs(distance);
  if (how.filter == ResampleFilter::kLinear) return std::max(1 - x, 0.0);
  const double a = how.cubic_coefficient;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Elements on either side that the filter reaches.
double FilterReach(const Resampling& how, double stretch) {
  return (how.filter == ResampleFilter::kLinear ? 1 : 2) / stretch;
}

// Weights of the elements around `x`, from `first` on.
void FillTaps(const Resampling& how, const ResampledDim& dim, double x, double stretch, int64_t i,
              TapTable* table) {
  const auto first = static_cast<int64_t>(std::floor(x - FilterReach(how, stretch))) + 1;
  table->first[static_cast<size_t>(i)] = first;
  const auto outside = [&](int64_t tap) { return first + tap < 0 || first + tap >= dim.original; };
  double total = 0;
  double total_inside = 0;
  for (int64_t tap = 0; tap < table->taps; ++tap) {
    const double weight = FilterWeight(how, (static_cast<double>(first + tap) - x) * stretch);
    table->weight[table->At(i, tap)] = weight;
    total += weight;
    if (!outside(tap)) total_inside += weight;
  }
  const bool exclude = how.exclude_outside && total_inside != 0;
  if (!exclude && !how.antialias) return;
  for (int64_t tap = 0; tap < table->taps; ++tap) {
    double& weight = table->weight[table->At(i, tap)];
    weight = exclude && outside(tap) ? 0 : weight / (exclude ? total_inside : total);
  }
}

// `table` without the taps whose weight is 0 everywhere.
TapTable WithoutIdleTaps(TapTable table) {
  std::vector<int64_t> kept;
  for (int64_t tap = 0; tap < table.taps; ++tap) {
    bool used = false;
    for (int64_t i = 0; i < table.resized && !used; ++i) used = table.weight[table.At(i, tap)] != 0;
    if (used) kept.push_back(tap);
  }
  if (static_cast<int64_t>(kept.size()) == table.taps) return table;
  if (kept.empty()) kept.push_back(0);
  // In place: what is kept only moves down.
  const int64_t before = table.taps;
  table.taps = static_cast<int64_t>(kept.size());
  for (int64_t i = 0; i < table.resized; ++i) {
    for (int64_t k = 0; k < table.taps; ++k) {
      const int64_t from = i * before + kept[static_cast<size_t>(k)];
      table.weight[table.At(i, k)] = table.weight[static_cast<size_t>(from)];
    }
  }
  table.weight.resize(static_cast<size_t>(table.resized * table.taps));
  table.behind = std::move(kept);
  return table;
}

absl::StatusOr<TapTable> MakeTapTable(const Resampling& how, const ResampledDim& dim) {
  if (dim.original == 0 && dim.resized > 0) {
    return InvalidArgument("dim ", dim.axis, " has no element, its resized extent is ",
                           dim.resized);
  }
  const bool nearest = how.filter == ResampleFilter::kNearest;
  const double stretch = how.antialias && dim.resized > 0 ? std::min(dim.scale, 1.0) : 1.0;
  const double taps = nearest ? 1 : std::ceil(2 * FilterReach(how, stretch));
  if (taps * static_cast<double>(dim.resized) > static_cast<double>(kMaxResampleEntries)) {
    return Unimplemented("resizing dim ", dim.axis, " from ", dim.original, " to ", dim.resized,
                         " takes ", taps, " weights for each element; more than ",
                         kMaxResampleEntries, " together are not supported");
  }
  TapTable table;
  table.original = dim.original;
  table.resized = dim.resized;
  table.taps = static_cast<int64_t>(taps);
  table.first.assign(static_cast<size_t>(table.resized), 0);
  for (int64_t tap = 0; tap < table.taps; ++tap) table.behind.push_back(tap);
  if (!nearest) table.weight.assign(static_cast<size_t>(table.resized * table.taps), 1);
  table.inside.assign(static_cast<size_t>(table.resized), true);
  const auto last = static_cast<double>(dim.original - 1);
  for (int64_t i = 0; i < dim.resized; ++i) {
    Job::Step(table.taps);
    double x = OriginalCoordinate(how.coordinates, dim, i);
    // Scales are f32. Rounding to f32 corrects a coordinate that misses an element, the middle of
    // two or the border only by their rounding error.
    const double rounded = static_cast<float>(x);
    if (how.coordinates == ResampleCoordinates::kTfCropAndResize) {
      table.inside[static_cast<size_t>(i)] = rounded >= 0 && rounded <= last;
    }
    // Farther out only the border is seen.
    x = std::clamp(x, -taps, last + taps);
    if (nearest) {
      const double element = NearestElement(how.rounding, dim.scale, rounded);
      table.first[static_cast<size_t>(i)] = static_cast<int64_t>(std::clamp(element, 0.0, last));
    } else {
      FillTaps(how, dim, x, stretch, i, &table);
    }
  }
  return nearest ? table : WithoutIdleTaps(std::move(table));
}

// Dims of extent 1, except `extent` at `axis`.
Dims AlongAxis(int rank, int axis, int64_t extent) {
  Dims dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(axis)] = extent;
  return dims;
}

// How often each element of a dim is repeated if the indices are 0, 0, .., 1, 1, ..; else 0.
int64_t RepeatsOf(const std::vector<int64_t>& index, int64_t extent) {
  const auto count = static_cast<int64_t>(index.size());
  if (extent == 0 || count == 0 || count % extent != 0) return 0;
  const int64_t repeats = count / extent;
  for (int64_t i = 0; i < count; ++i) {
    if (index[static_cast<size_t>(i)] != i / repeats) return 0;
  }
  return repeats;
}

// The narrowest index type for indices below `extent`: plans contain the tables.
DType IndexType(int64_t extent) {
  return extent <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64;
}

// x[index] along `axis`. Repeated elements are a view: nothing is copied.
absl::StatusOr<Value> Taken(Decomposition& d, Value x, int axis, std::vector<int64_t> index) {
  const Shape shape = d.type(x).shape;
  const auto count = static_cast<int64_t>(index.size());
  const int64_t repeats = shape.is_static() ? RepeatsOf(index, shape.dim(axis).value()) : 0;
  if (repeats == 1) return x;
  if (repeats > 1) {
    Dims merged = shape.ToDims();
    merged[static_cast<size_t>(axis)] = count;
    ASSIGN_OR_RETURN(Value y, d.Apply("Unsqueeze", {x}, {{"axes", Dims{axis + 1}}}));
    ASSIGN_OR_RETURN(
        y, d.Apply("Expand", {y}, {{"shape", AlongAxis(shape.rank() + 1, axis + 1, repeats)}}));
    return d.Apply("Reshape", {y}, {{"shape", merged}, {"allowzero", int64_t{1}}});
  }
  const int64_t largest = count == 0 ? 0 : *std::max_element(index.begin(), index.end());
  HostTensor at(IndexType(largest + 1), {count});
  for (int64_t i = 0; i < count; ++i) at.SetInt(i, index[static_cast<size_t>(i)]);
  return d.Apply("Gather", {x, d.Constant(std::move(at))}, {{"axis", int64_t{axis}}});
}

std::vector<int64_t> IndicesOfTap(const TapTable& table, int64_t tap) {
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(table.resized));
  for (int64_t i = 0; i < table.resized; ++i) out.push_back(table.Index(i, tap));
  return out;
}

// sum_k x[index_k] * weight_k, term by term.
absl::StatusOr<Value> WrittenSum(Decomposition& d, Value x, int axis, const TapTable& table) {
  const int behind = d.type(x).shape.rank() - axis;
  Value sum = -1;
  for (int64_t tap = 0; tap < table.taps; ++tap) {
    HostTensor weights(d.type(x).dtype, AlongAxis(behind, 0, table.resized));
    for (int64_t i = 0; i < table.resized; ++i) {
      weights.SetDouble(i, table.weight[table.At(i, tap)]);
    }
    ASSIGN_OR_RETURN(Value term, Taken(d, x, axis, IndicesOfTap(table, tap)));
    ASSIGN_OR_RETURN(term, d.Apply("Mul", {term, d.Constant(std::move(weights))}));
    if (sum < 0) {
      sum = term;
      continue;
    }
    ASSIGN_OR_RETURN(sum, d.Apply("Add", {sum, term}));
  }
  return sum;
}

// The same as a reduction over a dim for the taps.
absl::StatusOr<Value> ReducedSum(Decomposition& d, Value x, int axis, const TapTable& table) {
  const int behind = d.type(x).shape.rank() - axis;
  HostTensor at(IndexType(table.original), {table.resized, table.taps});
  Dims weight_dims = AlongAxis(behind + 1, 0, table.resized);
  weight_dims[1] = table.taps;
  HostTensor weights(d.type(x).dtype, weight_dims);
  for (int64_t i = 0; i < table.resized; ++i) {
    for (int64_t tap = 0; tap < table.taps; ++tap) {
      const auto k = static_cast<int64_t>(table.At(i, tap));
      at.SetInt(k, table.Index(i, tap));
      weights.SetDouble(k, table.weight[static_cast<size_t>(k)]);
    }
  }
  ASSIGN_OR_RETURN(Value terms,
                   d.Apply("Gather", {x, d.Constant(std::move(at))}, {{"axis", int64_t{axis}}}));
  ASSIGN_OR_RETURN(terms, d.Apply("Mul", {terms, d.Constant(std::move(weights))}));
  return d.Apply("ReduceSum", {terms}, {{"axes", Dims{axis + 1}}, {"keepdims", int64_t{0}}});
}

// `y` with `value` at coordinates outside the dim `axis`.
absl::StatusOr<Value> Extrapolated(Decomposition& d, Value y, int axis, const TapTable& table,
                                   double value) {
  if (std::find(table.inside.begin(), table.inside.end(), false) == table.inside.end()) return y;
  const int behind = d.type(y).shape.rank() - axis;
  HostTensor inside(DType::kBool, AlongAxis(behind, 0, table.resized));
  for (int64_t i = 0; i < table.resized; ++i) {
    inside.SetInt(i, table.inside[static_cast<size_t>(i)] ? 1 : 0);
  }
  const Value condition = d.Constant(std::move(inside));
  return d.Apply("Where", {condition, y, d.Scalar(d.type(y).dtype, value)});
}

}  // namespace

DType InterpolationType(DType type) {
  return type == DType::kF64 || IsInteger(type) ? DType::kF64 : DType::kF32;
}

absl::StatusOr<int64_t> ScaledExtent(int64_t original, double scale) {
  const float extent = static_cast<float>(original) * static_cast<float>(scale);
  if (!(scale > 0 && std::isfinite(scale) && extent <= static_cast<float>(kMaxExtent))) {
    return InvalidArgument("scale ", scale, " of a dim of extent ", original,
                           ", expected more than 0 and a result of at most ", kMaxExtent);
  }
  return static_cast<int64_t>(std::floor(extent));
}

absl::StatusOr<Value> Resampled(Decomposition& d, const Resampling& how,
                                std::vector<ResampledDim> dims) {
  std::stable_sort(dims.begin(), dims.end(),
                   [](const ResampledDim& a, const ResampledDim& b) { return a.scale < b.scale; });
  std::vector<TapTable> tables;
  bool weighted = false;
  for (const ResampledDim& dim : dims) {
    ASSIGN_OR_RETURN(TapTable table, MakeTapTable(how, dim));
    weighted = weighted || !table.HasUnitWeights();
    tables.push_back(std::move(table));
  }
  const DType type = d.call().dtype(0);
  if (type == DType::kBool && how.filter != ResampleFilter::kNearest) {
    return InvalidArgument("input 0 is bool, expected a numeric type: only mode nearest takes it");
  }
  Value y = d.in(0);
  if (weighted) {
    ASSIGN_OR_RETURN(y, CastTo(d, y, InterpolationType(type)));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    TapTable& table = tables[i];
    if (table.taps == 1 && table.HasUnitWeights()) {
      ASSIGN_OR_RETURN(y, Taken(d, y, dims[i].axis, IndicesOfTap(table, 0)));
    } else if (table.taps <= kMaxWrittenTaps) {
      ASSIGN_OR_RETURN(y, WrittenSum(d, y, dims[i].axis, table));
    } else {
      ASSIGN_OR_RETURN(y, ReducedSum(d, y, dims[i].axis, table));
    }
    table.weight = {};  // it may be large
  }
  ASSIGN_OR_RETURN(y, CastTo(d, y, type));
  for (size_t i = 0; i < dims.size(); ++i) {
    ASSIGN_OR_RETURN(y, Extrapolated(d, y, dims[i].axis, tables[i], how.extrapolation_value));
  }
  if (y == d.in(0)) return d.Apply("Identity", {y});
  return y;
}

}  // namespace fusion
