#include "core/tensor/compare.h"

#include <algorithm>
#include <cmath>

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

Difference Compare(const HostTensor& got, const HostTensor& wanted, const Tolerance& tolerance) {
  Difference out;
  if (got.dtype() != wanted.dtype() || got.dims() != wanted.dims()) {
    out.other_type = true;
    return out;
  }
  bool real = IsFloat(wanted.dtype());
  double scale = 0;
  for (int64_t i = 0; real && i < wanted.elements(); ++i) {
    double b = wanted.GetDouble(i);
    if (std::isfinite(b)) scale = std::max(scale, std::fabs(b));
  }
  double bound = tolerance.atol + tolerance.rtol * scale;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    bool same = false;
    if (real) {
      double a = got.GetDouble(i);
      double b = wanted.GetDouble(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      bool finite = std::isfinite(a) && std::isfinite(b);
      if (finite) out.max_abs = std::max(out.max_abs, std::fabs(a - b));
      same = finite && std::fabs(a - b) <= bound;
    } else {
      same = got.GetInt(i) == wanted.GetInt(i);
    }
    if (same) continue;
    if (out.outside++ == 0) out.first_outside = i;
  }
  out.max_rel = scale > 0 ? out.max_abs / scale : out.max_abs;
  return out;
}

}  // namespace fusion
