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
};
inline constexpr int kDTypeCount = 13;

/// "f32", "i64", "bool", ...: the spelling of every text form.
std::string_view DTypeName(DType type);
/// Inverse of DTypeName.
std::optional<DType> ParseDType(std::string_view name);

/// Bytes of one element.
int64_t DTypeBytes(DType type);

inline bool IsFloat(DType t) {
  return t == DType::kF16 || t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
}
/// A float of 16 bits: for storage; arithmetic on it is done in f32.
inline bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }
inline bool IsUnsigned(DType t) {
  return t == DType::kU8 || t == DType::kU16 || t == DType::kU32 || t == DType::kU64;
}
inline bool IsInteger(DType t) { return !IsFloat(t) && t != DType::kBool; }

/// Nearest value of `type` (round to nearest even for floats; saturating truncation for integers,
/// NaN -> 0; bool is value != 0), as a double. Integers beyond 2^53 go through their own paths, not
/// through this.
double RoundTo(DType type, double value);

/// RoundTo(type, value) of an integer type or bool, as an integer; u64 as its bits.
int64_t IntegerFrom(DType type, double value);
/// The number that an integer of this type is, 64 bits of a u64 being its bits.
double IntegerToDouble(DType type, int64_t value);

/// IEEE half and bfloat16 bits <-> double, round to nearest even.
uint16_t HalfFromDouble(double value);
double HalfToDouble(uint16_t bits);
uint16_t BFloat16FromDouble(double value);
double BFloat16ToDouble(uint16_t bits);

}  // namespace fusion
