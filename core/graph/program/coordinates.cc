#include "core/graph/program/coordinates.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

namespace fusion {
namespace {

// Dims of more than one place that bounds are sought over: the work grows with their square.
constexpr size_t kMostDims = 3;

Expr Number(const HostTensor& tensor, int64_t element) {
  DType type = tensor.dtype();
  return IsFloat(type) ? Expr::Const(type, tensor.GetDouble(element))
                       : Expr::ConstInt(type, tensor.GetInt(element));
}

bool SameElement(const HostTensor& tensor, int64_t a, int64_t b) {
  auto size = static_cast<size_t>(DTypeBytes(tensor.dtype()));
  const std::byte* bytes = tensor.bytes();
  return std::equal(bytes + static_cast<size_t>(a) * size,
                    bytes + static_cast<size_t>(a + 1) * size,
                    bytes + static_cast<size_t>(b) * size);
}

// Calls visit(element, coordinates) in row-major order until it returns false.
template <typename Visit>
bool ForEachElement(const Dims& dims, const Visit& visit) {
  Dims at(dims.size(), 0);
  int64_t elements = NumElements(dims);
  for (int64_t e = 0; e < elements; ++e) {
    if (!visit(e, at)) return false;
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return true;
}

Expr Coordinate(size_t d) { return Expr::Axis(static_cast<int>(d)); }

Expr Whole(int64_t n) { return Expr::ConstInt(DType::kI64, n); }

// c0 + sum of c_d * axis(d), the coefficients read off the neighbours of the first element.
Expr AffineForm(const HostTensor& tensor) {
  if (tensor.dtype() != DType::kI64 && tensor.dtype() != DType::kI32) return {};
  const Dims& dims = tensor.dims();
  int64_t first = tensor.GetInt(0);
  std::vector<int64_t> step(dims.size(), 0);
  int64_t stride = 1;
  // Far from where sums would not fit.
  constexpr int64_t kLargest = int64_t{1} << 31;
  auto small = [](int64_t n) { return n > -kLargest && n < kLargest; };
  if (!small(first)) return {};
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] > 1) {
      int64_t next = tensor.GetInt(stride);
      if (!small(next)) return {};
      step[d] = next - first;
      if (std::abs(step[d]) > kLargest / dims[d]) return {};
    }
    stride *= dims[d];
  }
  bool fits = ForEachElement(dims, [&](int64_t e, const Dims& at) {
    int64_t value = first;
    for (size_t d = 0; d < dims.size(); ++d) value += step[d] * at[d];
    return tensor.GetInt(e) == value;
  });
  if (!fits) return {};
  Expr sum;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (step[d] == 0) continue;
    Expr term = step[d] == 1 ? Coordinate(d) : Coordinate(d) * Whole(step[d]);
    sum = sum.empty() ? term : sum + term;
  }
  if (first != 0 || sum.empty()) sum = sum.empty() ? Whole(first) : sum + Whole(first);
  return Expr::Cast(sum, tensor.dtype());
}

// A coordinate, or the difference of two, and how large it gets.
struct Bound {
  size_t up = 0;
  std::optional<size_t> down;
  int sign = 1;
  int64_t most = std::numeric_limits<int64_t>::min();

  int64_t At(const Dims& at) const { return sign * (at[up] - (down.has_value() ? at[*down] : 0)); }
  // The largest it gets anywhere.
  int64_t Largest(const Dims& dims) const {
    if (sign > 0) return dims[up] - 1;
    return down.has_value() ? dims[*down] - 1 : 0;
  }
  Expr Condition() const {
    Expr value = down.has_value() ? Coordinate(up) - Coordinate(*down) : Coordinate(up);
    return sign > 0 ? Expr::Binary(ScalarOp::kLe, value, Whole(most))
                    : Expr::Binary(ScalarOp::kGe, value, Whole(-most));
  }
};

// The condition that holds exactly for the elements that equal element `like`; empty if bounds do
// not say it.
Expr ConditionOf(const HostTensor& tensor, int64_t like) {
  const Dims& dims = tensor.dims();
  std::vector<size_t> wide;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1) wide.push_back(d);
  }
  if (wide.size() > kMostDims) return {};
  std::vector<Bound> bounds;
  for (size_t i = 0; i < wide.size(); ++i) {
    for (int sign : {1, -1}) {
      bounds.push_back({.up = wide[i], .down = {}, .sign = sign});
      for (size_t j = 0; j < i; ++j) {
        bounds.push_back({.up = wide[i], .down = wide[j], .sign = sign});
      }
    }
  }
  ForEachElement(dims, [&](int64_t e, const Dims& at) {
    if (!SameElement(tensor, e, like)) return true;
    for (Bound& b : bounds) b.most = std::max(b.most, b.At(at));
    return true;
  });
  std::erase_if(bounds, [&](const Bound& b) { return b.most >= b.Largest(dims); });
  auto holds = [&](const Dims& at) {
    return std::all_of(bounds.begin(), bounds.end(),
                       [&](const Bound& b) { return b.At(at) <= b.most; });
  };
  bool exact = ForEachElement(
      dims, [&](int64_t e, const Dims& at) { return SameElement(tensor, e, like) == holds(at); });
  if (!exact || bounds.empty()) return {};
  // Bounds that the others imply are left out.
  for (size_t i = bounds.size(); i-- > 0 && bounds.size() > 1;) {
    Bound without = bounds[i];
    bounds.erase(bounds.begin() + static_cast<std::ptrdiff_t>(i));
    bool implied = ForEachElement(dims, [&](int64_t, const Dims& at) {
      return !holds(at) || without.At(at) <= without.most;
    });
    if (!implied) bounds.insert(bounds.begin() + static_cast<std::ptrdiff_t>(i), without);
  }
  Expr all;
  for (const Bound& b : bounds) {
    all = all.empty() ? b.Condition() : Expr::Binary(ScalarOp::kAnd, all, b.Condition());
  }
  return all;
}

Expr TwoValuedForm(const HostTensor& tensor) {
  std::optional<int64_t> other;
  int64_t elements = tensor.elements();
  for (int64_t e = 1; e < elements; ++e) {
    if (SameElement(tensor, e, 0)) continue;
    if (!other.has_value()) other = e;
    if (!SameElement(tensor, e, *other)) return {};
  }
  if (!other.has_value()) return Number(tensor, 0);
  for (auto [one, two] : {std::pair{int64_t{0}, *other}, std::pair{*other, int64_t{0}}}) {
    Expr condition = ConditionOf(tensor, one);
    if (condition.empty()) continue;
    if (tensor.dtype() != DType::kBool) {
      return Expr::Select(condition, Number(tensor, one), Number(tensor, two));
    }
    return tensor.GetInt(one) != 0 ? condition : Expr::Unary(ScalarOp::kNot, condition);
  }
  return {};
}

int64_t WideDims(const HostTensor& tensor) {
  return std::count_if(tensor.dims().begin(), tensor.dims().end(), [](int64_t d) { return d > 1; });
}

}  // namespace

Expr CoordinateForm(const HostTensor& constant) {
  if (constant.elements() == 0) return {};
  if (IsFloat(constant.dtype())) return WideDims(constant) > 1 ? TwoValuedForm(constant) : Expr();
  Expr form = AffineForm(constant);
  return form.empty() ? TwoValuedForm(constant) : form;
}

Expr AtIndex(const Expr& form, const IndexMap& index) {
  return form.MapLeaves([&](const Expr& leaf) -> Expr {
    if (leaf.op() != ScalarOp::kAxis) return leaf;
    const IndexExpr& at = index[static_cast<size_t>(leaf.index())];
    Expr sum;
    for (const IndexExpr::Term& t : at.terms()) {
      Expr term = Expr::Axis(t.axis);
      if (t.coefficient != 1) term = term * Whole(t.coefficient);
      sum = sum.empty() ? term : sum + term;
    }
    if (sum.empty()) return Whole(at.constant());
    return at.constant() == 0 ? sum : sum + Whole(at.constant());
  });
}

}  // namespace fusion
