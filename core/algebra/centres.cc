#include "core/algebra/centres.h"

#include <algorithm>
#include <optional>

#include "core/base/contains.h"

namespace fusion {
namespace {

struct Centre {
  bool steady = false;
  /// The value of the centre if all elements were equal to a given one: for a mean, the element;
  /// for the larger of two maxima, an element of either. Empty: unknown.
  std::vector<Expr> elements;
};

constexpr size_t kMostElements = 4;
constexpr size_t kMostChoices = 16;

// The y of a weighted mean sum(w * y) / sum(w); empty if the quotient has another form.
Expr Averaged(const Expr& top_value, const Expr& weight_value, Leaves& leaves) {
  Expr top = leaves.Resolved(top_value);
  Expr weight = leaves.Resolved(weight_value);
  if (leaves.AreEqual(top, weight)) return Expr::Const(top.type(), 1);
  if (top.op() == ScalarOp::kCast) {
    Expr inner = Averaged(top.arg(0), weight, leaves);
    return inner.empty() ? inner : Expr::Cast(inner, top.type());
  }
  if (top.op() == ScalarOp::kSelect && top.arg(2).IsConst(0)) {
    if (weight.op() == ScalarOp::kCast && weight.arg(0) == top.arg(0)) return top.arg(1);
    bool same =
        weight.op() == ScalarOp::kSelect && weight.arg(0) == top.arg(0) && weight.arg(2).IsConst(0);
    if (!same) return {};
    return weight.arg(1).IsConst(1) ? top.arg(1) : Averaged(top.arg(1), weight.arg(1), leaves);
  }
  if (top.op() != ScalarOp::kMul) return {};
  for (int i : {0, 1}) {
    Expr y = Averaged(top.arg(i), weight, leaves);
    if (!y.empty()) return y.IsConst(1) ? top.arg(1 - i) : y * top.arg(1 - i);
  }
  return {};
}

class CentreFinder {
 public:
  explicit CentreFinder(Leaves& leaves) : leaves_(leaves) {}

  Centre Of(const Expr& e) {
    if (!leaves_.HasState(e)) return {.steady = true, .elements = {e}};
    switch (e.op()) {
      case ScalarOp::kInput:
        return OfState(leaves_.leaf(e.index()));
      case ScalarOp::kNeg:
      case ScalarOp::kCast: {
        Centre a = Of(e.arg(0));
        for (Expr& x : a.elements) {
          x = e.op() == ScalarOp::kCast ? Expr::Cast(x, e.type()) : Expr::Unary(e.op(), x);
        }
        return a;
      }
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
      case ScalarOp::kMul:
      case ScalarOp::kDiv:
        return OfTwo(e);
      case ScalarOp::kMax:
      case ScalarOp::kMin:
        return OfExtremum(e);
      default:
        return {};
    }
  }

 private:
  static Centre OfState(const Leaf& leaf) {
    if (leaf.kind != Leaf::kState) return {};
    if (leaf.monoid == "max" || leaf.monoid == "min") {
      return {.steady = true, .elements = {leaf.element}};
    }
    if (leaf.monoid != "sum") return {};
    return {.steady = true,
            .elements = {leaf.element * Expr::Const(leaf.element.type(), leaf.points)}};
  }

  Centre OfTwo(const Expr& e) {
    bool quotient = e.op() == ScalarOp::kDiv;
    if (quotient && leaves_.HasState(e.arg(1))) return OfMean(e.arg(0), e.arg(1));
    bool product = e.op() == ScalarOp::kMul;
    bool both = leaves_.HasState(e.arg(0)) && leaves_.HasState(e.arg(1));
    if (product && both) {
      // sum(w * y) * (1 / sum(w))
      for (int i : {0, 1}) {
        const Expr& d = e.arg(i);
        bool inverse =
            d.op() == ScalarOp::kReciprocal || (d.op() == ScalarOp::kDiv && d.arg(0).IsConst(1));
        if (inverse) return OfMean(e.arg(1 - i), d.args().back());
      }
      return {};
    }
    Centre a = Of(e.arg(0));
    Centre b = Of(e.arg(1));
    Centre out{.steady = a.steady && b.steady, .elements = {}};
    // The sum of two separate reductions has no elements.
    if (both) return out;
    for (const Expr& x : a.elements) {
      for (const Expr& y : b.elements) out.elements.push_back(Expr::Binary(e.op(), x, y));
    }
    return out;
  }

  // Nothing seen so far lies beyond the larger of two running maxima.
  Centre OfExtremum(const Expr& e) {
    Centre a = Of(e.arg(0));
    Centre b = Of(e.arg(1));
    Centre out{.steady = a.steady && b.steady, .elements = {}};
    if (!IsExtremum(e.arg(0), e.op()) || !IsExtremum(e.arg(1), e.op())) return out;
    out.elements = std::move(a.elements);
    out.elements.insert(out.elements.end(), b.elements.begin(), b.elements.end());
    if (out.elements.size() > kMostElements) out.elements.resize(kMostElements);
    return out;
  }

  bool IsExtremum(const Expr& e, ScalarOp op) const {
    if (e.op() == op) return IsExtremum(e.arg(0), op) && IsExtremum(e.arg(1), op);
    if (e.op() != ScalarOp::kInput) return false;
    const Leaf& leaf = leaves_.leaf(e.index());
    return leaf.kind == Leaf::kState && leaf.monoid == (op == ScalarOp::kMax ? "max" : "min");
  }

  // A state that is multiplied or divided by a factor, or negated.
  struct Scaled {
    Expr state;
    Expr factor;  // empty: -1
    ScalarOp op = ScalarOp::kMul;
    Expr Rescale(const Expr& e) const {
      return factor.empty() ? Expr::Unary(ScalarOp::kNeg, e) : Expr::Binary(op, e, factor);
    }
  };
  std::optional<Scaled> OfScaled(const Expr& e) {
    if (e.op() == ScalarOp::kNeg) return Scaled{.state = e.arg(0), .factor = {}};
    if (e.op() != ScalarOp::kMul && e.op() != ScalarOp::kDiv) return std::nullopt;
    int state = leaves_.HasState(e.arg(0)) ? 0 : 1;
    const Expr& other = e.arg(1 - state);
    bool fits = !leaves_.HasState(other) && (e.op() == ScalarOp::kMul || state == 0);
    if (!fits) return std::nullopt;
    return Scaled{.state = e.arg(state), .factor = other, .op = e.op()};
  }

  // A weighted mean top / bottom. The divisor may be max(sum, c) or sum + c to avoid 0.
  Centre OfMean(const Expr& top, const Expr& bottom) {
    if (std::optional<Scaled> scaled = OfScaled(top)) {
      Centre out = OfMean(scaled->state, bottom);
      for (Expr& y : out.elements) y = scaled->Rescale(y);
      return out;
    }
    if (std::optional<Scaled> scaled = OfScaled(bottom)) {
      Centre out = OfMean(top, scaled->state);
      Expr one = Expr::Const(bottom.type(), 1);
      for (Expr& y : out.elements) y = y / scaled->Rescale(one);
      return out;
    }
    Expr divisor = bottom;
    bool kept = bottom.op() == ScalarOp::kMax || bottom.op() == ScalarOp::kAdd;
    if (kept) {
      int state = leaves_.HasState(bottom.arg(0)) ? 0 : 1;
      const Expr& other = bottom.arg(1 - state);
      if (leaves_.HasState(other) || !leaves_.IsNonNegative(other)) return {};
      divisor = bottom.arg(state);
    }
    const Leaf* weights = SumOf(divisor);
    const Leaf* values = SumOf(top);
    if (weights == nullptr || values == nullptr) return {};
    if (!leaves_.IsNonNegative(weights->element)) return {};
    Expr y = Averaged(values->element, weights->element, leaves_);
    if (y.empty()) return {};
    return {.steady = true, .elements = {y}};
  }

  const Leaf* SumOf(const Expr& e) const {
    if (e.op() == ScalarOp::kCast && IsFloat(e.arg(0).type())) return SumOf(e.arg(0));
    if (e.op() != ScalarOp::kInput) return nullptr;
    const Leaf& leaf = leaves_.leaf(e.index());
    return leaf.kind == Leaf::kState && leaf.monoid == "sum" ? &leaf : nullptr;
  }

  Leaves& leaves_;
};

}  // namespace

bool CanFollow(const Expr& rest, const std::vector<int>& centres, const std::vector<int>& curved,
               Leaves* leaves) {
  CentreFinder finder(*leaves);
  std::vector<std::vector<Expr>> elements;  // by curved centre
  size_t choices = 1;
  for (int c : centres) {
    Centre found = finder.Of(leaves->leaf(c).element);
    if (!found.steady) return false;
    if (!Contains(curved, c)) continue;
    choices *= found.elements.size();
    elements.push_back(std::move(found.elements));
    if (choices == 0 || choices > kMostChoices) return false;
  }
  if (curved.empty()) return true;
  std::vector<int> distances;
  for (int c : curved) {
    DType type = leaves->leaf(c).element.type();
    distances.push_back(
        leaves->Add({.kind = Leaf::kSlice, .element = {}, .monoid = ""}, type).index());
  }
  for (size_t choice = 0; choice < choices; ++choice) {
    std::vector<Expr> chosen;
    size_t left = choice;
    for (const std::vector<Expr>& of : elements) {
      chosen.push_back(of[left % of.size()]);
      left /= of.size();
    }
    Expr shifted = rest.MapLeaves([&](const Expr& l) -> Expr {
      if (l.op() != ScalarOp::kInput) return l;
      auto at = std::find(curved.begin(), curved.end(), l.index()) - curved.begin();
      auto i = static_cast<size_t>(at);
      if (i == curved.size()) return l;
      return Expr::Cast(chosen[i], l.type()) - Expr::Input(distances[i], l.type());
    });
    if (leaves->IsOfDistances(shifted, distances, chosen)) return true;
  }
  return false;
}

}  // namespace fusion
