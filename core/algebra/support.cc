#include "core/algebra/support.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>

#include "core/base/contains.h"

namespace fusion {
namespace {

constexpr size_t kMostBounds = 16;
// Limit for constants and coefficients, so that sums and products of coordinates fit their type.
constexpr int64_t kLargest = int64_t{1} << 30;

Region Intersection(Region a, const Region& b) {
  for (const IndexExpr& e : b) {
    if (!Contains(a, e)) a.push_back(e);
  }
  return a;
}

bool IsMinusInfinity(const Expr& e) {
  return e.op() == ScalarOp::kConst && IsFloat(e.type()) && std::isinf(e.value()) && e.value() < 0;
}

bool IsPositiveConstant(const Expr& e) {
  return e.op() == ScalarOp::kConst && IsFloat(e.type()) && e.value() > 0;
}

constexpr double kMargin = 1e-6;

// Every integer up to this magnitude is exact in the type. 0: the type is not supported.
double LargestExact(DType type) {
  switch (type) {
    case DType::kI64:
      return 0x1p62;  // sums and differences fit, too
    case DType::kI32:
      return 0x1p31 - 1;
    case DType::kF32:
      return 0x1p24;
    case DType::kF64:
      return 0x1p53;
    default:
      return 0;
  }
}

// Below it an exponential of the type is 0.
double UnderflowOf(DType type) { return type == DType::kF64 ? -746 : -104; }

class Finder {
 public:
  /// `finite`: finite numbers count as masks, too.
  Finder(const Leaves& leaves, bool finite) : leaves_(leaves), finite_(finite) {}

  Region NonZero(const Expr& e) { return Memoised(e, kNonZero).region; }
  UpperRegion Above(const Expr& e) { return Memoised(e, kAbove); }
  const std::map<int, double>& at_most() const { return at_most_; }

 private:
  enum Question : uint8_t { kNonZero, kAbove, kTrue, kFalse };
  static constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

  // Subexpressions are shared: each question is answered once per node.
  UpperRegion Memoised(const Expr& e, Question question) {
    std::pair<const void*, Question> key{e.id(), question};
    auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    UpperRegion found;
    if (question == kAbove) {
      found = FindAbove(e);
    } else {
      found.region = question == kNonZero ? FindNonZero(e) : FindTruth(e, question == kTrue);
    }
    // Dropping bounds only enlarges the region.
    if (found.region.size() > kMostBounds) found.region.resize(kMostBounds);
    known_.emplace(key, found);
    return found;
  }

  // Where a condition is (or is not) true.
  Region Truth(const Expr& e, bool wanted) { return Memoised(e, wanted ? kTrue : kFalse).region; }

  Region FindNonZero(const Expr& e) {
    switch (e.op()) {
      case ScalarOp::kInput: {
        Expr definition = leaves_.DefinitionOf(e.index());
        return definition.empty() ? Region() : NonZero(definition);
      }
      case ScalarOp::kMul:
        return Intersection(NonZero(e.arg(0)), NonZero(e.arg(1)));
      case ScalarOp::kAdd:
      case ScalarOp::kSub:
        return Hull(NonZero(e.arg(0)), NonZero(e.arg(1)));
      case ScalarOp::kMax:
      case ScalarOp::kMin:
        if (e.arg(1).IsConst(0)) return NonZero(e.arg(0));
        if (e.arg(0).IsConst(0)) return NonZero(e.arg(1));
        return Hull(NonZero(e.arg(0)), NonZero(e.arg(1)));
      case ScalarOp::kDiv:
      case ScalarOp::kNeg:
      case ScalarOp::kAbs:
      case ScalarOp::kSqrt:
      case ScalarOp::kTanh:
      case ScalarOp::kErf:
        return NonZero(e.arg(0));
      case ScalarOp::kExp:
        return NoUnderflow(e);
      case ScalarOp::kCast:
        return e.arg(0).type() == DType::kBool ? Truth(e.arg(0), true) : NonZero(e.arg(0));
      case ScalarOp::kSelect: {
        Region a = Intersection(Truth(e.arg(0), true), NonZero(e.arg(1)));
        Region b = Intersection(Truth(e.arg(0), false), NonZero(e.arg(2)));
        if (e.arg(2).IsConst(0)) return a;
        return e.arg(1).IsConst(0) ? b : Hull(a, b);
      }
      default:
        return {};
    }
  }

  // Of an exponential, whose exponent may have a running part.
  Region NoUnderflow(const Expr& e) {
    std::vector<int> running;
    std::optional<UpperRegion> rest;
    if (!Addends(e.arg(0), &running, &rest)) return Above(e.arg(0)).region;
    if (!rest.has_value()) return {};
    if (std::isinf(rest->bound)) return rest->region;
    double least = UnderflowOf(e.type());
    if (running.empty()) return rest->bound <= least ? rest->region : Region();
    if (running.size() > 1) return {};
    // Away from the mask's own number, where rounding hides `least`.
    double most = least - rest->bound - kMargin * std::fabs(rest->bound);
    auto [at, fresh] = at_most_.try_emplace(running[0], most);
    if (!fresh) at->second = std::min(at->second, most);
    return rest->region;
  }

  // Splits a sum into its running exponents and the rest. False if it is too long.
  bool Addends(const Expr& e, std::vector<int>* running, std::optional<UpperRegion>* rest) {
    if (e.op() == ScalarOp::kAdd && running->size() < kMostBounds) {
      return Addends(e.arg(0), running, rest) && Addends(e.arg(1), running, rest);
    }
    if (running->size() == kMostBounds) return false;
    if (e.op() == ScalarOp::kInput && leaves_.leaf(e.index()).kind == Leaf::kRunning) {
      running->push_back(e.index());
      return true;
    }
    *rest = rest->has_value() ? Sum(**rest, Above(e), std::nullopt, ConstantOf(e)) : Above(e);
    return true;
  }

  static std::optional<double> ConstantOf(const Expr& e) {
    bool number = e.op() == ScalarOp::kConst && IsFloat(e.type()) && std::isfinite(e.value());
    return number ? std::optional(e.value()) : std::nullopt;
  }

  // A sum with -inf is -inf. For finite bounds only the sum with a constant is known.
  static UpperRegion Sum(const UpperRegion& a, const UpperRegion& b, std::optional<double> a_number,
                         std::optional<double> b_number) {
    if (b_number.has_value()) return {a.region, a.bound + *b_number};
    if (a_number.has_value()) return {b.region, b.bound + *a_number};
    UpperRegion out;
    if (std::isinf(a.bound)) out.region = a.region;
    if (std::isinf(b.bound)) out.region = Intersection(std::move(out.region), b.region);
    return out;
  }

  UpperRegion FindAbove(const Expr& e) {
    auto scaled = [](UpperRegion r, double factor) {
      r.bound *= factor;
      return r;
    };
    switch (e.op()) {
      case ScalarOp::kInput: {
        Expr definition = leaves_.DefinitionOf(e.index());
        return definition.empty() ? UpperRegion() : Above(definition);
      }
      case ScalarOp::kAdd:
        return Sum(Above(e.arg(0)), Above(e.arg(1)), ConstantOf(e.arg(0)), ConstantOf(e.arg(1)));
      case ScalarOp::kSub: {
        std::optional<double> number = ConstantOf(e.arg(1));
        if (number.has_value()) number = -*number;
        return Sum(Above(e.arg(0)), {}, std::nullopt, number);
      }
      case ScalarOp::kMin: {
        UpperRegion a = Above(e.arg(0));
        UpperRegion b = Above(e.arg(1));
        return {Intersection(std::move(a.region), b.region), std::max(a.bound, b.bound)};
      }
      case ScalarOp::kMax: {
        UpperRegion a = Above(e.arg(0));
        UpperRegion b = Above(e.arg(1));
        return {Hull(a.region, b.region), std::max(a.bound, b.bound)};
      }
      case ScalarOp::kMul:
        if (IsPositiveConstant(e.arg(1))) return scaled(Above(e.arg(0)), e.arg(1).value());
        if (IsPositiveConstant(e.arg(0))) return scaled(Above(e.arg(1)), e.arg(0).value());
        return {};
      case ScalarOp::kDiv:
        if (!IsPositiveConstant(e.arg(1))) return {};
        return scaled(Above(e.arg(0)), 1 / e.arg(1).value());
      case ScalarOp::kCast:
        return IsFloat(e.arg(0).type()) ? Above(e.arg(0)) : UpperRegion();
      case ScalarOp::kLog:
        return {NonZero(e.arg(0)), kMinusInfinity};
      case ScalarOp::kSelect:
        return SelectedAbove(e);
      default:
        return {};
    }
  }

  UpperRegion SelectedAbove(const Expr& e) {
    UpperRegion a = Above(e.arg(1));
    UpperRegion b = Above(e.arg(2));
    a.region = Intersection(Truth(e.arg(0), true), a.region);
    b.region = Intersection(Truth(e.arg(0), false), b.region);
    auto masks = [&](const Expr& branch) {
      return IsMinusInfinity(branch) || (finite_ && ConstantOf(branch).has_value());
    };
    auto value = [](const Expr& branch) { return branch.value(); };
    if (masks(e.arg(2))) return {a.region, std::max(a.bound, value(e.arg(2)))};
    if (masks(e.arg(1))) return {b.region, std::max(b.bound, value(e.arg(1)))};
    return {Hull(a.region, b.region), std::max(a.bound, b.bound)};
  }

  Region FindTruth(const Expr& e, bool wanted) {
    switch (e.op()) {
      case ScalarOp::kInput: {
        Expr definition = leaves_.DefinitionOf(e.index());
        return definition.empty() ? Region() : Truth(definition, wanted);
      }
      case ScalarOp::kNot:
        return Truth(e.arg(0), !wanted);
      case ScalarOp::kAnd:
      case ScalarOp::kOr: {
        bool both = (e.op() == ScalarOp::kAnd) == wanted;
        Region a = Truth(e.arg(0), wanted);
        Region b = Truth(e.arg(1), wanted);
        return both ? Intersection(std::move(a), b) : Hull(a, b);
      }
      case ScalarOp::kWithin:
        if (!wanted) return {};
        return {IndexExpr::Axis(e.index()) + IndexExpr(-e.integer()),
                IndexExpr(e.end() - 1) + IndexExpr::Axis(e.index(), -1)};
      case ScalarOp::kCast:
        return e.arg(0).type() == DType::kBool ? Truth(e.arg(0), wanted) : Region();
      default:
        return GetScalarInfo(e.op()).typing == ScalarTyping::kCompare ? Comparison(e, wanted)
                                                                      : Region();
    }
  }

  Region Comparison(const Expr& e, bool wanted) {
    std::optional<IndexExpr> a = Affine(e.arg(0));
    std::optional<IndexExpr> b = Affine(e.arg(1));
    if (!a.has_value() || !b.has_value()) return {};
    IndexExpr up = *b + *a * -1;    // b - a
    IndexExpr down = *a + *b * -1;  // a - b
    auto less = [](const IndexExpr& difference) { return difference + IndexExpr(-1); };
    switch (e.op()) {
      case ScalarOp::kLe:
        return {wanted ? up : less(down)};
      case ScalarOp::kLt:
        return {wanted ? less(up) : down};
      case ScalarOp::kGe:
        return {wanted ? down : less(up)};
      case ScalarOp::kGt:
        return {wanted ? less(down) : up};
      case ScalarOp::kEq:
        return wanted ? Region{up, down} : Region();
      case ScalarOp::kNe:
        return wanted ? Region() : Region{up, down};
      default:
        return {};
    }
  }

  // `e` as an affine function of coordinates; nullopt if it is not affine with integers, or if
  // values may exceed kLargest or the exact range of their type.
  std::optional<IndexExpr> Affine(const Expr& e) {
    auto known = affine_.find(e.id());
    if (known != affine_.end()) return known->second;
    std::optional<IndexExpr> found = FindAffine(e);
    bool small = found.has_value() && std::abs(found->constant()) < kLargest &&
                 std::all_of(found->terms().begin(), found->terms().end(),
                             [](const auto& t) { return std::abs(t.coefficient) < kLargest; }) &&
                 LargestOf(*found) <= LargestExact(e.type());
    if (!small) found.reset();
    affine_.emplace(e.id(), found);
    return found;
  }

  // The largest magnitude of the function over all coordinates.
  double LargestOf(const IndexExpr& e) const {
    double low = static_cast<double>(e.constant());
    double high = low;
    for (const IndexExpr::Term& t : e.terms()) {
      double last = static_cast<double>(std::max<int64_t>(leaves_.extent(t.axis), 1) - 1);
      double reach = static_cast<double>(t.coefficient) * last;
      (reach < 0 ? low : high) += reach;
    }
    return std::max(std::fabs(low), std::fabs(high));
  }

  std::optional<IndexExpr> FindAffine(const Expr& e) {
    auto both = [&](int64_t factor) -> std::optional<IndexExpr> {
      std::optional<IndexExpr> a = Affine(e.arg(0));
      std::optional<IndexExpr> b = Affine(e.arg(1));
      if (!a.has_value() || !b.has_value()) return std::nullopt;
      return *a + *b * factor;
    };
    switch (e.op()) {
      case ScalarOp::kInput: {
        Expr definition = leaves_.DefinitionOf(e.index());
        return definition.empty() ? std::nullopt : Affine(definition);
      }
      case ScalarOp::kAxis:
        return IndexExpr::Axis(e.index());
      case ScalarOp::kConst: {
        if (!IsFloat(e.type())) {
          bool small = e.integer() > -kLargest && e.integer() < kLargest;
          return small ? std::optional(IndexExpr(e.integer())) : std::nullopt;
        }
        bool whole = e.value() == std::floor(e.value()) && std::fabs(e.value()) < kLargest;
        return whole ? std::optional(IndexExpr(static_cast<int64_t>(e.value()))) : std::nullopt;
      }
      case ScalarOp::kAdd:
        return both(1);
      case ScalarOp::kSub:
        return both(-1);
      case ScalarOp::kNeg: {
        std::optional<IndexExpr> a = Affine(e.arg(0));
        return a.has_value() ? std::optional(*a * -1) : std::nullopt;
      }
      case ScalarOp::kMul: {
        std::optional<IndexExpr> a = Affine(e.arg(0));
        std::optional<IndexExpr> b = Affine(e.arg(1));
        if (!a.has_value() || !b.has_value()) return std::nullopt;
        if (b->IsConstant()) return *a * b->constant();
        return a->IsConstant() ? std::optional(*b * a->constant()) : std::nullopt;
      }
      case ScalarOp::kCast:
        return Affine(e.arg(0));
      default:
        return std::nullopt;
    }
  }

  const Leaves& leaves_;
  bool finite_;
  std::map<std::pair<const void*, Question>, UpperRegion> known_;
  std::map<int, double> at_most_;
  std::map<const void*, std::optional<IndexExpr>> affine_;
};

}  // namespace

Region Hull(const Region& a, const Region& b) {
  Region out;
  for (const IndexExpr& e : a) {
    for (const IndexExpr& f : b) {
      // Of two bounds that differ by a constant, the looser one contains both.
      if (e.terms() != f.terms()) continue;
      out.push_back(e.constant() >= f.constant() ? e : f);
      break;
    }
  }
  return out;
}

Region RegionOfNonZero(const Expr& e, const Leaves& leaves) {
  return Finder(leaves, false).NonZero(e);
}

Region RegionAboveMinusInfinity(const Expr& e, const Leaves& leaves) {
  return Finder(leaves, false).Above(e).region;
}

UpperRegion RegionAboveMasks(const Expr& e, const Leaves& leaves) {
  return Finder(leaves, true).Above(e);
}

UnderflowRegion RegionOfNoUnderflow(const Expr& e, const Leaves& leaves) {
  Finder finder(leaves, true);
  Region region = finder.NonZero(e);
  return {std::move(region), finder.at_most()};
}

}  // namespace fusion
