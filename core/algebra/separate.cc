#include "core/algebra/separate.h"

#include <algorithm>
#include <cmath>

#include "core/base/contains.h"

namespace fusion {
namespace {

// Maximum number of terms of a separated sum.
constexpr size_t kMostTerms = 6;
// Longer products are not separated: subexpressions are shared, so a hostile expression of few
// nodes may have exponentially many factors.
constexpr size_t kMostFactors = 16;

Expr Multiplied(const Expr& a, const Expr& b) {
  if (a.empty() || a.IsConst(1)) return b.empty() ? a : b;
  return b.empty() || b.IsConst(1) ? a : a * b;
}

bool IsZero(const Expr& e) { return e.op() == ScalarOp::kConst && e.IsConst(0); }

bool IsScaled(const Term& t) { return !t.factors.empty() || !t.running.empty(); }

// The mask of a product. Factors from outside of a mask also apply where it is false, so none is
// left if both terms have factors.
Expr PresenceOfProduct(const Term& a, const Term& b) {
  if (IsScaled(a) && IsScaled(b)) return {};
  return IsScaled(a) ? a.present : b.present;
}

size_t MostFactors(const std::vector<Term>& terms) {
  size_t most = 0;
  for (const Term& t : terms) most = std::max(most, t.factors.size() + t.running.size());
  return most;
}

}  // namespace

Expr Whole(const Term& term, DType type) {
  Expr product = term.rest;
  for (const Expr& f : term.factors) product = Multiplied(product, f);
  return product.empty() ? Expr::Const(type, 1) : product;
}

Expr Separator::Negated(const Expr& e) {
  if (e.op() == ScalarOp::kConst) return Expr::Const(e.type(), -e.value());
  return Expr::Unary(ScalarOp::kNeg, e);
}

Expr Separator::Product(const std::vector<Expr>& factors, DType type) {
  Expr product = Expr::Const(type, 1);
  for (const Expr& f : factors) product = Multiplied(product, f);
  return product;
}

std::vector<Term> Separator::Separate(const Expr& e) {
  auto known = known_.find(e.id());
  if (known != known_.end()) return known->second;
  std::vector<Term> terms = Joined(Node(e), e.type());
  known_.emplace(e.id(), terms);
  alive_.push_back(e);
  return terms;
}

std::vector<Term> Separator::Node(const Expr& e) {
  if (!leaves_.HasState(e)) return {{.rest = e, .factors = {}, .running = {}}};
  bool real = IsFloat(e.type());
  switch (e.op()) {
    case ScalarOp::kInput:
      return {{.rest = {}, .factors = {e}, .running = {}}};
    case ScalarOp::kMul:
      if (real && Has(AlgebraRule::kProduct)) return Product(e);
      break;
    case ScalarOp::kDiv:
      if (real && Has(AlgebraRule::kQuotient)) return Quotient(e.arg(0), e.arg(1), e.type());
      break;
    case ScalarOp::kReciprocal:
      if (!Has(AlgebraRule::kQuotient)) break;
      return Quotient(Expr::Const(e.type(), 1), e.arg(0), e.type());
    case ScalarOp::kAdd:
    case ScalarOp::kSub:
    case ScalarOp::kNeg:
      if (real && Has(AlgebraRule::kSum)) return Sum(e);
      break;
    case ScalarOp::kSelect:
      if (real && Has(AlgebraRule::kSelect)) return Choice(e);
      break;
    case ScalarOp::kMax:
    case ScalarOp::kMin:
      if (real && Has(AlgebraRule::kPositiveFactor)) return Extremum(e);
      break;
    case ScalarOp::kAbs:
      if (real && Has(AlgebraRule::kPositiveFactor)) return Absolute(e);
      break;
    case ScalarOp::kSqrt:
      if (Has(AlgebraRule::kRootOfProduct)) return Root(e);
      break;
    case ScalarOp::kExp:
      return Exponential(e.arg(0), e);
    case ScalarOp::kPow: {
      const Expr& base = e.arg(0);
      bool constant = real && base.op() == ScalarOp::kConst && base.value() > 0;
      if (constant && Has(AlgebraRule::kPowerOfConstant)) {
        return Exponential(e.arg(1) * Expr::Const(e.type(), std::log(base.value())), e);
      }
      bool square = real && e.arg(1).IsConst(2);
      if (square && Has(AlgebraRule::kProduct)) return Separate(e.arg(0) * e.arg(0));
      break;
    }
    case ScalarOp::kCast:
      return Widened(e);
    case ScalarOp::kRound:
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
      return Mixed(e, RefusalCode::kRounding);
    default:
      break;
  }
  return Mixed(e);
}

// Keeps `e` whole: as a factor if it has no slices, else as a rest with states, which sets
// obstacle_.
std::vector<Term> Separator::Mixed(const Expr& e, RefusalCode code) {
  if (!leaves_.HasSlice(e)) return {{.rest = {}, .factors = {e}, .running = {}}};
  std::string_view name = GetScalarInfo(e.op()).name;
  obstacle_ =
      code == RefusalCode::kRounding
          ? Refuse(code, name, " does not commute with a scale that changes from tile to tile")
          : Refuse(code, name, " of what varies along the dim and of a partial result");
  return {{.rest = e, .factors = {}, .running = {}}};
}

bool Separator::SameFactors(const Term& a, const Term& b) {
  std::vector<int> left = a.running;
  std::vector<int> right = b.running;
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  if (left != right) return false;
  DType type = a.factors.empty() ? (b.factors.empty() ? DType::kF32 : b.factors[0].type())
                                 : a.factors[0].type();
  return Same(Product(a.factors, type), Product(b.factors, type));
}

// Removes the factors of `part` from `whole`. False, without effect, if it lacks one.
bool Separator::TakeOff(const Term& part, Term* whole) {
  Term left = *whole;
  for (const Expr& f : part.factors) {
    auto at = std::find_if(left.factors.begin(), left.factors.end(),
                           [&](const Expr& g) { return Same(f, g); });
    if (at == left.factors.end()) return false;
    left.factors.erase(at);
  }
  std::vector<int> one = part.running;
  std::vector<int> other = whole->running;
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  if (one != other) return false;
  *whole = std::move(left);
  return true;
}

// Merges terms with equal factors. Moves an addend over states alone into a rest that varies along
// the dim (a shift), so that nearly equal values are subtracted before they are summed.
std::vector<Term> Separator::Joined(std::vector<Term> terms, DType type) {
  std::vector<Term> out;
  for (Term& t : terms) {
    auto same = out.end();
    if (Has(AlgebraRule::kCommonFactor)) {
      same = std::find_if(out.begin(), out.end(), [&](const Term& o) { return SameFactors(o, t); });
    }
    if (same == out.end()) {
      out.push_back(std::move(t));
    } else {
      Expr one = Expr::Const(type, 1);
      same->rest = (same->HasRest() ? same->rest : one) + (t.HasRest() ? t.rest : one);
      bool masked = !same->present.empty() && !t.present.empty();
      same->present = masked ? Expr::Binary(ScalarOp::kOr, same->present, t.present) : Expr();
    }
  }
  auto varies = [&](const Term& t) { return t.HasRest() && leaves_.HasSlice(t.rest); };
  // The sum of all terms that do not vary along the dim becomes one factor.
  Term still;
  Expr sum;
  std::vector<Term> kept;
  for (Term& t : out) {
    if (varies(t) || !t.running.empty() || (t.factors.empty() && !leaves_.HasState(t.rest))) {
      kept.push_back(std::move(t));
      continue;
    }
    Expr whole = Whole(t, type);
    sum = sum.empty() ? whole : sum + whole;
    still = std::move(t);
  }
  if (sum.empty()) return kept;
  if (kept.empty() && out.size() == 1) return {std::move(still)};
  if (Has(AlgebraRule::kShift)) {
    for (Term& t : kept) {
      if (!varies(t) || !t.running.empty()) continue;
      if (t.factors.empty()) {
        t.rest = t.rest + sum;
        return kept;
      }
      Term shift = still;
      bool alone = out.size() - kept.size() == 1;
      if (alone && TakeOff(t, &shift)) {
        t.rest = t.rest + Whole(shift, type);
        t.present = {};
        return kept;
      }
    }
  }
  kept.push_back({.rest = {}, .factors = {sum}, .running = {}});
  return kept;
}

std::vector<Term> Separator::Product(const Expr& e) {
  std::vector<Term> a = Separate(e.arg(0));
  std::vector<Term> b = Separate(e.arg(1));
  if (a.size() * b.size() > kMostTerms) return Mixed(e);
  if (a.size() * b.size() > 1 && !Has(AlgebraRule::kDistribute)) return Mixed(e);
  if (MostFactors(a) + MostFactors(b) > kMostFactors) return Mixed(e);
  std::vector<Term> out;
  for (const Term& x : a) {
    for (const Term& y : b) {
      Term t = x;
      t.rest = Multiplied(x.rest, y.rest);
      t.factors.insert(t.factors.end(), y.factors.begin(), y.factors.end());
      t.running.insert(t.running.end(), y.running.begin(), y.running.end());
      t.present = PresenceOfProduct(x, y);
      out.push_back(std::move(t));
    }
  }
  return out;
}

std::vector<Term> Separator::Quotient(const Expr& numerator, const Expr& denominator, DType type) {
  std::vector<Term> top = Separate(numerator);
  std::vector<Term> bottom = Separate(denominator);
  Expr whole = numerator / denominator;
  if (bottom.size() != 1 || !bottom[0].running.empty()) return Mixed(whole);
  const Term& below = bottom[0];
  if (MostFactors(top) + MostFactors(bottom) > kMostFactors) return Mixed(whole);
  if (below.HasRest() && leaves_.HasState(below.rest)) return Mixed(whole);
  Expr one = Expr::Const(type, 1);
  for (Term& t : top) {
    if (below.HasRest() && !below.rest.IsConst(1)) {
      t.rest = (t.HasRest() ? t.rest : one) / below.rest;
    }
    if (!below.factors.empty()) t.present = {};
    for (const Expr& f : below.factors) t.factors.push_back(one / f);
  }
  return top;
}

std::vector<Term> Separator::Sum(const Expr& e) {
  std::vector<Term> out = Separate(e.arg(0));
  auto negate = [&](std::vector<Term>* terms) {
    for (Term& t : *terms) {
      t.rest = t.HasRest() ? Negated(t.rest) : Expr::Const(e.type(), -1);
    }
  };
  if (e.op() == ScalarOp::kNeg) {
    negate(&out);
    return out;
  }
  std::vector<Term> more = Separate(e.arg(1));
  if (e.op() == ScalarOp::kSub) negate(&more);
  out.insert(out.end(), more.begin(), more.end());
  if (out.size() > kMostTerms) return Mixed(e);
  return out;
}

// A condition without states, equal to `e`: cancels a common non-negative factor of both sides of
// comparisons. Empty if that is impossible.
Expr Separator::Condition(const Expr& e) {
  if (!leaves_.HasState(e)) return e;
  if (!Has(AlgebraRule::kPositiveFactor)) return {};
  if (GetScalarInfo(e.op()).typing == ScalarTyping::kLogic) {
    std::vector<Expr> args;
    for (const Expr& a : e.args()) {
      args.push_back(Condition(a));
      if (args.back().empty()) return {};
    }
    return e.WithArgs(std::move(args));
  }
  if (GetScalarInfo(e.op()).typing != ScalarTyping::kCompare || !IsFloat(e.arg(0).type()))
    return {};
  std::vector<Term> a = Separate(e.arg(0));
  std::vector<Term> b = Separate(e.arg(1));
  if (a.size() != 1 || b.size() != 1 || !a[0].HasRest() || !b[0].HasRest()) return {};
  bool zero = IsZero(b[0].rest) || IsZero(a[0].rest);
  const Term& with = IsZero(a[0].rest) ? b[0] : a[0];
  if (!zero && !SameFactors(a[0], b[0])) return {};
  if (!with.running.empty() || leaves_.HasState(a[0].rest) || leaves_.HasState(b[0].rest))
    return {};
  for (const Expr& f : with.factors) {
    if (!leaves_.IsNonNegative(f)) return {};
  }
  return Expr::Binary(e.op(), a[0].rest, b[0].rest);
}

// `term` is 0 where the condition is false.
void Separator::Mask(const Expr& condition, Term* term) {
  bool further = !term->present.empty();
  term->present = further ? Expr::Binary(ScalarOp::kAnd, condition, term->present) : condition;
}

std::vector<Term> Separator::Choice(const Expr& e) {
  Expr condition = Condition(e.arg(0));
  if (condition.empty()) return Mixed(e);
  std::vector<Term> a = Separate(e.arg(1));
  std::vector<Term> b = Separate(e.arg(2));
  Expr one = Expr::Const(e.type(), 1);
  Expr zero = Expr::Const(e.type(), 0);
  Expr otherwise = Expr::Unary(ScalarOp::kNot, condition);
  auto rest = [&](const Term& t) { return t.HasRest() ? t.rest : one; };
  bool a_zero = a.size() == 1 && a[0].HasRest() && IsZero(a[0].rest);
  bool b_zero = b.size() == 1 && b[0].HasRest() && IsZero(b[0].rest);
  if (a.size() == 1 && b.size() == 1 && (a_zero || b_zero || SameFactors(a[0], b[0]))) {
    Term t = a_zero ? b[0] : a[0];
    t.rest = Expr::Select(condition, rest(a[0]), rest(b[0]));
    if (a_zero == b_zero) {
      t.present = {};
    } else {
      Mask(a_zero ? otherwise : condition, &t);
    }
    return {std::move(t)};
  }
  // Each branch by itself, 0 elsewhere.
  std::vector<Term> out;
  for (Term& t : a) {
    t.rest = Expr::Select(condition, rest(t), zero);
    Mask(condition, &t);
    out.push_back(std::move(t));
  }
  for (Term& t : b) {
    t.rest = Expr::Select(condition, zero, rest(t));
    Mask(otherwise, &t);
    out.push_back(std::move(t));
  }
  if (out.size() > kMostTerms) return Mixed(e);
  return out;
}

std::vector<Term> Separator::Extremum(const Expr& e) {
  std::vector<Term> a = Separate(e.arg(0));
  std::vector<Term> b = Separate(e.arg(1));
  if (a.size() != 1 || b.size() != 1 || !a[0].running.empty() || !b[0].running.empty()) {
    return Mixed(e);
  }
  Expr one = Expr::Const(e.type(), 1);
  bool zero = (b[0].HasRest() && IsZero(b[0].rest)) || (a[0].HasRest() && IsZero(a[0].rest));
  bool second = a[0].HasRest() && IsZero(a[0].rest);
  Term t = second ? b[0] : a[0];
  if (!zero && !SameFactors(a[0], b[0])) return Mixed(e);
  for (const Expr& f : t.factors) {
    if (!leaves_.IsNonNegative(f)) return Mixed(e);
  }
  t.rest = Expr::Binary(e.op(), a[0].HasRest() ? a[0].rest : one, b[0].HasRest() ? b[0].rest : one);
  if (!zero) t.present = {};
  return {std::move(t)};
}

std::vector<Term> Separator::Absolute(const Expr& e) {
  std::vector<Term> a = Separate(e.arg(0));
  if (a.size() != 1 || (a[0].HasRest() && leaves_.HasState(a[0].rest) && a[0].running.empty())) {
    return Mixed(e);
  }
  Term t = a[0];
  if (t.HasRest()) t.rest = Expr::Unary(ScalarOp::kAbs, t.rest);
  for (Expr& f : t.factors) {
    if (!leaves_.IsNonNegative(f)) f = Expr::Unary(ScalarOp::kAbs, f);
  }
  return {std::move(t)};
}

std::vector<Term> Separator::Root(const Expr& e) {
  std::vector<Term> a = Separate(e.arg(0));
  bool fits = a.size() == 1 && a[0].running.empty() &&
              (!a[0].HasRest() || leaves_.IsNonNegative(a[0].rest)) &&
              std::all_of(a[0].factors.begin(), a[0].factors.end(),
                          [&](const Expr& f) { return leaves_.IsNonNegative(f); });
  if (!fits) return Mixed(e);
  Term t = a[0];
  if (t.HasRest()) t.rest = Expr::Unary(ScalarOp::kSqrt, t.rest);
  for (Expr& f : t.factors) f = Expr::Unary(ScalarOp::kSqrt, f);
  return {std::move(t)};
}

std::vector<Term> Separator::Widened(const Expr& e) {
  const Expr& from = e.arg(0);
  if (!IsFloat(e.type()) || !IsFloat(from.type())) return Mixed(e, RefusalCode::kRounding);
  const bool rounds = DTypeBytes(e.type()) < DTypeBytes(from.type()) || IsNarrowFloat(e.type());
  if (rounds) return Mixed(e, RefusalCode::kRounding);
  if (!Has(AlgebraRule::kWidening)) return Mixed(e);
  std::vector<Term> out = Separate(from);
  for (Term& t : out) {
    if (t.HasRest()) t.rest = Expr::Cast(t.rest, e.type());
    for (Expr& f : t.factors) f = Expr::Cast(f, e.type());
  }
  return out;
}

int Separator::Running(const Expr& exponent, DType type) {
  for (int i = 0; i < leaves_.size(); ++i) {
    const Leaf& l = leaves_.leaf(i);
    if (l.kind == Leaf::kRunning && Same(l.element, exponent)) return i;
  }
  return leaves_.Add({.kind = Leaf::kRunning, .element = exponent, .monoid = ""}, type).index();
}

}  // namespace fusion
