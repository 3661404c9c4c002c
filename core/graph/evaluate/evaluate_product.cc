#include "core/graph/evaluate/evaluate_product.h"

#include <algorithm>
#include <utility>

#include "core/base/contains.h"
#include "core/base/threads/job.h"
#include "core/base/threads/parallel.h"
#include "core/graph/evaluate/loop_address.h"

namespace fusion {
namespace {

// Rows of a that read a row of b together.
constexpr int64_t kProductRows = 4;

// acc[r][j] += a[r * a_row + k * a_k] * b[k * b_k + j * kStep] for `rows` of them, at most
// kProductRows; a kStep of 0 stands for b_n.
template <int kStep>
__attribute__((always_inline)) inline void ProductRows(int64_t rows, const double* a, int64_t a_row,
                                                       int64_t a_k, const double* b, int64_t b_k,
                                                       int64_t b_n, int64_t depth, int64_t n,
                                                       double* acc) {
  const int64_t step = kStep == 0 ? b_n : kStep;
  for (int64_t r = 0; rows < kProductRows && r < rows; ++r) {
    double* sums = acc + r * n;
    for (int64_t k = 0; k < depth; ++k) {
      double x = a[r * a_row + k * a_k];
      const double* row = b + k * b_k;
      for (int64_t j = 0; j < n; ++j) sums[j] += x * row[j * step];
    }
  }
  if (rows < kProductRows) return;
  double* acc1 = acc + n;
  double* acc2 = acc1 + n;
  double* acc3 = acc2 + n;
  for (int64_t k = 0; k < depth; ++k) {
    double x0 = a[k * a_k];
    double x1 = a[a_row + k * a_k];
    double x2 = a[2 * a_row + k * a_k];
    double x3 = a[3 * a_row + k * a_k];
    const double* row = b + k * b_k;
    for (int64_t j = 0; j < n; ++j) {
      double y = row[j * step];
      acc[j] += x0 * y;
      acc1[j] += x1 * y;
      acc2[j] += x2 * y;
      acc3[j] += x3 * y;
    }
  }
}

using ProductRowsFn = void (*)(int64_t, const double*, int64_t, int64_t, const double*, int64_t,
                               int64_t, int64_t, int64_t, double*);

#if defined(__x86_64__)
#if defined(__clang__)
#define FUSION_VECTORISED target("avx2,fma")  // vectorises at -O2
#else
#define FUSION_VECTORISED target("avx2,fma"), optimize("O3")
#endif
__attribute__((FUSION_VECTORISED)) void ProductRowsAvx2(int64_t rows, const double* a,
                                                        int64_t a_row, int64_t a_k, const double* b,
                                                        int64_t b_k, int64_t b_n, int64_t depth,
                                                        int64_t n, double* acc) {
  if (b_n == 1) return ProductRows<1>(rows, a, a_row, a_k, b, b_k, b_n, depth, n, acc);
  ProductRows<0>(rows, a, a_row, a_k, b, b_k, b_n, depth, n, acc);
}
#endif
void ProductRowsBase(int64_t rows, const double* a, int64_t a_row, int64_t a_k, const double* b,
                     int64_t b_k, int64_t b_n, int64_t depth, int64_t n, double* acc) {
  if (b_n == 1) return ProductRows<1>(rows, a, a_row, a_k, b, b_k, b_n, depth, n, acc);
  ProductRows<0>(rows, a, a_row, a_k, b, b_k, b_n, depth, n, acc);
}

ProductRowsFn ChooseProductRows() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return ProductRowsAvx2;
#endif
  return ProductRowsBase;
}

// Largest stride of a row of b: that of the windows of a convolution.
constexpr int64_t kMaxProductStep = 16;

// Computes a product by groups of up to four rows of a: the tasks, which are independent.
class ProductRunner {
 public:
  ProductRunner(const LoopBody& body, const ProductForm& form,
                const std::vector<const EvaluatedValue*>& inputs,
                const std::vector<IndexRange>& ranges, EvaluatedValue* out)
      : ranges_(ranges), k_(static_cast<size_t>(form.k)), n_(static_cast<size_t>(form.n)) {
    auto a = static_cast<size_t>(form.a);
    auto b = static_cast<size_t>(form.b);
    a_data_ = inputs[a]->reals.data();
    b_data_ = inputs[b]->reals.data();
    out_ = out->reals.data();
    a_ = MakeAddress(body.reads[a].index, inputs[a]->box, body.axes.size());
    b_ = MakeAddress(body.reads[b].index, inputs[b]->box, body.axes.size());
    w_ = MakeAddress(body.write, out->box, body.axes.size());
    reduced_ = body.ReducedAxes();
    std::erase(reduced_, form.k);
    for (size_t axis = 0; axis < body.axes.size(); ++axis) {
      bool inner = axis == k_ || axis == n_ || static_cast<int>(axis) == form.m;
      bool is_reduced = Contains(reduced_, static_cast<int>(axis));
      if (!inner && !is_reduced) outer_.push_back(static_cast<int>(axis));
    }
    if (form.m >= 0) {
      auto m = static_cast<size_t>(form.m);
      rows_ = ranges[m];
      a_row_ = a_.step[m];
      w_row_ = w_.step[m];
    }
    row_groups_ = (rows_.size() + kProductRows - 1) / kProductRows;
  }

  int64_t tasks() const { return Points(outer_) * row_groups_; }

  void Run(int64_t begin, int64_t end) const {
    std::vector<double> acc(static_cast<size_t>(kProductRows * ranges_[n_].size()));
    for (int64_t task = begin; task < end; ++task) RunTask(task, acc.data());
  }

 private:
  struct Position {
    int64_t a;
    int64_t b;
    int64_t w;
  };

  int64_t Points(const std::vector<int>& axes) const {
    int64_t out = 1;
    for (int axis : axes) out *= ranges_[static_cast<size_t>(axis)].size();
    return out;
  }

  void Move(size_t axis, int64_t index, Position* at) const {
    at->a += a_.step[axis] * index;
    at->b += b_.step[axis] * index;
    at->w += w_.step[axis] * index;
  }

  // To the coordinates that number `point` has over `axes`, the last one fastest.
  void MoveToPoint(const std::vector<int>& axes, int64_t point, Position* at) const {
    for (size_t i = axes.size(); i-- > 0;) {
      auto axis = static_cast<size_t>(axes[i]);
      Move(axis, ranges_[axis].begin + point % ranges_[axis].size(), at);
      point /= ranges_[axis].size();
    }
  }

  void RunTask(int64_t task, double* acc) const {
    int64_t row = rows_.begin + task % row_groups_ * kProductRows;
    int64_t count = std::min(kProductRows, rows_.end - row);
    int64_t width = ranges_[n_].size();
    Position at{a_.base + a_row_ * row, b_.base, w_.base + w_row_ * row};
    Move(n_, ranges_[n_].begin, &at);
    MoveToPoint(outer_, task / row_groups_, &at);
    std::fill(acc, acc + kProductRows * width, 0.0);
    for (int64_t point = 0; point < Points(reduced_); ++point) {
      Position from = at;
      Move(k_, ranges_[k_].begin, &from);
      MoveToPoint(reduced_, point, &from);
      Accumulate(from, count, acc);
    }
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t j = 0; j < width; ++j) {
        out_[at.w + r * w_row_ + j * w_.step[n_]] = acc[r * width + j];
      }
    }
  }

  // Adds the products over k.
  void Accumulate(const Position& from, int64_t count, double* acc) const {
    static const ProductRowsFn kRows = ChooseProductRows();
    kRows(count, a_data_ + from.a, a_row_, a_.step[k_], b_data_ + from.b, b_.step[k_], b_.step[n_],
          ranges_[k_].size(), ranges_[n_].size(), acc);
  }

  const std::vector<IndexRange>& ranges_;
  const size_t k_;
  const size_t n_;
  const double* a_data_;
  const double* b_data_;
  double* out_;
  LoopAddress a_;
  LoopAddress b_;
  LoopAddress w_;
  std::vector<int> reduced_;  // axes other than k
  std::vector<int> outer_;    // written axes other than n and m
  IndexRange rows_{0, 1};     // of m
  int64_t a_row_ = 0;
  int64_t w_row_ = 0;
  int64_t row_groups_ = 1;
};

}  // namespace

bool FindProductForm(const LoopBody& body, const std::vector<const EvaluatedValue*>& inputs,
                     ProductForm* form) {
  if (!body.reduce || body.reduce->name() != "sum" || !IsFloat(body.dtype())) return false;
  const Expr& e = body.value;
  if (e.op() != ScalarOp::kMul || e.arg(0).op() != ScalarOp::kInput ||
      e.arg(1).op() != ScalarOp::kInput || body.reads.size() != 2) {
    return false;
  }
  for (const Read& read : body.reads) {
    if (!read.guards.empty()) return false;
    for (const IndexExpr& index : read.index) {
      if (index.indirect() >= 0) return false;
    }
  }
  std::vector<int> reduced = body.ReducedAxes();
  LoopAddress address[2];
  for (size_t i = 0; i < 2; ++i) {
    address[i] = MakeAddress(body.reads[i].index, inputs[i]->box, body.axes.size());
  }
  form->k = reduced.back();
  for (int axis : reduced) {
    auto extent = [&](int i) { return body.axes[static_cast<size_t>(i)].extent.value(); };
    if (extent(axis) > extent(form->k)) form->k = axis;
  }
  int64_t best = 0;
  int64_t best_step = kMaxProductStep + 1;
  for (int swap = 0; swap < 2; ++swap) {
    const LoopAddress& a = address[swap];
    const LoopAddress& b = address[1 - swap];
    for (size_t axis = 0; axis < body.axes.size(); ++axis) {
      if (Contains(reduced, static_cast<int>(axis))) continue;
      int64_t extent = body.axes[axis].extent.value();
      int64_t step = b.step[axis];
      bool better = step > 0 && (step < best_step || (step == best_step && extent > best));
      if (a.step[axis] == 0 && better && extent > 1) {
        best = extent;
        best_step = step;
        form->n = static_cast<int>(axis);
        form->a = swap;
        form->b = 1 - swap;
      }
    }
  }
  if (form->n < 0) return false;
  for (size_t axis = 0; axis < body.axes.size(); ++axis) {
    bool is_reduced = Contains(reduced, static_cast<int>(axis));
    if (!is_reduced && static_cast<int>(axis) != form->n && address[form->b].step[axis] == 0 &&
        address[form->a].step[axis] != 0) {
      form->m = static_cast<int>(axis);
    }
  }
  return true;
}

void EvaluateProduct(const LoopBody& body, const ProductForm& form,
                     const std::vector<const EvaluatedValue*>& inputs,
                     const std::vector<IndexRange>& ranges, int threads, EvaluatedValue* out) {
  const ProductRunner product(body, form, inputs, ranges, out);
  if (threads > 1) {
    ParallelFor(threads, product.tasks(),
                [&](int64_t begin, int64_t end) { product.Run(begin, end); });
    return;
  }
  for (int64_t task = 0; task < product.tasks(); ++task) {
    Job::Step();
    product.Run(task, task + 1);
  }
}

}  // namespace fusion
