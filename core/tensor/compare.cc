#include "core/tensor/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusion {

std::string Difference::ToString() const {
  if (other_type) return "another type or shape";
  return StrCat("max_abs ", max_abs, ", max_rel ", max_rel, ", outside ", outside,
                outside > 0 ? StrCat(", first at ", first_outside) : "");
}

Tolerance DefaultTolerance(DType dtype) {
  if (!IsFloat(dtype)) return {.atol = 0, .rtol = 0};
  if (dtype == DType::kF16) return {.atol = 1e-5, .rtol = 0x1p-9};
  if (dtype == DType::kBF16) return {.atol = 1e-5, .rtol = 0x1p-6};
  // Narrow floats: the last place of the largest value, where one rounds the other way.
  switch (dtype) {
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF6E2M3:
      return {.atol = 1e-5, .rtol = 0x1.4p-4};
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF6E3M2:
      return {.atol = 1e-5, .rtol = 0x1.4p-3};
    case DType::kF4E2M1:
      return {.atol = 1e-5, .rtol = 0x1.6p-2};
    case DType::kF8E8M0:
      return {.atol = 0, .rtol = 0};
    default:
      return {};
  }
}

Tolerance RoundedTolerance(DType dtype) {
  const Tolerance own = DefaultTolerance(dtype);
  if (!IsFloat(dtype)) return own;
  const Tolerance rounded = DefaultTolerance(DType::kBF16);
  return {.atol = std::max(own.atol, rounded.atol), .rtol = std::max(own.rtol, rounded.rtol)};
}

namespace {

// Of two elements that are not the same.
double Distance(double a, double b) {
  const bool finite = std::isfinite(a) && std::isfinite(b);
  return finite ? std::fabs(a - b) : std::numeric_limits<double>::infinity();
}

// Integers of 64 bits, those of u64 as their bits: their difference needs one bit more.
double Distance(DType dtype, int64_t a, int64_t b) {
  const bool more =
      dtype == DType::kU64 ? static_cast<uint64_t>(a) > static_cast<uint64_t>(b) : a > b;
  const uint64_t distance =
      static_cast<uint64_t>(more ? a : b) - static_cast<uint64_t>(more ? b : a);
  return static_cast<double>(distance);
}

}  // namespace

Difference Compare(const HostTensor& got, const HostTensor& wanted, const Tolerance& tolerance) {
  Difference out;
  if (got.dtype() != wanted.dtype() || got.dims() != wanted.dims()) {
    out.other_type = true;
    return out;
  }
  const bool real = IsFloat(wanted.dtype());
  double scale = 0;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    const double b = wanted.GetDouble(i);
    if (std::isfinite(b)) scale = std::max(scale, std::fabs(b));
  }
  const double bound = tolerance.atol + tolerance.rtol * scale;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    double distance = 0;
    if (real) {
      const double a = got.GetDouble(i);
      const double b = wanted.GetDouble(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      distance = Distance(a, b);
    } else {
      const int64_t a = got.GetInt(i);
      const int64_t b = wanted.GetInt(i);
      if (a == b) continue;
      distance = Distance(wanted.dtype(), a, b);
    }
    out.max_abs = std::max(out.max_abs, distance);
    if (real && std::isfinite(distance) && distance <= bound) continue;
    if (out.outside++ == 0) out.first_outside = i;
  }
  out.max_rel = scale > 0 ? out.max_abs / scale : out.max_abs;
  return out;
}

}  // namespace fusion
