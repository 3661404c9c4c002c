#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusion {

/// Element types. The order is part of the wire format (proto/fusion/v1/op_graph.proto): append
/// only.
enum class DType : uint8_t {
  kBool,  // one byte, 0 or 1
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kU16,
  kU32,
  kU64,
  // One byte each in memory, whatever ONNX packs: the low bits count.
  kI4,
  kU4,
  kI2,
  kU2,
  kF8E4M3FN,    // no infinities, one NaN of each sign
  kF8E4M3FNUZ,  // no infinities, no -0, one NaN
  kF8E5M2,      // as IEEE has them
  kF8E5M2FNUZ,  // no infinities, no -0, one NaN
  kF8E8M0,      // powers of two and NaN: neither zero nor sign
  kF6E2M3,      // neither infinities nor NaN
  kF6E3M2,      // likewise
  kF4E2M1,      // likewise
};
inline constexpr int kDTypeCount = 25;

/// "f32", "i64", "bool", ...: the spelling of every text form.
std::string_view DTypeName(DType type);
/// Inverse of DTypeName.
std::optional<DType> ParseDType(std::string_view name);

/// Bytes of one element in memory.
int64_t DTypeBytes(DType type);
/// Bits of one element where ONNX packs them, the low bits of a byte first; else those in memory.
int DTypeBits(DType type);

/// A float of at most 8 bits: for storage; arithmetic on it is done in f32.
inline bool IsNarrowFloat(DType t) { return t >= DType::kF8E4M3FN; }
/// A float of 16 bits: likewise.
inline bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }
/// A float narrower than f32.
inline bool IsSmallFloat(DType t) { return IsHalf(t) || IsNarrowFloat(t); }
inline bool IsFloat(DType t) { return IsSmallFloat(t) || t == DType::kF32 || t == DType::kF64; }
/// An integer of less than 8 bits.
inline bool IsNarrowInteger(DType t) { return t >= DType::kI4 && t <= DType::kU2; }
inline bool IsUnsigned(DType t) {
  return t == DType::kU8 || t == DType::kU16 || t == DType::kU32 || t == DType::kU64 ||
         t == DType::kU4 || t == DType::kU2;
}
inline bool IsInteger(DType t) { return !IsFloat(t) && t != DType::kBool; }

/// Nearest value of `type` (round to nearest even for floats; saturating truncation for integers,
/// NaN -> 0; bool is value != 0), as a double. Integers beyond 2^53 go through their own paths, not
/// through this. What is beyond the largest value of a narrow float is what overflows in it:
/// infinity in f8e5m2, NaN in the other types of 8 bits, the largest value in smaller ones, in
/// which NaN is -0. f8e8m0 rounds magnitudes up, the largest value and zero to the nearest one.
double RoundTo(DType type, double value);
/// Largest finite value of a float type.
double LargestFinite(DType type);

/// RoundTo(type, value) of an integer type or bool, as an integer; u64 as its bits.
int64_t IntegerFrom(DType type, double value);
/// The number that an integer of this type is, 64 bits of a u64 being its bits.
double IntegerToDouble(DType type, int64_t value);

/// The bits of RoundTo(type, value) of a float type, in the low bits; and the inverse.
uint64_t BitsFromDouble(DType type, double value);
double DoubleFromBits(DType type, uint64_t bits);
/// `value`, an integer, in 64 bits with the sign that the type gives its low bits.
int64_t SignExtended(DType type, int64_t value);

/// IEEE half and bfloat16 bits <-> double, round to nearest even.
uint16_t HalfFromDouble(double value);
double HalfToDouble(uint16_t bits);
uint16_t BFloat16FromDouble(double value);
double BFloat16ToDouble(uint16_t bits);

}  // namespace fusion
