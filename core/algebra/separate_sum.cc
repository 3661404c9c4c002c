#include <algorithm>
#include <cmath>

#include "core/algebra/separate.h"

namespace fusion {
namespace {

// Longer sums are not separated: subexpressions are shared, so a hostile expression of few nodes
// may have exponentially many addends.
constexpr int kMostSumSteps = 400;

bool IsInfinite(const Expr& e) {
  return e.op() == ScalarOp::kConst && IsFloat(e.type()) && std::isinf(e.value());
}

// A logarithm times constants.
bool IsScaledLog(const Expr& e) {
  switch (e.op()) {
    case ScalarOp::kLog:
      return true;
    case ScalarOp::kNeg:
      return IsScaledLog(e.arg(0));
    case ScalarOp::kMul:
      return (e.arg(0).op() == ScalarOp::kConst && IsScaledLog(e.arg(1))) ||
             (e.arg(1).op() == ScalarOp::kConst && IsScaledLog(e.arg(0)));
    case ScalarOp::kDiv:
      return e.arg(1).op() == ScalarOp::kConst && IsScaledLog(e.arg(0));
    default:
      return false;
  }
}

}  // namespace

std::vector<Term> Separator::Exponential(const Expr& exponent, const Expr& original) {
  if (!Has(AlgebraRule::kExpOfSum)) return Mixed(original);
  Addends parts = SeparateSum(exponent);
  if (parts.mixed) return Mixed(original);
  DType type = original.type();
  Term t;
  t.present = parts.present;
  Expr running;
  std::vector<Expr> powers;
  for (const Expr& s : parts.states) {
    // e^(log h) is h.
    bool negative = s.op() == ScalarOp::kNeg;
    const Expr& inner = negative ? s.arg(0) : s;
    if (inner.op() == ScalarOp::kLog && Has(AlgebraRule::kExpOfLog)) {
      t.factors.push_back(negative ? Expr::Const(type, 1) / inner.arg(0) : inner.arg(0));
    } else if (IsScaledLog(inner) && Has(AlgebraRule::kExpOfLog)) {
      powers.push_back(s);
    } else {
      running = running.empty() ? s : running + s;
    }
  }
  Expr rest = parts.free.empty() ? Expr::Const(type, 0) : parts.free;
  // h^c is applied after the sum if nothing can overflow without it.
  bool bounded = leaves_.IsBoundedAbove(running.empty() ? rest : rest + running);
  // Of an infinity above, the exponential is no 0.
  if (!bounded) t.present = {};
  for (const Expr& s : powers) {
    if (bounded) {
      t.factors.push_back(Expr::Unary(ScalarOp::kExp, s));
    } else {
      running = running.empty() ? s : running + s;
    }
  }
  if (running.empty()) {
    t.rest = Expr::Unary(ScalarOp::kExp, rest);
    return {std::move(t)};
  }
  if (parts.free.empty()) return {{.rest = {}, .factors = {original}, .running = {}}};
  bool falls = leaves_.CourseOf(running) == Course::kFalls;
  // Powers that could not be deferred are part of it now.
  bool small = bounded || (!powers.empty() && leaves_.IsBoundedAbove(rest + running));
  // Followed where it can be: a factor of the whole may be 0 where the sum without it is infinite.
  if (!(falls && small) && leaves_.IsBoundedAbove(rest)) {
    // Bounded without the states: they are applied after the sum.
    t.rest = Expr::Unary(ScalarOp::kExp, rest);
    t.factors.push_back(Expr::Unary(ScalarOp::kExp, running));
    return {std::move(t)};
  }
  if (!falls || !small) {
    obstacle_ = falls ? Refuse(RefusalCode::kUnbounded,
                               "nothing shows that an exponent stays below a number while partial "
                               "results change")
                      : Refuse(RefusalCode::kUnboundedUpdate,
                               "nothing shows that a factor between tiles stays below 1");
    return {{.rest = original, .factors = {}, .running = {}}};
  }
  int leaf = Running(running, type);
  t.rest = Expr::Unary(ScalarOp::kExp, rest + Expr::Input(leaf, type));
  t.running.push_back(leaf);
  return {std::move(t)};
}

void Separator::AddFree(const Expr& e, double sign, Addends* out) {
  Expr part = sign < 0 ? Negated(e) : e;
  out->free = out->free.empty() ? part : out->free + part;
}

void Separator::AddState(const Expr& e, double sign, Addends* out) {
  out->states.push_back(sign < 0 ? Negated(e) : e);
}

// Adds sign * e to `out`; false if it cannot be separated.
bool Separator::SumParts(const Expr& e, double sign, Addends* out) {
  if (--sum_steps_ < 0) return false;
  if (!leaves_.HasState(e)) {
    if (sign < 0 && !out->free.empty()) {
      out->free = out->free - e;
    } else {
      AddFree(e, sign, out);
    }
    return true;
  }
  bool sums = Has(AlgebraRule::kSum);
  if (sums && e.op() == ScalarOp::kAdd) {
    return SumParts(e.arg(0), sign, out) && SumParts(e.arg(1), sign, out);
  }
  if (sums && e.op() == ScalarOp::kSub) {
    return SumParts(e.arg(0), sign, out) && SumParts(e.arg(1), -sign, out);
  }
  if (sums && e.op() == ScalarOp::kNeg) return SumParts(e.arg(0), -sign, out);
  bool first = out->states.empty();
  out->present = {};  // of what comes before or after by itself
  if (!leaves_.HasSlice(e)) {
    AddState(e, sign, out);
    return true;
  }
  switch (e.op()) {
    case ScalarOp::kMul:
    case ScalarOp::kDiv:
    case ScalarOp::kCast:
      return ScaledSum(e, sign, first, out);
    case ScalarOp::kSelect:
    case ScalarOp::kMax:
    case ScalarOp::kMin:
      return SharedSum(e, sign, first, out);
    case ScalarOp::kLog:
      return SumOfLogs(e, sign, out);
    default:
      return false;
  }
}

// A sum times what is fixed, or in a wider type. `first`: no state has been added before.
bool Separator::ScaledSum(const Expr& e, double sign, bool first, Addends* out) {
  auto fixed = [&](const Expr& a) { return !leaves_.HasSlice(a) && !leaves_.HasState(a); };
  int sum = -1;  // argument
  if (e.op() == ScalarOp::kCast) {
    bool widens = IsFloat(e.type()) && IsFloat(e.arg(0).type()) && !IsNarrowFloat(e.type()) &&
                  DTypeBytes(e.type()) >= DTypeBytes(e.arg(0).type());
    if (widens && Has(AlgebraRule::kWidening)) sum = 0;
  } else if (Has(AlgebraRule::kDistribute)) {
    if (e.op() == ScalarOp::kMul && fixed(e.arg(0))) sum = 1;
    if (fixed(e.arg(1))) sum = 0;
  }
  if (sum < 0) return false;
  Addends inner = SeparateSum(e.arg(sum));
  if (inner.mixed || inner.states.empty() || inner.free.empty()) return false;
  auto scale = [&](const Expr& part) {
    if (e.op() == ScalarOp::kCast) return Expr::Cast(part, e.type());
    return Expr::Binary(e.op(), part, e.arg(1 - sum));
  };
  AddFree(scale(inner.free), sign, out);
  if (first) out->present = inner.present;
  for (const Expr& s : inner.states) AddState(scale(s), sign, out);
  return true;
}

// A select between, or a maximum of, sums with the same addend over states. An infinite branch
// counts as having that addend.
bool Separator::SharedSum(const Expr& e, double sign, bool first, Addends* out) {
  bool select = e.op() == ScalarOp::kSelect;
  if (!Has(select ? AlgebraRule::kSelect : AlgebraRule::kSharedAddend)) return false;
  if (select && leaves_.HasState(e.arg(0))) return false;
  Addends a = SeparateSum(e.arg(select ? 1 : 0));
  Addends b = SeparateSum(e.arg(select ? 2 : 1));
  if (a.mixed || b.mixed) return false;
  auto total = [&](const Addends& parts) {
    Expr sum = Expr::Const(e.type(), 0);
    for (const Expr& s : parts.states) sum = sum + s;
    return sum;
  };
  auto free = [&](const Addends& parts) {
    return parts.free.empty() ? Expr::Const(e.type(), 0) : parts.free;
  };
  bool absorbs_a = a.states.empty() && !a.free.empty() && IsInfinite(a.free);
  bool absorbs_b = b.states.empty() && !b.free.empty() && IsInfinite(b.free);
  if (!absorbs_a && !absorbs_b && !Same(total(a), total(b))) return false;
  AddFree(
      select ? Expr::Select(e.arg(0), free(a), free(b)) : Expr::Binary(e.op(), free(a), free(b)),
      sign, out);
  if (select && first && absorbs_a != absorbs_b) {
    out->present = absorbs_a ? Expr::Unary(ScalarOp::kNot, e.arg(0)) : e.arg(0);
  }
  for (const Expr& s : absorbs_a ? b.states : a.states) AddState(s, sign, out);
  return true;
}

// The logarithm of a product.
bool Separator::SumOfLogs(const Expr& e, double sign, Addends* out) {
  if (!Has(AlgebraRule::kLogOfProduct)) return false;
  std::vector<Term> terms = Separate(e.arg(0));
  bool fits = terms.size() == 1 && terms[0].HasRest() && terms[0].running.empty() &&
              !leaves_.HasState(terms[0].rest) && leaves_.IsNonNegative(terms[0].rest) &&
              std::all_of(terms[0].factors.begin(), terms[0].factors.end(),
                          [&](const Expr& f) { return leaves_.IsNonNegative(f); });
  if (!fits) return false;
  AddFree(Expr::Unary(ScalarOp::kLog, terms[0].rest), sign, out);
  for (const Expr& f : terms[0].factors) AddState(Expr::Unary(ScalarOp::kLog, f), sign, out);
  return true;
}

Addends Separator::SeparateSum(const Expr& e) {
  bool outermost = !in_sum_;
  if (outermost) sum_steps_ = kMostSumSteps;
  in_sum_ = true;
  Addends out;
  out.mixed = !SumParts(e, 1, &out);
  if (outermost) in_sum_ = false;
  return out;
}

}  // namespace fusion
