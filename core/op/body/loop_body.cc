#include "core/op/body/loop_body.h"

#include <algorithm>

namespace fusion {
namespace {

std::string AxisName(const LoopBody& body, int axis) {
  return body.axes[static_cast<size_t>(axis)].name;
}

// The extent of a dim written by `e`: with a mixed-radix number of axes, the largest index plus
// one.
Dim WrittenExtent(const LoopBody& body, const IndexExpr& e) {
  if (e.IsPlainAxis()) return body.axes[static_cast<size_t>(e.terms()[0].axis)].extent;
  Dim extent(e.constant() + 1);
  for (const IndexExpr::Term& t : e.terms()) {
    extent = extent + (body.axes[static_cast<size_t>(t.axis)].extent + Dim(-1)) * t.coefficient;
  }
  return extent;
}

// Sorted by coefficient, each coefficient must be the product of the smaller extents: 64*h + d with
// d in 0..63.
absl::Status CheckMixedRadix(const LoopBody& body, const IndexExpr& e) {
  auto terms = e.terms();
  std::sort(terms.begin(), terms.end(),
            [](const auto& a, const auto& b) { return a.coefficient < b.coefficient; });
  int64_t expected = 1;
  for (const IndexExpr::Term& t : terms) {
    const Dim& extent = body.axes[static_cast<size_t>(t.axis)].extent;
    // An axis of extent 1 may carry any coefficient: it is always zero.
    if (extent == Dim(1)) continue;
    if (t.coefficient != expected) {
      return Internal("a write index is not a mixed-radix number at axis ", AxisName(body, t.axis));
    }
    if (!extent.is_static()) {
      if (terms.size() > 1 && &t != &terms.back()) {
        return Internal("a symbolic axis below another axis in a write index");
      }
      continue;
    }
    expected *= extent.value();
  }
  return absl::OkStatus();
}

absl::Status CheckReadBounds(const LoopBody& body, size_t input, const TensorType& type) {
  const Read& read = body.reads[input];
  bool nowhere = std::any_of(body.axes.begin(), body.axes.end(),
                             [](const LoopAxis& axis) { return axis.extent == Dim(0); });
  if (static_cast<int>(read.index.size()) != type.shape.rank()) {
    return Internal("input ", input, " is read with ", read.index.size(), " indices, rank is ",
                    type.shape.rank());
  }
  for (size_t d = 0; d < read.index.size() && !nowhere; ++d) {
    const IndexExpr& e = read.index[d];
    const Dim& extent = type.shape.dim(static_cast<int>(d));
    if (e.indirect() >= 0) continue;  // checked where it is evaluated
    if (!extent.is_static()) continue;
    auto extent_of = [&](int a) -> const Dim& { return body.axes[static_cast<size_t>(a)].extent; };
    bool known = std::all_of(e.terms().begin(), e.terms().end(), [&](const IndexExpr::Term& t) {
      return extent_of(t.axis).is_static();
    });
    if (!known) continue;
    IndexRange range = RangeOf(
        e,
        [&](int a) {
          return IndexRange{0, extent_of(a).value()};
        },
        read.guards);
    if (!range.empty() && (range.begin < 0 || range.end > extent.value())) {
      return Internal("input ", input, " dim ", d, " is read at ", range.begin, "..", range.end - 1,
                      ", extent is ", extent.value());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorType> TensorType::Parse(Lexer& in) {
  const Lexer at = in;
  ASSIGN_OR_RETURN(std::string name, in.Identifier());
  auto dtype = ParseDType(name);
  if (!dtype) return at.Error("an element type");
  ASSIGN_OR_RETURN(std::string_view inner, in.Until(']'));
  RETURN_IF_ERROR(in.Expect("]"));
  ASSIGN_OR_RETURN(Shape shape, Shape::Parse(StrCat(inner, "]")));
  if (shape.rank() > kMaxTensorRank) return in.Error("a shape of fewer dims before this");
  for (const Dim& dim : shape.dims()) {
    if (dim.is_static() && dim.value() < 0) return in.Error("a non-negative extent before this");
  }
  if (shape.is_static()) {
    absl::Status size = CheckedNumElements(shape.ToDims(), DTypeBytes(*dtype)).status();
    if (!size.ok()) return in.Error(StrCat("a smaller tensor before this; ", Message(size)));
  }
  return TensorType{*dtype, std::move(shape)};
}

std::vector<int> LoopBody::ReducedAxes() const {
  std::vector<bool> written(axes.size(), false);
  for (const IndexExpr& e : write) {
    for (const IndexExpr::Term& t : e.terms()) written[static_cast<size_t>(t.axis)] = true;
  }
  std::vector<int> reduced;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!written[i]) reduced.push_back(static_cast<int>(i));
  }
  return reduced;
}

TensorType LoopBody::OutputType() const {
  std::vector<Dim> dims;
  for (const IndexExpr& e : write) dims.push_back(WrittenExtent(*this, e));
  return {dtype(), Shape(std::move(dims))};
}

bool LoopBody::IsView() const {
  return !reduce && reads.size() == 1 && reads[0].guards.empty() &&
         value.op() == ScalarOp::kInput &&
         std::all_of(reads[0].index.begin(), reads[0].index.end(),
                     [](const IndexExpr& e) { return e.indirect() < 0; });
}

absl::Status LoopBody::Verify(const std::vector<TensorType>& inputs) const {
  if (inputs.size() != reads.size()) {
    return Internal("a loop body reads ", reads.size(), " inputs, the op has ", inputs.size());
  }
  auto axes_ok = [&](const IndexExpr& e) {
    return std::all_of(e.terms().begin(), e.terms().end(), [&](const IndexExpr::Term& t) {
      return t.axis >= 0 && static_cast<size_t>(t.axis) < axes.size();
    });
  };
  std::vector<int> uses(axes.size(), 0);
  for (const IndexExpr& e : write) {
    if (!axes_ok(e)) return Internal("a write index names an axis that does not exist");
    for (const IndexExpr::Term& t : e.terms()) ++uses[static_cast<size_t>(t.axis)];
    RETURN_IF_ERROR(CheckMixedRadix(*this, e));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    bool loose = uses[i] == 0 && !reduce && axes[i].extent != Dim(1);
    if (uses[i] > 1 || loose) {
      return Internal("axis ", axes[i].name, " is written ", uses[i], " times, expected once");
    }
  }
  absl::Status leaf = absl::OkStatus();
  value.VisitOnce([&](const Expr& e) {
    if (e.op() == ScalarOp::kInput && (static_cast<size_t>(e.index()) >= inputs.size() ||
                                       inputs[static_cast<size_t>(e.index())].dtype != e.type())) {
      leaf = Internal("the value names in", e.index(), " with a type the op does not have");
    }
    if ((e.op() == ScalarOp::kAxis || e.op() == ScalarOp::kWithin) &&
        static_cast<size_t>(e.index()) >= axes.size()) {
      leaf = Internal("the value names axis ", e.index(), ", which does not exist");
    }
  });
  RETURN_IF_ERROR(leaf);
  if (reduce && reduce->type() != value.type()) {
    return Internal("a ", DTypeName(value.type()), " value is reduced by a monoid over ",
                    DTypeName(reduce->type()));
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    for (const IndexExpr& e : reads[i].index) {
      if (!axes_ok(e)) return Internal("a read index names an axis that does not exist");
      if (e.indirect() >= 0 && (static_cast<size_t>(e.indirect()) >= reads.size() ||
                                static_cast<size_t>(e.indirect()) == i)) {
        return Internal("an indirect index names an input that does not exist");
      }
    }
    RETURN_IF_ERROR(CheckReadBounds(*this, i, inputs[i]));
  }
  return absl::OkStatus();
}

LoopBody SplitAxis(const LoopBody& body, int axis, int64_t minor_extent) {
  auto at = static_cast<size_t>(axis);
  int64_t extent = body.axes[at].extent.value();
  FUSION_CHECK(minor_extent > 0 && extent % minor_extent == 0, "an axis is split evenly");
  LoopBody out = body;
  out.axes[at].extent = extent / minor_extent;
  out.axes.insert(out.axes.begin() + axis + 1,
                  LoopAxis{StrCat(body.axes[at].name, "_i"), Dim(minor_extent)});
  out.axes[at].name += "_o";
  auto renumber = [&](int a) {
    if (a < axis) return IndexExpr::Axis(a);
    if (a > axis) return IndexExpr::Axis(a + 1);
    return IndexExpr::Axis(axis, minor_extent) + IndexExpr::Axis(axis + 1);
  };
  for (Read& read : out.reads) {
    for (IndexExpr& e : read.index) e = e.Substitute(renumber);
    for (Guard& g : read.guards) {
      FUSION_CHECK(g.axis != axis, "a guarded axis is not split");
      if (g.axis > axis) ++g.axis;
    }
  }
  for (IndexExpr& e : out.write) e = e.Substitute(renumber);
  out.value = body.value.MapLeaves([&](const Expr& e) -> Expr {
    if (e.op() == ScalarOp::kInput || e.index() < axis) return e;
    if (e.op() == ScalarOp::kWithin) {
      FUSION_CHECK(e.index() != axis, "a guarded axis is not split");
      return Expr::Within(e.index() + 1, e.integer(), e.end());
    }
    if (e.index() > axis) return Expr::Axis(e.index() + 1);
    return Expr::Axis(axis) * Expr::ConstInt(DType::kI64, minor_extent) + Expr::Axis(axis + 1);
  });
  return out;
}

}  // namespace fusion
