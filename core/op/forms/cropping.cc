#include "core/op/forms/cropping.h"

#include "core/op/forms.h"

namespace fusion {
namespace {

using Value = Decomposition::Value;

// Type of coordinates and weights: rounding must not move a coordinate to another element.
constexpr DType kExact = DType::kF64;

// One dim: [resized] coordinates in elements of x, computed in f64.
class CroppedDim {
 public:
  CroppedDim(Decomposition& d, const Resampling& how, const ResampledDim& dim)
      : d_(d), how_(how), dim_(dim), last_(static_cast<double>(dim.original - 1)) {}

  absl::Status Place(Value begin, Value end) {
    if (dim_.resized <= 1) {
      ASSIGN_OR_RETURN(auto sum, d_.Apply("Add", {begin, end}));
      ASSIGN_OR_RETURN(at_, d_.Apply("Mul", {sum, Number(0.5 * last_)}));
      ASSIGN_OR_RETURN(at_, d_.Apply("Expand", {at_}, {{"shape", Dims{dim_.resized}}}));
    } else {
      ASSIGN_OR_RETURN(auto length, d_.Apply("Sub", {end, begin}));
      ASSIGN_OR_RETURN(auto step, d_.Apply("Mul", {length, Number(last_ / (dim_.length - 1))}));
      HostTensor counted(kExact, {dim_.resized});
      for (int64_t i = 0; i < dim_.resized; ++i) counted.SetDouble(i, static_cast<double>(i));
      ASSIGN_OR_RETURN(step, d_.Apply("Mul", {step, d_.Constant(std::move(counted))}));
      ASSIGN_OR_RETURN(auto first, d_.Apply("Mul", {begin, Number(last_)}));
      ASSIGN_OR_RETURN(at_, d_.Apply("Add", {first, step}));
    }
    // Regions are f32. Rounding to f32 puts a coordinate that misses an element only by their
    // rounding error on that element.
    ASSIGN_OR_RETURN(rounded_, CastTo(d_, at_, DType::kF32));
    ASSIGN_OR_RETURN(rounded_, CastTo(d_, rounded_, kExact));
    return absl::OkStatus();
  }

  // x along the dim.
  absl::StatusOr<Value> Read(Value x) {
    if (how_.filter == ResampleFilter::kNearest) {
      ASSIGN_OR_RETURN(auto element, Nearest());
      return At(x, element);
    }
    const int64_t taps = how_.filter == ResampleFilter::kLinear ? 2 : 4;
    // Farther out only the border is seen.
    ASSIGN_OR_RETURN(auto place,
                     Within(at_, -static_cast<double>(taps), last_ + static_cast<double>(taps)));
    ASSIGN_OR_RETURN(auto first, d_.Apply("Floor", {place}));
    ASSIGN_OR_RETURN(first, d_.Apply("Sub", {first, Number(taps == 2 ? 0 : 1)}));
    std::vector<Value> elements;
    std::vector<Value> weights;
    for (int64_t tap = 0; tap < taps; ++tap) {
      ASSIGN_OR_RETURN(auto element, d_.Apply("Add", {first, Number(static_cast<double>(tap))}));
      ASSIGN_OR_RETURN(auto weight, Weight(element, place));
      elements.push_back(element);
      weights.push_back(weight);
    }
    if (how_.exclude_outside) RETURN_IF_ERROR(Exclude(elements, &weights));
    Value sum = -1;
    for (size_t tap = 0; tap < elements.size(); ++tap) {
      ASSIGN_OR_RETURN(auto term, At(x, elements[tap]));
      ASSIGN_OR_RETURN(auto weight, CastTo(d_, weights[tap], d_.type(x).dtype));
      ASSIGN_OR_RETURN(weight, Along(weight, d_.type(x).shape.rank()));
      ASSIGN_OR_RETURN(term, d_.Apply("Mul", {term, weight}));
      if (sum < 0) {
        sum = term;
        continue;
      }
      ASSIGN_OR_RETURN(sum, d_.Apply("Add", {sum, term}));
    }
    return sum;
  }

  // y, with extrapolation_value at coordinates outside x.
  absl::StatusOr<Value> Extrapolate(Value y) {
    ASSIGN_OR_RETURN(auto inside, Inside(rounded_));
    ASSIGN_OR_RETURN(inside, Along(inside, d_.type(y).shape.rank()));
    return d_.Apply("Where", {inside, y, d_.Scalar(d_.type(y).dtype, how_.extrapolation_value)});
  }

 private:
  Value Number(double value) { return d_.Scalar(kExact, value); }

  absl::StatusOr<Value> Within(Value x, double low, double high) {
    ASSIGN_OR_RETURN(x, d_.Apply("Max", {x, Number(low)}));
    return d_.Apply("Min", {x, Number(high)});
  }

  absl::StatusOr<Value> Inside(Value x) {
    ASSIGN_OR_RETURN(auto after, d_.Apply("GreaterOrEqual", {x, Number(0)}));
    ASSIGN_OR_RETURN(auto before, d_.Apply("LessOrEqual", {x, Number(last_)}));
    return d_.Apply("And", {after, before});
  }

  absl::StatusOr<Value> Nearest() {
    auto shifted = [&](double by) { return d_.Apply("Add", {rounded_, Number(by)}); };
    switch (how_.rounding) {
      case ResampleRounding::kRoundPreferFloor: {
        ASSIGN_OR_RETURN(auto x, shifted(-0.5));
        return d_.Apply("Ceil", {x});
      }
      case ResampleRounding::kRoundPreferCeil: {
        ASSIGN_OR_RETURN(auto x, shifted(0.5));
        return d_.Apply("Floor", {x});
      }
      case ResampleRounding::kCeil:
        return d_.Apply("Ceil", {rounded_});
      default:
        return d_.Apply("Floor", {rounded_});
    }
  }

  // max(1 - distance, 0), or the cubic filter, of elements less than 2 away.
  absl::StatusOr<Value> Weight(Value element, Value place) {
    ASSIGN_OR_RETURN(auto s, d_.Apply("Sub", {element, place}));
    ASSIGN_OR_RETURN(s, d_.Apply("Abs", {s}));
    if (how_.filter == ResampleFilter::kLinear) {
      ASSIGN_OR_RETURN(s, d_.Apply("Sub", {Number(1), s}));
      return d_.Apply("Max", {s, Number(0)});
    }
    const double a = how_.cubic_coefficient;
    ASSIGN_OR_RETURN(auto near, Polynomial(s, {a + 2, -(a + 3), 0, 1}));
    ASSIGN_OR_RETURN(auto far, Polynomial(s, {a, -5 * a, 8 * a, -4 * a}));
    ASSIGN_OR_RETURN(far, Below(s, 2, far, Number(0)));
    return Below(s, 1, near, far);
  }

  // `a` up to the border, else `b`: both are the same at it.
  absl::StatusOr<Value> Below(Value s, double border, Value a, Value b) {
    ASSIGN_OR_RETURN(auto below, d_.Apply("LessOrEqual", {s, Number(border)}));
    return d_.Apply("Where", {below, a, b});
  }

  absl::StatusOr<Value> Polynomial(Value s, const std::vector<double>& coefficients) {
    Value sum = Number(coefficients[0]);
    for (size_t i = 1; i < coefficients.size(); ++i) {
      ASSIGN_OR_RETURN(sum, d_.Apply("Mul", {sum, s}));
      ASSIGN_OR_RETURN(sum, d_.Apply("Add", {sum, Number(coefficients[i])}));
    }
    return sum;
  }

  // Sets the weights of elements outside x to 0 and scales the others to sum 1.
  absl::Status Exclude(const std::vector<Value>& elements, std::vector<Value>* weights) {
    Value total = Number(0);
    std::vector<Value> kept;
    for (size_t i = 0; i < elements.size(); ++i) {
      ASSIGN_OR_RETURN(auto inside, Inside(elements[i]));
      ASSIGN_OR_RETURN(auto weight, d_.Apply("Where", {inside, (*weights)[i], Number(0)}));
      ASSIGN_OR_RETURN(total, d_.Apply("Add", {total, weight}));
      kept.push_back(weight);
    }
    ASSIGN_OR_RETURN(auto none, d_.Apply("Equal", {total, Number(0)}));
    for (size_t i = 0; i < elements.size(); ++i) {
      ASSIGN_OR_RETURN(auto share, d_.Apply("Div", {kept[i], total}));
      ASSIGN_OR_RETURN((*weights)[i], d_.Apply("Where", {none, (*weights)[i], share}));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Value> At(Value x, Value element) {
    ASSIGN_OR_RETURN(auto index, Within(element, 0, last_));
    ASSIGN_OR_RETURN(index, CastTo(d_, index, DType::kI64));
    return d_.Apply("Gather", {x, index}, {{"axis", int64_t{dim_.axis}}});
  }

  // [resized] as it broadcasts along the dim.
  absl::StatusOr<Value> Along(Value x, int rank) {
    Dims axes;
    for (int k = dim_.axis + 1; k < rank; ++k) axes.push_back(k - dim_.axis);
    if (axes.empty()) return x;
    return d_.Apply("Unsqueeze", {x}, {{"axes", axes}});
  }

  Decomposition& d_;
  const Resampling& how_;
  const ResampledDim& dim_;
  double last_;
  Value at_ = 0;
  Value rounded_ = 0;
};

absl::Status CheckRegion(const OpCall& call, size_t dims) {
  const auto wanted = static_cast<int64_t>(2 * dims);
  if (IsFloat(call.dtype(1)) && call.shape(1) == Shape({wanted})) return absl::OkStatus();
  return InvalidArgument("roi is ", call.in(1).ToString(), ", expected ", wanted, " floats");
}

absl::StatusOr<Value> PickFrom(Decomposition& d, Value roi, size_t position) {
  HostTensor at(DType::kI64, {});
  at.SetInt(0, static_cast<int64_t>(position));
  return d.Apply("Gather", {roi, d.Constant(std::move(at))}, {{"axis", int64_t{0}}});
}

}  // namespace

absl::StatusOr<Value> CroppedAtRun(Decomposition& d, const Resampling& how,
                                   const std::vector<ResampledDim>& dims, Value roi) {
  RETURN_IF_ERROR(CheckRegion(d.call(), dims.size()));
  if (how.antialias) {
    return Unimplemented("attribute \"antialias\" is 1 and roi is known to a run only");
  }
  const DType type = d.call().dtype(0);
  const bool nearest = how.filter == ResampleFilter::kNearest;
  if (type == DType::kBool && !nearest) {
    return InvalidArgument("input 0 is bool, expected a numeric type: only mode nearest takes it");
  }
  ASSIGN_OR_RETURN(roi, CastTo(d, roi, kExact));
  std::vector<CroppedDim> cropped;
  cropped.reserve(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].original == 1 && dims[i].resized == 1) continue;  // all that there is
    if (dims[i].original == 0 || dims[i].resized > kMaxResampleEntries) {
      return Unimplemented("resizing dim ", dims[i].axis, " from ", dims[i].original, " to ",
                           dims[i].resized, "; supported: 1 element or more, to at most ",
                           kMaxResampleEntries);
    }
    ASSIGN_OR_RETURN(auto begin, PickFrom(d, roi, i));
    ASSIGN_OR_RETURN(auto end, PickFrom(d, roi, i + dims.size()));
    cropped.emplace_back(d, how, dims[i]);
    RETURN_IF_ERROR(cropped.back().Place(begin, end));
  }
  Value y = d.in(0);
  if (!nearest) {
    ASSIGN_OR_RETURN(y, CastTo(d, y, InterpolationType(type)));
  }
  for (CroppedDim& dim : cropped) {
    ASSIGN_OR_RETURN(y, dim.Read(y));
  }
  ASSIGN_OR_RETURN(y, CastTo(d, y, type));
  for (CroppedDim& dim : cropped) {
    ASSIGN_OR_RETURN(y, dim.Extrapolate(y));
  }
  if (y == d.in(0)) return d.Apply("Identity", {y});
  return y;
}

}  // namespace fusion
