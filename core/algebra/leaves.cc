#include "core/algebra/leaves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace fusion {
namespace {

Course Opposite(Course c) {
  return c == Course::kRises ? Course::kFalls : c == Course::kFalls ? Course::kRises : c;
}

// The course of a function that is non-decreasing in both arguments.
Course Both(Course a, Course b) {
  if (a == Course::kConstant) return b;
  if (b == Course::kConstant || a == b) return a;
  return Course::kUnknown;
}

}  // namespace

Expr Leaves::Add(Leaf leaf, DType type) {
  leaves_.push_back(std::move(leaf));
  return Expr::Input(size() - 1, type);
}

uint8_t Leaves::FindDependence(const Expr& e) {
  uint8_t on = 0;
  if (e.op() == ScalarOp::kInput) {
    Leaf::Kind kind = leaf(e.index()).kind;
    on = kind == Leaf::kFixed ? 0 : kind == Leaf::kSlice ? kOnSlice : kOnState;
  } else if (e.op() == ScalarOp::kAxis || e.op() == ScalarOp::kWithin) {
    on = e.index() == dim_ ? kOnSlice : 0;
  }
  for (const Expr& a : e.args()) on |= Dependence(a);
  return on;
}

bool Leaves::NonNegative(const Expr& e) {
  auto all = [&] {
    return std::all_of(e.args().begin(), e.args().end(),
                       [&](const Expr& a) { return IsNonNegative(a); });
  };
  switch (e.op()) {
    case ScalarOp::kInput: {
      const Leaf& l = leaf(e.index());
      if (!DefinitionOf(e.index()).empty()) return IsNonNegative(l.element);
      bool folded = l.kind == Leaf::kState && (l.monoid == "sum" || l.monoid == "max" ||
                                               l.monoid == "min" || l.monoid == "prod");
      return folded && rules_.Has(AlgebraRule::kMonotoneState) && IsNonNegative(l.element);
    }
    case ScalarOp::kConst:
      return IsFloat(e.type()) ? e.value() >= 0 : e.integer() >= 0;
    case ScalarOp::kAxis:
    case ScalarOp::kExp:
    case ScalarOp::kAbs:
    case ScalarOp::kSqrt:
    case ScalarOp::kSigmoid:
      return true;
    case ScalarOp::kMul:
      return AreEqual(e.arg(0), e.arg(1)) || all();
    case ScalarOp::kPow: {
      bool number = e.arg(1).op() == ScalarOp::kConst && IsFloat(e.type());
      bool even = number && std::isfinite(e.arg(1).value()) && std::fmod(e.arg(1).value(), 2) == 0;
      return even || IsNonNegative(e.arg(0));
    }
    case ScalarOp::kMax:
      return IsNonNegative(e.arg(0)) || IsNonNegative(e.arg(1));
    case ScalarOp::kAdd:
    case ScalarOp::kDiv:
    case ScalarOp::kMin:
    case ScalarOp::kReciprocal:
    case ScalarOp::kTanh:
    case ScalarOp::kErf:
      return all();
    case ScalarOp::kCast:
      return e.arg(0).type() == DType::kBool || all();
    case ScalarOp::kSelect:
      return IsNonNegative(e.arg(1)) && IsNonNegative(e.arg(2));
    default:
      return false;
  }
}

Course Leaves::FindCourse(const Expr& e) {
  if (!HasState(e)) return Course::kConstant;
  auto of = [&](int i) { return CourseOf(e.arg(i)); };
  auto constant_sign = [&](int i) {  // of a state-free argument: 1 (>= 0), -1 (< 0), 0 unknown
    if (HasState(e.arg(i))) return 0;
    if (IsNonNegative(e.arg(i))) return 1;
    bool negative = e.arg(i).op() == ScalarOp::kConst && e.arg(i).value() < 0;
    return negative ? -1 : 0;
  };
  auto scaled = [](Course c, int sign) {
    return sign == 0 ? Course::kUnknown : sign > 0 ? c : Opposite(c);
  };
  switch (e.op()) {
    case ScalarOp::kInput: {
      const Leaf& l = leaf(e.index());
      if (l.kind != Leaf::kState) return CourseOf(l.element);
      if (l.updated || !rules_.Has(AlgebraRule::kMonotoneState)) return Course::kUnknown;
      if (l.monoid == "max") return Course::kRises;
      if (l.monoid == "min") return Course::kFalls;
      return l.monoid == "sum" && IsNonNegative(l.element) ? Course::kRises : Course::kUnknown;
    }
    case ScalarOp::kAdd:
      return Both(of(0), of(1));
    case ScalarOp::kSub:
      return Both(of(0), Opposite(of(1)));
    case ScalarOp::kNeg:
      return Opposite(of(0));
    case ScalarOp::kMul:
      return HasState(e.arg(0)) ? scaled(of(0), constant_sign(1)) : scaled(of(1), constant_sign(0));
    case ScalarOp::kDiv:
      if (!HasState(e.arg(1))) return scaled(of(0), constant_sign(1));
      if (HasState(e.arg(0)) || !IsNonNegative(e.arg(1)) || BeginsBelowZero(e.arg(1))) {
        return Course::kUnknown;
      }
      return scaled(Opposite(of(1)), constant_sign(0));
    case ScalarOp::kMax:
    case ScalarOp::kMin:
      return Both(of(0), of(1));
    case ScalarOp::kExp:
    case ScalarOp::kLog:
    case ScalarOp::kSqrt:
    case ScalarOp::kTanh:
    case ScalarOp::kErf:
    case ScalarOp::kSigmoid:
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
    case ScalarOp::kRound:
    case ScalarOp::kCast:
      return of(0);
    case ScalarOp::kReciprocal:
      return IsNonNegative(e.arg(0)) && !BeginsBelowZero(e.arg(0)) ? Opposite(of(0))
                                                                   : Course::kUnknown;
    default:
      return Course::kUnknown;
  }
}

bool Leaves::BeginsBelowZero(const Expr& e) const {
  bool found = false;
  e.VisitOnce([&](const Expr& n) {
    found |= n.op() == ScalarOp::kInput && leaf(n.index()).kind == Leaf::kState &&
             leaf(n.index()).monoid == "max";
  });
  return found;
}

bool Leaves::IsBoundedAbove(const Expr& e) {
  // If the value falls with a maximum, replacing the maximum by one of its elements gives an upper
  // bound; likewise for minima.
  std::vector<int> states;
  Expr flat = e;
  auto expand = [&](const Expr& l) -> Expr {
    if (l.op() != ScalarOp::kInput) return l;
    const Leaf& at = leaf(l.index());
    return at.kind == Leaf::kRunning || at.kind == Leaf::kCentre ? at.element : l;
  };
  flat = flat.MapLeaves(expand);
  if (rules_.Has(AlgebraRule::kExtremumBounds)) {
    // What depends on states is compared with its course, which takes each state by itself.
    flat = flat.MapLeaves([&](const Expr& l) -> Expr {
      if (l.op() != ScalarOp::kInput) return l;
      const Leaf& at = leaf(l.index());
      bool extremum = at.kind == Leaf::kState && (at.monoid == "max" || at.monoid == "min");
      return extremum ? at.element : l;
    });
  }
  return pool_.IsBoundedAbove(pool_.Of(flat));
}

std::optional<std::pair<double, double>> Leaves::LineIn(const Expr& e, int leaf) {
  std::pair<double, double> line{0, 0};
  std::string name = Expr::Input(leaf, DType::kF32).ToString();
  for (const PolynomialPool::Monomial& m : pool_.polynomial(pool_.Of(e))) {
    if (m.powers.empty()) {
      line.first = m.coefficient;
      continue;
    }
    const PolynomialPool::Atom& atom = pool_.atom(m.powers[0].first);
    bool fits = m.powers.size() == 1 && m.powers[0].second == 1 && atom.op == ScalarOp::kInput &&
                atom.leaf == name;
    if (!fits) return std::nullopt;
    line.second = m.coefficient;
  }
  return line;
}

bool Leaves::IsOfDistances(const Expr& e, const std::vector<int>& distances,
                           const std::vector<Expr>& elements) {
  std::set<std::string> of;
  for (int d : distances) of.insert(Expr::Input(d, DType::kF32).ToString());
  // Leaves that vary with the elements. Constants and fixed leaves are allowed everywhere.
  std::set<std::string> others;
  for (const Expr& element : elements) {
    std::set<std::string> found;
    pool_.CollectLeaves(pool_.Of(element), &found);
    for (int i = 0; i < size(); ++i) {
      if (leaf(i).kind == Leaf::kFixed) found.erase(Expr::Input(i, DType::kF32).ToString());
    }
    others.insert(found.begin(), found.end());
  }
  std::optional<PolynomialPool::Degrees> degrees = pool_.DegreesIn(pool_.Of(e), of, others);
  if (!degrees.has_value() || degrees->empty()) return false;
  int highest = degrees->rbegin()->first;
  return std::all_of(degrees->begin(), degrees->end(),
                     [&](const auto& d) { return !d.second || d.first == highest; });
}

}  // namespace fusion
