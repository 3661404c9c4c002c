#include "core/tensor/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace fusion {
namespace {

struct DTypeRow {
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<DTypeRow, kDTypeCount> kRows = {{
    {"bool", 1},
    {"u8", 1},
    {"i8", 1},
    {"i16", 2},
    {"i32", 4},
    {"i64", 8},
    {"f16", 2},
    {"bf16", 2},
    {"f32", 4},
    {"f64", 8},
    {"u16", 2},
    {"u32", 4},
    {"u64", 8},
}};

template <typename T>
double Saturate(double value) {
  if (std::isnan(value)) return 0;
  constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
  value = std::trunc(value);
  return value < kLow ? kLow : value > kHigh ? kHigh : value;
}

// Rounds `value` to a binary float with `mantissa` stored bits, smallest normal exponent
// `min_exponent` and largest finite value `max_finite`; ties to even. Rounds once, from double, so
// there is no double rounding.
double RoundBinary(double value, int mantissa, int min_exponent, double max_finite) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = std::ilogb(value);
  if (exponent < min_exponent) exponent = min_exponent;
  double unit = std::ldexp(1.0, exponent - mantissa);
  double rounded = std::nearbyint(value / unit) * unit;
  if (std::fabs(rounded) > max_finite) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded == 0 ? std::copysign(0.0, value) : rounded;
}

}  // namespace

std::string_view DTypeName(DType type) { return kRows[static_cast<size_t>(type)].name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t DTypeBytes(DType type) { return kRows[static_cast<size_t>(type)].bytes; }

double RoundTo(DType type, double value) {
  switch (type) {
    case DType::kBool:
      return value != 0 ? 1 : 0;
    case DType::kU8:
      return Saturate<uint8_t>(value);
    case DType::kI8:
      return Saturate<int8_t>(value);
    case DType::kI16:
      return Saturate<int16_t>(value);
    case DType::kI32:
      return Saturate<int32_t>(value);
    case DType::kI64:
      return Saturate<int64_t>(value);
    case DType::kU16:
      return Saturate<uint16_t>(value);
    case DType::kU32:
      return Saturate<uint32_t>(value);
    case DType::kU64:
      return Saturate<uint64_t>(value);
    case DType::kF16:
      return RoundBinary(value, 10, -14, 65504.0);
    case DType::kBF16:
      return RoundBinary(value, 7, -126, 0x1.fep127);
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kF64:
      return value;
  }
  return value;
}

int64_t IntegerFrom(DType type, double value) {
  const double rounded = RoundTo(type, value);
  if (type == DType::kU64) {
    constexpr auto kMost = std::numeric_limits<uint64_t>::max();
    return std::bit_cast<int64_t>(rounded >= 0x1p64 ? kMost : static_cast<uint64_t>(rounded));
  }
  return rounded >= 0x1p63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(rounded);
}

double IntegerToDouble(DType type, int64_t value) {
  return type == DType::kU64 ? static_cast<double>(std::bit_cast<uint64_t>(value))
                             : static_cast<double>(value);
}

uint16_t HalfFromDouble(double value) {
  auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  double rounded = std::fabs(RoundTo(DType::kF16, value));
  if (std::isinf(rounded)) return static_cast<uint16_t>(sign | 0x7c00);
  if (rounded < 0x1p-14) {  // subnormal: multiples of 2^-24
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(rounded * 0x1p24));
  }
  int exponent = std::ilogb(rounded);
  auto mantissa = static_cast<uint16_t>((std::ldexp(rounded, -exponent) - 1.0) * 1024);
  return static_cast<uint16_t>(sign | static_cast<uint16_t>((exponent + 15) << 10) | mantissa);
}

double HalfToDouble(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  int mantissa = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else {
    value = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

uint16_t BFloat16FromDouble(double value) {
  if (std::isnan(value)) return static_cast<uint16_t>(std::signbit(value) ? 0xffc0 : 0x7fc0);
  auto rounded = static_cast<float>(RoundTo(DType::kBF16, value));
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(rounded) >> 16);
}

double BFloat16ToDouble(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
}

}  // namespace fusion
