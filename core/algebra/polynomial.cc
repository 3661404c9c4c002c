#include "core/algebra/polynomial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/base/text/text.h"

namespace fusion {
namespace {

// Beyond this an expression is one atom.
constexpr size_t kMostMonomials = 64;
constexpr int kMostPower = 8;
// Powers and numbers beyond these are not multiplied out.
constexpr int kMostTotalPower = 1 << 10;
constexpr double kMostCoefficient = 1e100;
// Limits of the search for a bound: depth of nested choices, and number of polynomials.
constexpr int kMostDepth = 6;
constexpr int kMostBoundSteps = 2000;
// Relative difference that reordering a few operations on doubles may cause.
constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();

// A power of a sum of several monomials is kept as an atom under this op.
constexpr ScalarOp kWhole = ScalarOp::kCast;

bool IsIntegerPower(const Expr& e, int* power) {
  if (e.op() != ScalarOp::kConst || !IsFloat(e.type())) return false;
  double value = e.value();
  if (value != std::floor(value) || std::fabs(value) > kMostPower) return false;
  *power = static_cast<int>(value);
  return true;
}

// True if the fields of a product of two such polynomials cannot overflow.
bool IsSmall(const PolynomialPool::Polynomial& p) {
  return std::all_of(p.begin(), p.end(), [](const PolynomialPool::Monomial& m) {
    int total = 0;
    for (const auto& [atom, power] : m.powers) total = std::max(total, std::abs(power));
    return total < kMostTotalPower && std::fabs(m.coefficient) < kMostCoefficient;
  });
}

}  // namespace

// One representative for all numbers that differ by a few roundings: an integer if there is one,
// else the first that occurred.
double PolynomialPool::Representative(double value) {
  double reach = kRounding * std::fabs(value);
  double whole = std::round(value);
  if (std::fabs(value - whole) <= reach) return whole;
  auto known = numbers_.lower_bound(value - reach);
  if (known != numbers_.end() && *known <= value + reach) return *known;
  numbers_.insert(value);
  return value;
}

PolynomialPool::Id PolynomialPool::Intern(Polynomial p) {
  // Stable, because sums of three or more coefficients depend on their order.
  std::stable_sort(p.begin(), p.end(),
                   [](const Monomial& a, const Monomial& b) { return a.powers < b.powers; });
  Polynomial merged;
  for (Monomial& m : p) {
    if (!merged.empty() && merged.back().powers == m.powers) {
      double sum = merged.back().coefficient + m.coefficient;
      double scale = std::max(std::fabs(m.coefficient), std::fabs(merged.back().coefficient));
      merged.back().coefficient = std::fabs(sum) <= kRounding * scale ? 0 : sum;
    } else {
      merged.push_back(std::move(m));
    }
  }
  std::erase_if(merged, [](const Monomial& m) { return m.coefficient == 0; });
  std::string key;
  for (Monomial& m : merged) {
    m.coefficient = Representative(m.coefficient);
    key += fmt::format("{:a}", m.coefficient);
    for (const auto& [atom, power] : m.powers) key += StrCat("*", atom, "^", power);
    key += "+";
  }
  auto [it, fresh] = id_of_.try_emplace(std::move(key), static_cast<Id>(polynomials_.size()));
  if (fresh) polynomials_.push_back(std::move(merged));
  return it->second;
}

int PolynomialPool::InternAtom(Atom atom) {
  std::string key = StrCat(static_cast<int>(atom.op), "(", StrJoin(atom.args, ","), ")", atom.leaf);
  auto [it, fresh] = atom_of_.try_emplace(std::move(key), static_cast<int>(atoms_.size()));
  if (fresh) atoms_.push_back(std::move(atom));
  return it->second;
}

PolynomialPool::Id PolynomialPool::Constant(double value) {
  if (!std::isfinite(value)) {
    double sign = value < 0 ? -1 : 1;
    return Single(InternAtom({.op = ScalarOp::kConst, .leaf = std::isnan(value) ? "nan" : "inf"}),
                  1, sign);
  }
  return Intern({{.coefficient = value, .powers = {}}});
}

PolynomialPool::Id PolynomialPool::Single(int atom, int power, double coefficient) {
  return Intern({{.coefficient = coefficient, .powers = {{atom, power}}}});
}

PolynomialPool::Id PolynomialPool::Add(Id a, Id b, double factor) {
  Polynomial sum = polynomial(a);
  for (Monomial m : polynomial(b)) {
    m.coefficient *= factor;
    sum.push_back(std::move(m));
  }
  return Intern(std::move(sum));
}

PolynomialPool::Monomial PolynomialPool::Times(const Monomial& a, const Monomial& b) {
  std::map<int, int> powers(a.powers.begin(), a.powers.end());
  for (const auto& [atom, power] : b.powers) powers[atom] += power;
  // All exponentials of a product are one.
  Id exponent = -1;
  for (auto& [atom, power] : powers) {
    if (this->atom(atom).op != ScalarOp::kExp || power == 0) continue;
    Id one = this->atom(atom).args[0];
    exponent = exponent < 0 ? Add(Constant(0), one, power) : Add(exponent, one, power);
    power = 0;
  }
  Monomial out{.coefficient = a.coefficient * b.coefficient, .powers = {}};
  if (exponent >= 0 && !polynomial(exponent).empty()) {
    powers[InternAtom({.op = ScalarOp::kExp, .args = {exponent}, .leaf = ""})] += 1;
  }
  for (const auto& [atom, power] : powers) {
    if (power != 0) out.powers.emplace_back(atom, power);
  }
  return out;
}

PolynomialPool::Id PolynomialPool::Multiply(Id a, Id b) {
  const Polynomial left = polynomial(a);
  const Polynomial right = polynomial(b);
  if (left.size() * right.size() > kMostMonomials || !IsSmall(left) || !IsSmall(right)) {
    Monomial m = Times({.powers = {{InternAtom({.op = kWhole, .args = {a}, .leaf = ""}), 1}}},
                       {.powers = {{InternAtom({.op = kWhole, .args = {b}, .leaf = ""}), 1}}});
    return Intern({std::move(m)});
  }
  Polynomial product;
  for (const Monomial& x : left) {
    for (const Monomial& y : right) product.push_back(Times(x, y));
  }
  return Intern(std::move(product));
}

PolynomialPool::Id PolynomialPool::Power(Id base, int power) {
  if (power >= 0) {
    Id out = Constant(1);
    for (int i = 0; i < power; ++i) out = Multiply(out, base);
    return out;
  }
  const Polynomial p = polynomial(base);
  if (p.size() != 1 || !IsSmall(p)) {
    return Single(InternAtom({.op = kWhole, .args = {base}, .leaf = ""}), power);
  }
  Monomial inverse{.coefficient = std::pow(p[0].coefficient, power), .powers = p[0].powers};
  for (auto& [atom, exponent] : inverse.powers) exponent *= power;
  // Through Times, so that an inverse exponential is one of the negative exponent.
  return Intern({Times({}, inverse)});
}

PolynomialPool::Id PolynomialPool::Exponential(Id exponent) {
  Id product = Constant(1);
  Polynomial rest;
  for (const Monomial& m : Polynomial(polynomial(exponent))) {
    bool log = m.powers.size() == 1 && m.powers[0].second == 1 &&
               atom(m.powers[0].first).op == ScalarOp::kLog &&
               m.coefficient == std::floor(m.coefficient) && std::fabs(m.coefficient) <= kMostPower;
    if (log) {
      Id argument = atom(m.powers[0].first).args[0];
      product = Multiply(product, Power(argument, static_cast<int>(m.coefficient)));
    } else {
      rest.push_back(m);
    }
  }
  Id left = Intern(std::move(rest));
  if (polynomial(left).empty()) return product;
  int e = InternAtom({.op = ScalarOp::kExp, .args = {left}, .leaf = ""});
  return Multiply(product, Single(e));
}

// Of a product the sum of logarithms, where it is defined at all.
PolynomialPool::Id PolynomialPool::Logarithm(Id argument) {
  const Polynomial p = polynomial(argument);
  if (p.size() != 1 || p[0].coefficient <= 0) {
    return Single(InternAtom({.op = ScalarOp::kLog, .args = {argument}, .leaf = ""}));
  }
  Id sum = Constant(std::log(p[0].coefficient));
  for (const auto& [id, power] : p[0].powers) {
    const Atom factor = atom(id);
    Id one = factor.op == ScalarOp::kExp
                 ? factor.args[0]
                 : Single(InternAtom({.op = ScalarOp::kLog, .args = {Single(id)}, .leaf = ""}));
    sum = Add(sum, one, power);
  }
  return sum;
}

PolynomialPool::Id PolynomialPool::Maximum(Id a, Id b) {
  std::vector<Id> args;
  for (Id id : {a, b}) {
    const Polynomial& p = polynomial(id);
    bool nested = p.size() == 1 && p[0].coefficient == 1 && p[0].powers.size() == 1 &&
                  p[0].powers[0].second == 1 && atom(p[0].powers[0].first).op == ScalarOp::kMax;
    if (nested) {
      const std::vector<Id>& inner = atom(p[0].powers[0].first).args;
      args.insert(args.end(), inner.begin(), inner.end());
    } else {
      args.push_back(id);
    }
  }
  std::sort(args.begin(), args.end());
  args.erase(std::unique(args.begin(), args.end()), args.end());
  if (args.size() == 1) return args[0];
  return Single(InternAtom({.op = ScalarOp::kMax, .args = std::move(args), .leaf = ""}));
}

PolynomialPool::Id PolynomialPool::OfPower(const Expr& e) {
  int power = 0;
  if (IsIntegerPower(e.arg(1), &power)) return Power(Of(e.arg(0)), power);
  if (e.arg(0).op() == ScalarOp::kConst && e.arg(0).value() > 0) {
    return Exponential(Multiply(Of(e.arg(1)), Constant(std::log(e.arg(0).value()))));
  }
  return Single(InternAtom({.op = e.op(), .args = {Of(e.arg(0)), Of(e.arg(1))}, .leaf = ""}));
}

PolynomialPool::Id PolynomialPool::OfNode(const Expr& e) {
  auto number = [&](int i) { return Of(e.arg(i)); };
  bool real = IsFloat(e.type());
  switch (e.op()) {
    case ScalarOp::kInput: {
      Expr definition = definition_(e.index());
      if (!definition.empty()) return Of(definition);
      return Single(InternAtom({.op = e.op(), .args = {}, .leaf = e.ToString()}));
    }
    case ScalarOp::kAxis:
    case ScalarOp::kWithin:
      return Single(InternAtom({.op = e.op(), .args = {}, .leaf = e.ToString()}));
    case ScalarOp::kConst:
      return real ? Constant(e.value()) : Constant(static_cast<double>(e.integer()));
    case ScalarOp::kAdd:
      return Add(number(0), number(1));
    case ScalarOp::kSub:
      return Add(number(0), number(1), -1);
    case ScalarOp::kNeg:
      return Add(Constant(0), number(0), -1);
    case ScalarOp::kMul:
      return Multiply(number(0), number(1));
    case ScalarOp::kDiv:
      if (real) return Multiply(number(0), Power(number(1), -1));
      break;
    case ScalarOp::kReciprocal:
      return Power(number(0), -1);
    case ScalarOp::kPow:
      if (real) return OfPower(e);
      break;
    case ScalarOp::kExp:
      return Exponential(number(0));
    case ScalarOp::kLog:
      return Logarithm(number(0));
    case ScalarOp::kMax:
      return Maximum(number(0), number(1));
    case ScalarOp::kMin: {
      Id negative = Maximum(Add(Constant(0), number(0), -1), Add(Constant(0), number(1), -1));
      return Add(Constant(0), negative, -1);
    }
    case ScalarOp::kCast:
      if (real && IsFloat(e.arg(0).type()) && !IsNarrowFloat(e.type()) &&
          DTypeBytes(e.type()) >= DTypeBytes(e.arg(0).type())) {
        return number(0);
      }
      break;
    default:
      break;
  }
  Atom atom{.op = e.op(), .args = {}, .leaf = std::string(DTypeName(e.type()))};
  for (const Expr& a : e.args()) atom.args.push_back(Of(a));
  return Single(InternAtom(std::move(atom)));
}

PolynomialPool::Id PolynomialPool::Of(const Expr& e) {
  auto known = known_.find(e.id());
  if (known != known_.end()) return known->second;
  Id id = OfNode(e);
  known_.emplace(e.id(), id);
  alive_.push_back(e);
  return id;
}

void PolynomialPool::CollectLeaves(Id id, std::set<std::string>* out) const {
  std::set<Id> seen;
  std::vector<Id> stack = {id};
  while (!stack.empty()) {
    Id at = stack.back();
    stack.pop_back();
    if (!seen.insert(at).second) continue;
    for (const Monomial& m : polynomial(at)) {
      for (const auto& [factor, power] : m.powers) {
        const Atom& a = atom(factor);
        if (a.op == ScalarOp::kInput) out->insert(a.leaf);
        stack.insert(stack.end(), a.args.begin(), a.args.end());
      }
    }
  }
}

std::optional<PolynomialPool::Degrees> PolynomialPool::DegreesOf(
    const Monomial& m, const std::set<std::string>& of, const std::set<std::string>& others) {
  auto occurs = [&](int factor, const std::set<std::string>& leaves) {
    std::set<std::string> found;
    CollectLeaves(Single(factor), &found);
    return std::any_of(found.begin(), found.end(),
                       [&](const std::string& l) { return leaves.count(l) != 0; });
  };
  Degrees product = {{0, false}};
  for (const auto& [factor, power] : m.powers) {
    const Atom a = atom(factor);
    Degrees one;
    if (a.op == ScalarOp::kInput && of.count(a.leaf) != 0) {
      one = {{power, false}};
    } else if (!occurs(factor, of)) {
      one = {{0, occurs(factor, others)}};
    } else if (a.op == ScalarOp::kSelect && power == 1) {
      for (size_t i = 1; i < a.args.size(); ++i) {
        std::optional<Degrees> branch = DegreesIn(a.args[i], of, others);
        if (!branch.has_value()) return std::nullopt;
        one.insert(branch->begin(), branch->end());
      }
    } else {
      return std::nullopt;
    }
    Degrees next;
    for (const auto& [d, other] : product) {
      for (const auto& [more, also] : one) next.emplace(d + more, other || also);
    }
    product = std::move(next);
  }
  return product;
}

std::optional<PolynomialPool::Degrees> PolynomialPool::DegreesIn(
    Id id, const std::set<std::string>& of, const std::set<std::string>& others) {
  Degrees out;
  for (const Monomial& m : Polynomial(polynomial(id))) {
    std::optional<Degrees> one = DegreesOf(m, of, others);
    if (!one.has_value()) return std::nullopt;
    out.insert(one->begin(), one->end());
  }
  return out;
}

// True if the monomial alone is bounded above.
bool PolynomialPool::BoundedTerm(const Monomial& m, int depth) {
  if (m.powers.empty()) return true;
  if (m.powers.size() > 1) return false;
  const auto [id, power] = m.powers[0];
  if (power % 2 == 0 && power > 0) return m.coefficient < 0;
  if (power != 1) return false;
  const Atom& a = atom(id);
  switch (a.op) {
    case ScalarOp::kTanh:
    case ScalarOp::kErf:
    case ScalarOp::kSigmoid:
    case ScalarOp::kSin:
    case ScalarOp::kCos:
      return true;
    case ScalarOp::kExp: {
      Id exponent = a.args[0];
      return m.coefficient < 0 || BoundedAbove(exponent, depth + 1);
    }
    case ScalarOp::kAbs:
    case ScalarOp::kSqrt:
    case ScalarOp::kConst:
      return m.coefficient < 0;
    default:
      return false;
  }
}

bool PolynomialPool::IsBoundedAbove(Id id) {
  bound_steps_ = kMostBoundSteps;
  return BoundedAbove(id, 0);
}

bool PolynomialPool::BoundedAbove(Id id, int depth) {
  if (depth > kMostDepth || --bound_steps_ < 0) return false;
  const Polynomial p = polynomial(id);
  // -inf is below everything.
  for (const Monomial& m : p) {
    bool minus_infinity = m.powers.size() == 1 && m.coefficient < 0 &&
                          atom(m.powers[0].first).op == ScalarOp::kConst &&
                          atom(m.powers[0].first).leaf == "inf";
    if (minus_infinity) return true;
  }
  if (std::all_of(p.begin(), p.end(), [&](const Monomial& m) { return BoundedTerm(m, depth); })) {
    return true;
  }
  // Branches of a choice: of -max(a, b) one is enough, of max(a, b) and of a select all must hold.
  for (const Monomial& m : p) {
    if (m.powers.size() != 1 || m.powers[0].second != 1) continue;
    const Atom choice = atom(m.powers[0].first);
    bool any = choice.op == ScalarOp::kMax && m.coefficient < 0;
    if (choice.op != ScalarOp::kMax && choice.op != ScalarOp::kSelect) continue;
    size_t first = choice.op == ScalarOp::kSelect ? 1 : 0;
    Id rest = Add(id, Single(m.powers[0].first), -m.coefficient);
    bool all = true;
    for (size_t i = first; i < choice.args.size(); ++i) {
      bool holds = BoundedAbove(Add(rest, choice.args[i], m.coefficient), depth + 1);
      if (any && holds) return true;
      all = all && holds;
    }
    if (!any && all) return true;
  }
  return false;
}

}  // namespace fusion
