#include "core/graph/program/shared_rows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/graph/program/half_precision.h"
#include "core/graph/program/renumber.h"
#include "core/op/body/simplify.h"

namespace fusion {
namespace {

// A body that writes its output element by element, each axis along the dim of its number in
// `axis_of`.
bool WritesPlainly(const LoopBody& body, std::vector<int>* axis_of) {
  if (body.reduce || body.write.size() != body.axes.size()) return false;
  for (const IndexExpr& e : body.write) {
    if (!e.IsPlainAxis()) return false;
    axis_of->push_back(e.terms()[0].axis);
  }
  return std::none_of(body.reads.begin(), body.reads.end(), [](const Read& read) {
    return std::any_of(read.index.begin(), read.index.end(),
                       [](const IndexExpr& e) { return e.indirect() >= 0; });
  });
}

// The expression where `axis` runs over `range` only, counted from its begin.
Expr Restricted(const Expr& value, int axis, IndexRange range) {
  return Simplify(value.MapLeaves([&](const Expr& leaf) {
    if (leaf.op() == ScalarOp::kAxis && leaf.index() == axis) {
      return leaf + Expr::ConstInt(DType::kI64, range.begin);
    }
    if (leaf.op() != ScalarOp::kWithin || leaf.index() != axis) return leaf;
    const int64_t begin = std::clamp<int64_t>(leaf.integer() - range.begin, 0, range.size());
    const int64_t end = std::clamp<int64_t>(leaf.end() - range.begin, 0, range.size());
    if (begin >= end) return Expr::ConstInt(DType::kBool, 0);
    if (begin == 0 && end == range.size()) return Expr::ConstInt(DType::kBool, 1);
    return Expr::Within(axis, begin, end);
  }));
}

// `op` where `axis` runs over `range` only, counted from its begin, and reads no more than it
// needs.
LoopOp RestrictedOp(const LoopOp& op, int axis, IndexRange range) {
  LoopOp out{.kind = LoopOp::kLoop, .label = op.label, .origin = op.origin, .body = op.body};
  LoopBody& body = out.body;
  const auto a = static_cast<size_t>(axis);
  body.axes[a].extent = Dim(range.size());
  body.reads.clear();
  std::map<int, int> number;  // of the inputs that are left
  body.value = Restricted(op.body.value, axis, range).MapLeaves([&](const Expr& leaf) {
    if (leaf.op() != ScalarOp::kInput) return leaf;
    const int next = static_cast<int>(number.size());
    auto [it, fresh] = number.try_emplace(leaf.index(), next);
    if (fresh) {
      const auto input = static_cast<size_t>(leaf.index());
      Read read = op.body.reads[input];
      for (IndexExpr& e : read.index) {
        e = e.Substitute([&](int other) {
          return IndexExpr::Axis(other) + IndexExpr(other == axis ? range.begin : 0);
        });
      }
      for (Guard& g : read.guards) {
        if (g.axis != axis) continue;
        g.begin = std::clamp<int64_t>(g.begin - range.begin, 0, range.size());
        g.end = std::clamp<int64_t>(g.end - range.begin, 0, range.size());
      }
      std::erase_if(read.guards, [&](const Guard& g) {
        return g.axis == axis && g.begin == 0 && g.end == range.size();
      });
      body.reads.push_back(std::move(read));
      out.inputs.push_back(op.inputs[input]);
    }
    return Expr::Input(it->second, leaf.type());
  });
  return out;
}

// Whether elements of values are elements of one input, seen through all that only moves them.
class SameElements {
 public:
  SameElements(const Program& program, ValueId input) : program_(program), input_(input) {}

  /// Whether at every point of `box` element `at` of `value` is element `wanted` of the input.
  bool Hold(ValueId value, const IndexMap& at, const std::vector<IndexRange>& box,
            const IndexMap& wanted) {
    gave_up_ = gave_up_ || looks_ > kMostLooks;
    if (gave_up_) return false;
    if (value == input_) {
      for (size_t d = 0; d < wanted.size(); ++d) {
        if (!Equal(at[d], wanted[d], box)) return false;
      }
      return true;
    }
    const LoopId producer = program_.value(value).producer;
    if (producer == kNoLoop || program_.op(producer).kind != LoopOp::kLoop) return false;
    const LoopOp& op = program_.op(producer);
    std::vector<int> axis_of;
    if (!WritesPlainly(op.body, &axis_of)) return false;
    std::vector<IndexExpr> place(axis_of.size());  // of the op's axes
    for (size_t d = 0; d < axis_of.size(); ++d) place[static_cast<size_t>(axis_of[d])] = at[d];
    std::optional<std::pair<size_t, int64_t>> border;
    const Expr moved = Simplify(op.body.value.MapLeaves([&](const Expr& leaf) {
      ++looks_;
      return leaf.op() == ScalarOp::kWithin ? Decided(leaf, place, box, &border) : leaf;
    }));
    if (border) return HoldInHalves(value, at, box, wanted, *border);
    const Expr element = WithoutRoundTrips(moved);
    if (element.op() != ScalarOp::kInput) return false;
    const auto input = static_cast<size_t>(element.index());
    IndexMap read = op.body.reads[input].index;
    for (IndexExpr& e : read) {
      e = e.Substitute([&](int axis) { return place[static_cast<size_t>(axis)]; });
    }
    return Hold(op.inputs[input], read, box, wanted);
  }

  /// Whether an answer is no for want of patience only.
  bool gave_up() const { return gave_up_; }

 private:
  // Leaves of expressions, all together: several caches in one tensor are several pieces.
  static constexpr int kMostLooks = 1 << 20;

  // Without casts to a wider type and back, as arithmetic on 16-bit floats has them.
  static Expr WithoutRoundTrips(Expr e) {
    while (e.op() == ScalarOp::kCast && e.arg(0).op() == ScalarOp::kCast) {
      const Expr& inner = e.arg(0).arg(0);
      const bool holds_all = inner.type() == e.type() && IsFloat(e.type()) &&
                             IsFloat(e.arg(0).type()) &&
                             DTypeBytes(e.arg(0).type()) > DTypeBytes(e.type());
      if (!holds_all) break;
      e = inner;
    }
    return e;
  }

  bool Equal(const IndexExpr& a, const IndexExpr& b, const std::vector<IndexRange>& box) const {
    const IndexExpr difference = a + b * -1;
    const IndexRange values =
        RangeOf(difference, [&](int axis) { return box[static_cast<size_t>(axis)]; });
    return values.begin == 0 && values.end == 1;
  }

  // A condition that holds nowhere or everywhere; else as it is, and where it changes.
  static Expr Decided(const Expr& within, const std::vector<IndexExpr>& place,
                      const std::vector<IndexRange>& box,
                      std::optional<std::pair<size_t, int64_t>>* border) {
    const IndexExpr& at = place[static_cast<size_t>(within.index())];
    const IndexRange range = RangeOf(at, [&](int axis) { return box[static_cast<size_t>(axis)]; });
    const bool none = range.end <= within.integer() || range.begin >= within.end();
    if (none) return Expr::ConstInt(DType::kBool, 0);
    const bool all = range.begin >= within.integer() && range.end <= within.end();
    if (all) return Expr::ConstInt(DType::kBool, 1);
    if (at.terms().size() == 1 && at.terms()[0].coefficient == 1) {
      const int64_t edge = range.begin < within.integer() ? within.integer() : within.end();
      *border = {static_cast<size_t>(at.terms()[0].axis), edge - at.constant()};
    }
    return within;
  }

  bool HoldInHalves(ValueId value, const IndexMap& at, const std::vector<IndexRange>& box,
                    const IndexMap& wanted, std::pair<size_t, int64_t> border) {
    std::vector<IndexRange> lower = box;
    std::vector<IndexRange> upper = box;
    lower[border.first].end = border.second;
    upper[border.first].begin = border.second;
    return Hold(value, at, lower, wanted) && Hold(value, at, upper, wanted);
  }

  const Program& program_;
  const ValueId input_;
  int looks_ = 0;
  bool gave_up_ = false;
};

class RowSharer {
 public:
  RowSharer(const Graph& graph, Program* program) : graph_(graph), program_(*program) {}

  absl::Status Run() {
    for (const BoundStrides& bound : graph_.bound_strides()) {
      const auto& list = bound.output ? program_.outputs : program_.inputs;
      const ValueId value = list[static_cast<size_t>(bound.position)];
      program_.values[static_cast<size_t>(value)].strides = bound.strides;
    }
    for (const SharedBuffer& shared : graph_.shared_buffers()) {
      absl::Status found = Find(shared);
      if (found.ok()) continue;
      auto name = [&](TensorId id) { return QuoteShort(graph_.tensor(id).name); };
      return InvalidArgument("shared_buffers: output ",
                             name(graph_.outputs()[static_cast<size_t>(shared.output)]),
                             " does not hold the elements of input ",
                             name(graph_.inputs()[static_cast<size_t>(shared.input)]),
                             " and new ones behind them: ", Message(found));
    }
    Rebuild();
    return absl::OkStatus();
  }

 private:
  struct Append {
    ValueId past = kNoValue;
    LoopOp rows;
    int64_t begin = 0;
  };

  absl::Status Find(const SharedBuffer& shared) {
    const ValueId past = program_.inputs[static_cast<size_t>(shared.input)];
    const ValueId present = program_.outputs[static_cast<size_t>(shared.output)];
    const auto dim = static_cast<size_t>(shared.dim);
    const Value::Room room{.dim = shared.dim, .capacity = shared.capacity};
    Value& whole = program_.values[static_cast<size_t>(present)];
    program_.values[static_cast<size_t>(past)].room = room;
    whole.room = room;
    const int64_t held = program_.value(past).type.shape.ToDims()[dim];
    const int64_t total = whole.type.shape.ToDims()[dim];
    if (held > total) return InvalidArgument("it has ", total, " along dim ", dim);
    const LoopOp& op = program_.op(whole.producer);
    // A run writes all there is.
    if (held == 0 && op.kind == LoopOp::kLoop) return absl::OkStatus();
    std::vector<int> axis_of;
    if (op.kind != LoopOp::kLoop || !WritesPlainly(op.body, &axis_of)) {
      return InvalidArgument("it is what ", op.kind == LoopOp::kResult ? "a loop" : op.label,
                             " computes");
    }
    const int axis = axis_of[dim];
    IndexMap same;
    std::vector<IndexRange> first;
    for (int d = 0; d < whole.type.shape.rank(); ++d) {
      same.push_back(IndexExpr::Axis(d));
      first.push_back({0, d == shared.dim ? held : whole.type.shape.dim(d).value()});
    }
    SameElements elements(program_, past);
    if (!elements.Hold(present, same, first, same)) {
      return InvalidArgument(elements.gave_up()
                                 ? "it is put together of too many pieces to follow"
                                 : StrCat("that its first ", held, " along dim ", dim,
                                          " are those of the input does not follow from what ",
                                          "computes it"));
    }
    appends_[present] = {past, RestrictedOp(op, axis, {held, total}), held};
    return absl::OkStatus();
  }

  ValueId NewValue(Value value) {
    value.kind = TensorKind::kIntermediate;
    program_.values.push_back(std::move(value));
    return static_cast<ValueId>(program_.values.size()) - 1;
  }

  // `op` as what makes `output`, behind all that was added before.
  ValueId AddOp(LoopOp op, ValueId output) {
    op.output = output;
    order_.push_back(output);
    ops_.push_back(std::move(op));
    return output;
  }

  // Values in the order in which they are made, with the new ones between.
  void Rebuild() {
    const auto values = static_cast<ValueId>(program_.values.size());
    for (ValueId id = 0; id < values; ++id) {
      const LoopId producer = program_.value(id).producer;
      auto append = appends_.find(id);
      if (producer == kNoLoop) {
        order_.push_back(id);
      } else if (append != appends_.end()) {
        AddAppend(append->second, id);
      } else {
        LoopOp op = program_.op(producer);
        // Memory with room has no other shape, and loops go along dense tensors.
        const bool dense = op.kind == LoopOp::kReinterpret || op.kind == LoopOp::kRepeat ||
                           op.kind == LoopOp::kOpaque;
        for (ValueId& in : op.inputs) {
          if (dense && !LiesDense(program_.value(in))) in = DenseCopyOf(in, op.origin);
        }
        const bool follows = op.IsAlias() || op.kind == LoopOp::kOpaque;
        if (follows && !program_.value(id).strides.empty()) {
          AddStridedCopy(std::move(op), id);
        } else {
          AddOp(std::move(op), id);
        }
      }
    }
    program_.ops = std::move(ops_);
    Renumber(order_, &program_);
  }

  static bool LiesDense(const Value& value) { return !value.room && value.strides.empty(); }

  static LoopOp CopyOf(ValueId value, const TensorType& type, NodeId origin) {
    LoopOp op{.kind = LoopOp::kLoop, .label = "Copy", .origin = origin, .inputs = {value}};
    op.body = CastBody(type.shape, type.dtype, type.dtype);
    return op;
  }

  // A copy in memory of its own, one for all who want it.
  ValueId DenseCopyOf(ValueId value, NodeId origin) {
    auto [copy, fresh] = copies_.try_emplace(value, kNoValue);
    if (fresh) {
      const TensorType type = program_.value(value).type;
      copy->second = AddOp(CopyOf(value, type, origin), NewValue({.type = type}));
    }
    return copy->second;
  }

  // What nothing computes lies where it lies: the caller's memory gets a copy.
  void AddStridedCopy(LoopOp op, ValueId strided) {
    const NodeId origin = op.origin;
    const TensorType type = program_.value(strided).type;
    const ValueId dense = AddOp(std::move(op), NewValue({.type = type}));
    AddOp(CopyOf(dense, type, origin), strided);
  }

  void AddAppend(const Append& append, ValueId whole) {
    // The rows come right before the value whose memory they lie in.
    const ValueId rows = NewValue({.type = append.rows.body.OutputType(),
                                   .tensor = program_.value(whole).tensor,
                                   .room = program_.value(whole).room,
                                   .lies_in = whole,
                                   .begin = append.begin});
    AddOp(append.rows, rows);
    AddOp({.kind = LoopOp::kAppend,
           .label = append.rows.label,
           .origin = append.rows.origin,
           .inputs = {rows, append.past}},
          whole);
  }

  const Graph& graph_;
  Program& program_;
  std::map<ValueId, Append> appends_;  // by output
  std::map<ValueId, ValueId> copies_;  // by value
  std::vector<LoopOp> ops_;
  std::vector<ValueId> order_;
};

}  // namespace

absl::Status ShareRows(const Graph& graph, Program* program) {
  if (graph.shared_buffers().empty() && graph.bound_strides().empty()) return absl::OkStatus();
  return RowSharer(graph, program).Run();
}

}  // namespace fusion
