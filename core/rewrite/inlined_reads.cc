#include "core/rewrite/inlined_reads.h"

#include <algorithm>

#include "core/base/contains.h"
#include "core/base/threads/job.h"

namespace fusion {
namespace {

Expr IndexAsExpr(const IndexExpr& e) {
  Expr sum = Expr::ConstInt(DType::kI64, e.constant());
  for (const IndexExpr::Term& t : e.terms()) {
    sum = sum + Expr::Axis(t.axis) * Expr::ConstInt(DType::kI64, t.coefficient);
  }
  return sum;
}

// The axis of an index that is an axis plus a constant; -1: it is not.
int MovedAxis(const IndexExpr& e) {
  const bool moved = e.indirect() < 0 && e.terms().size() == 1 && e.terms()[0].coefficient == 1;
  return moved ? e.terms()[0].axis : -1;
}

// Adds a guard, intersected with an existing one on the same axis.
void AddGuard(const Guard& guard, std::vector<Guard>* guards) {
  for (Guard& g : *guards) {
    if (g.axis != guard.axis) continue;
    g.begin = std::max(g.begin, guard.begin);
    g.end = std::max(g.begin, std::min(g.end, guard.end));
    return;
  }
  guards->push_back(guard);
}

// Inlines an op at the coordinates of one read of its result.
class AtPlace {
 public:
  AtPlace(const Program& program, const LoopOp& from, const Read& where, const LoopBody& reader)
      : program_(program), from_(from), where_(where), reader_(reader) {}

  Expr AddTo(LoopOp* op) {
    if (!PlaceAxes()) return {};
    const auto first = static_cast<int>(op->inputs.size());
    std::vector<Read> reads;
    for (size_t r = 0; r < from_.inputs.size(); ++r) {
      std::optional<Read> moved = Moved(r);
      if (!moved) return {};
      reads.push_back(*std::move(moved));
    }
    bool said = true;
    Expr value = from_.body.value.MapLeaves([&](const Expr& leaf) -> Expr {
      if (leaf.op() == ScalarOp::kInput) return Expr::Input(first + leaf.index(), leaf.type());
      if (leaf.op() != ScalarOp::kAxis && leaf.op() != ScalarOp::kWithin) return leaf;
      const IndexExpr& at = at_[static_cast<size_t>(leaf.index())];
      if (leaf.op() == ScalarOp::kAxis) {
        said &= at.indirect() < 0;
        return said ? IndexAsExpr(at) : leaf;
      }
      const std::optional<Guard> within = MovedGuard({leaf.index(), leaf.integer(), leaf.end()});
      said &= within.has_value();
      return said ? Expr::Within(within->axis, within->begin, within->end) : leaf;
    });
    if (!said) return {};
    op->body.reads.insert(op->body.reads.end(), reads.begin(), reads.end());
    op->inputs.insert(op->inputs.end(), from_.inputs.begin(), from_.inputs.end());
    return value;
  }

 private:
  // Expresses each axis of `from` in terms of the reader. False if a written index is neither an
  // axis nor 0.
  bool PlaceAxes() {
    at_.assign(from_.body.axes.size(), IndexExpr(0));
    for (size_t d = 0; d < from_.body.write.size(); ++d) {
      const IndexExpr& written = from_.body.write[d];
      if (written.IsPlainAxis()) {
        at_[static_cast<size_t>(written.terms()[0].axis)] = where_.index[d];
      } else if (!(written == IndexExpr(0))) {
        return false;
      }
    }
    return true;
  }

  // A guard on an axis of `from` as one on an axis of its reader.
  std::optional<Guard> MovedGuard(const Guard& guard) const {
    const IndexExpr& at = at_[static_cast<size_t>(guard.axis)];
    const int axis = MovedAxis(at);
    if (axis < 0) return std::nullopt;
    const Dim& extent = reader_.axes[static_cast<size_t>(axis)].extent;
    if (!extent.is_static()) return std::nullopt;
    const auto clamped = [&](int64_t c) {
      return std::clamp<int64_t>(c - at.constant(), 0, extent.value());
    };
    return Guard{axis, clamped(guard.begin), clamped(guard.end)};
  }

  std::optional<Read> Moved(size_t r) const {
    const Read& read = from_.body.reads[r];
    const Dims extents = program_.value(from_.inputs[r]).type.shape.ToDims();
    Read out{.index = {}, .guards = where_.guards};
    for (size_t d = 0; d < read.index.size(); ++d) {
      const IndexExpr& e = read.index[d];
      if (e.indirect() >= 0) return std::nullopt;
      for (const IndexExpr::Term& t : e.terms()) {
        if (at_[static_cast<size_t>(t.axis)].indirect() < 0) continue;
        // Negative indices count from the end of the dim that they index, so its extent must be the
        // same.
        const Dim& meant = from_.body.axes[static_cast<size_t>(t.axis)].extent;
        if (!e.IsPlainAxis() || Dim(extents[d]) != meant) return std::nullopt;
      }
      out.index.push_back(e.Substitute([&](int axis) { return at_[static_cast<size_t>(axis)]; }));
    }
    for (const Guard& g : read.guards) {
      const std::optional<Guard> moved = MovedGuard(g);
      if (!moved) return std::nullopt;
      AddGuard(*moved, &out.guards);
    }
    return out;
  }

  const Program& program_;
  const LoopOp& from_;
  const Read& where_;
  const LoopBody& reader_;
  std::vector<IndexExpr> at_;  // by axis of `from_`
};

}  // namespace

bool IsMap(const LoopOp& op) { return op.kind == LoopOp::kLoop && !op.body.reduce.has_value(); }

Expr AddAtPlace(const Program& program, const LoopOp& from, const Read& where, LoopOp* op) {
  const Read at = where;  // a copy: `where` may be in op->body.reads, which grows
  return AtPlace(program, from, at, op->body).AddTo(op);
}

void ReplaceRead(size_t read, const Expr& value, LoopOp* op) {
  op->body.value = op->body.value.MapLeaves([&](const Expr& leaf) {
    const bool here = leaf.op() == ScalarOp::kInput && leaf.index() == static_cast<int>(read);
    return here ? value : leaf;
  });
}

void DropReads(LoopOp* op) {
  LoopBody& body = op->body;
  std::vector<bool> used(body.reads.size(), false);
  body.value.VisitOnce([&](const Expr& e) {
    if (e.op() == ScalarOp::kInput) used[static_cast<size_t>(e.index())] = true;
  });
  for (size_t r = body.reads.size(); r-- > 0;) {
    for (const IndexExpr& e : body.reads[r].index) {
      if (used[r] && e.indirect() >= 0) used[static_cast<size_t>(e.indirect())] = true;
    }
  }
  std::vector<int> number(body.reads.size(), -1);
  std::vector<Read> reads;
  std::vector<ValueId> inputs;
  for (size_t r = 0; r < body.reads.size(); ++r) {
    if (!used[r]) continue;
    for (size_t k = 0; k < reads.size() && number[r] < 0; ++k) {
      if (inputs[k] == op->inputs[r] && reads[k] == body.reads[r]) number[r] = static_cast<int>(k);
    }
    if (number[r] >= 0) continue;
    number[r] = static_cast<int>(reads.size());
    reads.push_back(std::move(body.reads[r]));
    inputs.push_back(op->inputs[r]);
  }
  for (Read& read : reads) {
    for (IndexExpr& e : read.index) {
      if (e.indirect() >= 0) e = IndexExpr::Indirect(number[static_cast<size_t>(e.indirect())]);
    }
  }
  body.reads = std::move(reads);
  op->inputs = std::move(inputs);
  body.value = body.value.MapLeaves([&](const Expr& leaf) {
    return leaf.op() == ScalarOp::kInput
               ? Expr::Input(number[static_cast<size_t>(leaf.index())], leaf.type())
               : leaf;
  });
}

ProgramUses::ProgramUses(const Program& program)
    : program_(program), readers_(program.values.size()), returned_(program.values.size(), false) {
  for (size_t l = 0; l < program.ops.size(); ++l) {
    for (ValueId v : program.ops[l].inputs) {
      readers_[static_cast<size_t>(v)].push_back(static_cast<LoopId>(l));
    }
  }
  for (ValueId v : program.outputs) returned_[static_cast<size_t>(v)] = true;
}

int ProgramUses::ReductionsAlong(ValueId v, int dim) const {
  Seen seen;
  std::set<LoopId> found;
  CollectAlong(v, dim, &seen, &found);
  return static_cast<int>(found.size());
}

void ProgramUses::CollectAlong(ValueId v, int dim, Seen* seen, std::set<LoopId>* found) const {
  Job::Step();
  // Bounds the time for long chains.
  constexpr size_t kMostSeen = 4096;
  if (seen->size() >= kMostSeen || !seen->emplace(v, dim).second) return;
  const Dim& whole = program_.value(v).type.shape.dim(dim);
  for (LoopId l : ReadersOf(v)) {
    const LoopOp& op = program_.op(l);
    if (op.kind != LoopOp::kLoop) continue;
    for (size_t r = 0; r < op.inputs.size(); ++r) {
      if (op.inputs[r] != v) continue;
      const IndexExpr& at = op.body.reads[r].index[static_cast<size_t>(dim)];
      if (!at.IsPlainAxis()) continue;
      const int axis = at.terms()[0].axis;
      if (op.body.axes[static_cast<size_t>(axis)].extent != whole) continue;
      if (op.body.reduce.has_value()) {
        if (Contains(op.body.ReducedAxes(), axis)) found->insert(l);
        continue;
      }
      const auto written = std::find(op.body.write.begin(), op.body.write.end(), at);
      if (written == op.body.write.end()) continue;
      const auto next = static_cast<int>(written - op.body.write.begin());
      CollectAlong(op.output, next, seen, found);
    }
  }
}

}  // namespace fusion
