#include <array>

#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

// Masks have the lane width of i32; wider values need wider masks.
constexpr std::string_view kSelect = R"(
AI vf select_f(vi c, vf a, vf b) { return c ? a : b; }
AI vi select_i(vi c, vi a, vi b) { return c ? a : b; }
AI vl select_l(vi c, vl a, vl b) { return __builtin_convertvector(c, vl) ? a : b; }
AI vu select_u(vi c, vu a, vu b) { return __builtin_convertvector(c, vl) ? a : b; }
AI vd select_d(vi c, vd a, vd b) { return __builtin_convertvector(c, vl) ? a : b; }
)";

// The x86 instructions return the second operand if either is NaN: put the bound first and NaN gets
// through.
constexpr std::string_view kRawMinMax = R"(
#if defined(__AVX512F__) && !defined(__clang__)
typedef float v16f __attribute__((vector_size(64)));
AI vf rawmax(vf a, vf b) { return (vf)__builtin_ia32_maxps512_mask((v16f)a, (v16f)b, (v16f){}, -1, 4); }
AI vf rawmin(vf a, vf b) { return (vf)__builtin_ia32_minps512_mask((v16f)a, (v16f)b, (v16f){}, -1, 4); }
#elif defined(__AVX2__) && !defined(__clang__)
typedef float v8f __attribute__((vector_size(32)));
AI vf rawmax(vf a, vf b) { return (vf)__builtin_ia32_maxps256((v8f)a, (v8f)b); }
AI vf rawmin(vf a, vf b) { return (vf)__builtin_ia32_minps256((v8f)a, (v8f)b); }
#elif !defined(__clang__)
typedef float v4f __attribute__((vector_size(16)));
AI vf rawmax(vf a, vf b) { return (vf)__builtin_ia32_maxps((v4f)a, (v4f)b); }
AI vf rawmin(vf a, vf b) { return (vf)__builtin_ia32_minps((v4f)a, (v4f)b); }
#else
AI vf rawmax(vf a, vf b) { return a > b ? a : b; }
AI vf rawmin(vf a, vf b) { return a < b ? a : b; }
#endif
)";

constexpr std::string_view kMinMax = R"(
// NaN if either is NaN.
AI vf max_f(vf a, vf b) { return a == a ? rawmax(a, b) : a; }
AI vf min_f(vf a, vf b) { return a == a ? rawmin(a, b) : a; }
AI vi max_i(vi a, vi b) { return a > b ? a : b; }
AI vi min_i(vi a, vi b) { return a < b ? a : b; }
AI vl max_l(vl a, vl b) { return a > b ? a : b; }
AI vl min_l(vl a, vl b) { return a < b ? a : b; }
AI vu max_u(vu a, vu b) { return a > b ? a : b; }
AI vu min_u(vu a, vu b) { return a < b ? a : b; }
AI vd max_d(vd a, vd b) { return a == a ? (a > b ? a : b) : a; }
AI vd min_d(vd a, vd b) { return a == a ? (a < b ? a : b) : a; }
)";

constexpr std::string_view kAbs = R"(
AI vf abs_f(vf x) { return (vf)((vi)x & 0x7fffffff); }
AI vd abs_d(vd x) { return (vd)((vl)x & (i64)0x7fffffffffffffff); }
AI vi abs_i(vi x) { return x < 0 ? -x : x; }
AI vl abs_l(vl x) { return x < 0 ? -x : x; }
AI vu abs_u(vu x) { return x; }
AI vf copysign_f(vf x, vf s) { return (vf)(((vi)x & 0x7fffffff) | ((vi)s & (int)0x80000000)); }
)";

// A double as a float whose last bit says whether it is exact, so that rounding it once more, to
// fewer bits, rounds as if it were the double.
constexpr std::string_view kOdd = R"(
AI vf odd_f(vd x) {
  const vf near = __builtin_convertvector(x, vf);
  const vl farther = (vl)(abs_d(__builtin_convertvector(near, vd)) > abs_d(x));
  const vl differs = (vl)(__builtin_convertvector(near, vd) != x);
  const vi down = (vi)near + __builtin_convertvector(farther, vi);
  return (vf)(down | (__builtin_convertvector(differs, vi) & 1));
}
)";

constexpr std::string_view kSign = R"(
AI vf sign_f(vf x) { return x > 0 ? splat(1.0f) : x < 0 ? splat(-1.0f) : x; }
AI vi sign_i(vi x) { return (x < 0) - (x > 0); }
AI vl sign_l(vl x) { return (x < 0) - (x > 0); }
AI vu sign_u(vu x) { return (vu)(-(vl)(x > 0)); }
)";

constexpr std::string_view kSqrt = R"(
AI vf sqrt_f(vf x) {
#if defined(__clang__)
  vf r;
  for (int i = 0; i < W; ++i) r[i] = __builtin_sqrtf(x[i]);
  return r;
#elif defined(__AVX512F__)
  typedef float v16 __attribute__((vector_size(64)));
  return (vf)__builtin_ia32_sqrtps512_mask((v16)x, (v16){}, -1, 4);
#elif defined(__AVX2__)
  typedef float v8 __attribute__((vector_size(32)));
  return (vf)__builtin_ia32_sqrtps256((v8)x);
#else
  typedef float v4 __attribute__((vector_size(16)));
  return (vf)__builtin_ia32_sqrtps((v4)x);
#endif
}
)";

// Values of 2^23 (f32) or 2^52 (f64) and more are integers already; the sign of zero is kept.
constexpr std::string_view kRounding = R"(
AI $V round_$S($V x) {
  $V magic = copysign_$S(splat($M), x);
  $V r = copysign_$S((x + magic) - magic, x);
  return abs_$S(x) < $M ? r : x;
}
AI $V floor_$S($V x) {
  $V r = round_$S(x);
  return copysign_$S(r > x ? r - ($T)1 : r, x);
}
AI $V ceil_$S($V x) {
  $V r = round_$S(x);
  return copysign_$S(r < x ? r + ($T)1 : r, x);
}
)";

std::string RoundingOf(bool wide) {
  std::string out = Replaced(kRounding, "$V", wide ? "vd" : "vf");
  out = Replaced(out, "$S", wide ? "d" : "f");
  out = Replaced(out, "$T", wide ? "double" : "float");
  return Replaced(out, "$M", wide ? "4503599627370496.0" : "8388608.0f");  // 2^52, 2^23
}

// Cephes expf: two-step reduction by ln 2, degree 5; below 1.3 ulp. Gradual underflow to 0 (below
// -103.972 the nearest float is 0), overflow to inf, NaN kept. Masked scores are 0 before they
// underflow, which costs ten times the rest in hardware: with AVX-512 whatever comes of them is
// masked, elsewhere they are kept in range.
constexpr std::string_view kExp = R"(
AI vf exp_f(vf x) {
  vf c = rawmin(splat(89.0f), x);
#if !defined(__AVX512F__)
  c = rawmax(splat(-104.5f), c);
#endif
  vf t = c * 1.44269504088896341f + 12582912.0f;  // nearest integer by the magic number
  vf n = t - 12582912.0f;
  vf r = c - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
#if defined(__AVX512F__)
  typedef float v16 __attribute__((vector_size(64)));
  p = (p * r + 1.0f) * r + 1.0f;
  const unsigned short stays = __builtin_ia32_cmpps512_mask((v16)c, (v16)splat(-103.98f), 0x15, -1, 4);  // not less
  return (vf)__builtin_ia32_scalefps512_mask((v16)p, (v16)n, (v16){}, stays, 4);
#else
  p = p * (r * r) + (r + 1.0f);
  p = c < splat(-103.98f) ? (vf){} : p;
  vi e = (vi)t - 0x4b400000;
  vi half = e >> 1;  // 2^n in two steps, so that neither leaves the exponent range
  return p * (vf)((half + 127) << 23) * (vf)((e - half + 127) << 23);
#endif
}
)";

// Below 3.3 ulp; 0 below -88.73, where the true value is subnormal.
constexpr std::string_view kSigmoid = R"(
AI vf sigmoid_f(vf x) { return 1.0f / (1.0f + exp_f(-x)); }
)";

// Rational 13/8 (as in Eigen and XLA), error below 4.8e-7; exactly +-1 from 3.92 on, where the true
// value rounds to it.
constexpr std::string_view kErf = R"(
AI vf erf_f(vf x) {
  vf c = rawmin(splat(4.0f), rawmax(splat(-4.0f), x));
  vf z = c * c;
  vf p = z * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * z - 2.10102402082508e-06f;
  p = p * z - 5.69250639462346e-05f;
  p = p * z - 7.34990630326855e-04f;
  p = p * z - 2.95459980854025e-03f;
  p = p * z - 1.60960333262415e-02f;
  vf q = z * -1.45660718464996e-05f - 2.13374055278905e-04f;
  q = q * z - 1.68282697438203e-03f;
  q = q * z - 7.37332916720468e-03f;
  q = q * z - 1.42647390514189e-02f;
  return abs_f(x) > 3.92f ? copysign_f(splat(1.0f), x) : c * p / q;
}
)";

// Rational 13/6 (as in Eigen), error below 3.8e-7; exactly +-1 from 9.02 on.
constexpr std::string_view kTanh = R"(
AI vf tanh_f(vf x) {
  vf c = rawmin(splat(7.90531110763549805f), rawmax(splat(-7.90531110763549805f), x));
  vf z = c * c;
  vf p = z * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * z - 8.60467152213735e-11f;
  p = p * z + 5.12229709037114e-08f;
  p = p * z + 1.48572235717979e-05f;
  p = p * z + 6.37261928875436e-04f;
  p = p * z + 4.89352455891786e-03f;
  vf q = z * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = q * z + 2.26843463243900e-03f;
  q = q * z + 4.89352518554385e-03f;
  vf r = c * p / q;
  r = abs_f(x) < 0.0004f ? x : r;  // keeps -0 and the relative accuracy near 0
  return abs_f(x) > 9.02f ? copysign_f(splat(1.0f), x) : r;
}
)";

// Cephes logf, below 1 ulp; 0 gives -inf, negative numbers NaN, subnormals are scaled up first.
constexpr std::string_view kLog = R"(
AI vf log_f(vf x) {
  vi tiny = x < 1.17549435e-38f;
  vf y = tiny ? x * 8388608.0f : x;
  vi bits = (vi)y;
  vi e = ((bits >> 23) & 255) - 126;
  vf m = (vf)((bits & 0x007fffff) | 0x3f000000);  // [0.5, 1)
  vi low = m < 0.707106781186547524f;
  vf r = (low ? m + m : m) - 1.0f;
  vf n = __builtin_convertvector(e + low, vf) - (tiny ? splat(23.0f) : splat(0.0f));
  vf z = r * r;
  vf p = r * 7.0376836292e-2f - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  vf s = p * r * z + n * -2.12194440e-4f - 0.5f * z;
  vf result = r + s + n * 0.693359375f;
  vf inf = splat(__builtin_inff());
  result = x == inf ? inf : result;
  result = x == 0.0f ? -inf : result;
  return x < 0.0f ? splat(__builtin_nanf("")) : (x == x ? result : x);
}
)";

// Reduction by pi/2 in double (three parts, exact for |x| < 2^20), beyond that lane by lane with
// 2/pi to 224 bits (Payne and Hanek 1983); then the usual polynomials on [-pi/4, pi/4]. Below 1.6
// ulp; inf gives NaN.
constexpr std::string_view kTrig = R"(
static __attribute__((noinline)) double trig_reduce_large(float x, int* quadrant) {
  static const unsigned two_over_pi[8] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                          0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};
  unsigned bits;
  __builtin_memcpy(&bits, &x, 4);
  int e = (int)((bits >> 23) & 255) - 150;  // x = m * 2^e
  unsigned long long m = (bits & 0x7fffff) | 0x800000;
  // The product m * 2/pi * 2^e modulo 4: 96 bits of 2/pi from bit e - 2 on are enough.
  int shift = e > 2 ? e - 2 : 0;
  int word = shift >> 5;
  int bit = shift & 31;
  unsigned long long w[4];
  for (int i = 0; i < 4; ++i) w[i] = word + i < 8 ? two_over_pi[word + i] : 0;
  unsigned long long a = w[0];
  unsigned long long b = w[1];
  unsigned long long c = w[2];
  if (bit != 0) {
    a = (w[0] << bit | w[1] >> (32 - bit)) & 0xffffffffu;
    b = (w[1] << bit | w[2] >> (32 - bit)) & 0xffffffffu;
    c = (w[2] << bit | w[3] >> (32 - bit)) & 0xffffffffu;
  }
  // With the first bit worth 2^(e - 1 - shift): 128-bit product of m and the 96 bits.
  unsigned __int128 product = (unsigned __int128)(m * a) << 64;
  product += (unsigned __int128)(m * b) << 32;
  product += m * c;
  // product * 2^(e - shift - 96): units of quarter turns have their binary point at bit 96 - (e - shift).
  int point = 96 - (e - shift);
  unsigned __int128 whole = product >> point;
  int q = (int)(whole & 3);
  double f = (double)(unsigned long long)(product << (128 - point) >> 64) * 5.42101086242752217e-20;  // 2^-64
  if (f > 0.5) {
    f -= 1.0;
    q += 1;
  }
  if (bits >> 31) {
    f = -f;
    q = -q;
  }
  *quadrant = q & 3;
  return f * 1.5707963267948966;
}
AI void trig_reduce(vf x, vf* r, vi* quadrant) {
  vd d = __builtin_convertvector(x, vd);
  vd t = d * 0.63661977236758134308 + 6755399441055744.0;
  vd n = t - 6755399441055744.0;
  vd y = d - n * 1.57079632673412561417;
  y = y - n * 6.07710050630396597660e-11;
  y = y - n * 2.02226624879595063154e-21;
  vl q = (vl)t & 3;
  vi large = abs_f(x) >= 1048576.0f;
  int any = 0;
  for (int i = 0; i < W; ++i) any |= large[i];
  if (any) {
    for (int i = 0; i < W; ++i) {
      if (!large[i]) continue;
      int lane_q = 0;
      float lane = x[i];
      y[i] = lane - lane == 0 ? trig_reduce_large(lane, &lane_q) : __builtin_nan("");
      q[i] = lane_q;
    }
  }
  *r = __builtin_convertvector(y, vf);
  *quadrant = __builtin_convertvector(q, vi);
}
AI vf sin_poly(vf r) {
  vf z = r * r;
  vf p = z * -1.9515295891e-4f + 8.3321608736e-3f;
  p = p * z - 1.6666654611e-1f;
  vf y = p * z * r + r;
  return (vf)(((vi)y & 0x7fffffff) | ((vi)r & ~0x7fffffff));  // -0 stays -0
}
AI vf cos_poly(vf r) {
  vf z = r * r;
  vf p = z * 2.443315711809948e-5f - 1.388731625493765e-3f;
  p = p * z + 4.166664568298827e-2f;
  return p * z * z - 0.5f * z + 1.0f;
}
AI vf sin_f(vf x) {
  vf r;
  vi q;
  trig_reduce(x, &r, &q);
  vf y = (q & 1) != 0 ? cos_poly(r) : sin_poly(r);
  return (vf)((vi)y ^ ((q & 2) << 30));
}
AI vf cos_f(vf x) {
  vf r;
  vi q;
  trig_reduce(x, &r, &q);
  vf y = (q & 1) != 0 ? sin_poly(r) : cos_poly(r);
  return (vf)((vi)y ^ (((q + 1) & 2) << 30));
}
)";

// x^y = 2^(y log2 |x|) in double: log by the atanh series after reduction to [sqrt 1/2, sqrt 2],
// exp2 by degree 11; the error of the double steps stays below 1e-10, so the result is rounded
// once. Special cases as in C's pow.
constexpr std::string_view kPow = R"(
AI vd log2_double(vd x) {
  vl bits = (vl)x;
  vl e = ((bits >> 52) & 2047) - 1023;
  vd m = (vd)((bits & (i64)0x000fffffffffffff) | (i64)0x3ff0000000000000);
  vl high = m > 1.4142135623730951;
  m = high ? m * 0.5 : m;
  vd n = __builtin_convertvector(e - high, vd);
  vd s = (m - 1.0) / (m + 1.0);
  vd z = s * s;
  vd p = z * (1.0 / 17) + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  return n + s * p * 2.8853900817779268;
}
AI vd exp2_double(vd x) {
  vd c = x > 300.0 ? splat(300.0) : x < -300.0 ? splat(-300.0) : x;
  vd t = c + 6755399441055744.0;
  vd n = t - 6755399441055744.0;
  vd r = (c - n) * 0.69314718055994530942;
  vd p = r * (1.0 / 39916800) + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * (vd)((((vl)t - (i64)0x4338000000000000) + 1023) << 52);
}
AI vf pow_f(vf x, vf y) {
  vf ax = abs_f(x);
  vd magnitude = exp2_double(__builtin_convertvector(y, vd) * log2_double(__builtin_convertvector(ax, vd)));
  vf r = __builtin_convertvector(magnitude, vf);
  vf inf = splat(__builtin_inff());
  vi is_integer = floor_f(y) == y;
  vf half = y * 0.5f;
  vi is_odd = is_integer & (floor_f(half) != half) & (abs_f(y) < 16777216.0f);
  // |x| of 0, 1 and inf, and infinite y.
  r = ax == 0.0f ? (y < 0.0f ? inf : splat(0.0f)) : r;
  r = ax == inf ? (y < 0.0f ? splat(0.0f) : inf) : r;
  vi grows = (ax > 1.0f) == (y > 0.0f);
  r = abs_f(y) == inf ? (ax == 1.0f ? splat(1.0f) : grows ? inf : splat(0.0f)) : r;
  // The sign of x, including that of -0, counts for odd y; other powers of finite negative numbers are NaN.
  vi negative = (vi)x < 0;
  r = negative & is_odd ? -r : r;
  vi undefined = (x < 0.0f) & (ax < inf) & ~is_integer & (abs_f(y) < inf);
  r = undefined ? splat(__builtin_nanf("")) : r;
  r = x == x && y == y ? r : x + y;
  return y == 0.0f || x == 1.0f ? splat(1.0f) : r;
}
)";

constexpr std::string_view kIntegerPower = R"(
template <class V, class T>
AI V pow_lanes(V a, V b) {
  for (int i = 0; i < W; ++i) {
    T base = a[i];
    T exponent = b[i];
    if (exponent < 0) {
      a[i] = base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
      continue;
    }
    unsigned long long result = 1;
    unsigned long long factor = (unsigned long long)base;
    for (unsigned long long left = (unsigned long long)exponent; left != 0; left >>= 1) {
      if (left & 1) result *= factor;
      factor *= factor;
    }
    a[i] = (T)result;
  }
  return a;
}
AI vi pow_i(vi a, vi b) { return pow_lanes<vi, int>(a, b); }
AI vl pow_l(vl a, vl b) { return pow_lanes<vl, i64>(a, b); }
AI vu pow_u(vu a, vu b) { return pow_lanes<vu, u64>(a, b); }
)";

// C's fmod, lane by lane: exact however large the quotient is.
constexpr std::string_view kFloatRemainder = R"(
AI long double remainder_lane(long double x, long double y) {
  unsigned short status;
  do {
    __asm__("fprem\n\tfnstsw %%ax" : "+t"(x), "=a"(status) : "u"(y) : "cc");
  } while (status & 0x400);
  return x;
}
AI vf mod_f(vf a, vf b) {
  for (int i = 0; i < W; ++i) a[i] = (float)remainder_lane(a[i], b[i]);
  return a;
}
AI vd mod_d(vd a, vd b) {
  for (int i = 0; i < W; ++i) a[i] = (double)remainder_lane(a[i], b[i]);
  return a;
}
)";

// Lane by lane: integer division has no vector instruction, and must not trap.
constexpr std::string_view kIntegerDivision = R"(
template <class V, class T>
AI V div_lanes(V a, V b) {
  for (int i = 0; i < W; ++i) {
    T x = a[i];
    T y = b[i];
    a[i] = y == 0 ? 0 : y == -1 ? (T)(0 - (unsigned long long)x) : x / y;
  }
  return a;
}
template <class V, class T>
AI V mod_lanes(V a, V b) {
  for (int i = 0; i < W; ++i) {
    T x = a[i];
    T y = b[i];
    T r = y == 0 || y == -1 ? 0 : x % y;
    a[i] = r != 0 && (r < 0) != (y < 0) ? r + y : r;
  }
  return a;
}
AI vi div_i(vi a, vi b) { return div_lanes<vi, int>(a, b); }
AI vl div_l(vl a, vl b) { return div_lanes<vl, i64>(a, b); }
AI vi mod_i(vi a, vi b) { return mod_lanes<vi, int>(a, b); }
AI vl mod_l(vl a, vl b) { return mod_lanes<vl, i64>(a, b); }
AI vu div_u(vu a, vu b) {
  for (int i = 0; i < W; ++i) a[i] = b[i] == 0 ? 0 : a[i] / b[i];
  return a;
}
AI vu mod_u(vu a, vu b) {
  for (int i = 0; i < W; ++i) a[i] = b[i] == 0 ? 0 : a[i] % b[i];
  return a;
}
)";

// Truncates; NaN gives 0; values outside the range give its ends.
constexpr std::string_view kToInteger = R"(
template <class V, class F>
AI V to_integer(F x, double low, double high, i64 lowest, i64 highest) {
  V r;
  for (int i = 0; i < W; ++i) {
    double v = (double)x[i];
    r[i] = v != v ? 0 : v <= low ? lowest : v >= high ? highest : (i64)v;
  }
  return r;
}
template <class F>
AI vu to_u64(F x) {
  vu r;
  for (int i = 0; i < W; ++i) {
    double v = (double)x[i];
    r[i] = !(v > 0) ? 0 : v >= 0x1p64 ? ~0ull : (u64)v;
  }
  return r;
}
)";

// The lanes of a vector folded into one number, halves first; NaN wins in max and min.
constexpr std::string_view kFold = R"(
template <class T> AI T scalar_max(T a, T b) { return a > b || a != a ? a : b; }
template <class T> AI T scalar_min(T a, T b) { return a < b || a != a ? a : b; }
template <int S, class V> AI V rotated(V v) {
#define AT(i) ((i) + S) % W
  if constexpr (W == 16) {
    return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7), AT(8), AT(9), AT(10),
                                   AT(11), AT(12), AT(13), AT(14), AT(15));
  } else if constexpr (W == 8) {
    return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
  } else {
    return __builtin_shufflevector(v, v, AT(0), AT(1), AT(2), AT(3));
  }
#undef AT
}
template <class V> AI V lanes_sum(V a, V b) { return a + b; }
template <class V> AI V lanes_prod(V a, V b) { return a * b; }
template <class V> AI V lanes_max(V a, V b) { return ((a > b) | (a != a)) ? a : b; }
template <class V> AI V lanes_min(V a, V b) { return ((a < b) | (a != a)) ? a : b; }
AI vf lanes_max(vf a, vf b) { return max_f(a, b); }
AI vf lanes_min(vf a, vf b) { return min_f(a, b); }
#define FOLD(op)                                            \
  template <class T, class V> AI T fold_##op(V v) {         \
    if constexpr (W > 8) v = lanes_##op(v, rotated<8>(v));  \
    if constexpr (W > 4) v = lanes_##op(v, rotated<4>(v));  \
    v = lanes_##op(v, rotated<2>(v));                       \
    return (T)lanes_##op(v, rotated<1>(v))[0];              \
  }
FOLD(sum)
FOLD(prod)
FOLD(max)
FOLD(min)
#undef FOLD
)";

// Lanes 0, 1, 2, ... for coordinates and partial vectors.
constexpr std::string_view kLanes = R"(
AI vi lane_numbers() {
  vi v = {};
  for (int i = 0; i < W; ++i) v[i] = i;
  return v;
}
)";

// x / y for many x and one y > 0, r being 1 / y: as exact as a division (Markstein 1990, theorem 8;
// a correctly rounded reciprocal and a remainder without rounding error), but for results near the
// smallest normal number. What is not finite is that of x * r.
constexpr std::string_view kQuotient = R"(
AI bool has_reciprocal(float y) {
#if defined(__FMA__)
  return y >= 0x1p-100f && y <= 0x1p100f;
#else
  return (void)y, false;
#endif
}
AI vf quotient(vf x, vf y, vf r) {
  const vf q = x * r;
  const vf p = q - (q * y - x) * r;
  return p == p ? p : q;
}
)";

}  // namespace

std::string_view RoundingFunctions(bool wide) {
  static const auto* const kTexts =
      new std::array<std::string, 2>{RoundingOf(false), RoundingOf(true)};
  return (*kTexts)[wide ? 1 : 0];
}

std::vector<PreludePart> FunctionParts() {
  return {
      {"select", {}, kSelect},
      {"rawminmax", {}, kRawMinMax},
      {"minmax", {"rawminmax"}, kMinMax},
      {"abs", {}, kAbs},
      {"odd", {"abs"}, kOdd},
      {"sign", {}, kSign},
      {"sqrt", {}, kSqrt},
      {"rounding", {"abs"}, RoundingFunctions(/*wide=*/false)},
      {"exp", {"rawminmax"}, kExp},
      {"sigmoid", {"exp"}, kSigmoid},
      {"erf", {"rawminmax", "abs"}, kErf},
      {"tanh", {"rawminmax", "abs"}, kTanh},
      {"log", {}, kLog},
      {"trig", {"abs"}, kTrig},
      {"pow", {"abs", "rounding"}, kPow},
      {"integer_division", {}, kIntegerDivision},
      {"integer_power", {}, kIntegerPower},
      {"float_remainder", {}, kFloatRemainder},
      {"to_integer", {}, kToInteger},
      {"fold", {"minmax"}, kFold},
      {"lanes", {}, kLanes},
      {"quotient", {}, kQuotient},
  };
}

}  // namespace fusion
