#include "core/graph/evaluate/evaluate_loop.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "core/base/contains.h"
#include "core/base/threads/job.h"
#include "core/base/threads/parallel.h"
#include "core/graph/evaluate/evaluate_product.h"
#include "core/graph/evaluate/loop_address.h"
#include "core/graph/evaluate/loop_runner.h"
#include "core/op/body/indexed_reduction.h"

namespace fusion {
namespace {

constexpr int64_t kRun = 512;  // elements evaluated at once: fits L1 with a few temporaries
// Runs of this length pay for what it takes to start one.
constexpr int64_t kShortRun = 8;
constexpr int64_t kParallelPoints = 1 << 16;
// So many between two looks at whether somebody still wants them.
constexpr int64_t kPointsAtOnce = int64_t{1} << 16;

// The coordinates of every axis that computing `box` visits.
std::vector<IndexRange> AxisRanges(const LoopBody& body, const Box& box) {
  std::vector<IndexRange> ranges;
  for (const LoopAxis& axis : body.axes) ranges.push_back({0, axis.extent.value()});
  for (size_t d = 0; d < body.write.size(); ++d) {
    const IndexExpr& e = body.write[d];
    if (e.IsPlainAxis()) {
      ranges[static_cast<size_t>(e.terms()[0].axis)] = {box.begin[d], box.end[d]};
    }
  }
  return ranges;
}

// to[k] = from[k * step] for k in [first, last), which is not empty.
template <class T>
void CopyRun(const T* from, int64_t step, int64_t first, int64_t last, T* to) {
  if (step == 1) {
    std::copy(from + first, from + last, to + first);
    return;
  }
  for (int64_t k = first; k < last; ++k) to[k] = from[k * step];
}

}  // namespace

absl::Status LoopRunner::Run(int64_t begin, int64_t end) {
  if (!written_.empty()) {
    ranges_[static_cast<size_t>(written_[0])].begin = begin;
    ranges_[static_cast<size_t>(written_[0])].end = end;
  }
  for (const IndexRange& r : ranges_) {
    bool is_reduced = false;
    for (int a : reduced_) is_reduced |= &r == &ranges_[static_cast<size_t>(a)];
    if (r.size() <= 0 && !is_reduced) return absl::OkStatus();
  }
  if (!body_.reduce) return RunMap();
  return across_ ? RunReductionAcross() : RunReductionAlong();
}

void LoopRunner::ChooseAcross() {
  if (written_.empty() || log_ != nullptr) return;
  auto length = [&](int axis) { return ranges_[static_cast<size_t>(axis)].size(); };
  auto longest = std::max_element(written_.begin(), written_.end(),
                                  [&](int a, int b) { return length(a) < length(b); });
  const int64_t reduced = reduced_.empty() ? 1 : length(reduced_.back());
  across_ = length(*longest) > (IsReal() ? reduced : kShortRun);
  if (across_) std::rotate(longest, longest + 1, written_.end());
}

bool LoopRunner::IsReal() const {
  const Monoid& m = *body_.reduce;
  return m.IsScalar() && IsFloat(m.type()) && IsFloat(m.identity()[0].type()) &&
         m.merge()[0].args().size() == 2;
}

bool LoopRunner::Next(const std::vector<int>& axes, size_t count) {
  for (size_t i = count; i-- > 0;) {
    auto a = static_cast<size_t>(axes[i]);
    if (++at_[a] < ranges_[a].end) return true;
    at_[a] = ranges_[a].begin;
  }
  return false;
}

void LoopRunner::Reset(const std::vector<int>& axes) {
  for (int a : axes) at_[static_cast<size_t>(a)] = ranges_[static_cast<size_t>(a)].begin;
}

int64_t LoopRunner::Offset(const LoopAddress& address) const {
  int64_t offset = address.base;
  for (size_t a = 0; a < at_.size(); ++a) offset += address.step[a] * at_[a];
  return offset;
}

absl::Status LoopRunner::Fetch(size_t i, int run_axis, int64_t n) {
  const EvaluatedValue& in = *inputs_[i];
  const LoopAddress& address = reads_[i];
  int64_t step = run_axis >= 0 ? address.step[static_cast<size_t>(run_axis)] : 0;
  int64_t first = 0;
  int64_t last = n;
  for (const Guard& g : body_.reads[i].guards) {
    int64_t at = at_[static_cast<size_t>(g.axis)];
    if (g.axis == run_axis) {
      first = std::max(first, g.begin - at);
      last = std::min(last, g.end - at);
    } else if (at < g.begin || at >= g.end) {
      last = 0;
    }
  }
  ValueRun& buffer = buffers_[i];
  bool real = IsFloat(in.dtype);
  if (real) {
    buffer.reals.assign(static_cast<size_t>(n), 0);
  } else {
    buffer.integers.assign(static_cast<size_t>(n), 0);
  }
  int64_t offset = Offset(address);
  if (first >= last) return absl::OkStatus();
  if (address.indirect.empty()) {
    if (real) {
      CopyRun(in.reals.data() + offset, step, first, last, buffer.reals.data());
    } else {
      CopyRun(in.integers.data() + offset, step, first, last, buffer.integers.data());
    }
    return absl::OkStatus();
  }
  for (int64_t k = first; k < last; ++k) {
    int64_t at = offset + k * step;
    for (const LoopAddress::Indirect& indirect : address.indirect) {
      int64_t index =
          buffers_[static_cast<size_t>(indirect.input)].integers[static_cast<size_t>(k)];
      int64_t given = index;
      if (log_ != nullptr) {
        log_->Add(ShapeDecision::Keeps::kNumber, static_cast<double>(index));
      }
      if (index < 0) index += indirect.extent;
      if (index < indirect.begin || index >= indirect.begin + indirect.size) {
        return InvalidArgument("index ", given, " out of range; expected ", -indirect.extent, "..",
                               indirect.extent - 1);
      }
      at += (index - indirect.begin) * indirect.stride;
    }
    if (real) {
      buffer.reals[static_cast<size_t>(k)] = in.reals[static_cast<size_t>(at)];
    } else {
      buffer.integers[static_cast<size_t>(k)] = in.integers[static_cast<size_t>(at)];
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CompiledExpr::Operand> LoopRunner::Values(int run_axis, int64_t n) {
  // Index inputs before the inputs that they index.
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (reads_[i].indirect.empty() == (pass == 0)) RETURN_IF_ERROR(Fetch(i, run_axis, n));
    }
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const bool real = IsFloat(inputs_[i]->dtype);
    operands_[i] = {real ? buffers_[i].reals.data() : nullptr,
                    real ? nullptr : buffers_[i].integers.data()};
  }
  for (size_t a = 0; a < at_.size(); ++a) {
    if (!named_[a]) continue;
    std::vector<int64_t>& run = axis_runs_[a];
    run.resize(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) {
      run[static_cast<size_t>(k)] = at_[a] + (static_cast<int>(a) == run_axis ? k : 0);
    }
    axes_[a] = {nullptr, run.data()};
  }
  return value_.Evaluate(n, operands_, axes_);
}

absl::Status LoopRunner::RunMap() {
  Reset(written_);
  int run_axis = written_.empty() ? -1 : written_.back();
  IndexRange run = run_axis >= 0 ? ranges_[static_cast<size_t>(run_axis)] : IndexRange{0, 1};
  int64_t step = run_axis >= 0 ? write_.step[static_cast<size_t>(run_axis)] : 0;
  do {
    for (int64_t at = run.begin; at < run.end; at += kRun) {
      if (run_axis >= 0) at_[static_cast<size_t>(run_axis)] = at;
      int64_t n = std::min(kRun, run.end - at);
      ASSIGN_OR_RETURN(CompiledExpr::Operand values, Values(run_axis, n));
      int64_t offset = Offset(write_);
      for (int64_t k = 0; k < n; ++k) {
        auto to = static_cast<size_t>(offset + k * step);
        if (values.reals != nullptr) {
          out_->reals[to] = values.reals[k];
        } else {
          out_->integers[to] = values.integers[k];
        }
      }
    }
    if (run_axis >= 0) at_[static_cast<size_t>(run_axis)] = run.begin;
  } while (!written_.empty() && Next(written_, written_.size() - 1));
  return absl::OkStatus();
}

absl::Status LoopRunner::RunReductionAlong() {
  Reset(written_);
  int run_axis = reduced_.empty() ? -1 : reduced_.back();
  IndexRange run = run_axis >= 0 ? ranges_[static_cast<size_t>(run_axis)] : IndexRange{0, 1};
  do {
    Start(1);
    if (!ReducesNothing()) {
      Reset(reduced_);
      do {
        for (int64_t at = run.begin; at < run.end; at += kRun) {
          if (run_axis >= 0) at_[static_cast<size_t>(run_axis)] = at;
          int64_t n = std::min(kRun, run.end - at);
          ASSIGN_OR_RETURN(CompiledExpr::Operand values, Values(run_axis, n));
          AccumulateAlong(values, at, n);
        }
        if (run_axis >= 0) at_[static_cast<size_t>(run_axis)] = run.begin;
      } while (!reduced_.empty() && Next(reduced_, reduced_.size() - 1));
    }
    for (int a : reduced_) at_[static_cast<size_t>(a)] = 0;
    Finish(1, 0);
  } while (Next(written_, written_.size()));
  return absl::OkStatus();
}

absl::Status LoopRunner::RunReductionAcross() {
  Reset(written_);
  const int run_axis = written_.back();
  const auto r = static_cast<size_t>(run_axis);
  const IndexRange run = ranges_[r];
  do {
    for (int64_t at = run.begin; at < run.end; at += kRun) {
      at_[r] = at;
      const int64_t n = std::min(kRun, run.end - at);
      Start(n);
      Reset(reduced_);
      bool more = !ReducesNothing();
      while (more) {
        ASSIGN_OR_RETURN(CompiledExpr::Operand values, Values(run_axis, n));
        AccumulateAcross(values, n);
        more = Next(reduced_, reduced_.size());
      }
      for (int a : reduced_) at_[static_cast<size_t>(a)] = 0;
      Finish(n, write_.step[r]);
    }
    at_[r] = run.begin;
  } while (Next(written_, written_.size() - 1));
  return absl::OkStatus();
}

bool LoopRunner::ReducesNothing() const {
  return std::any_of(reduced_.begin(), reduced_.end(),
                     [&](int a) { return ranges_[static_cast<size_t>(a)].size() <= 0; });
}

void LoopRunner::Start(int64_t n) {
  const Monoid& m = *body_.reduce;
  for (size_t s = 0; s < state_.size(); ++s) {
    const Expr& e = m.identity()[s];
    if (IsFloat(e.type())) {
      state_[s].reals.assign(static_cast<size_t>(n), e.value());
    } else {
      state_[s].integers.assign(static_cast<size_t>(n), e.integer());
    }
  }
}

CompiledExpr::Operand LoopRunner::OperandOf(const ValueRun& run, DType type) {
  if (IsFloat(type)) return {.reals = run.reals.data()};
  return {.integers = run.integers.data()};
}

void LoopRunner::Copy(const CompiledExpr::Operand& from, int64_t n, ValueRun* to) {
  if (from.reals != nullptr) to->reals.assign(from.reals, from.reals + n);
  if (from.integers != nullptr) to->integers.assign(from.integers, from.integers + n);
}

void LoopRunner::AccumulateAlong(const CompiledExpr::Operand& values, int64_t at, int64_t n) {
  const ScalarOp merge = body_.reduce->merge()[0].op();
  // What a sum does decides nothing.
  if (values.reals != nullptr && IsReal() && (log_ == nullptr || merge == ScalarOp::kAdd)) {
    double state = state_[0].reals[0];
    if (merge == ScalarOp::kAdd) {
      for (int64_t k = 0; k < n; ++k) state += values.reals[k];
    } else {
      for (int64_t k = 0; k < n; ++k) state = EvaluateReal(merge, state, values.reals[k]);
    }
    state_[0].reals[0] = state;
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    coordinates_.assign(1, at + k);
    Merge({values.reals != nullptr ? values.reals + k : nullptr,
           values.integers != nullptr ? values.integers + k : nullptr},
          1);
  }
}

void LoopRunner::AccumulateAcross(const CompiledExpr::Operand& values, int64_t n) {
  if (values.reals != nullptr && IsReal()) {
    const ScalarOp merge = body_.reduce->merge()[0].op();
    double* state = state_[0].reals.data();
    if (merge == ScalarOp::kAdd) {
      for (int64_t k = 0; k < n; ++k) state[k] += values.reals[k];
    } else {
      for (int64_t k = 0; k < n; ++k) state[k] = EvaluateReal(merge, state[k], values.reals[k]);
    }
    return;
  }
  const int64_t at = reduced_.empty() ? 0 : at_[static_cast<size_t>(reduced_.back())];
  coordinates_.assign(static_cast<size_t>(n), at);
  Merge(values, n);
}

void LoopRunner::Merge(const CompiledExpr::Operand& values, int64_t n) {
  const Monoid& m = *body_.reduce;
  element_.assign(1, values);
  place_.assign(1, CompiledExpr::Operand{nullptr, coordinates_.data()});
  merged_.clear();
  for (size_t s = 0; s < state_.size(); ++s) {
    merged_.push_back(OperandOf(state_[s], m.identity()[s].type()));
  }
  for (CompiledExpr& lift : lift_) merged_.push_back(lift.Evaluate(n, element_, place_));
  for (size_t s = 0; s < state_.size(); ++s) {
    Copy(merge_[s].Evaluate(n, merged_, {}), n, &next_[s]);
  }
  std::swap(state_, next_);
}

void LoopRunner::Finish(int64_t n, int64_t step) {
  const Monoid& m = *body_.reduce;
  merged_.clear();
  for (size_t s = 0; s < state_.size(); ++s) {
    merged_.push_back(OperandOf(state_[s], m.identity()[s].type()));
  }
  const CompiledExpr::Operand result = finish_->Evaluate(n, merged_, {});
  const int64_t first = Offset(write_);
  for (int64_t k = 0; k < n; ++k) {
    const auto to = static_cast<size_t>(first + k * step);
    if (result.reals != nullptr) {
      out_->reals[to] = result.reals[k];
    } else {
      out_->integers[to] = result.integers[k];
    }
  }
}

namespace {

// ---- reductions at places that are read ----

// The values of `part` of a body's expression at every point of its axes, but those of a place,
// along which it is the same. The box has a dim for each axis.
absl::Status EvaluatePart(const LoopBody& body, const Expr& part, const IndexExpr& place,
                          const std::vector<IndexRange>& ranges,
                          const std::vector<const EvaluatedValue*>& inputs, int threads,
                          EvaluatedValue* out) {
  LoopBody walk = body;
  walk.value = part;
  walk.reduce.reset();
  walk.write.clear();
  for (size_t a = 0; a < ranges.size(); ++a) {
    const auto axis = static_cast<int>(a);
    const bool placed = place.CoefficientOf(axis) != 0;
    if (placed) walk.axes[a].extent = Dim(1);
    walk.write.push_back(IndexExpr::Axis(axis));
    out->box.begin.push_back(placed ? 0 : ranges[a].begin);
    out->box.end.push_back(placed ? 1 : ranges[a].end);
  }
  return EvaluateLoop(walk, inputs, threads, out);
}

// The coordinates of the axes of `at` where it is `place`; false: there are none in the ranges.
bool FindPlace(const IndexExpr& at, int64_t place, const std::vector<LoopAxis>& axes,
               const std::vector<IndexRange>& ranges, std::vector<int64_t>* point) {
  std::vector<IndexExpr::Term> digits(at.terms().begin(), at.terms().end());
  std::sort(digits.begin(), digits.end(), IndexExpr::MajorFirst);
  int64_t rest = place - at.constant();
  const int64_t places =
      digits[0].coefficient * axes[static_cast<size_t>(digits[0].axis)].extent.value();
  if (rest < 0 || rest >= places) return false;
  for (const IndexExpr::Term& digit : digits) {
    const auto a = static_cast<size_t>(digit.axis);
    (*point)[a] = rest / digit.coefficient;
    rest %= digit.coefficient;
    if ((*point)[a] < ranges[a].begin || (*point)[a] >= ranges[a].end) return false;
  }
  return true;
}

// One step for each point that names a place, in the order in which points are walked otherwise.
absl::Status EvaluateAtPlaces(const LoopBody& body, const IndexedReduction& indexed,
                              const std::vector<IndexRange>& ranges,
                              const std::vector<const EvaluatedValue*>& inputs, int threads,
                              EvaluatedValue* out) {
  EvaluatedValue places;
  EvaluatedValue updates;
  RETURN_IF_ERROR(EvaluatePart(body, indexed.place, indexed.at, ranges, inputs, threads, &places));
  RETURN_IF_ERROR(EvaluatePart(body, indexed.value, indexed.at, ranges, inputs, threads, &updates));
  const Expr& identity = body.reduce->identity()[0];
  const bool real = IsFloat(body.dtype());
  if (real) {
    std::fill(out->reals.begin(), out->reals.end(), identity.value());
  } else {
    std::fill(out->integers.begin(), out->integers.end(), identity.integer());
  }
  CompiledExpr merge(body.reduce->merge()[0]);
  const ScalarOp merges = body.reduce->merge()[0].op();
  const LoopAddress to = MakeAddress(body.write, out->box, body.axes.size());
  std::vector<int64_t> point = places.box.begin;
  for (int64_t& p : point) p = std::max<int64_t>(p, 0);
  for (size_t k = 0; k < places.integers.size(); ++k) {
    std::vector<int64_t> here = point;
    if (FindPlace(indexed.at, places.integers[k], body.axes, ranges, &here)) {
      int64_t offset = to.base;
      for (size_t a = 0; a < here.size(); ++a) offset += to.step[a] * here[a];
      const auto o = static_cast<size_t>(offset);
      if (real) {
        out->reals[o] = EvaluateReal(merges, out->reals[o], updates.reals[k]);
      } else {
        out->integers[o] = merge
                               .Evaluate(1,
                                         {CompiledExpr::Operand{nullptr, &out->integers[o]},
                                          CompiledExpr::Operand{nullptr, &updates.integers[k]}},
                                         {})
                               .integers[0];
      }
    }
    for (size_t a = point.size(); a-- > 0;) {
      if (++point[a] < places.box.end[a]) break;
      point[a] = places.box.begin[a];
    }
  }
  return absl::OkStatus();
}

}  // namespace

double PointsOf(const LoopBody& body, const Box& box) {
  const auto elements = static_cast<double>(NumElements(box.Extents()));
  double points = elements;
  if (!body.reduce) return points;
  for (int axis : body.ReducedAxes()) {
    points *= static_cast<double>(body.axes[static_cast<size_t>(axis)].extent.value());
  }
  const std::optional<IndexedReduction> indexed = IndexedReductionOf(body);
  if (!indexed || !UpdateIsFixed(body, *indexed)) return points;
  const std::vector<IndexRange> ranges = AxisRanges(body, box);
  for (const IndexExpr::Term& t : indexed->at.terms()) {
    const int64_t length = ranges[static_cast<size_t>(t.axis)].size();
    points /= static_cast<double>(std::max<int64_t>(length, 1));
  }
  return points + elements;
}

Box ComputedBox(const LoopBody& body, const Box& box) {
  Box out = box;
  Dims extents = body.OutputType().shape.ToDims();
  for (size_t d = 0; d < body.write.size(); ++d) {
    if (!body.write[d].IsPlainAxis()) {
      out.begin[d] = 0;
      out.end[d] = extents[d];
    }
  }
  return out;
}

Box NeededBox(const LoopBody& body, int input, const Dims& extents, const Box& box) {
  std::vector<IndexRange> ranges = AxisRanges(body, box);
  const Read& read = body.reads[static_cast<size_t>(input)];
  bool empty = false;
  for (size_t a = 0; a < ranges.size(); ++a) {
    ranges[a] = Guarded(ranges[a], static_cast<int>(a), read.guards);
    empty |= ranges[a].empty();
  }
  Box need{Dims(extents.size(), 0), extents};
  for (size_t d = 0; d < extents.size(); ++d) {
    const IndexExpr& e = read.index[d];
    if (empty) {
      need.end[d] = 0;
      continue;
    }
    if (e.indirect() >= 0) continue;
    IndexRange range = RangeOf(e, [&](int a) { return ranges[static_cast<size_t>(a)]; });
    need.begin[d] = std::clamp<int64_t>(range.begin, 0, extents[d]);
    need.end[d] = std::clamp<int64_t>(range.end, need.begin[d], extents[d]);
  }
  return need;
}

absl::Status EvaluateLoop(const LoopBody& body, const std::vector<const EvaluatedValue*>& inputs,
                          int threads, EvaluatedValue* out, DecisionLog* log) {
  int64_t elements = NumElements(out->box.Extents());
  out->dtype = body.dtype();
  if (IsFloat(body.dtype())) {
    out->reals.assign(static_cast<size_t>(elements), 0);
  } else {
    out->integers.assign(static_cast<size_t>(elements), 0);
  }
  if (elements == 0) return absl::OkStatus();
  std::vector<IndexRange> ranges = AxisRanges(body, out->box);
  bool empty = false;
  int64_t points = 1;
  for (const IndexRange& r : ranges) {
    empty |= r.size() <= 0;
    points *= std::max<int64_t>(r.size(), 1);
  }
  if (points < kParallelPoints || log != nullptr) threads = 1;
  ProductForm form;
  if (!empty && FindProductForm(body, inputs, &form)) {
    EvaluateProduct(body, form, inputs, ranges, threads, out);
    return absl::OkStatus();
  }
  if (!empty && log == nullptr) {
    const std::optional<IndexedReduction> indexed = IndexedReductionOf(body);
    if (indexed && UpdateIsFixed(body, *indexed)) {
      return EvaluateAtPlaces(body, *indexed, ranges, inputs, threads, out);
    }
  }
  LoopRunner first(body, inputs, ranges, out, log);
  if (first.written().empty() || threads <= 1) {
    IndexRange all = first.written().empty() ? IndexRange{0, 1}
                                             : ranges[static_cast<size_t>(first.written()[0])];
    const int64_t rows = std::max<int64_t>(
        kPointsAtOnce / std::max<int64_t>(points / std::max<int64_t>(all.size(), 1), 1), 1);
    for (int64_t begin = all.begin; begin < all.end; begin += rows) {
      Job::Step();
      RETURN_IF_ERROR(first.Run(begin, std::min(begin + rows, all.end)));
    }
    return absl::OkStatus();
  }
  IndexRange all = ranges[static_cast<size_t>(first.written()[0])];
  std::vector<absl::Status> statuses(static_cast<size_t>(threads), absl::OkStatus());
  std::atomic<size_t> next{0};
  ParallelFor(threads, all.size(), [&](int64_t begin, int64_t end) {
    LoopRunner runner(body, inputs, ranges, out, nullptr);
    statuses[next.fetch_add(1)] = runner.Run(all.begin + begin, all.begin + end);
  });
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace fusion
