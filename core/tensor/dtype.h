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
  // One byte per element in memory, although ONNX packs them. The low bits hold the value.
  kI4,
  kU4,
  kI2,
  kU2,
  kF8E4M3FN,    // no infinities, one NaN of each sign
  kF8E4M3FNUZ,  // no infinities, no -0, one NaN
  kF8E5M2,      // as IEEE: infinities and NaNs
  kF8E5M2FNUZ,  // no infinities, no -0, one NaN
  kF8E8M0,      // powers of two and NaN; no zero, no sign
  kF6E2M3,      // no infinities, no NaN
  kF6E3M2,      // no infinities, no NaN
  kF4E2M1,      // no infinities, no NaN
};
inline constexpr int kDTypeCount = 25;

/// "f32", "i64", "bool", ...: the spelling of every text form.
std::string_view DTypeName(DType type);
/// Inverse of DTypeName; nullopt for other text.
std::optional<DType> ParseDType(std::string_view name);

/// Bytes of one element in memory.
int64_t DTypeBytes(DType type);
/// Bits of one element in ONNX's packed form (low bits of a byte first); for types that ONNX does
/// not pack, the bits in memory.
int DTypeBits(DType type);

/// A float of at most 8 bits. A storage type: arithmetic on it is done in f32.
inline bool IsNarrowFloat(DType t) { return t >= DType::kF8E4M3FN; }
/// A 16-bit float. Also a storage type.
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

/// The nearest value of `type`, as a double. Floats: round to nearest even. Integers: truncation
/// with saturation, NaN -> 0. Bool: value != 0. Integers beyond 2^53 do not fit in a double; they
/// must not pass through here.
///
/// Overflow of narrow floats: infinity in f8e5m2; NaN in the other 8-bit types; the largest value
/// in smaller types, which also map NaN to -0. f8e8m0 rounds magnitudes up to a power of two;
/// values above the largest become the largest, zero becomes the smallest, infinities become NaN.
double RoundTo(DType type, double value);
/// Largest finite value of a float type.
double LargestFinite(DType type);

/// RoundTo(type, value) as an integer, for integer types and bool. A u64 is returned as its bits.
int64_t IntegerFrom(DType type, double value);
/// The value of an integer of this type as a double. A u64 is passed as its bits.
double IntegerToDouble(DType type, int64_t value);

/// The bits of RoundTo(type, value), in the low bits. `type` is a float type.
uint64_t BitsFromDouble(DType type, double value);
/// Inverse of BitsFromDouble; ignores higher bits.
double DoubleFromBits(DType type, uint64_t bits);
/// The low DTypeBits(type) bits of `value`, sign-extended or zero-extended to 64 bits as the type
/// demands.
int64_t SignExtended(DType type, int64_t value);

/// IEEE half and bfloat16 bits <-> double, round to nearest even.
uint16_t HalfFromDouble(double value);
double HalfToDouble(uint16_t bits);
uint16_t BFloat16FromDouble(double value);
double BFloat16ToDouble(uint16_t bits);

}  // namespace fusion
