#include "core/graph/program/compose.h"

#include <algorithm>

namespace fusion {
namespace {

// One factor of a mixed-radix index: axis * stride with 0 <= axis < extent.
struct Digit {
  int axis;
  int64_t stride;
  Dim extent;
};

// The terms of `e` over `axes`, minor (smallest stride) first; axes of extent 1 are always zero and
// left out.
std::vector<Digit> DigitsOf(const LoopBody& body, const IndexExpr& e) {
  std::vector<Digit> digits;
  for (const IndexExpr::Term& t : e.terms()) {
    const Dim& extent = body.axes[static_cast<size_t>(t.axis)].extent;
    if (extent != Dim(1)) digits.push_back({t.axis, t.coefficient, extent});
  }
  std::stable_sort(digits.begin(), digits.end(),
                   [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
  return digits;
}

bool IsGuarded(const LoopBody& body, int axis) {
  for (const Read& read : body.reads) {
    for (const Guard& g : read.guards) {
      if (g.axis == axis) return true;
    }
  }
  bool within = false;
  body.value.VisitOnce(
      [&](const Expr& e) { within |= e.op() == ScalarOp::kWithin && e.index() == axis; });
  return within;
}

// True if there is no element to say where the others lie.
bool IsEmpty(const std::vector<Digit>& digits) {
  return std::any_of(digits.begin(), digits.end(), [](const Digit& d) {
    return d.stride == 0 || (d.extent.is_static() && d.extent.value() == 0);
  });
}

// Outcome of matching one index of the body against one written index of the view.
enum class Match { kDone, kSplit, kFail };

class Composer {
 public:
  Composer(LoopBody* body, int input, LoopBody view)
      : body_(*body), input_(static_cast<size_t>(input)), view_(std::move(view)) {}

  bool Run() {
    // Every round either finishes or splits an axis into smaller factors, so it ends.
    for (;;) {
      Match match = MatchAll();
      if (match == Match::kFail) return false;
      if (match == Match::kDone) break;
    }
    IndexMap index;
    for (const IndexExpr& e : view_.reads[0].index) {
      bool indirect = false;
      for (const IndexExpr::Term& t : e.terms()) {
        indirect |= at_[static_cast<size_t>(t.axis)].indirect() >= 0;
      }
      // An indirect index counts negative values from the end of the dim it was meant for: only a
      // plain dim keeps that.
      if (indirect && !e.IsPlainAxis()) return false;
      index.push_back(e.Substitute([&](int axis) { return at_[static_cast<size_t>(axis)]; }));
    }
    if (split_) body_ = *std::move(split_);
    body_.reads[input_].index = std::move(index);
    return true;
  }

 private:
  // A body may have a thousand reads: it is copied only where an axis of it has to be split.
  const LoopBody& body() const { return split_ ? *split_ : body_; }

  Match MatchAll() {
    at_.assign(view_.axes.size(), IndexExpr(0));
    for (size_t d = 0; d < view_.write.size(); ++d) {
      Match match = MatchDim(body().reads[input_].index[d], view_.write[d]);
      if (match != Match::kDone) return match;
    }
    return Match::kDone;
  }

  Match SplitBody(int axis, int64_t minor) {
    if (IsGuarded(body(), axis)) return Match::kFail;
    split_ = SplitAxis(body(), axis, minor);
    return Match::kSplit;
  }

  Match SplitView(int axis, int64_t minor) {
    view_ = SplitAxis(view_, axis, minor);
    return Match::kSplit;
  }

  // Sets the view axes of `written` so that `written` equals `wanted` everywhere.
  Match MatchDim(const IndexExpr& wanted, const IndexExpr& written) {
    std::vector<Digit> view = DigitsOf(view_, written);
    if (view.empty()) return Match::kDone;  // a dim of extent 1
    if (view.size() == 1) {
      at_[static_cast<size_t>(view[0].axis)] = wanted;
      return Match::kDone;
    }
    if (wanted.indirect() >= 0) return Match::kFail;
    std::vector<Digit> have = DigitsOf(body(), wanted);
    if (IsEmpty(view) || IsEmpty(have)) return Match::kFail;
    size_t next = 0;
    int64_t constant = wanted.constant();
    for (size_t i = 0; i + 1 < view.size(); ++i) {
      const Digit& digit = view[i];
      if (!digit.extent.is_static()) return Match::kFail;
      int64_t extent = digit.extent.value();
      auto& target = at_[static_cast<size_t>(digit.axis)];
      bool covers = next < have.size() && have[next].stride % digit.stride == 0 &&
                    have[next].stride < digit.stride * extent;
      if (!covers) {
        // Nothing moves inside this factor: it is a constant digit.
        if (next < have.size() && have[next].stride < digit.stride) return Match::kFail;
        if (constant < 0) return Match::kFail;
        target = IndexExpr(constant / digit.stride % extent);
        constant -= target.constant() * digit.stride;
        continue;
      }
      if (!have[next].extent.is_static()) return Match::kFail;
      int64_t step = have[next].stride / digit.stride;
      if (step > 1 && extent % step == 0) return SplitView(digit.axis, step);
      if (step != 1) return Match::kFail;
      if (constant % (digit.stride * extent) != 0) return Match::kFail;
      int64_t moving = have[next].extent.value();
      if (moving > extent) {
        return moving % extent == 0 ? SplitBody(have[next].axis, extent) : Match::kFail;
      }
      if (moving < extent) {
        // The rest of the factor may move with the next term, or stand still.
        return extent % moving == 0 ? SplitView(digit.axis, moving) : Match::kFail;
      }
      target = IndexExpr::Axis(have[next].axis);
      ++next;
    }
    const Digit& major = view.back();
    IndexExpr rest(0);
    if (constant % major.stride != 0) return Match::kFail;
    rest = rest + IndexExpr(constant / major.stride);
    for (; next < have.size(); ++next) {
      if (have[next].stride % major.stride != 0) return Match::kFail;
      rest = rest + IndexExpr::Axis(have[next].axis, have[next].stride / major.stride);
    }
    at_[static_cast<size_t>(major.axis)] = rest;
    return Match::kDone;
  }

  LoopBody& body_;
  std::optional<LoopBody> split_;
  size_t input_;
  LoopBody view_;
  std::vector<IndexExpr> at_;  // per view axis: its value in terms of body axes
};

// start + step * (flat position): what the indices of one tensor are.
struct Progression {
  int64_t start = 0;
  int64_t step = 0;
};

// Of indices into `extent` elements; negative ones count from the end.
std::optional<Progression> ProgressionOf(const HostTensor& indices, int64_t extent) {
  if (indices.elements() == 0) return std::nullopt;
  auto at = [&](int64_t i) {
    int64_t index = indices.GetInt(i);
    return index < 0 ? index + extent : index;
  };
  Progression p{.start = at(0)};
  if (indices.elements() > 1) p.step = at(1) - at(0);
  for (int64_t i = 0; i < indices.elements(); ++i) {
    if (at(i) < 0 || at(i) >= extent || at(i) != p.start + i * p.step) return std::nullopt;
  }
  return p;
}

}  // namespace

bool ReadThroughView(const LoopBody& view, int input, LoopBody* body) {
  return Composer(body, input, view).Run();
}

std::optional<LoopBody> ReadAtConstant(const LoopBody& body, int input, const HostTensor& indices,
                                       const std::vector<TensorType>& inputs) {
  const Read& where = body.reads[static_cast<size_t>(input)];
  if (IsFloat(indices.dtype()) || !where.guards.empty()) return std::nullopt;
  bool element_used = false;
  body.value.VisitOnce(
      [&](const Expr& e) { element_used |= e.op() == ScalarOp::kInput && e.index() == input; });
  if (element_used) return std::nullopt;
  IndexExpr flat;
  Dims strides = RowMajorStrides(indices.dims());
  for (size_t d = 0; d < strides.size(); ++d) flat = flat + where.index[d] * strides[d];

  LoopBody out = body;
  for (size_t r = 0; r < out.reads.size(); ++r) {
    for (size_t d = 0; d < out.reads[r].index.size(); ++d) {
      IndexExpr& e = out.reads[r].index[d];
      if (e.indirect() < 0) continue;
      const Dim& extent = inputs[r].shape.dim(static_cast<int>(d));
      if (e != IndexExpr::Indirect(input) || !extent.is_static()) return std::nullopt;
      std::optional<Progression> p = ProgressionOf(indices, extent.value());
      if (!p) return std::nullopt;
      e = flat * p->step + IndexExpr(p->start);
    }
  }
  out.reads.erase(out.reads.begin() + input);
  out.value = body.value.MapLeaves([&](const Expr& leaf) {
    bool later = leaf.op() == ScalarOp::kInput && leaf.index() > input;
    return later ? Expr::Input(leaf.index() - 1, leaf.type()) : leaf;
  });
  return out;
}

}  // namespace fusion
