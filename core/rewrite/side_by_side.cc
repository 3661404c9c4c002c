#include "core/rewrite/side_by_side.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/contains.h"
#include "core/base/threads/job.h"
#include "core/graph/program/tidy.h"
#include "core/rewrite/concat_pieces.h"
#include "core/rewrite/inlined_reads.h"

namespace fusion {
namespace {

constexpr size_t kMostReadsOfSide = 64;
constexpr double kMostCostOfSide = 512;

// Each concatenated element must be used by at least this many rows; with fewer, copying it costs
// as much as it saves. A choice, not a measurement.
constexpr double kLeastRows = 16;
// The least number of reductions along the dim that one pass must serve: a single one can read the
// blocks in place.
constexpr int kLeastReductions = 2;
// How many producers back values of two blocks are compared for equality.
constexpr int kMostSteps = 4;

// Reductions with the same body that differ only in the extent of `axis`, their span of it, and
// what they read along it.
struct Alike {
  std::vector<const LoopOp*> ops;
  int axis = -1;
  std::vector<AxisSpan> spans;  // of the axis of the whole
};

class Uniter {
 public:
  Uniter(bool reorder, const LeaveProduct& leave, Program* program)
      : reorder_(reorder), leave_(leave), program_(*program), uses_(*program) {}

  bool Run() {
    bool changed = false;
    std::vector<LoopOp> ops;
    for (const LoopOp& op : program_.ops) {
      std::optional<LoopOp> instead = InsteadOfPieces(op, &ops);
      if (!instead && reorder_) instead = InsteadOfSum(op, &ops);
      changed |= instead.has_value();
      ops.push_back(instead ? *std::move(instead) : op);
    }
    if (!changed) return false;
    program_.ops = std::move(ops);
    Tidy(&program_);
    return true;
  }

 private:
  const Value& value(ValueId v) const { return program_.value(v); }

  // The loop op that computes `v`, if `v` is read once and its memory is not shared with another
  // value; else null.
  const LoopOp* OnlyFor(ValueId v) const {
    const LoopId producer = value(v).producer;
    if (producer == kNoLoop || !uses_.IsReadOnce(v) || value(v).lies_in != kNoValue) return nullptr;
    const LoopOp& op = program_.op(producer);
    return op.kind == LoopOp::kLoop && value(v).type.shape.is_static() ? &op : nullptr;
  }

  // Whether two values are computed by equal bodies from the same values.
  bool AreSame(ValueId a, ValueId b, int steps = kMostSteps) const {
    if (a == b) return true;
    const LoopId of_a = value(a).producer;
    const LoopId of_b = value(b).producer;
    if (steps == 0 || of_a == kNoLoop || of_b == kNoLoop) return false;
    const LoopOp& x = program_.op(of_a);
    const LoopOp& y = program_.op(of_b);
    if (x.kind != LoopOp::kLoop || y.kind != LoopOp::kLoop || !(x.body == y.body)) return false;
    for (size_t r = 0; r < x.inputs.size(); ++r) {
      if (!AreSame(x.inputs[r], y.inputs[r], steps - 1)) return false;
    }
    return true;
  }

  // ---- concatenated blocks ----

  // Inlines the element-wise ops before read `r` into `op`; returns the value over reads of `op`.
  // Guards keep the reads of the blocks separate.
  Expr Followed(size_t r, LoopOp* op, std::set<const LoopOp*>* gone) const {
    Expr out = Expr::Input(static_cast<int>(r), value(op->inputs[r]).type.dtype);
    std::vector<size_t> open = {r};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      const LoopOp* from = OnlyFor(op->inputs[at]);
      if (from == nullptr || !IsMap(*from) || op->inputs.size() > kMostReadsOfSide) continue;
      if (Repeats(op->body, op->body.reads[at])) continue;
      const size_t first = op->inputs.size();
      const Expr instead = AddAtPlace(program_, *from, op->body.reads[at], op);
      if (instead.empty()) continue;
      gone->insert(from);
      out = out.MapLeaves([&](const Expr& leaf) {
        const bool here = leaf.op() == ScalarOp::kInput && leaf.index() == static_cast<int>(at);
        return here ? instead : leaf;
      });
      for (size_t next = first; next < op->inputs.size(); ++next) open.push_back(next);
    }
    return out;
  }

  // Whether a read gives the same element at several points of the body.
  static bool Repeats(const LoopBody& body, const Read& read) {
    for (size_t a = 0; a < body.axes.size(); ++a) {
      if (body.axes[a].extent != Dim(1) && !NamesAxis(read, static_cast<int>(a))) return true;
    }
    return false;
  }

  // The one read in the value of a block that is computed by a reduction and varies along the axis
  // of the blocks; -1: none or several.
  int ReducedRead(const LoopOp& op, const Expr& of_piece, int axis) const {
    int found = -1;
    bool one = true;
    of_piece.VisitOnce([&](const Expr& e) {
      if (e.op() != ScalarOp::kInput) return;
      const auto r = static_cast<size_t>(e.index());
      const LoopOp* from = OnlyFor(op.inputs[r]);
      if (from == nullptr || IsMap(*from) || !NamesAxis(op.body.reads[r], axis)) return;
      one = found < 0;
      found = e.index();
    });
    return one ? found : -1;
  }

  std::optional<LoopOp> InsteadOfPieces(const LoopOp& op, std::vector<LoopOp>* ops) {
    const std::optional<ConcatPieces> pieces = PiecesOf(op);
    if (!pieces || !IsWanted(op, pieces->axis)) return std::nullopt;
    const int axis = pieces->axis;
    LoopOp out = op;
    std::set<const LoopOp*> gone;
    std::vector<Expr> values;
    Alike alike{.spans = pieces->spans};
    std::vector<size_t> reduced;
    for (size_t r : pieces->reads) {
      values.push_back(Followed(r, &out, &gone));
      const int read = ReducedRead(out, values.back(), axis);
      if (read < 0) return std::nullopt;
      reduced.push_back(static_cast<size_t>(read));
      alike.ops.push_back(OnlyFor(out.inputs[reduced.back()]));
      gone.insert(alike.ops.back());
    }
    // Each must be read at the coordinates where it was written, relative to the begin of its
    // block.
    IndexMap where;
    for (size_t i = 0; i < reduced.size(); ++i) {
      const Read& read = out.body.reads[reduced[i]];
      const IndexMap whole = MovedAlong(read.index, axis, pieces->spans[i].begin);
      const bool own = read.guards.size() == 1 && read.guards[0].axis == axis &&
                       read.guards[0].begin == pieces->spans[i].begin &&
                       read.guards[0].end == pieces->spans[i].end && !ReadsIndirectly(read);
      if (!own || (i > 0 && whole != where)) return std::nullopt;
      where = whole;
    }
    const int own = WrittenAxis(*alike.ops[0], where, axis);
    if (own < 0) return std::nullopt;
    alike.axis = own;
    if (!MayUnite(alike)) return std::nullopt;
    for (size_t r : reduced) {
      out.inputs[r] = kNoValue;  // the whole, added below
      out.body.reads[r] = {.index = where, .guards = {}};
    }
    ShareReads(axis, &out, &values);
    out.body.value = CommonForm(axis, pieces->spans).Of(values);
    if (out.body.value.Cost() > kMostCostOfSide || Leaves(op, gone)) return std::nullopt;
    const ValueId whole = AddOp(Whole(alike, ops), ops);
    std::replace(out.inputs.begin(), out.inputs.end(), kNoValue, whole);
    DropReads(&out);
    return out;
  }

  // Whether the concatenation is reduced along the axis often enough.
  bool IsWanted(const LoopOp& op, int axis) const {
    const auto dim = std::find(op.body.write.begin(), op.body.write.end(), IndexExpr::Axis(axis));
    if (dim == op.body.write.end()) return false;
    const auto along = static_cast<int>(dim - op.body.write.begin());
    return uses_.ReductionsAlong(op.output, along) >= kLeastReductions;
  }

  // The axis of `op` that is written where `where` reads at `axis`; -1: not a single one.
  static int WrittenAxis(const LoopOp& op, const IndexMap& where, int axis) {
    int found = -1;
    for (size_t d = 0; d < where.size(); ++d) {
      if (where[d].CoefficientOf(axis) == 0) continue;
      const bool plain = where[d] == IndexExpr::Axis(axis) && op.body.write[d].IsPlainAxis();
      if (!plain || found >= 0) return -1;
      found = op.body.write[d].terms()[0].axis;
    }
    return found;
  }

  // Merges reads of different blocks that do not vary along the axis.
  static void ShareReads(int axis, LoopOp* op, std::vector<Expr>* values) {
    std::vector<int> number(op->inputs.size());
    for (size_t r = 0; r < op->inputs.size(); ++r) {
      number[r] = static_cast<int>(r);
      Read& read = op->body.reads[r];
      if (!NamesAxis(read, axis) && !ReadsIndirectly(read)) {
        std::erase_if(read.guards, [axis](const Guard& g) { return g.axis == axis; });
      }
      for (size_t k = 0; k < r; ++k) {
        if (op->inputs[k] != op->inputs[r] || !(op->body.reads[k] == read)) continue;
        number[r] = static_cast<int>(k);
        break;
      }
    }
    for (Expr& e : *values) {
      e = e.MapLeaves([&](const Expr& leaf) {
        return leaf.op() == ScalarOp::kInput
                   ? Expr::Input(number[static_cast<size_t>(leaf.index())], leaf.type())
                   : leaf;
      });
    }
  }

  bool Leaves(const LoopOp& op, const std::set<const LoopOp*>& gone) const {
    if (!leave_) return false;
    return leave_(op) || std::any_of(gone.begin(), gone.end(),
                                     [this](const LoopOp* other) { return leave_(*other); });
  }

  // ---- sums of parts ----

  // The reductions that `op` adds up, directly or through other sums that only it reads. False if
  // it adds anything else.
  bool Parts(const LoopOp& op, std::vector<const LoopOp*>* parts,
             std::set<const LoopOp*>* gone) const {
    if (!IsMap(op) || op.body.value.op() != ScalarOp::kAdd || op.body.value.type() != DType::kF32) {
      return false;
    }
    Job::Step();
    if (gone->size() > 2 * kMostConcatPieces) return false;  // bounds the depth
    std::vector<Expr> open = {op.body.value};
    while (!open.empty()) {
      const Expr e = open.back();
      open.pop_back();
      if (e.op() == ScalarOp::kAdd) {
        open.push_back(e.arg(1));
        open.push_back(e.arg(0));
        continue;
      }
      if (e.op() != ScalarOp::kInput || parts->size() == kMostConcatPieces) return false;
      const auto r = static_cast<size_t>(e.index());
      const LoopOp* from = OnlyFor(op.inputs[r]);
      if (from == nullptr || !ReadsInPlace(program_, op, static_cast<int>(r))) return false;
      gone->insert(from);
      if (!IsMap(*from)) {
        parts->push_back(from);
      } else if (!Parts(*from, parts, gone)) {
        return false;
      }
    }
    return true;
  }

  // Whether `a` and `b` read the same value at different offsets along a reduced axis.
  static bool ReadsElsewhere(const LoopOp& a, const LoopOp& b, int axis) {
    for (size_t r = 0; r < a.inputs.size(); ++r) {
      const IndexMap& in_a = a.body.reads[r].index;
      const IndexMap& in_b = b.body.reads[r].index;
      for (size_t d = 0; a.inputs[r] == b.inputs[r] && d < in_a.size(); ++d) {
        const bool moved = in_a[d].CoefficientOf(axis) == 1 && in_b[d].CoefficientOf(axis) == 1 &&
                           in_a[d].constant() != in_b[d].constant();
        if (moved) return true;
      }
    }
    return false;
  }

  // The offset along the axis at which a part reads the value that it shares with `other`.
  static int64_t BeginOf(const LoopOp& op, const LoopOp& other, int axis) {
    for (size_t r = 0; r < op.inputs.size(); ++r) {
      if (op.inputs[r] != other.inputs[r]) continue;
      for (const IndexExpr& e : op.body.reads[r].index) {
        if (e.CoefficientOf(axis) == 1) return e.constant();
      }
    }
    return 0;
  }

  // Whether the parts are sums with equally many axes and reads.
  static bool AreSums(const std::vector<const LoopOp*>& parts) {
    const LoopOp& first = *parts[0];
    return std::all_of(parts.begin(), parts.end(), [&](const LoopOp* part) {
      bool same = part->body.axes.size() == first.body.axes.size() &&
                  part->inputs.size() == first.inputs.size() && part->body.reduce.has_value() &&
                  part->body.reduce->name() == "sum";
      for (size_t r = 0; same && r < first.inputs.size(); ++r) {
        same = part->body.reads[r].index.size() == first.body.reads[r].index.size();
      }
      return same;
    });
  }

  // A part with one element along `axis` does not name the axis in its indices. Adds it there, as
  // in longer parts; its value is 0.
  static void NameAxis(int axis, const LoopOp& as, LoopOp* part) {
    if (part->body.axes[static_cast<size_t>(axis)].extent != Dim(1)) return;
    for (size_t r = 0; r < part->body.reads.size(); ++r) {
      IndexMap& index = part->body.reads[r].index;
      for (size_t d = 0; d < index.size(); ++d) {
        const bool here =
            as.body.reads[r].index[d].CoefficientOf(axis) == 1 && index[d].CoefficientOf(axis) == 0;
        if (here) index[d] = index[d] + IndexExpr::Axis(axis);
      }
    }
  }

  std::optional<LoopOp> InsteadOfSum(const LoopOp& op, std::vector<LoopOp>* ops) {
    std::vector<const LoopOp*> found;
    std::set<const LoopOp*> gone;
    if (!Parts(op, &found, &gone) || found.size() < 2 || !AreSums(found)) return std::nullopt;
    for (int axis : found[0]->body.ReducedAxes()) {
      std::vector<LoopOp> parts;
      const LoopOp* longest = found[0];
      for (const LoopOp* part : found) {
        const auto length = [axis](const LoopOp* p) {
          return p->body.axes[static_cast<size_t>(axis)].extent;
        };
        if (length(longest) == Dim(1)) longest = part;
        if (!length(part).is_static()) return std::nullopt;
        parts.push_back(*part);
      }
      for (LoopOp& part : parts) NameAxis(axis, *longest, &part);
      std::optional<LoopOp> whole = WholeOfParts(op, axis, parts, gone, ops);
      if (whole) return whole;
    }
    return std::nullopt;
  }

  // InsteadOfSum with `parts` along `axis`.
  std::optional<LoopOp> WholeOfParts(const LoopOp& op, int axis, const std::vector<LoopOp>& parts,
                                     const std::set<const LoopOp*>& gone,
                                     std::vector<LoopOp>* ops) {
    Alike alike{.axis = axis};
    for (const LoopOp& part : parts) alike.ops.push_back(&part);
    const LoopOp* first = alike.ops[0];
    if (!ReadsElsewhere(*first, *alike.ops[1], axis)) return std::nullopt;
    const auto begin = [&](const LoopOp* part) {
      return BeginOf(*part, part == first ? parts[1] : parts[0], axis);
    };
    std::sort(alike.ops.begin(), alike.ops.end(),
              [&](const LoopOp* a, const LoopOp* b) { return begin(a) < begin(b); });
    const int64_t from = begin(alike.ops[0]);
    for (const LoopOp* part : alike.ops) {
      const int64_t at = begin(part) - from;
      if (!alike.spans.empty() && alike.spans.back().end != at) return std::nullopt;
      const int64_t length = part->body.axes[static_cast<size_t>(axis)].extent.value();
      alike.spans.push_back({at, at + length});
    }
    if (first->body.OutputType() != value(op.output).type || !SharesReduced(alike) ||
        !MayUnite(alike) || Leaves(op, gone)) {
      return std::nullopt;
    }
    LoopOp whole = Whole(alike, ops);
    whole.output = op.output;
    return whole;
  }

  // Whether the parts share a value that depends on a reduction along the axis. Otherwise a single
  // pass gains nothing.
  bool SharesReduced(const Alike& alike) const {
    const LoopOp& first = *alike.ops[0];
    for (size_t r = 0; r < first.inputs.size(); ++r) {
      if (first.inputs[r] != alike.ops[1]->inputs[r]) continue;
      for (size_t d = 0; d < first.body.reads[r].index.size(); ++d) {
        if (first.body.reads[r].index[d].CoefficientOf(alike.axis) != 1) continue;
        if (FollowsReduced(first.inputs[r], static_cast<int>(d), kMostSteps)) return true;
      }
    }
    return false;
  }

  bool FollowsReduced(ValueId v, int dim, int steps) const {
    if (uses_.ReductionsAlong(v, dim) > 0) return true;
    const LoopId producer = value(v).producer;
    if (producer == kNoLoop || steps == 0 || !IsMap(program_.op(producer))) return false;
    const LoopOp& op = program_.op(producer);
    const IndexExpr& written = op.body.write[static_cast<size_t>(dim)];
    for (size_t r = 0; r < op.inputs.size(); ++r) {
      const IndexMap& index = op.body.reads[r].index;
      const auto at = std::find(index.begin(), index.end(), written);
      if (!written.IsPlainAxis() || at == index.end()) continue;
      if (FollowsReduced(op.inputs[r], static_cast<int>(at - index.begin()), steps - 1))
        return true;
    }
    return false;
  }

  // ---- uniting reductions ----

  // How a read of the parts relates to the whole.
  enum class Shared : uint8_t { kNo, kAlong, kFixed };

  // kFixed: the same elements for every part. kAlong: one value that the parts read span by span.
  // kNo: neither.
  Shared SharedRead(const Alike& alike, size_t r) const {
    const LoopOp& first = *alike.ops[0];
    const Read& read = first.body.reads[r];
    Shared out = NamesAxis(read, alike.axis) ? Shared::kAlong : Shared::kFixed;
    for (size_t i = 1; i < alike.ops.size(); ++i) {
      const LoopOp& op = *alike.ops[i];
      if (!AreSame(first.inputs[r], op.inputs[r])) return Shared::kNo;
      const IndexMap here = MovedAlong(op.body.reads[r].index, alike.axis, -alike.spans[i].begin);
      if (here != read.index) return Shared::kNo;
    }
    return out;
  }

  // Axes of the whole that a read of the parts names, in memory order.
  static std::vector<int> AxesOf(const Alike& alike, size_t r) {
    std::vector<int> out;
    for (const LoopOp* op : alike.ops) {
      for (const IndexExpr& e : op->body.reads[r].index) {
        auto terms = e.terms();
        std::sort(terms.begin(), terms.end(), IndexExpr::MajorFirst);
        for (const IndexExpr::Term& t : terms) {
          if (!Contains(out, t.axis)) out.push_back(t.axis);
        }
      }
    }
    return out;
  }

  bool MayUnite(const Alike& alike) const {
    const LoopOp& first = *alike.ops[0];
    const auto axis = static_cast<size_t>(alike.axis);
    bool plain = WritesPlainly(first.body);
    first.body.value.VisitOnce(
        [&](const Expr& e) { plain &= e.op() != ScalarOp::kAxis && e.op() != ScalarOp::kWithin; });
    if (!plain) return false;
    for (size_t i = 0; i < alike.ops.size(); ++i) {
      const LoopOp& op = *alike.ops[i];
      const bool same = op.body.axes.size() == first.body.axes.size() &&
                        op.inputs.size() == first.inputs.size() &&
                        op.body.write == first.body.write && op.body.value == first.body.value &&
                        op.body.reduce == first.body.reduce;
      if (!same || op.body.axes[axis].extent != Dim(alike.spans[i].length())) return false;
      for (size_t a = 0; a < op.body.axes.size(); ++a) {
        if (!op.body.axes[a].extent.is_static()) return false;
        if (a != axis && op.body.axes[a].extent != first.body.axes[a].extent) return false;
      }
      for (size_t r = 0; r < op.inputs.size(); ++r) {
        if (!op.body.reads[r].guards.empty() || ReadsIndirectly(op.body.reads[r])) return false;
        if (value(op.inputs[r]).type.dtype != value(first.inputs[r]).type.dtype) return false;
      }
    }
    return IsWorthCopies(alike);
  }

  // Whether a read is shared, and every copied element is used by at least kLeastRows rows.
  bool IsWorthCopies(const Alike& alike) const {
    const LoopOp& first = *alike.ops[0];
    bool shares = false;
    double rows = kLeastRows;
    for (size_t r = 0; r < first.inputs.size(); ++r) {
      if (SharedRead(alike, r) != Shared::kNo) {
        shares = true;
        continue;
      }
      double here = 1;
      const std::vector<int> named = AxesOf(alike, r);
      for (size_t a = 0; a < first.body.axes.size(); ++a) {
        if (Contains(named, static_cast<int>(a))) continue;
        here *= static_cast<double>(first.body.axes[a].extent.value());
      }
      if (!Contains(named, alike.axis)) return false;
      rows = std::min(rows, here);
    }
    return shares && rows >= kLeastRows;
  }

  ValueId AddOp(LoopOp op, std::vector<LoopOp>* ops) {
    op.output = static_cast<ValueId>(program_.values.size());
    program_.values.push_back({.type = op.body.OutputType(), .kind = TensorKind::kIntermediate});
    ops->push_back(std::move(op));
    return ops->back().output;
  }

  // Concatenates read `r` of the parts to one value over the axes `named` of the whole.
  ValueId PutSideBySide(const Alike& alike, size_t r, const std::vector<int>& named,
                        std::vector<LoopOp>* ops) {
    const LoopOp& last = *alike.ops.back();
    LoopOp out{.label = "Concat", .origin = last.origin, .step = last.step};
    std::vector<int> at(last.body.axes.size(), -1);
    for (int a : named) {
      at[static_cast<size_t>(a)] = static_cast<int>(out.body.axes.size());
      const bool along = a == alike.axis;
      const LoopAxis& axis = last.body.axes[static_cast<size_t>(a)];
      out.body.axes.push_back({axis.name, along ? Dim(alike.spans.back().end) : axis.extent});
      out.body.write.push_back(IndexExpr::Axis(static_cast<int>(out.body.write.size())));
    }
    const int axis = at[static_cast<size_t>(alike.axis)];
    std::vector<Expr> pieces;
    for (size_t i = 0; i < alike.ops.size(); ++i) {
      const LoopOp& op = *alike.ops[i];
      const AxisSpan& span = alike.spans[i];
      Read read{.index = {}, .guards = {{axis, span.begin, span.end}}};
      for (const IndexExpr& e : MovedAlong(op.body.reads[r].index, alike.axis, -span.begin)) {
        read.index.push_back(
            e.Substitute([&](int a) { return IndexExpr::Axis(at[static_cast<size_t>(a)]); }));
      }
      out.body.reads.push_back(std::move(read));
      out.inputs.push_back(op.inputs[r]);
      pieces.push_back(Expr::Input(static_cast<int>(i), value(op.inputs[r]).type.dtype));
    }
    out.body.value = ChosenBySpan(axis, alike.spans, pieces);
    return AddOp(std::move(out), ops);
  }

  // The one reduction over the whole axis that replaces the parts; its output is that of the first.
  LoopOp Whole(const Alike& alike, std::vector<LoopOp>* ops) {
    const LoopOp& first = *alike.ops[0];
    LoopOp out = first;
    out.body.axes[static_cast<size_t>(alike.axis)].extent = Dim(alike.spans.back().end);
    for (size_t r = 0; r < first.inputs.size(); ++r) {
      if (SharedRead(alike, r) != Shared::kNo) continue;
      const std::vector<int> named = AxesOf(alike, r);
      out.inputs[r] = PutSideBySide(alike, r, named, ops);
      out.body.reads[r].index.clear();
      for (int a : named) out.body.reads[r].index.push_back(IndexExpr::Axis(a));
    }
    return out;
  }

  const bool reorder_;
  const LeaveProduct& leave_;
  Program& program_;
  const ProgramUses uses_;
};

}  // namespace

bool UniteSideBySide(bool reorder, Program* program, const LeaveProduct& leave) {
  return !program->open_dims && Uniter(reorder, leave, program).Run();
}

}  // namespace fusion
