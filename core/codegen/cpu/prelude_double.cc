#include "core/codegen/cpu/prelude_parts.h"

namespace fusion {
namespace {

constexpr std::string_view kSignDouble = R"(
AI vd sign_d(vd x) { return x > 0 ? splat(1.0) : x < 0 ? splat(-1.0) : x; }
)";

constexpr std::string_view kSqrtDouble = R"(
AI vd sqrt_d(vd x) {
  for (int i = 0; i < W; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
}
)";

constexpr std::string_view kCopysign = R"(
AI vd copysign_d(vd x, vd s) {
  const vl sign = splat((i64)(1ull << 63));
  return (vd)(((vl)x & ~sign) | ((vl)s & sign));
}
)";

// e^x by reduction with ln 2 in two parts and the series to degree 13; below 2 ulp, subnormal
// results included.
constexpr std::string_view kExpDouble = R"(
AI vd exp_taylor(vd r) {  // (e^r - 1 - r) / r^2
  vd p = r * (1.0 / 6227020800) + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  return p * r + 0.5;
}
AI vd exp_d(vd x) {
  vd c = x > 710.0 ? splat(710.0) : x < -746.0 ? splat(-746.0) : x;
  vd t = c * 1.4426950408889634 + 6755399441055744.0;
  vd n = t - 6755399441055744.0;
  vd r = c - n * 0.69314718036912381649;
  vd low = n * 1.9082149292705877e-10;
  r = r - low;
  vd p = (exp_taylor(r) * r * r + r) + 1.0;
  vl e = (vl)t - (i64)0x4338000000000000;
  vl half = e >> 1;  // 2^n in two steps, so that neither leaves the exponent range
  p = p * (vd)((half + 1023) << 52) * (vd)((e - half + 1023) << 52);
  return x == x ? p : x;
}
)";

constexpr std::string_view kSigmoidDouble = R"(
AI vd sigmoid_d(vd x) { return 1.0 / (1.0 + exp_d(-x)); }
)";

// log x = n ln 2 + 2 atanh((m - 1) / (m + 1)) with m in [sqrt 1/2, sqrt 2]; below 2 ulp. 0 gives
// -inf, negative numbers NaN, subnormals are scaled up first.
constexpr std::string_view kLogDouble = R"(
AI vd log_d(vd x) {
  vl tiny = x < 2.2250738585072014e-308;
  vl bits = (vl)(tiny ? x * 18014398509481984.0 : x);
  vl e = ((bits >> 52) & 2047) - 1023;
  vd m = (vd)((bits & (i64)0x000fffffffffffff) | (i64)0x3ff0000000000000);
  vl high = m > 1.4142135623730951;
  m = high ? m * 0.5 : m;
  vd n = __builtin_convertvector(e - high, vd) - (tiny ? splat(54.0) : splat(0.0));
  vd f = m - 1.0;
  vd s = f / (m + 1.0);
  vd z = s * s;
  vd p = z * (2.0 / 23) + 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  p = p * z + 2.0 / 3;
  // 2s = f - s f: what f loses is small beside it.
  vd low = n * 1.9082149292705877e-10 + (s * z * p - s * f);
  vd result = n * 0.69314718036912381649 + (f + low);
  vd inf = splat(__builtin_inf());
  result = x == inf ? inf : result;
  result = x == 0.0 ? -inf : result;
  return x < 0.0 ? splat(__builtin_nan("")) : (x == x ? result : x);
}
)";

// 1 - 2 / (e^2|x| + 1), and e^2x - 1 over e^2x + 1 by its series near 0; below 3 ulp.
constexpr std::string_view kTanhDouble = R"(
AI vd tanh_d(vd x) {
  vd a = abs_d(x);
  vd far = 1.0 - 2.0 / (exp_d(a + a) + 1.0);
  vd y = a < 0.175 ? a + a : splat(0.0);
  vd more = exp_taylor(y) * y * y + y;
  vd near = more / (more + 2.0);
  return copysign_d(a < 0.175 ? near : far, x);
}
)";

// 2/sqrt(pi) e^(-x^2) times the sum of 2^n x^(2n+1) / (2n+1)!!, whose terms are all of one sign
// (Abramowitz and Stegun 7.1.6); exactly +-1 from 6 on. Below 40 ulp, for e^(-x^2).
constexpr std::string_view kErfDouble = R"(
AI vd erf_d(vd x) {
  vd a = abs_d(x);
  vd c = a > 6.0 ? splat(6.0) : a;
  vd z = c * c;
  vd term = c;
  vd sum = c;
  for (int n = 1; n < 140; ++n) {
    term = term * (z * (2.0 / (2 * n + 1)));
    sum = sum + term;
  }
  vd r = sum * exp_d(-z) * 1.1283791670955126;
  r = a >= 6.0 ? splat(1.0) : r;
  return x == x ? copysign_d(r, x) : x;
}
)";

// Reduction by pi/2 in three parts for |x| < 2^20, beyond that lane by lane with 2/pi to 1280 bits
// (Payne and Hanek 1983); then the series on [-pi/4, pi/4]. Absolute error below 2.3e-16; inf gives
// NaN.
constexpr std::string_view kTrigDouble = R"(
static __attribute__((noinline)) double trig_reduce_huge(double x, int* quadrant) {
  static const unsigned long long two_over_pi[20] = {
      0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
      0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
      0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
      0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
      0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull, 0xf0cfbc209af4361dull};
  unsigned long long bits;
  __builtin_memcpy(&bits, &x, 8);
  const int e = (int)((bits >> 52) & 2047) - 1075;  // x = m * 2^e
  const unsigned long long m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  // Three words of 2/pi * 2^(e - 2): what is left out above are multiples of whole turns.
  unsigned long long w[3];
  for (int i = 0; i < 3; ++i) {
    const int at = e - 2 + 64 * i;
    const int word = at >> 6;
    const int bit = at & 63;
    const unsigned long long high = word >= 0 && word < 20 ? two_over_pi[word] : 0;
    const unsigned long long next = word + 1 >= 0 && word + 1 < 20 ? two_over_pi[word + 1] : 0;
    w[i] = bit == 0 ? high : high << bit | next >> (64 - bit);
  }
  unsigned __int128 turns = (unsigned __int128)(m * w[0]) << 64;  // in units of 2^-128
  turns += (unsigned __int128)m * w[1];
  turns += (unsigned __int128)m * w[2] >> 64;
  int q = (int)(turns >> 126);
  unsigned __int128 rest = turns << 2;
  const int up = (int)(rest >> 127);  // nearer to the next quarter
  if (up) rest = -rest;
  double f = (double)(unsigned long long)(rest >> 64) * 0x1p-64 +
             (double)(unsigned long long)rest * 0x1p-128;
  q += up;
  if (up) f = -f;
  if (bits >> 63) {
    f = -f;
    q = -q;
  }
  *quadrant = q & 3;
  return f * 1.5707963267948966;
}
AI void trig_reduce_d(vd x, vd* r, vl* quadrant) {
  vd t = x * 0.63661977236758134308 + 6755399441055744.0;
  vd n = t - 6755399441055744.0;
  vd y = x - n * 1.57079632673412561417;
  y = y - n * 6.07710050630396597660e-11;
  y = y - n * 2.02226624879595063154e-21;
  vl q = (vl)t & 3;
  vl large = ~(abs_d(x) < 1048576.0);
  i64 any = 0;
  for (int i = 0; i < W; ++i) any |= large[i];
  if (any) {
    for (int i = 0; i < W; ++i) {
      if (!large[i]) continue;
      int lane_q = 0;
      double lane = x[i];
      y[i] = lane - lane == 0 ? trig_reduce_huge(lane, &lane_q) : __builtin_nan("");
      q[i] = lane_q;
    }
  }
  *r = y;
  *quadrant = q;
}
AI vd sin_series(vd r) {
  vd z = r * r;
  vd p = z * (1.0 / 355687428096000) - 1.0 / 1307674368000;
  p = p * z + 1.0 / 6227020800;
  p = p * z - 1.0 / 39916800;
  p = p * z + 1.0 / 362880;
  p = p * z - 1.0 / 5040;
  p = p * z + 1.0 / 120;
  p = p * z - 1.0 / 6;
  return copysign_d(p * z * r + r, r);  // -0 stays -0
}
AI vd cos_series(vd r) {
  vd z = r * r;
  vd p = z * (1.0 / 20922789888000) - 1.0 / 87178291200;
  p = p * z + 1.0 / 479001600;
  p = p * z - 1.0 / 3628800;
  p = p * z + 1.0 / 40320;
  p = p * z - 1.0 / 720;
  p = p * z + 1.0 / 24;
  return p * z * z - 0.5 * z + 1.0;
}
AI vd sin_d(vd x) {
  vd r;
  vl q;
  trig_reduce_d(x, &r, &q);
  vd y = (q & 1) != 0 ? cos_series(r) : sin_series(r);
  return (vd)((vl)y ^ ((q & 2) << 62));
}
AI vd cos_d(vd x) {
  vd r;
  vl q;
  trig_reduce_d(x, &r, &q);
  vd y = (q & 1) != 0 ? sin_series(r) : cos_series(r);
  return (vd)((vl)y ^ (((q + 1) & 2) << 62));
}
)";

// x^y = 2^(y log2 |x|), lane by lane with the 64-bit significands of the x87 unit: below 0.51 ulp
// for results between 2^-64 and 2^64, so that powers that are integers come out exactly (casts
// follow), and below 1 ulp elsewhere. Special cases as in C's pow.
constexpr std::string_view kPowDouble = R"pow(
AI double pow_lane(double x, double y) {  // x > 0, both finite
  long double t;
  __asm__("fyl2x" : "=t"(t) : "0"((long double)x), "u"((long double)y) : "st(1)");
  t = t > 20000 ? 20000 : t < -20000 ? -20000 : t;
  long double n;
  __asm__("frndint" : "=t"(n) : "0"(t));
  long double f;
  __asm__("f2xm1" : "=t"(f) : "0"(t - n));
  long double r;
  __asm__("fscale" : "=t"(r) : "0"(f + 1), "u"(n));
  return (double)r;
}
AI vd pow_d(vd x, vd y) {
  vd ax = abs_d(x);
  vd inf = splat(__builtin_inf());
  vd r;
  for (int i = 0; i < W; ++i) {
    r[i] = ax[i] > 0 && ax[i] < inf[i] && y[i] - y[i] == 0 ? pow_lane(ax[i], y[i]) : 1;
  }
  vl is_integer = floor_d(y) == y;
  vd half = y * 0.5;
  vl is_odd = is_integer & (floor_d(half) != half) & (abs_d(y) < 9007199254740992.0);
  // |x| of 0, 1 and inf, and infinite y.
  r = ax == 0.0 ? (y < 0.0 ? inf : splat(0.0)) : r;
  r = ax == inf ? (y < 0.0 ? splat(0.0) : inf) : r;
  vl grows = (ax > 1.0) == (y > 0.0);
  r = abs_d(y) == inf ? (ax == 1.0 ? splat(1.0) : grows ? inf : splat(0.0)) : r;
  // The sign of x, including that of -0, counts for odd y; other powers of finite negative numbers
  // are NaN.
  vl negative = (vl)x < 0;
  r = negative & is_odd ? -r : r;
  vl undefined = (x < 0.0) & (ax < inf) & ~is_integer & (abs_d(y) < inf);
  r = undefined ? splat(__builtin_nan("")) : r;
  r = x == x && y == y ? r : x + y;
  return y == 0.0 || x == 1.0 ? splat(1.0) : r;
}
)pow";

}  // namespace

std::vector<PreludePart> DoubleParts() {
  return {{"sign_d", {}, kSignDouble},
          {"sqrt_d", {}, kSqrtDouble},
          {"copysign_d", {}, kCopysign},
          {"rounding_d", {"abs", "copysign_d"}, RoundingFunctions(/*wide=*/true)},
          {"exp_d", {}, kExpDouble},
          {"sigmoid_d", {"exp_d"}, kSigmoidDouble},
          {"log_d", {}, kLogDouble},
          {"tanh_d", {"abs", "copysign_d", "exp_d"}, kTanhDouble},
          {"erf_d", {"abs", "copysign_d", "exp_d"}, kErfDouble},
          {"trig_d", {"abs", "copysign_d"}, kTrigDouble},
          {"pow_d", {"abs", "rounding_d"}, kPowDouble}};
}

}  // namespace fusion
