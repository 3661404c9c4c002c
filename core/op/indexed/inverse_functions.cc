#include "core/op/indexed/inverse_functions.h"

#include <array>
#include <numbers>

#include "core/op/forms.h"

namespace fusion {

namespace {

template <size_t n>
Expr Polynomial(const Expr& z, const std::array<double, n>& from_highest) {
  Expr sum = ConstLike(z, from_highest[0]);
  for (size_t i = 1; i < n; ++i) sum = sum * z + ConstLike(z, from_highest[i]);
  return sum;
}

}  // namespace

Expr ArcTangent(const Expr& x) {
  static constexpr std::array<double, 5> kNumerator = {
      -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
      -1.228866684490136173410e2, -6.485021904942025371773e1};
  static constexpr std::array<double, 6> kDenominator = {1,
                                                         2.485846490142306297962e1,
                                                         1.650270098316988542046e2,
                                                         4.328810604912902668951e2,
                                                         4.853903996359136964868e2,
                                                         1.945506571482613964425e2};
  const Expr one = ConstLike(x, 1);
  const Expr size = Expr::Unary(ScalarOp::kAbs, x);
  const Expr beyond = Expr::Binary(ScalarOp::kGt, size, ConstLike(x, std::numbers::sqrt2 + 1));
  const Expr middle = Expr::Binary(ScalarOp::kGt, size, ConstLike(x, 0.66));
  // (|x| - 1) / (|x| + 1) of an infinity would be NaN, which is not chosen.
  const Expr t = Expr::Select(beyond, ConstLike(x, -1) / size,
                              Expr::Select(middle, (size - one) / (size + one), size));
  const Expr base =
      Expr::Select(beyond, ConstLike(x, std::numbers::pi / 2),
                   Expr::Select(middle, ConstLike(x, std::numbers::pi / 4), ConstLike(x, 0)));
  const Expr z = t * t;
  const Expr angle = base + (t + t * z * Polynomial(z, kNumerator) / Polynomial(z, kDenominator));
  // -0 keeps its sign.
  return Expr::Select(Expr::Binary(ScalarOp::kLt, x, ConstLike(x, 0)),
                      Expr::Unary(ScalarOp::kNeg, angle),
                      Expr::Select(Expr::Binary(ScalarOp::kEq, x, ConstLike(x, 0)), x, angle));
}

Expr LogOnePlus(const Expr& x) {
  const Expr one = ConstLike(x, 1);
  const Expr u = one + x;
  const Expr log = Expr::Unary(ScalarOp::kLog, u);
  const Expr infinite = Expr::Unary(ScalarOp::kIsInf, u);
  return Expr::Select(Expr::Binary(ScalarOp::kEq, u, one), x,
                      Expr::Select(infinite, log, log * x / (u - one)));
}

}  // namespace fusion
