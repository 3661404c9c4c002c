#include "core/smg/split.h"

#include <algorithm>

#include "core/base/contains.h"

namespace fusion {
namespace {

class Splitter {
 public:
  Splitter(const Streamed& form, DimId dim, int64_t parts)
      : smg_(form.smg), roles_(form.ops), dim_(dim) {
    length_ = smg_.dim(dim).extent / parts;
    part_ = static_cast<DimId>(smg_.dims.size());
    out_.partial.dims = smg_.dims;
    out_.partial.dims[static_cast<size_t>(dim)].extent = length_;
    out_.partial.dims.push_back({.name = FreshName(), .extent = parts});
    out_.merge.dims = out_.partial.dims;
    for (const SmgOp& op : smg_.ops) {
      next_value_ = std::max(next_value_, op.output + 1);
      for (const SmgRead& read : op.reads) next_value_ = std::max(next_value_, read.value + 1);
    }
    size_t ops = smg_.ops.size();
    update_of_.assign(ops, -1);
    for (size_t i = 0; i < ops; ++i) {
      if (roles_[i].role == StreamRole::kUpdate) {
        update_of_[static_cast<size_t>(roles_[i].target)] = static_cast<int>(i);
      }
    }
    before_.assign(ops, false);
    for (size_t i = 0; i < ops; ++i) {
      before_[i] = roles_[i].role != StreamRole::kPlain;
      for (const SmgRead& read : smg_.ops[i].reads) {
        if (read.producer >= 0 && !IsState(read.producer)) {
          before_[i] = before_[i] || before_[static_cast<size_t>(read.producer)];
        }
      }
    }
    partial_.assign(ops, -1);
    whole_.assign(ops, -1);
    of_part_.assign(ops, -1);
    state_.assign(ops, -1);
    has_part_.assign(ops, false);
  }

  Split Run(const std::vector<ValueId>& outputs) {
    out_.refusal = Check();
    if (!out_.refusal.empty()) return std::move(out_);
    for (size_t i = 0; i < smg_.ops.size(); ++i) {
      if (!Contains(outputs, smg_.ops[i].output)) continue;
      auto op = static_cast<int>(i);
      if (smg_.ops[i].Has(dim_) && !IsState(op)) {
        Partial(op);
      } else {
        Whole(op);
      }
    }
    DropIdleDims(&out_.partial);
    DropIdleDims(&out_.merge);
    return std::move(out_);
  }

 private:
  static void DropIdleDims(Smg* smg) {
    for (auto d = static_cast<DimId>(smg->dims.size()) - 1; d >= 0; --d) {
      bool used =
          std::any_of(smg->ops.begin(), smg->ops.end(), [&](const SmgOp& op) { return op.Has(d); });
      if (!used) RemoveDim(d, smg);
    }
  }

  bool IsState(int i) const { return smg_.op(i).Reduces(dim_); }

  std::string FreshName() const {
    std::string name = StrCat(smg_.dim(dim_).name, "_part");
    while (std::any_of(smg_.dims.begin(), smg_.dims.end(),
                       [&](const SmgDim& d) { return d.name == name; })) {
      name += "s";
    }
    return name;
  }

  // Whether it reads an intermediate at another coordinate of the dim, or reads the dim as another
  // one.
  bool LooksElsewhere(const SmgRead& read) const {
    if (read.producer < 0 || read.relation == SmgRead::kAligned) return false;
    const IndexMap& written = smg_.op(read.producer).write;
    for (size_t i = 0; i < read.index.size(); ++i) {
      bool looks = read.index[i].CoefficientOf(dim_) != 0 || written[i].CoefficientOf(dim_) != 0;
      if (looks && !(read.index[i] == written[i])) return true;
    }
    return false;
  }

  // Why ops cannot be split along the dim; empty if they can.
  Refusal Check() const {
    for (const SmgOp& op : smg_.ops) {
      if (!op.Has(dim_)) continue;
      if (op.Reduces(dim_) && op.reduce.has_value() && !op.reduce->IsScalar()) {
        return Refuse(RefusalCode::kMonoid, op.label, " reduces to several values");
      }
      for (const SmgRead& read : op.reads) {
        bool guarded = std::any_of(read.guards.begin(), read.guards.end(),
                                   [&](const Guard& g) { return g.axis == dim_; });
        if (guarded || LooksElsewhere(read)) {
          return Refuse(RefusalCode::kCrossing, op.label, " reads %", read.value,
                        " at places that depend on where ", smg_.dim(dim_).name, " is cut");
        }
      }
    }
    return {};
  }

  // ---- coordinates of the whole dim in terms of part and coordinate within it ----

  IndexExpr Cut(const IndexExpr& e) const {
    int64_t coefficient = e.CoefficientOf(dim_);
    return coefficient == 0 ? e : e + IndexExpr::Axis(part_, coefficient * length_);
  }
  IndexMap Cut(IndexMap map) const {
    for (IndexExpr& e : map) e = Cut(e);
    return map;
  }
  Expr Coordinate() const {
    return Expr::Axis(part_) * Expr::ConstInt(DType::kI64, length_) + Expr::Axis(dim_);
  }
  Expr Cut(const Expr& value) const {
    return value.MapLeaves([&](const Expr& leaf) -> Expr {
      bool here =
          (leaf.op() == ScalarOp::kAxis || leaf.op() == ScalarOp::kWithin) && leaf.index() == dim_;
      if (!here) return leaf;
      if (leaf.op() == ScalarOp::kAxis) return Coordinate();
      Expr from =
          Expr::Binary(ScalarOp::kGe, Coordinate(), Expr::ConstInt(DType::kI64, leaf.integer()));
      Expr to = Expr::Binary(ScalarOp::kLt, Coordinate(), Expr::ConstInt(DType::kI64, leaf.end()));
      return Expr::Binary(ScalarOp::kAnd, from, to);
    });
  }
  // ---- the phase of the parts ----

  // Op i for each part. Its value has the parts as first dim if it lacks the split one.
  int Partial(int i) {
    int& made = partial_[static_cast<size_t>(i)];
    if (made >= 0) return made;
    SmgOp op = smg_.op(i);
    bool part = op.Has(dim_);
    for (SmgRead& read : op.reads) {
      read.index = Cut(std::move(read.index));
      if (read.producer < 0) continue;
      int from = read.producer;
      read.producer = Partial(from);
      read.value = out_.partial.op(read.producer).output;
      part = part || has_part_[static_cast<size_t>(from)];
      if (LeadsWithPart(from)) AddPart(&read.index);
    }
    op.value = Cut(op.value);
    if (part) op.dims.insert(op.dims.begin(), part_);
    has_part_[static_cast<size_t>(i)] = part;
    op.write = Cut(std::move(op.write));
    if (LeadsWithPart(i)) AddPart(&op.write);
    if (IsState(i)) {
      // The whole result has the name of the original.
      op.loop = kNoLoop;
      op.output = StateOf(i).value;
    }
    out_.partial.ops.push_back(std::move(op));
    made = static_cast<int>(out_.partial.ops.size()) - 1;
    return made;
  }

  bool LeadsWithPart(int i) const {
    const SmgOp& op = smg_.op(i);
    return has_part_[static_cast<size_t>(i)] && (!op.Has(dim_) || op.Reduces(dim_));
  }

  void AddPart(IndexMap* index) const { index->insert(index->begin(), IndexExpr::Axis(part_)); }

  const SplitState& StateOf(int i) {
    int& at = state_[static_cast<size_t>(i)];
    if (at < 0) {
      at = static_cast<int>(out_.states.size());
      const std::vector<SmgDim>& dims = out_.partial.dims;
      SplitState state{
          .value = next_value_++, .shape = {dims.back().extent}, .type = smg_.op(i).value.type()};
      for (const IndexExpr& e : smg_.op(i).write) {
        int64_t extent = 1;
        for (const IndexExpr::Term& t : e.terms()) {
          extent += t.coefficient * (dims[static_cast<size_t>(t.axis)].extent - 1);
        }
        state.shape.push_back(extent);
      }
      out_.states.push_back(std::move(state));
    }
    return out_.states[static_cast<size_t>(at)];
  }

  // ---- the merge ----

  SmgRead ReadState(int i, const IndexMap& index) {
    Partial(i);
    SmgRead read{.value = StateOf(i).value, .relation = SmgRead::kInput, .index = index};
    AddPart(&read.index);
    return read;
  }

  // Op i of whole results, in `merge`.
  int Whole(int i) {
    int known = whole_[static_cast<size_t>(i)];
    if (known >= 0) return known;
    SmgOp op = smg_.op(i);
    if (IsState(i)) {
      int update = update_of_[static_cast<size_t>(i)];
      SmgRead read = ReadState(i, op.write);
      if (update >= 0) {
        int moved = OfPart(update);
        read = {.value = out_.merge.op(moved).output,
                .producer = moved,
                .relation = SmgRead::kAligned,
                .index = out_.merge.op(moved).write};
      }
      op.dims = op.OutputDims();
      op.dims.insert(op.dims.begin(), part_);
      op.reduced = {part_};
      op.value = Expr::Input(0, op.value.type());
      op.reads = {std::move(read)};
    } else {
      for (SmgRead& read : op.reads) {
        if (read.producer >= 0) read.producer = Whole(read.producer);
      }
    }
    out_.merge.ops.push_back(std::move(op));
    return whole_[static_cast<size_t>(i)] = static_cast<int>(out_.merge.ops.size()) - 1;
  }

  // Op i, which reads partial results as they were before a tile: in `merge`, once per part.
  int OfPart(int i) {
    int known = of_part_[static_cast<size_t>(i)];
    if (known >= 0) return known;
    SmgOp op = smg_.op(i);
    bool old = roles_[static_cast<size_t>(i)].role != StreamRole::kPlain;
    for (SmgRead& read : op.reads) {
      int from = read.producer;
      if (from < 0) continue;
      if (old && IsState(from)) {
        read = ReadState(from, read.index);
      } else if (!IsState(from) && before_[static_cast<size_t>(from)]) {
        read.producer = OfPart(from);
        read.value = out_.merge.op(read.producer).output;
        AddPart(&read.index);
      } else {
        read.producer = Whole(from);
      }
    }
    op.dims.insert(op.dims.begin(), part_);
    AddPart(&op.write);
    op.loop = kNoLoop;
    op.output = next_value_++;
    out_.merge.ops.push_back(std::move(op));
    return of_part_[static_cast<size_t>(i)] = static_cast<int>(out_.merge.ops.size()) - 1;
  }

  const Smg& smg_;
  const std::vector<StreamOp>& roles_;
  DimId dim_;
  DimId part_ = -1;  // the last dim, until unused dims are dropped
  int64_t length_ = 1;
  ValueId next_value_ = 0;
  std::vector<int> update_of_;  // by op
  std::vector<bool> before_;    // by op: reads partial results as they were before a tile
  std::vector<bool> has_part_;  // by op, of those in `partial`
  std::vector<int> partial_;    // by op: op of `partial`
  std::vector<int> whole_;      // by op: op of `merge`
  std::vector<int> of_part_;    // by op: op of `merge`, computed per part
  std::vector<int> state_;      // by op
  Split out_;
};

}  // namespace

Split SplitAlong(const Smg& smg, const std::vector<ValueId>& outputs, DimId dim, int64_t parts) {
  Split out;
  Streamed form = StreamAlong(smg, outputs, dim);
  if (form.kind == Streamed::kRefused) {
    out.refusal = form.refusal;
    return out;
  }
  bool reduces = std::any_of(form.smg.ops.begin(), form.smg.ops.end(),
                             [&](const SmgOp& op) { return op.Reduces(dim); });
  int64_t extent = smg.dim(dim).extent;
  // Dims of extent 1 do not appear in an SMG.
  if (!reduces || parts < 2 || extent % parts != 0 || extent == parts) {
    out.refusal = Refuse(RefusalCode::kNoSchedule, smg.dim(dim).name, " of ", extent,
                         " is not reduced, or not by parts of equal length: ", parts);
    return out;
  }
  out = Splitter(form, dim, parts).Run(outputs);
  out.loose = form.loose;
  out.certificate = std::move(form.certificate);
  return out;
}

}  // namespace fusion
