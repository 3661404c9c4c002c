#include "core/rewrite/picked_elements.h"

#include <algorithm>

#include "core/graph/program/tidy.h"
#include "core/rewrite/inlined_reads.h"

namespace fusion {
namespace {

// Limits of an op that computes picked elements from operands. Choices, not measurements: such ops
// are small relative to the value that they pick from.
constexpr size_t kMostReads = 16;
constexpr double kMostCost = 256;
// The value must have at least this many elements per picked element.
constexpr double kLeastElementsPerPick = 2;
// A pick that reduces may compare at most this many times as often as the value has elements.
constexpr double kMostComparisons = 4;

// The one dim of a read that is indexed by a tensor; every other dim has an affine index.
struct Chosen {
  int dim = -1;
  int by = -1;  // number of the read that gives the index
};

std::optional<Chosen> ChosenDim(const Read& read) {
  if (!read.guards.empty()) return std::nullopt;
  Chosen out;
  for (size_t d = 0; d < read.index.size(); ++d) {
    const IndexExpr& e = read.index[d];
    if (e.indirect() < 0) continue;
    if (out.dim >= 0 || !(e == IndexExpr::Indirect(e.indirect()))) return std::nullopt;
    out = {static_cast<int>(d), e.indirect()};
  }
  return out.dim < 0 ? std::nullopt : std::optional(out);
}

double PointsOf(const LoopBody& body) {
  double points = 1;
  for (const LoopAxis& axis : body.axes) points *= static_cast<double>(axis.extent.value());
  return points;
}

double ElementsOf(const Value& value) {
  return static_cast<double>(NumElements(value.type.shape.ToDims()));
}

bool HasStaticAxes(const LoopBody& body) {
  return std::all_of(body.axes.begin(), body.axes.end(),
                     [](const LoopAxis& axis) { return axis.extent.is_static(); });
}

class Picker {
 public:
  Picker(const LeaveProduct& leave, Program* program)
      : leave_(leave), program_(*program), known_(KnownBeforeRuns(*program)), uses_(*program) {}

  bool Run() {
    bool changed = false;
    std::vector<LoopOp> ops;
    for (const LoopOp& op : program_.ops) {
      std::optional<LoopOp> instead = Instead(op, &ops);
      changed |= instead.has_value();
      ops.push_back(instead ? *std::move(instead) : op);
    }
    if (!changed) return false;
    program_.ops = std::move(ops);
    Tidy(&program_);
    return true;
  }

 private:
  // An op that computes the same elements without the values that they are picked from. Further ops
  // that it needs are added to `ops`. nullopt: `op` stays.
  std::optional<LoopOp> Instead(const LoopOp& op, std::vector<LoopOp>* ops) {
    if (!IsMap(op) || !HasStaticAxes(op.body)) return std::nullopt;
    LoopOp out = op;
    bool changed = false;
    while (FollowOne(&out)) changed = true;
    std::vector<size_t> reduced;
    for (size_t r = 0; r < out.inputs.size(); ++r) {
      const bool picks = std::any_of(out.body.reads[r].index.begin(), out.body.reads[r].index.end(),
                                     [](const IndexExpr& e) { return e.indirect() >= 0; });
      if (!picks || program_.value(out.inputs[r]).producer == kNoLoop || IsKnown(out.inputs[r])) {
        continue;
      }
      if (!MayReduce(out, r)) return std::nullopt;
      reduced.push_back(r);
    }
    if ((!changed && reduced.empty()) || (leave_ && leave_(op))) return std::nullopt;
    for (size_t r : reduced) ReadReduced(r, &out, ops);
    DropReads(&out);
    return out;
  }

  bool IsKnown(ValueId v) const { return known_[static_cast<size_t>(v)]; }

  // Inlines one value that `op` picks from, at the picked coordinates. False: there is none.
  bool FollowOne(LoopOp* op) const {
    for (size_t r = 0; r < op->inputs.size(); ++r) {
      if (!ChosenDim(op->body.reads[r]) || !MayFollow(*op, op->inputs[r])) continue;
      LoopOp out = *op;
      const LoopOp& from = program_.op(program_.value(op->inputs[r]).producer);
      const Expr value = AddAtPlace(program_, from, op->body.reads[r], &out);
      if (value.empty()) continue;
      ReplaceRead(r, value, &out);
      DropReads(&out);
      if (out.inputs.size() > kMostReads || out.body.value.Cost() > kMostCost) continue;
      if (leave_ && leave_(from)) continue;
      *op = std::move(out);
      return true;
    }
    return false;
  }

  bool MayFollow(const LoopOp& op, ValueId v) const {
    const Value& value = program_.value(v);
    if (value.producer == kNoLoop || uses_.IsReturned(v) || IsKnown(v) ||
        value.lies_in != kNoValue || !value.type.shape.is_static()) {
      return false;
    }
    const LoopOp& from = program_.op(value.producer);
    return IsMap(from) && from.output == v && HasStaticAxes(from.body) &&
           ElementsOf(value) >= kLeastElementsPerPick * PointsOf(op.body);
  }

  // Whether read `r` of `op` may become a reduction along the indexed dim.
  bool MayReduce(const LoopOp& op, size_t r) const {
    const std::optional<Chosen> chosen = ChosenDim(op.body.reads[r]);
    if (!chosen) return false;
    const ValueId v = op.inputs[r];
    const Value& value = program_.value(v);
    const LoopOp& from = program_.op(value.producer);
    if (from.kind != LoopOp::kLoop || !from.body.reduce.has_value() || uses_.IsReturned(v) ||
        !value.type.shape.is_static()) {
      return false;
    }
    if (value.type.dtype != DType::kF32 && value.type.dtype != DType::kF64) return false;
    const Read& index = op.body.reads[static_cast<size_t>(chosen->by)];
    const bool plain =
        index.guards.empty() && std::all_of(index.index.begin(), index.index.end(),
                                            [](const IndexExpr& e) { return e.indirect() < 0; });
    const double depth = static_cast<double>(value.type.shape.dim(chosen->dim).value());
    if (!plain || PointsOf(op.body) * depth > kMostComparisons * ElementsOf(value)) return false;
    return uses_.ReductionsAlong(v, chosen->dim) > 0;
  }

  ValueId AddValue(DType type, std::vector<Dim> dims) {
    program_.values.push_back(
        {.type = {type, Shape(std::move(dims))}, .kind = TensorKind::kIntermediate});
    return static_cast<ValueId>(program_.values.size()) - 1;
  }

  // The coordinate among `depth` that each element of `index` names, as i64: negative indices count
  // from the end, and all are clamped, as in an indirect read.
  ValueId Places(ValueId index, int64_t depth, const LoopOp& reader, std::vector<LoopOp>* ops) {
    const TensorType type = program_.value(index).type;
    LoopOp op{.label = "PlaceOfIndex", .origin = reader.origin, .step = reader.step};
    Read read;
    for (int d = 0; d < type.shape.rank(); ++d) {
      op.body.axes.push_back({StrCat("d", d), type.shape.dim(d)});
      read.index.push_back(IndexExpr::Axis(d));
    }
    op.body.write = read.index;
    op.body.reads = {std::move(read)};
    const auto number = [](int64_t value) { return Expr::ConstInt(DType::kI64, value); };
    const Expr given = Expr::Cast(Expr::Input(0, type.dtype), DType::kI64);
    const Expr place =
        Expr::Select(Expr::Binary(ScalarOp::kLt, given, number(0)), given + number(depth), given);
    op.body.value =
        Expr::Binary(ScalarOp::kMax, number(0),
                     Expr::Binary(ScalarOp::kMin, place, number(std::max<int64_t>(depth - 1, 0))));
    op.inputs = {index};
    op.output = AddValue(DType::kI64, type.shape.dims());
    ops->push_back(std::move(op));
    return ops->back().output;
  }

  // Replaces the pick of read `r` by a reduction over all elements that it may pick.
  void ReadReduced(size_t r, LoopOp* reader, std::vector<LoopOp>* ops) {
    const Chosen chosen = *ChosenDim(reader->body.reads[r]);
    const auto by = static_cast<size_t>(chosen.by);
    const ValueId from = reader->inputs[r];
    const TensorType type = program_.value(from).type;
    const int64_t depth = type.shape.dim(chosen.dim).value();
    LoopOp op{.label = "Pick", .origin = reader->origin, .step = reader->step};
    op.body.axes = reader->body.axes;
    const auto axis = static_cast<int>(op.body.axes.size());
    Read plain;
    std::vector<Dim> dims;
    for (int a = 0; a < axis; ++a) {
      plain.index.push_back(IndexExpr::Axis(a));
      dims.push_back(op.body.axes[static_cast<size_t>(a)].extent);
    }
    op.body.axes.push_back({"pick", Dim(depth)});
    op.body.write = plain.index;
    Read all = reader->body.reads[r];
    all.index[static_cast<size_t>(chosen.dim)] = IndexExpr::Axis(axis);
    op.body.reads = {std::move(all), reader->body.reads[by]};
    const Expr here = Expr::Binary(ScalarOp::kEq, Expr::Input(1, DType::kI64), Expr::Axis(axis));
    const Monoid most = Monoid::Max(type.dtype);
    op.body.value = Expr::Select(here, Expr::Input(0, type.dtype), most.identity()[0]);
    op.body.reduce = most;
    op.inputs = {from, Places(reader->inputs[by], depth, *reader, ops)};
    op.output = AddValue(type.dtype, std::move(dims));
    reader->body.reads[r] = std::move(plain);
    reader->inputs[r] = op.output;
    ops->push_back(std::move(op));
  }

  const LeaveProduct& leave_;
  Program& program_;
  const std::vector<bool> known_;
  ProgramUses uses_;
};

}  // namespace

bool PickBeforeStoring(Program* program, const LeaveProduct& leave) {
  return !program->open_dims && Picker(leave, program).Run();
}

}  // namespace fusion
