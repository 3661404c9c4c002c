#include "core/tensor/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace fusion {
namespace {

struct DTypeRow {
  std::string_view name;
  int64_t bytes;
  int bits;
};
constexpr std::array<DTypeRow, kDTypeCount> kRows = {{
    {"bool", 1, 8},       {"u8", 1, 8},       {"i8", 1, 8},         {"i16", 2, 16},
    {"i32", 4, 32},       {"i64", 8, 64},     {"f16", 2, 16},       {"bf16", 2, 16},
    {"f32", 4, 32},       {"f64", 8, 64},     {"u16", 2, 16},       {"u32", 4, 32},
    {"u64", 8, 64},       {"i4", 1, 4},       {"u4", 1, 4},         {"i2", 1, 2},
    {"u2", 1, 2},         {"f8e4m3fn", 1, 8}, {"f8e4m3fnuz", 1, 8}, {"f8e5m2", 1, 8},
    {"f8e5m2fnuz", 1, 8}, {"f8e8m0", 1, 8},   {"f6e2m3", 1, 6},     {"f6e3m2", 1, 6},
    {"f4e2m1", 1, 4},
}};

double SaturateWithin(double value, double low, double high) {
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  return value < low ? low : value > high ? high : value;
}

template <typename T>
double Saturate(double value) {
  return SaturateWithin(value, static_cast<double>(std::numeric_limits<T>::min()),
                        static_cast<double>(std::numeric_limits<T>::max()));
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

// What the codes of a narrow float mean: a sign, then exponent and mantissa, of which exponent 0 is
// that of subnormal numbers.
struct NarrowForm {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  int largest;  // code of the largest finite value
  enum Special : uint8_t {
    kNone,      // every code is a number
    kTop,       // NaN is the code above the largest
    kIeee,      // infinity is, and NaN those above it
    kUnsigned,  // NaN is the code of -0
  } special;
};

const NarrowForm& FormOf(DType type) {
  static constexpr NarrowForm kE4M3FN = {4, 3, 7, 0x7e, NarrowForm::kTop};
  static constexpr NarrowForm kE4M3FNUZ = {4, 3, 8, 0x7f, NarrowForm::kUnsigned};
  static constexpr NarrowForm kE5M2 = {5, 2, 15, 0x7b, NarrowForm::kIeee};
  static constexpr NarrowForm kE5M2FNUZ = {5, 2, 16, 0x7f, NarrowForm::kUnsigned};
  static constexpr NarrowForm kE2M3 = {2, 3, 1, 0x1f, NarrowForm::kNone};
  static constexpr NarrowForm kE3M2 = {3, 2, 3, 0x1f, NarrowForm::kNone};
  static constexpr NarrowForm kE2M1 = {2, 1, 1, 0x7, NarrowForm::kNone};
  switch (type) {
    case DType::kF8E4M3FN:
      return kE4M3FN;
    case DType::kF8E4M3FNUZ:
      return kE4M3FNUZ;
    case DType::kF8E5M2:
      return kE5M2;
    case DType::kF8E5M2FNUZ:
      return kE5M2FNUZ;
    case DType::kF6E2M3:
      return kE2M3;
    case DType::kF6E3M2:
      return kE3M2;
    default:
      return kE2M1;
  }
}

// A code without its sign.
double Magnitude(const NarrowForm& form, int code) {
  const int exponent = code >> form.mantissa_bits;
  const int mantissa = code & ((1 << form.mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << form.mantissa_bits);
  return std::ldexp(whole, std::max(exponent, 1) - form.bias - form.mantissa_bits);
}

double RoundToNarrow(DType type, double value) {
  const NarrowForm& form = FormOf(type);
  if (std::isnan(value)) return form.special == NarrowForm::kNone ? -0.0 : value;
  const double largest = Magnitude(form, form.largest);
  double rounded = RoundBinary(value, form.mantissa_bits, 1 - form.bias, largest);
  if (std::isinf(rounded)) {
    if (form.special == NarrowForm::kNone) return std::copysign(largest, rounded);
    if (form.special != NarrowForm::kIeee) return std::numeric_limits<double>::quiet_NaN();
  }
  return rounded == 0 && form.special == NarrowForm::kUnsigned ? 0.0 : rounded;
}

constexpr int kScaleBias = 127;
constexpr int kScaleNan = 255;

// Up to the next power of two.
double RoundToScale(double value) {
  if (!std::isfinite(value)) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = std::fabs(value);
  if (magnitude <= 0x1p-127) return 0x1p-127;
  const int exponent = std::ilogb(magnitude);
  const double below = std::ldexp(1.0, exponent);
  return std::min(below < magnitude ? 2 * below : below, 0x1p127);
}

uint64_t NarrowBits(DType type, double value) {
  const double rounded = RoundTo(type, value);
  if (type == DType::kF8E8M0) {
    return static_cast<uint64_t>(std::isnan(rounded) ? kScaleNan
                                                     : std::ilogb(rounded) + kScaleBias);
  }
  const NarrowForm& form = FormOf(type);
  const int sign = 1 << (form.exponent_bits + form.mantissa_bits);
  if (std::isnan(rounded) && form.special == NarrowForm::kUnsigned) {
    return static_cast<uint64_t>(sign);
  }
  int code = form.largest + 1;
  if (std::isnan(rounded)) {
    code += form.special == NarrowForm::kIeee ? 2 : 0;
  } else if (!std::isinf(rounded)) {
    // Codes are in the order of the numbers.
    const double magnitude = std::fabs(rounded);
    const int exponent =
        magnitude == 0 ? 1 - form.bias : std::max(std::ilogb(magnitude), 1 - form.bias);
    const auto units = static_cast<int>(std::ldexp(magnitude, form.mantissa_bits - exponent));
    code = units + ((exponent + form.bias - 1) << form.mantissa_bits);
  }
  return static_cast<uint64_t>(code | (std::signbit(rounded) ? sign : 0));
}

double NarrowFromBits(DType type, uint64_t bits) {
  if (type == DType::kF8E8M0) {
    const int code = static_cast<int>(bits & kScaleNan);
    return code == kScaleNan ? std::numeric_limits<double>::quiet_NaN()
                             : std::ldexp(1.0, code - kScaleBias);
  }
  const NarrowForm& form = FormOf(type);
  const int sign = 1 << (form.exponent_bits + form.mantissa_bits);
  const int code = static_cast<int>(bits) & (sign - 1);
  const bool negative = (bits & static_cast<uint64_t>(sign)) != 0;
  double value = Magnitude(form, code);
  const bool is_nan = form.special == NarrowForm::kUnsigned && code == 0 && negative;
  if (is_nan || (code > form.largest && form.special != NarrowForm::kNone)) {
    const bool is_infinite = form.special == NarrowForm::kIeee && code == form.largest + 1;
    value = is_infinite ? std::numeric_limits<double>::infinity()
                        : std::numeric_limits<double>::quiet_NaN();
  }
  return negative ? -value : value;
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
int DTypeBits(DType type) { return kRows[static_cast<size_t>(type)].bits; }

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
    case DType::kI4:
      return SaturateWithin(value, -8, 7);
    case DType::kU4:
      return SaturateWithin(value, 0, 15);
    case DType::kI2:
      return SaturateWithin(value, -2, 1);
    case DType::kU2:
      return SaturateWithin(value, 0, 3);
    case DType::kF8E8M0:
      return RoundToScale(value);
    default:
      return RoundToNarrow(type, value);
  }
}

double LargestFinite(DType type) {
  switch (type) {
    case DType::kF16:
      return 65504.0;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return static_cast<double>(std::numeric_limits<float>::max());
    case DType::kF64:
      return std::numeric_limits<double>::max();
    case DType::kF8E8M0:
      return 0x1p127;
    default:
      return Magnitude(FormOf(type), FormOf(type).largest);
  }
}

uint64_t BitsFromDouble(DType type, double value) {
  switch (type) {
    case DType::kF16:
      return HalfFromDouble(value);
    case DType::kBF16:
      return BFloat16FromDouble(value);
    case DType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::kF64:
      return std::bit_cast<uint64_t>(value);
    default:
      return NarrowBits(type, value);
  }
}

double DoubleFromBits(DType type, uint64_t bits) {
  switch (type) {
    case DType::kF16:
      return HalfToDouble(static_cast<uint16_t>(bits));
    case DType::kBF16:
      return BFloat16ToDouble(static_cast<uint16_t>(bits));
    case DType::kF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case DType::kF64:
      return std::bit_cast<double>(bits);
    default:
      return NarrowFromBits(type, bits);
  }
}

int64_t SignExtended(DType type, int64_t value) {
  const int unused = 64 - DTypeBits(type);
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  return IsUnsigned(type) ? static_cast<int64_t>(high >> unused)
                          : static_cast<int64_t>(high) >> unused;
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
