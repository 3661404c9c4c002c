#include "core/codegen/cpu/prelude.h"

#include <array>
#include <vector>

#include "core/base/text/text.h"
#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

constexpr std::string_view kTypes = R"(
#pragma GCC diagnostic ignored "-Wpsabi"
typedef FusionInt64 i64;
typedef unsigned long long u64;
#define AI static inline __attribute__((always_inline))
typedef float vf __attribute__((vector_size(4 * W), may_alias));
typedef int vi __attribute__((vector_size(4 * W), may_alias));  // i32, narrower integers, and masks (0 or -1)
typedef double vd __attribute__((vector_size(8 * W), may_alias));
typedef i64 vl __attribute__((vector_size(8 * W), may_alias));  // i64 and u32
typedef u64 vu __attribute__((vector_size(8 * W), may_alias));
AI i64 min_i64(i64 a, i64 b) { return a < b ? a : b; }
AI i64 max_i64(i64 a, i64 b) { return a > b ? a : b; }
// x - 0 keeps -0 and NaN, x + 0 would not.
AI vf splat(float x) { return x - (vf){}; }
AI vd splat(double x) { return x - (vd){}; }
AI vi splat(int x) { return x - (vi){}; }
AI vl splat(i64 x) { return x - (vl){}; }
AI vu splat(u64 x) { return x - (vu){}; }
)";

// Loads and stores of one memory type: $T the C type, $V the register vector, $N the suffix, $L the
// load of a whole vector, $S how a byte is widened.
constexpr std::string_view kMemory = R"(
typedef $T mem_$N __attribute__((vector_size(sizeof($T) * W), aligned(sizeof($T)), may_alias));
$L
AI $V loadn_$N(const $T* p, i64 n) {
  $V v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
AI $V loads_$N(const $T* p, i64 stride, i64 n) {
  $V v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i * stride];
  return v;
}
AI void store_$N($T* p, $V v) { *(mem_$N*)p = __builtin_convertvector(v, mem_$N); }
AI void storen_$N($T* p, $V v, i64 n) {
  for (i64 i = 0; i < n; ++i) p[i] = ($T)v[i];
}
AI void stores_$N($T* p, i64 stride, $V v, i64 n) {
  for (i64 i = 0; i < n; ++i) p[i * stride] = ($T)v[i];
}
)";

constexpr std::string_view kLoad =
    "AI $V load_$N(const $T* p) { return __builtin_convertvector(*(const mem_$N*)p, $V); }";
// GCC 12 converts bytes to i32 one by one.
constexpr std::string_view kLoadBytes =
    R"(#if defined(__AVX512F__) && !defined(__clang__)
AI vi load_$N(const $T* p) {
  typedef char b16 __attribute__((vector_size(16), aligned(1), may_alias));
  typedef int i16x32 __attribute__((vector_size(64)));
  return (vi)__builtin_ia32_pmov$Sxbd512_mask(*(const b16*)p, (i16x32){}, (unsigned short)-1);
}
#elif defined(__AVX2__) && !defined(__clang__)
AI vi load_$N(const $T* p) {
  typedef i64 b8 __attribute__((aligned(1), may_alias));
  typedef i64 b8x2 __attribute__((vector_size(16)));
  typedef char b16 __attribute__((vector_size(16)));
  return (vi)__builtin_ia32_pmov$Sxbd256((b16)(b8x2){*(const b8*)p, 0});
}
#else
AI vi load_$N(const $T* p) { return __builtin_convertvector(*(const mem_$N*)p, vi); }
#endif)";

// f32 has masked instructions for partial vectors.
constexpr std::string_view kMemoryF32 = R"(
typedef float mem_f32 __attribute__((vector_size(4 * W), aligned(4), may_alias));
AI vf load_f32(const float* p) { return *(const mem_f32*)p; }
AI void store_f32(float* p, vf v) { *(mem_f32*)p = v; }
#if defined(__AVX512F__)
AI vf loadn_f32(const float* p, i64 n) {
  typedef float v16 __attribute__((vector_size(64)));
  return (vf)__builtin_ia32_loadups512_mask((const float*)p, (v16){}, (unsigned short)((1u << n) - 1));
}
AI void storen_f32(float* p, vf v, i64 n) {
  typedef float v16 __attribute__((vector_size(64)));
  __builtin_ia32_storeups512_mask(p, (v16)v, (unsigned short)((1u << n) - 1));
}
#elif defined(__AVX2__)
AI vi lanes_below(i64 n) { return (vi){0, 1, 2, 3, 4, 5, 6, 7} < (int)n; }
AI vf loadn_f32(const float* p, i64 n) {
  typedef float v8 __attribute__((vector_size(32)));
  typedef int m8 __attribute__((vector_size(32)));
  return (vf)__builtin_ia32_maskloadps256((const v8*)p, (m8)lanes_below(n));
}
AI void storen_f32(float* p, vf v, i64 n) {
  typedef float v8 __attribute__((vector_size(32)));
  typedef int m8 __attribute__((vector_size(32)));
  __builtin_ia32_maskstoreps256((v8*)p, (m8)lanes_below(n), (v8)v);
}
#else
AI vf loadn_f32(const float* p, i64 n) {
  vf v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
AI void storen_f32(float* p, vf v, i64 n) {
  for (i64 i = 0; i < n; ++i) p[i] = v[i];
}
#endif
AI vf loads_f32(const float* p, i64 stride, i64 n) {
  vf v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i * stride];
  return v;
}
AI void stores_f32(float* p, i64 stride, vf v, i64 n) {
  for (i64 i = 0; i < n; ++i) p[i * stride] = v[i];
}
)";

// Smaller floats are f32 in registers: $N_from and $N_to are exact and round to nearest even.
// Denormal numbers count. $B: a vector of their bits.
constexpr std::string_view kMemoryHalf = R"(
AI vf load_$N(const $T* p) { return $N_to_f(*(const $B*)p); }
AI vf loads_$N(const $T* p, i64 stride, i64 n) {
  $B v = {};
  for (i64 i = 0; i < n; ++i) v[i] = p[i * stride];
  return $N_to_f(v);
}
AI vf loadn_$N(const $T* p, i64 n) { return loads_$N(p, 1, n); }
AI vf splat_$N(const $T* p) { return $N_to_f(*p + ($B){}); }
AI void store_$N($T* p, vf v) { *($B*)p = f_to_$N(v); }
AI void stores_$N($T* p, i64 stride, vf v, i64 n) {
  const $B bits = f_to_$N(v);
  for (i64 i = 0; i < n; ++i) p[i * stride] = bits[i];
}
AI void storen_$N($T* p, vf v, i64 n) { stores_$N(p, 1, v, n); }
)";

constexpr std::string_view kBits16 = R"(
typedef unsigned short mem_bits __attribute__((vector_size(2 * W), aligned(2), may_alias));
)";

constexpr std::string_view kF16 = R"(
#if defined(__AVX512F__) && !defined(__clang__)
typedef short bits16 __attribute__((vector_size(32)));
typedef float wide16 __attribute__((vector_size(64)));
AI vf f16_to_f(mem_bits h) {
  return (vf)__builtin_ia32_vcvtph2ps512_mask((bits16)h, (wide16){}, -1, 4);
}
AI mem_bits f_to_f16(vf x) {
  return (mem_bits)__builtin_ia32_vcvtps2ph512_mask((wide16)x, 0, (bits16){}, -1);
}
#elif defined(__F16C__) && !defined(__clang__)
typedef short bits8 __attribute__((vector_size(16)));
typedef float wide8 __attribute__((vector_size(32)));
AI vf f16_to_f(mem_bits h) { return (vf)__builtin_ia32_vcvtph2ps256((bits8)h); }
AI mem_bits f_to_f16(vf x) { return (mem_bits)__builtin_ia32_vcvtps2ph256((wide8)x, 0); }
#else
AI vf f16_to_f(mem_bits h) {
  const vi bits = __builtin_convertvector(h, vi);
  // The exponents differ by 112; a product makes subnormals normal.
  const vi scaled = (vi)((vf)((bits & 0x7fff) << 13) * 0x1p112f);
  const vi magnitude = (bits & 0x7c00) == 0x7c00 ? (bits & 0x7fff) << 13 | 0x7f800000 : scaled;
  return (vf)(magnitude | (bits & 0x8000) << 16);
}
AI mem_bits f_to_f16(vf x) {
  const vi bits = (vi)x;
  const vi a = bits & 0x7fffffff;
  const vi normal = (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13;
  const vi small = (vi)((vf)a + 0.5f) - 0x3f000000;  // the addition rounds to units of 2^-24
  vi h = a < 0x38800000 ? small : normal;
  h = a >= 0x47800000 ? (a > 0x7f800000 ? splat(0x7e00) : splat(0x7c00)) : h;
  return __builtin_convertvector(h | (bits >> 16 & 0x8000), mem_bits);
}
#endif
)";

constexpr std::string_view kBF16 = R"(
AI vf bf16_to_f(mem_bits h) { return (vf)(__builtin_convertvector(h, vi) << 16); }
AI mem_bits f_to_bf16(vf x) {
  const vi bits = (vi)x;
  const vi rounded = bits + 0x7fff + (bits >> 16 & 1);
  return __builtin_convertvector((x == x ? rounded : bits | 0x400000) >> 16, mem_bits);
}
)";

constexpr std::string_view kMemoryBool = R"(
AI vi load_bool(const unsigned char* p) { return load_u8(p) != 0; }
AI vi loadn_bool(const unsigned char* p, i64 n) { return loadn_u8(p, n) != 0; }
AI vi loads_bool(const unsigned char* p, i64 stride, i64 n) { return loads_u8(p, stride, n) != 0; }
AI void store_bool(unsigned char* p, vi v) { store_u8(p, v & 1); }
AI void storen_bool(unsigned char* p, vi v, i64 n) { storen_u8(p, v & 1, n); }
AI void stores_bool(unsigned char* p, i64 stride, vi v, i64 n) { stores_u8(p, stride, v & 1, n); }
)";

const std::vector<PreludePart>& Parts() {
  static const auto* const kParts = [] {
    auto* parts = new std::vector<PreludePart>{
        {"mem_f32", {}, kMemoryF32}, {"mem_bool", {"mem_u8"}, kMemoryBool}, {"bits16", {}, kBits16},
        {"f16", {"bits16"}, kF16},   {"bf16", {"bits16"}, kBF16},
    };
    for (PreludePart& part : FunctionParts()) parts->push_back(std::move(part));
    for (PreludePart& part : NarrowParts()) parts->push_back(std::move(part));
    for (PreludePart& part : MoveParts()) parts->push_back(std::move(part));
    for (PreludePart& part : DoubleParts()) parts->push_back(std::move(part));
    for (PreludePart& part : OpaqueParts()) parts->push_back(std::move(part));
    return parts;
  }();
  return *kParts;
}

const std::vector<PreludePart>& Products() {
  static const auto* const kParts = [] {
    auto* parts = new std::vector<PreludePart>(ProductParts());
    for (PreludePart& part : TileParts()) parts->push_back(std::move(part));
    return parts;
  }();
  return *kParts;
}

struct MemoryType {
  std::string_view name;  // suffix
  std::string_view type;
  std::string_view vector;
  std::string_view bits = {};  // smaller floats
};
constexpr std::array<MemoryType, 13> kMemoryTypes = {{
    {"u8", "unsigned char", "vi"},
    {"i8", "signed char", "vi"},
    {"i16", "short", "vi"},
    {"i32", "int", "vi"},
    {"i64", "i64", "vl"},
    {"u16", "unsigned short", "vi"},
    {"u32", "unsigned int", "vl"},
    {"u64", "u64", "vu"},
    {"i4", "signed char", "vi"},
    {"u4", "unsigned char", "vi"},
    {"i2", "signed char", "vi"},
    {"u2", "unsigned char", "vi"},
    {"f64", "double", "vd"},
}};

// Those above have texts of their own; loads and stores with bounds call them.
constexpr std::array<MemoryType, 2> kPlainTypes = {{
    {"f32", "float", "vf"},
    {"bool", "unsigned char", "vi"},
}};

constexpr std::array<MemoryType, 10> kSmallFloats = {{
    {"f16", "unsigned short", "vf", "mem_bits"},
    {"bf16", "unsigned short", "vf", "mem_bits"},
    {"f8e4m3fn", "unsigned char", "vf", "mem_codes"},
    {"f8e4m3fnuz", "unsigned char", "vf", "mem_codes"},
    {"f8e5m2", "unsigned char", "vf", "mem_codes"},
    {"f8e5m2fnuz", "unsigned char", "vf", "mem_codes"},
    {"f8e8m0", "unsigned char", "vf", "mem_codes"},
    {"f6e2m3", "unsigned char", "vf", "mem_codes"},
    {"f6e3m2", "unsigned char", "vf", "mem_codes"},
    {"f4e2m1", "unsigned char", "vf", "mem_codes"},
}};

std::string Substitute(std::string_view text, const MemoryType& type) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'T':
        out += type.type;
        break;
      case 'V':
        out += type.vector;
        break;
      case 'B':
        out += type.bits;
        break;
      case 'S':
        out += type.name[0] == 'u' ? "z" : "s";
        break;
      case 'L':
        out += Substitute(type.name == "u8" || type.name == "i8" ? kLoadBytes : kLoad, type);
        break;
      default:
        out += type.name;
        break;
    }
  }
  return out;
}

void Collect(const std::string& name, std::set<std::string>* wanted) {
  if (!wanted->insert(name).second) return;
  for (const std::vector<PreludePart>* parts : {&Parts(), &Products()}) {
    for (const PreludePart& part : *parts) {
      if (part.name != name) continue;
      for (std::string_view need : part.needs) Collect(std::string(need), wanted);
    }
  }
  for (const MemoryType& type : kSmallFloats) {
    if (name == StrCat("mem_", type.name)) Collect(std::string(type.name), wanted);
  }
}

// Of the memory types that are wanted.
std::string GuardedMemory(const std::set<std::string>& wanted) {
  std::string out(GuardTypes());
  auto add = [&](const auto& types, bool half) {
    for (const MemoryType& type : types) {
      if (wanted.count(StrCat("mem_", type.name)) == 0) continue;
      out += Substitute(GuardMemory(half), type);
    }
  };
  add(kMemoryTypes, false);
  add(kPlainTypes, false);
  add(kSmallFloats, true);
  return out;
}

}  // namespace

std::string CpuPrelude(int lanes, const PreludeUse& use) {
  std::set<std::string> wanted;
  for (const std::string& name : use.functions) Collect(name, &wanted);
  if (use.product) Collect("product", &wanted);
  std::string out = StrCat("enum { W = ", lanes, " };  // floats of a vector", kTypes);
  for (const MemoryType& type : kMemoryTypes) {
    if (wanted.count(StrCat("mem_", type.name)) != 0) out += Substitute(kMemory, type);
  }
  for (const PreludePart& part : Parts()) {
    if (wanted.count(std::string(part.name)) != 0) out += part.text;
  }
  for (const MemoryType& type : kSmallFloats) {
    if (wanted.count(StrCat("mem_", type.name)) != 0) out += Substitute(kMemoryHalf, type);
  }
  if (use.guard) out += GuardedMemory(wanted);
  for (const PreludePart& part : Products()) {  // behind the loads and stores that they call
    if (wanted.count(std::string(part.name)) == 0) continue;
    out += use.guard ? StrCat(GuardedProduct(part.text), part.guarded) : std::string(part.text);
  }
  return out;
}

}  // namespace fusion
