#include "core/op/body/indexed_reduction.h"

#include <algorithm>
#include <vector>

namespace fusion {
namespace {

bool IsIdentity(const Expr& e, const Monoid& reduce) {
  const std::string& name = reduce.name();
  if (name != "sum" && name != "prod" && name != "max" && name != "min") return false;
  const Expr& identity = reduce.identity()[0];
  if (e.op() != ScalarOp::kConst || e.type() != identity.type()) return false;
  return IsFloat(e.type()) ? e.value() == identity.value() : e.integer() == identity.integer();
}

// `e` as a sum of axes times constants; nullopt: it is not one.
std::optional<IndexExpr> SumOfAxes(const Expr& e) {
  switch (e.op()) {
    case ScalarOp::kAxis:
      return IndexExpr::Axis(e.index());
    case ScalarOp::kConst:
      return IsInteger(e.type()) ? std::optional(IndexExpr(e.integer())) : std::nullopt;
    case ScalarOp::kAdd:
    case ScalarOp::kMul: {
      const std::optional<IndexExpr> a = SumOfAxes(e.arg(0));
      const std::optional<IndexExpr> b = SumOfAxes(e.arg(1));
      if (!a || !b) return std::nullopt;
      if (e.op() == ScalarOp::kAdd) return *a + *b;
      if (b->IsConstant()) return *a * b->constant();
      return a->IsConstant() ? std::optional(*b * a->constant()) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

bool Depends(const Expr& e, int axis, const std::function<bool(int, int)>& moves) {
  bool found = false;
  e.VisitOnce([&](const Expr& part) {
    const bool coordinate = part.op() == ScalarOp::kAxis || part.op() == ScalarOp::kWithin;
    if (coordinate) found |= part.index() == axis;
    if (part.op() == ScalarOp::kInput) found |= moves(part.index(), axis);
  });
  return found;
}

// Whether the element that is read of an input of `body` depends on an axis, also through an
// indirect index.
bool Moves(const LoopBody& body, int input, int axis) {
  const Read& read = body.reads[static_cast<size_t>(input)];
  return std::any_of(read.guards.begin(), read.guards.end(),
                     [axis](const Guard& g) { return g.axis == axis; }) ||
         std::any_of(read.index.begin(), read.index.end(), [&](const IndexExpr& e) {
           return e.CoefficientOf(axis) != 0 ||
                  (e.indirect() >= 0 && Moves(body, e.indirect(), axis));
         });
}

std::function<bool(int, int)> MovesOf(const LoopBody& body) {
  return [&body](int input, int axis) { return Moves(body, input, axis); };
}

}  // namespace

std::optional<IndexedReduction> IndexedReductionOf(
    const Expr& value, const Monoid& reduce,
    const std::function<bool(int input, int axis)>& moves) {
  if (value.op() != ScalarOp::kSelect || !IsIdentity(value.arg(2), reduce)) return std::nullopt;
  const Expr& hit = value.arg(0);
  if (hit.op() != ScalarOp::kEq || hit.arg(0).type() != DType::kI64) return std::nullopt;
  for (int side : {0, 1}) {
    const std::optional<IndexExpr> at = SumOfAxes(hit.arg(side));
    const Expr& place = hit.arg(1 - side);
    if (!at || at->terms().empty()) continue;
    const bool fixed =
        std::none_of(at->terms().begin(), at->terms().end(),
                     [&](const IndexExpr::Term& t) { return Depends(place, t.axis, moves); });
    if (fixed) return IndexedReduction{.at = *at, .place = place, .value = value.arg(1)};
  }
  return std::nullopt;
}

std::optional<IndexedReduction> IndexedReductionOf(const LoopBody& body) {
  if (!body.reduce) return std::nullopt;
  std::optional<IndexedReduction> out = IndexedReductionOf(body.value, *body.reduce, MovesOf(body));
  if (!out) return std::nullopt;
  for (const IndexExpr::Term& t : out->at.terms()) {
    const bool written = std::find(body.write.begin(), body.write.end(), IndexExpr::Axis(t.axis)) !=
                         body.write.end();
    if (!written || !body.axes[static_cast<size_t>(t.axis)].extent.is_static()) return std::nullopt;
  }
  auto extent = [&](int a) { return body.axes[static_cast<size_t>(a)].extent.value(); };
  return IsPlace(out->at, extent) ? out : std::nullopt;
}

bool UpdateIsFixed(const LoopBody& body, const IndexedReduction& indexed) {
  return std::none_of(
      indexed.at.terms().begin(), indexed.at.terms().end(),
      [&](const IndexExpr::Term& t) { return Depends(indexed.value, t.axis, MovesOf(body)); });
}

bool IsPlace(const IndexExpr& at, const std::function<int64_t(int axis)>& extent) {
  std::vector<IndexExpr::Term> digits(at.terms().begin(), at.terms().end());
  std::sort(digits.begin(), digits.end(), IndexExpr::MajorFirst);
  int64_t next = 1;
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i].coefficient != next) return false;
    next *= extent(digits[i].axis);
  }
  return !digits.empty();
}

}  // namespace fusion
