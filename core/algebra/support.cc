#include "core/algebra/support.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "core/base/contains.h"

namespace fusion {
namespace {

constexpr size_t kMostBounds = 16;
// Beyond it sums and products of coordinates might not fit their type.
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

class Finder {
 public:
  explicit Finder(const Leaves& leaves) : leaves_(leaves) {}

  Region NonZero(const Expr& e) { return Memoised(e, kNonZero); }
  Region AboveMinusInfinity(const Expr& e) { return Memoised(e, kAboveMinusInfinity); }

 private:
  enum Question : uint8_t { kNonZero, kAboveMinusInfinity, kTrue, kFalse };

  // Expressions share their parts: each is asked each question once.
  Region Memoised(const Expr& e, Question question) {
    std::pair<const void*, Question> key{e.id(), question};
    auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    Region region = question == kNonZero              ? FindNonZero(e)
                    : question == kAboveMinusInfinity ? FindAboveMinusInfinity(e)
                                                      : FindTruth(e, question == kTrue);
    // Fewer bounds hold more.
    if (region.size() > kMostBounds) region.resize(kMostBounds);
    known_.emplace(key, region);
    return region;
  }

  // Where a condition is (or is not) true.
  Region Truth(const Expr& e, bool wanted) { return Memoised(e, wanted ? kTrue : kFalse); }

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
        return AboveMinusInfinity(e.arg(0));
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

  Region FindAboveMinusInfinity(const Expr& e) {
    switch (e.op()) {
      case ScalarOp::kInput: {
        Expr definition = leaves_.DefinitionOf(e.index());
        return definition.empty() ? Region() : AboveMinusInfinity(definition);
      }
      case ScalarOp::kAdd:
      case ScalarOp::kMin:
        return Intersection(AboveMinusInfinity(e.arg(0)), AboveMinusInfinity(e.arg(1)));
      case ScalarOp::kMax:
        return Hull(AboveMinusInfinity(e.arg(0)), AboveMinusInfinity(e.arg(1)));
      case ScalarOp::kMul:
        if (IsPositiveConstant(e.arg(1))) return AboveMinusInfinity(e.arg(0));
        return IsPositiveConstant(e.arg(0)) ? AboveMinusInfinity(e.arg(1)) : Region();
      case ScalarOp::kDiv:
        return IsPositiveConstant(e.arg(1)) ? AboveMinusInfinity(e.arg(0)) : Region();
      case ScalarOp::kSub:
        return AboveMinusInfinity(e.arg(0));
      case ScalarOp::kCast:
        return IsFloat(e.arg(0).type()) ? AboveMinusInfinity(e.arg(0)) : Region();
      case ScalarOp::kLog:
        return NonZero(e.arg(0));
      case ScalarOp::kSelect: {
        Region a = Intersection(Truth(e.arg(0), true), AboveMinusInfinity(e.arg(1)));
        Region b = Intersection(Truth(e.arg(0), false), AboveMinusInfinity(e.arg(2)));
        if (IsMinusInfinity(e.arg(2))) return a;
        return IsMinusInfinity(e.arg(1)) ? b : Hull(a, b);
      }
      default:
        return {};
    }
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

  // A whole number as a function of coordinates; nothing where numbers grow out of all use.
  std::optional<IndexExpr> Affine(const Expr& e) {
    auto known = affine_.find(e.id());
    if (known != affine_.end()) return known->second;
    std::optional<IndexExpr> found = FindAffine(e);
    bool small = found.has_value() && std::abs(found->constant()) < kLargest &&
                 std::all_of(found->terms().begin(), found->terms().end(),
                             [](const auto& t) { return std::abs(t.coefficient) < kLargest; });
    if (!small) found.reset();
    affine_.emplace(e.id(), found);
    return found;
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
        // Coordinates are far below what the narrowest of these types holds exactly.
        return e.type() == DType::kI64 || e.type() == DType::kI32 || e.type() == DType::kF32 ||
                       e.type() == DType::kF64
                   ? Affine(e.arg(0))
                   : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  const Leaves& leaves_;
  std::map<std::pair<const void*, Question>, Region> known_;
  std::map<const void*, std::optional<IndexExpr>> affine_;
};

}  // namespace

Region Hull(const Region& a, const Region& b) {
  Region out;
  for (const IndexExpr& e : a) {
    for (const IndexExpr& f : b) {
      // Of two bounds that differ by a number the looser one holds both.
      if (e.terms() != f.terms()) continue;
      out.push_back(e.constant() >= f.constant() ? e : f);
      break;
    }
  }
  return out;
}

Region RegionOfNonZero(const Expr& e, const Leaves& leaves) { return Finder(leaves).NonZero(e); }

Region RegionAboveMinusInfinity(const Expr& e, const Leaves& leaves) {
  return Finder(leaves).AboveMinusInfinity(e);
}

}  // namespace fusion
