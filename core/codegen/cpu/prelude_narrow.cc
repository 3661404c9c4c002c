#include "core/codegen/cpu/prelude_parts.h"

// Floats of at most 8 bits: f32 in registers, one byte each in memory, of which the low bits count.

namespace fusion {
namespace {

// E, M: bits of exponent and mantissa; B: what the exponent is too large by.
constexpr std::string_view kCodes = R"(
typedef unsigned char mem_codes __attribute__((vector_size(W), aligned(1), may_alias));
// GCC 12 converts bytes to i32 one by one.
#if defined(__AVX512F__) && !defined(__clang__)
AI vi wide_codes(mem_codes c) {
  typedef char c16 __attribute__((vector_size(16)));
  typedef int c16x32 __attribute__((vector_size(64)));
  return (vi)__builtin_ia32_pmovzxbd512_mask((c16)c, (c16x32){}, (unsigned short)-1);
}
#elif defined(__AVX2__) && !defined(__clang__)
AI vi wide_codes(mem_codes c) {
  typedef i64 c8x2 __attribute__((vector_size(16)));
  typedef char c16 __attribute__((vector_size(16)));
  return (vi)__builtin_ia32_pmovzxbd256((c16)(c8x2){(i64)c, 0});
}
#else
AI vi wide_codes(mem_codes c) { return __builtin_convertvector(c, vi); }
#endif
// A code with its sign; the exponents differ by 127 - B, and a product makes subnormals normal.
template <int E, int M, int B>
AI vi value_of_codes(vi code) {
  const vf scale = (vf)splat((254 - B) << 23);
  const vi magnitude = (code & ((1 << (E + M)) - 1)) << (23 - M);
  return (vi)((vf)magnitude * scale) | (code >> (E + M) & 1) << 31;
}
// A code without its sign, to nearest even, of a number: also beyond the largest one.
template <int E, int M, int B>
AI vi codes_of_value(vf x) {
  const vi a = (vi)x & 0x7fffffff;
  const vi normal = (a + ((1 << (22 - M)) - 1) + (a >> (23 - M) & 1) - ((127 - B) << 23)) >> (23 - M);
  const vf unit = (vf)splat((151 - B - M) << 23);  // an addition rounds to multiples of subnormals
  const vi small = (vi)((vf)a + unit) - (vi)unit;
  return a < ((128 - B) << 23) ? small : normal;
}
template <int E, int M>
AI mem_codes with_sign(vi code, vf x) {
  return __builtin_convertvector(code | ((vi)x >> 31 & 1 << (E + M)), mem_codes);
}
)";

constexpr std::string_view kF8E4M3FN = R"(
AI vf f8e4m3fn_to_f(mem_codes c) {
  const vi code = wide_codes(c);
  const vi value = value_of_codes<4, 3, 7>(code);
  return (vf)((code & 127) == 127 ? value | 0x7fc00000 : value);
}
AI mem_codes f_to_f8e4m3fn(vf x) {
  const vi code = codes_of_value<4, 3, 7>(x);
  return with_sign<4, 3>(((code > 126) | (x != x)) ? splat(127) : code, x);
}
)";

constexpr std::string_view kF8E5M2 = R"(
AI vf f8e5m2_to_f(mem_codes c) {
  const vi code = wide_codes(c);
  const vi value = value_of_codes<5, 2, 15>(code);
  return (vf)((code & 124) == 124 ? value | 0x7f800000 | (code & 3) << 21 : value);
}
AI mem_codes f_to_f8e5m2(vf x) {
  vi code = codes_of_value<5, 2, 15>(x);
  code = code > 123 ? splat(124) : code;
  return with_sign<5, 2>(x != x ? splat(126) : code, x);
}
)";

// $N, $E, $M, $B as above; NaN has the code that -0 would have.
constexpr std::string_view kF8Unsigned = R"(
AI vf $N_to_f(mem_codes c) {
  const vi code = wide_codes(c);
  return (vf)(code == 128 ? splat(0x7fc00000) : value_of_codes<$E, $M, $B>(code));
}
AI mem_codes f_to_$N(vf x) {
  const vi code = codes_of_value<$E, $M, $B>(x);
  const vi signed_code = code == 0 ? code : code | ((vi)x >> 31 & 128);
  return __builtin_convertvector(((code > 127) | (x != x)) ? splat(128) : signed_code, mem_codes);
}
)";

// Every code is a number: what is beyond the largest becomes that, NaN -0.
constexpr std::string_view kNumbersOnly = R"(
AI vf $N_to_f(mem_codes c) { return (vf)value_of_codes<$E, $M, $B>(wide_codes(c)); }
AI mem_codes f_to_$N(vf x) {
  const int largest = (1 << ($E + $M)) - 1;
  vi code = codes_of_value<$E, $M, $B>(x);
  code = code > largest ? splat(largest) : code;
  const mem_codes none = __builtin_convertvector(splat(1 << ($E + $M)), mem_codes);
  const mem_codes number = with_sign<$E, $M>(code, x);
  return __builtin_convertvector(
      x != x ? __builtin_convertvector(none, vi) : __builtin_convertvector(number, vi), mem_codes);
}
)";

// Powers of two, magnitudes rounded up.
constexpr std::string_view kF8E8M0 = R"(
AI vf f8e8m0_to_f(mem_codes c) {
  const vi code = wide_codes(c);
  const vi value = code == 0 ? splat(0x400000) : code << 23;
  return (vf)(code == 255 ? splat(0x7fc00000) : value);
}
AI mem_codes f_to_f8e8m0(vf x) {
  const vi a = (vi)x & 0x7fffffff;
  const vi up = (a + 0x7fffff) >> 23;
  const vi code = a > 0x400000 ? (up > 254 ? splat(254) : up) : splat(0);
  return __builtin_convertvector(a >= 0x7f800000 ? splat(255) : code, mem_codes);
}
)";

struct NarrowType {
  std::string_view name;
  std::string_view exponent_bits;
  std::string_view mantissa_bits;
  std::string_view bias;
};

// Texts live as long as the parts that point to them.
std::string_view TextFor(std::string_view text, const NarrowType& type) {
  std::string out = Replaced(text, "$N", type.name);
  out = Replaced(out, "$E", type.exponent_bits);
  out = Replaced(out, "$M", type.mantissa_bits);
  return *new std::string(Replaced(out, "$B", type.bias));
}

}  // namespace

std::vector<PreludePart> NarrowParts() {
  return {
      {"codes8", {}, kCodes},
      {"f8e4m3fn", {"codes8"}, kF8E4M3FN},
      {"f8e4m3fnuz", {"codes8"}, TextFor(kF8Unsigned, {"f8e4m3fnuz", "4", "3", "8"})},
      {"f8e5m2", {"codes8"}, kF8E5M2},
      {"f8e5m2fnuz", {"codes8"}, TextFor(kF8Unsigned, {"f8e5m2fnuz", "5", "2", "16"})},
      {"f8e8m0", {"codes8"}, kF8E8M0},
      {"f6e2m3", {"codes8"}, TextFor(kNumbersOnly, {"f6e2m3", "2", "3", "1"})},
      {"f6e3m2", {"codes8"}, TextFor(kNumbersOnly, {"f6e3m2", "3", "2", "3"})},
      {"f4e2m1", {"codes8"}, TextFor(kNumbersOnly, {"f4e2m1", "2", "1", "1"})},
  };
}

}  // namespace fusion
