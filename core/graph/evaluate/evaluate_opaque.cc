#include "core/graph/evaluate/evaluate_opaque.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/op/body/monoid.h"
#include "core/op/indexed/opaque.h"

namespace fusion {
namespace {

// Visits element (outer, n, inner) of every row, one row after the other: visit(first, step) gets
// where the row begins and how far its elements are apart.
template <typename Visit>
void ForRows(const RowsAlong& rows, const Visit& visit) {
  for (int64_t o = 0; o < rows.outer; ++o) {
    for (int64_t i = 0; i < rows.inner; ++i) visit(o * rows.extent * rows.inner + i, rows.inner);
  }
}

void Fold(const RunningFold& fold, const EvaluatedValue& x, EvaluatedValue* y) {
  const bool real = IsFloat(x.dtype);
  const Monoid monoid = *Monoid::Named(fold.monoid, x.dtype);
  const ScalarOp op = monoid.merge()[0].op();
  const Expr& identity = monoid.identity()[0];
  ForRows(fold.rows, [&](int64_t first, int64_t step) {
    double real_sum = real ? identity.value() : 0;
    int64_t sum = real ? 0 : identity.integer();
    for (int64_t k = 0; k < fold.rows.extent; ++k) {
      const int64_t n = fold.reverse ? fold.rows.extent - 1 - k : k;
      const auto at = static_cast<size_t>(first + n * step);
      if (real) {
        if (fold.exclusive) y->reals[at] = real_sum;
        real_sum = EvaluateReal(op, real_sum, x.reals[at]);
        if (!fold.exclusive) y->reals[at] = real_sum;
      } else {
        if (fold.exclusive) y->integers[at] = sum;
        sum = WrapInteger(x.dtype, EvaluateInteger(op, x.dtype, sum, x.integers[at]));
        if (!fold.exclusive) y->integers[at] = sum;
      }
    }
  });
}

void FindChosen(const EvaluatedValue& x, EvaluatedValue* y) {
  size_t found = 0;
  for (size_t n = 0; n < x.integers.size(); ++n) {
    if (x.integers[n] != 0) y->integers[found++] = static_cast<int64_t>(n);
  }
  const int64_t last = found == 0 ? 0 : y->integers[found - 1];
  std::fill(y->integers.begin() + static_cast<int64_t>(found), y->integers.end(), last);
}

// -1, 0, 1 as a comes before b, is its equal, or comes behind it in ascending order, NaN last.
int Order(const EvaluatedValue& x, size_t a, size_t b) {
  if (!IsFloat(x.dtype)) {
    const int64_t p = x.integers[a];
    const int64_t q = x.integers[b];
    if (x.dtype == DType::kU64) {
      return static_cast<uint64_t>(p) < static_cast<uint64_t>(q) ? -1 : p != q ? 1 : 0;
    }
    return p < q ? -1 : p > q ? 1 : 0;
  }
  const double p = x.reals[a];
  const double q = x.reals[b];
  if (std::isnan(p) || std::isnan(q)) return std::isnan(p) ? (std::isnan(q) ? 0 : 1) : -1;
  return p < q ? -1 : p > q ? 1 : 0;
}

void PutInOrder(const RowOrder& order, const EvaluatedValue& x, EvaluatedValue* y) {
  std::vector<int64_t> places(static_cast<size_t>(order.rows.extent));
  auto sort = [&](int64_t first, int64_t step, int64_t width) {
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
      for (int64_t e = 0; e < width; ++e) {
        const int before = Order(x, static_cast<size_t>(first + a * step + e),
                                 static_cast<size_t>(first + b * step + e));
        if (before != 0) return order.largest ? before > 0 : before < 0;
      }
      return false;
    });
  };
  if (order.things) {
    sort(0, order.rows.inner, order.rows.inner);
    std::copy_n(places.begin(), order.count, y->integers.begin());
    return;
  }
  ForRows(order.rows, [&](int64_t first, int64_t step) {
    sort(first, step, 1);
    const int64_t outer = first / std::max<int64_t>(order.rows.extent * order.rows.inner, 1);
    const int64_t inner = first % std::max<int64_t>(order.rows.inner, 1);
    for (int64_t k = 0; k < order.count; ++k) {
      y->integers[static_cast<size_t>((outer * order.count + k) * order.rows.inner + inner)] =
          places[static_cast<size_t>(k)];
    }
  });
}

std::vector<float> Floats(const EvaluatedValue& value) {
  std::vector<float> out;
  for (double v : value.reals) out.push_back(static_cast<float>(v));
  return out;
}

// The boxes of one batch and class.
void Choose(const BoxChoice& choice, const std::vector<Box2d>& boxes, const float* scores,
            float part, const float* limit, int64_t* out) {
  std::vector<int64_t> order;
  for (int64_t b = 0; b < choice.boxes; ++b) {
    const bool counts = limit != nullptr ? scores[b] > *limit : !std::isnan(scores[b]);
    if (counts) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> chosen;
  for (int64_t b : order) {
    if (static_cast<int64_t>(chosen.size()) == choice.count) break;
    const bool suppressed = std::any_of(chosen.begin(), chosen.end(), [&](int64_t c) {
      return Overlaps(boxes[static_cast<size_t>(c)], boxes[static_cast<size_t>(b)], part);
    });
    if (!suppressed) chosen.push_back(b);
  }
  std::fill_n(out, choice.count, -1);
  std::copy(chosen.begin(), chosen.end(), out);
}

void ChooseBoxes(const BoxChoice& choice, const std::vector<const EvaluatedValue*>& inputs,
                 EvaluatedValue* out) {
  const std::vector<float> corners = Floats(*inputs[0]);
  const std::vector<float> scores = Floats(*inputs[1]);
  const auto part = static_cast<float>(inputs[2]->reals[0]);
  const float limit = choice.limited ? static_cast<float>(inputs[3]->reals[0]) : 0;
  std::vector<Box2d> boxes;
  for (int64_t b = 0; b < choice.batch * choice.boxes; ++b) {
    boxes.push_back(BoxFrom(corners.data() + 4 * b, choice.centred));
  }
  for (int64_t b = 0; b < choice.batch; ++b) {
    const std::vector<Box2d> own(boxes.begin() + b * choice.boxes,
                                 boxes.begin() + (b + 1) * choice.boxes);
    for (int64_t c = 0; c < choice.classes; ++c) {
      const int64_t row = b * choice.classes + c;
      Choose(choice, own, scores.data() + row * choice.boxes, part,
             choice.limited ? &limit : nullptr, out->integers.data() + row * choice.count);
    }
  }
}

}  // namespace

absl::Status EvaluateOpaque(const LoopOp& op, const std::vector<const EvaluatedValue*>& inputs,
                            const TensorType& type, EvaluatedValue* out) {
  *out = EvaluatedValue{.dtype = type.dtype, .box = Box::Whole(type.shape.ToDims())};
  const auto elements = static_cast<size_t>(NumElements(type.shape.ToDims()));
  (IsFloat(type.dtype) ? out->reals.resize(elements) : out->integers.resize(elements));
  if (op.label == RunningFold::kName) {
    Fold(RunningFoldOf(*op.attrs, inputs[0]->box.end), *inputs[0], out);
  } else if (op.label == RowOrder::kName) {
    PutInOrder(RowOrderOf(*op.attrs, inputs[0]->box.end), *inputs[0], out);
  } else if (op.label == ChosenPlaces::kName) {
    FindChosen(*inputs[0], out);
  } else if (op.label == BoxChoice::kName) {
    ChooseBoxes(BoxChoiceOf(*op.attrs, inputs[1]->box.end), inputs, out);
  } else {
    return Unimplemented("evaluating ", op.label);
  }
  return absl::OkStatus();
}

double OpaquePoints(const LoopOp& op, const std::vector<Dims>& inputs) {
  double points = 0;
  for (const Dims& dims : inputs) points += static_cast<double>(NumElements(dims));
  if (op.label == RunningFold::kName || op.label == ChosenPlaces::kName) return points;
  if (op.label == RowOrder::kName) return points * std::log2(std::max(points, 2.0));
  const BoxChoice choice = BoxChoiceOf(*op.attrs, inputs[1]);
  // Each box is compared with those chosen before it.
  return points * std::log2(std::max(points, 2.0)) +
         static_cast<double>(NumElements(inputs[1])) * static_cast<double>(choice.count);
}

}  // namespace fusion
