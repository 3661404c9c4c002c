#include "core/smg/stream_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/contains.h"

namespace fusion {
namespace {

// SmgRead::value of a read whose producer's output may still change (Adopt): Finish replaces index
// and value with those of the final write.
constexpr ValueId kOwnWrite = -1;
constexpr size_t kLongestText = 1000;

void MarkDims(const IndexMap& map, std::vector<bool>* used) {
  for (const IndexExpr& e : map) {
    for (const IndexExpr::Term& t : e.terms()) (*used)[static_cast<size_t>(t.axis)] = true;
  }
}

bool Varies(const SmgRead& read, DimId dim) {
  for (const IndexExpr& e : read.index) {
    if (e.CoefficientOf(dim) != 0 || e.indirect() >= 0) return true;
  }
  return std::any_of(read.guards.begin(), read.guards.end(),
                     [&](const Guard& g) { return g.axis == dim; });
}

// The product in the wider type of both; `a` may be empty.
Expr ProductOf(const Expr& a, const Expr& b) {
  if (a.empty()) return b;
  DType type = DTypeBytes(a.type()) < DTypeBytes(b.type()) ? b.type() : a.type();
  return Expr::Cast(a, type) * Expr::Cast(b, type);
}

// e^(a - b); 1 where both are the same infinity.
Expr ExpOfDifference(const Expr& a, const Expr& b) {
  return Expr::Select(Expr::Binary(ScalarOp::kEq, a, b), Expr::Const(a.type(), 1),
                      Expr::Unary(ScalarOp::kExp, a - b));
}

}  // namespace

// Rewrites the value of one op from an expression over leaves to one over its reads.
class StreamBuilder::Writer {
 public:
  Writer(StreamBuilder* build, Place place, int source, const Expr& root)
      : build_(*build), place_(place), source_(source), root_(root.id()) {}

  Expr Write(const Expr& e) {
    auto done = done_.find(e.id());
    if (done != done_.end()) return done->second;
    Expr out = Rebuild(e);
    done_.emplace(e.id(), out);
    return out;
  }

  std::vector<SmgRead> TakeReads() { return std::move(reads_); }
  /// Axes that the value uses itself.
  const std::vector<DimId>& axes() const { return axes_; }

 private:
  Expr Rebuild(const Expr& e) {
    if (e.op() == ScalarOp::kInput) return OfLeaf(e);
    if (e.op() == ScalarOp::kAxis || e.op() == ScalarOp::kWithin) {
      axes_.push_back(e.index());
      return e;
    }
    if (e.args().empty()) return e;
    if (e.id() != root_) {
      int op = Shared(e);
      if (op >= 0) return Read(build_.ReadOf(op), e.type());
    }
    std::vector<Expr> args;
    for (const Expr& a : e.args()) args.push_back(Write(a));
    return e.WithArgs(std::move(args));
  }

  // The op that already computes `e`, or an op emitted for it now; -1: none is shared.
  int Shared(const Expr& e) {
    auto made = build_.shared_.find(e.id());
    if (made != build_.shared_.end()) return made->second.second;
    if (place_ == kBehind) {
      auto late = build_.late_.find(e.id());
      return late == build_.late_.end() ? -1 : late->second.second;
    }
    auto anchor = build_.anchors_.find(e.id());
    return anchor == build_.anchors_.end() ? -1
                                           : build_.EmitShared(e, kInside, anchor->second.second);
  }

  Expr OfLeaf(const Expr& e) {
    int leaf = e.index();
    auto read = build_.read_of_leaf_.find(leaf);
    if (read != build_.read_of_leaf_.end()) {
      SmgRead mine = read->second;
      if (mine.producer >= 0) mine.producer = build_.OpOf(mine.producer);
      for (IndexExpr& at : mine.index) {
        if (at.indirect() < 0) continue;
        // The value that gives the index is a leaf of its own.
        Expr index = Write(build_.index_of_leaf_.at(leaf));
        IndexExpr plain(at.constant());
        for (const IndexExpr::Term& t : at.terms()) {
          plain = plain + IndexExpr::Axis(t.axis, t.coefficient);
        }
        at = plain + IndexExpr::Indirect(index.index());
      }
      return Read(std::move(mine), e.type());
    }
    return Read(build_.ReadOf(build_.op_of_leaf_.at(leaf)), e.type());
  }

  Expr Read(SmgRead read, DType type) {
    auto same = std::find(reads_.begin(), reads_.end(), read);
    auto at = static_cast<int>(same - reads_.begin());
    if (same == reads_.end()) reads_.push_back(std::move(read));
    return Expr::Input(at, type);
  }

  StreamBuilder& build_;
  Place place_;
  int source_;
  const void* root_;
  std::vector<SmgRead> reads_;
  std::vector<DimId> axes_;
  std::unordered_map<const void*, Expr> done_;
};

StreamBuilder::StreamBuilder(const Smg& smg, DimId dim, Leaves* leaves)
    : smg_(smg), dim_(dim), leaves_(*leaves), op_of_(smg.ops.size(), -1) {
  for (const SmgOp& op : smg.ops) {
    next_value_ = std::max(next_value_, op.output + 1);
    for (const SmgRead& read : op.reads) next_value_ = std::max(next_value_, read.value + 1);
  }
}

int StreamBuilder::Append(SmgOp op, StreamOp what) {
  ops_.push_back(std::move(op));
  what_.push_back(what);
  return static_cast<int>(ops_.size()) - 1;
}

int StreamBuilder::Copy(int i) {
  SmgOp op = smg_.op(i);
  for (SmgRead& read : op.reads) {
    if (read.producer >= 0) read.producer = OpOf(read.producer);
  }
  op_of_[static_cast<size_t>(i)] = Append(std::move(op), {.source = i});
  return OpOf(i);
}

Expr StreamBuilder::ReadLeaf(const SmgOp& op, int r, DType type) {
  const SmgRead& read = op.reads[static_cast<size_t>(r)];
  auto name = [](int d) { return StrCat("d", d); };
  IndexMap plain = read.index;
  Expr index;
  std::string key = StrCat(read.value, DTypeName(type));
  for (IndexExpr& at : plain) {
    if (at.indirect() < 0) continue;
    index = ReadLeaf(op, at.indirect(), DType::kI64);
    key += StrCat("@", index.index());
    IndexExpr moved(at.constant());
    for (const IndexExpr::Term& t : at.terms()) {
      moved = moved + IndexExpr::Axis(t.axis, t.coefficient);
    }
    at = moved + IndexExpr::Indirect(0);
  }
  key += StrCat(IndexMapToString(plain, name), GuardsToString(read.guards, name));
  auto known = read_leaves_.find(key);
  if (known != read_leaves_.end()) return known->second;
  Leaf::Kind kind = Varies(read, dim_) ? Leaf::kSlice : Leaf::kFixed;
  Expr leaf = leaves_.Add({.kind = kind, .element = DefinitionOf(read), .monoid = ""}, type);
  read_of_leaf_.emplace(leaf.index(), read);
  if (!index.empty()) index_of_leaf_.emplace(leaf.index(), index);
  read_leaves_.emplace(std::move(key), leaf);
  return leaf;
}

// What the op that wrote a value computed for the element of the reader.
Expr StreamBuilder::DefinitionOf(const SmgRead& read) {
  if (read.producer < 0 || read.relation != SmgRead::kAligned || !read.guards.empty()) return {};
  const SmgOp& from = smg_.op(read.producer);
  if (from.reduce.has_value()) return {};
  bool plain = std::all_of(from.reads.begin(), from.reads.end(), [](const SmgRead& r) {
    return r.guards.empty() && r.relation != SmgRead::kShifted;
  });
  if (!plain) return {};
  return from.value.MapLeaves([&](const Expr& leaf) -> Expr {
    return leaf.op() == ScalarOp::kInput ? ReadLeaf(from, leaf.index(), leaf.type()) : leaf;
  });
}

Expr StreamBuilder::OpLeaf(Leaf leaf, int op, DType type) {
  Expr e = leaves_.Add(std::move(leaf), type);
  op_of_leaf_.emplace(e.index(), op);
  return e;
}

SmgRead StreamBuilder::ReadOf(int op) const {
  return {
      .value = kOwnWrite, .producer = op, .relation = SmgRead::kAligned, .index = {}, .guards = {}};
}

double StreamBuilder::PointsFolded(int op) const {
  double points = 1;
  for (DimId d : ops_[static_cast<size_t>(op)].reduced) {
    points *= static_cast<double>(smg_.dim(d).extent);
  }
  return points;
}

// The dims in the order in which the given SMG has them.
std::vector<DimId> StreamBuilder::InOrder(const std::vector<bool>& used) const {
  std::vector<DimId> out;
  for (const SmgOp& op : smg_.ops) {
    for (DimId d : op.dims) {
      if (used[static_cast<size_t>(d)] && !Contains(out, d)) out.push_back(d);
    }
  }
  return out;
}

int StreamBuilder::Emit(const Expr& value, std::string label, Place place, StreamOp what) {
  Writer writer(this, place, what.source, value);
  SmgOp op{.label = std::move(label),
           .output = next_value_++,
           .dims = {},
           .reduced = {},
           .reads = {},
           .write = {},
           .value = writer.Write(value),
           .reduce = {}};
  std::vector<bool> used(smg_.dims.size(), false);
  op.reads = writer.TakeReads();
  for (const SmgRead& read : op.reads) {
    bool own = read.value == kOwnWrite;
    MarkDims(own ? ops_[static_cast<size_t>(read.producer)].write : read.index, &used);
  }
  for (DimId d : writer.axes()) used[static_cast<size_t>(d)] = true;
  op.dims = InOrder(used);
  for (DimId d : op.dims) op.write.push_back(IndexExpr::Axis(d));
  return Append(std::move(op), what);
}

int StreamBuilder::EmitShared(const Expr& value, Place place, int source) {
  auto made = shared_.find(value.id());
  if (made != shared_.end()) return made->second.second;
  std::string label = source < 0 ? "Factor" : smg_.op(source).label;
  int op = Emit(value, std::move(label), place, {.source = source});
  shared_.emplace(value.id(), std::pair{value, op});
  return op;
}

int StreamBuilder::Reduction(int i, const Expr& rest) {
  const SmgOp& from = smg_.op(i);
  Expr value = rest;
  bool product = from.reduce->name() == "sum" && rest.op() == ScalarOp::kMul;
  if (product) {
    // Operands of a possible matrix product become values of their own.
    for (const Expr& arg : rest.args()) {
      if (!arg.args().empty() && leaves_.HasSlice(arg)) EmitShared(arg, kInside, i);
    }
  }
  int op = Emit(value, from.label, kInside, {.source = i});
  SmgOp& made = ops_[static_cast<size_t>(op)];
  std::vector<DimId> dims;
  for (DimId d : from.dims) {
    if (from.Reduces(d) || Contains(made.dims, d)) dims.push_back(d);
  }
  made.dims = std::move(dims);
  made.reduced = from.reduced;
  made.reduce = Monoid::Named(from.reduce->name(), value.type());
  made.write.clear();
  for (DimId d : made.OutputDims()) made.write.push_back(IndexExpr::Axis(d));
  return op;
}

bool StreamBuilder::HasPlainState(const Expr& e) {
  bool found = false;
  e.VisitOnce([&](const Expr& n) {
    found |= n.op() == ScalarOp::kInput && leaves_.leaf(n.index()).kind == Leaf::kState;
  });
  return found;
}

double StreamBuilder::LowestOf(DType type) {
  switch (type) {
    case DType::kF16:
      return -65504;
    case DType::kF64:
      return std::numeric_limits<double>::lowest();
    default:
      return RoundTo(type, static_cast<double>(std::numeric_limits<float>::lowest()));
  }
}

// Clamps states that start at an infinity (extrema) to finite numbers.
Expr StreamBuilder::Clamped(const Expr& value) const {
  return value.MapLeaves([&](const Expr& l) -> Expr {
    if (l.op() != ScalarOp::kInput) return l;
    const Leaf& at = leaves_.leaf(l.index());
    if (at.kind != Leaf::kState || !IsFloat(l.type())) return l;
    double lowest = LowestOf(l.type());
    if (at.monoid == "max") {
      return Expr::Binary(ScalarOp::kMax, l, Expr::Const(l.type(), lowest));
    }
    if (at.monoid == "min") {
      return Expr::Binary(ScalarOp::kMin, l, Expr::Const(l.type(), -lowest));
    }
    return l;
  });
}

// Whether `value`, with clamped states, is finite before the first tile; leaves other than states
// count as 1.
bool StreamBuilder::IsFiniteAtStart(const Expr& value) const {
  Expr start = value.MapLeaves([&](const Expr& l) -> Expr {
    if (l.op() != ScalarOp::kInput) return l;
    const Leaf& at = leaves_.leaf(l.index());
    if (at.kind != Leaf::kState) return Expr::Const(l.type(), 1);
    auto monoid = Monoid::Named(at.monoid, l.type());
    return monoid.has_value() ? monoid->identity()[0] : l;
  });
  bool constant = true;
  start.VisitOnce([&](const Expr& n) {
    constant &=
        n.op() != ScalarOp::kInput && n.op() != ScalarOp::kAxis && n.op() != ScalarOp::kWithin;
  });
  if (!constant || !IsFloat(start.type())) return false;
  CompiledExpr compiled(start);
  return std::isfinite(compiled.Evaluate(1, {}, {}).reals[0]);
}

bool StreamBuilder::Follow(int running) {
  if (running_.count(running) != 0) return true;
  const Expr exponent = leaves_.leaf(running).element;
  Expr value = leaves_.rules().Has(AlgebraRule::kFiniteState) ? Clamped(exponent) : exponent;
  if (!IsFiniteAtStart(value)) return false;
  Followed f;
  f.now = Emit(value, "Running", kInside, {});
  f.before = Emit(value, "Before", kInside, {.role = StreamRole::kBefore});
  f.now_leaf = Known(f.now, exponent.type());
  f.before_leaf = Known(f.before, exponent.type());
  op_of_leaf_.emplace(running, f.now);
  running_.emplace(running, std::move(f));
  return true;
}

Expr StreamBuilder::Correction(const std::vector<int>& running) {
  Expr product;
  for (int r : running) {
    const Expr exponent = leaves_.leaf(r).element;
    if (Clamped(exponent) == exponent) continue;
    Expr one = ExpOfDifference(exponent, running_.at(r).now_leaf);
    product = ProductOf(product, one);
  }
  return product.empty() ? Expr::Const(leaves_.leaf(running[0]).element.type(), 1) : product;
}

// e^(now - before) of running exponents: one op, read by all updates that need it.
Expr StreamBuilder::Change(const std::vector<int>& running) {
  auto known = changes_.find(running);
  if (known != changes_.end()) return known->second;
  Expr change;
  for (int r : running) {
    const Followed& f = running_.at(r);
    Expr one = ExpOfDifference(f.now_leaf, f.before_leaf);
    change = ProductOf(change, one);
  }
  Expr leaf = Known(Emit(change, "Change", kInside, {}), change.type());
  changes_.emplace(running, leaf);
  return leaf;
}

void StreamBuilder::Adopt(int i, int op) {
  SmgOp& made = ops_[static_cast<size_t>(op)];
  made.loop = smg_.op(i).loop;
  made.origin = smg_.op(i).origin;
  made.output = smg_.op(i).output;
  made.write = smg_.op(i).write;
  op_of_[static_cast<size_t>(i)] = op;
}

Expr StreamBuilder::Scaled(const Expr& state, const std::vector<Expr>& factors) {
  Expr product;
  for (const Expr& f : factors) {
    if (f.IsConst(1)) continue;
    // A sum in a wider type may have factors in the narrower type.
    product = ProductOf(product, Expr::Cast(f, state.type()));
  }
  if (product.empty()) return state;
  if (!product.args().empty()) EmitShared(product, kBehind, -1);
  return state * product;
}

void StreamBuilder::FinishOp(int i, const Expr& value) {
  Adopt(i, Emit(value, smg_.op(i).label, kBehind, {.source = i}));
  // It writes every element of the original value, also along dims that its value lacks.
  SmgOp& made = ops_[static_cast<size_t>(OpOf(i))];
  made.dims = smg_.op(i).OutputDims();
}

void StreamBuilder::Finish(const std::vector<ValueId>& outputs, Streamed* out) {
  std::vector<bool> needed(ops_.size(), false);
  std::vector<int> stack;
  auto need = [&](int op) {
    if (needed[static_cast<size_t>(op)]) return;
    needed[static_cast<size_t>(op)] = true;
    stack.push_back(op);
  };
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (Contains(outputs, ops_[i].output)) need(static_cast<int>(i));
  }
  while (!stack.empty()) {
    int at = stack.back();
    stack.pop_back();
    for (const SmgRead& read : ops_[static_cast<size_t>(at)].reads) {
      if (read.producer >= 0) need(read.producer);
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (what_[i].role == StreamRole::kUpdate && what_[i].target == at) need(static_cast<int>(i));
    }
  }
  std::vector<int> renumber(ops_.size(), -1);
  out->smg.dims = smg_.dims;
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (!needed[i]) continue;
    renumber[i] = static_cast<int>(out->smg.ops.size());
    SmgOp op = ops_[i];
    for (SmgRead& read : op.reads) {
      if (read.producer < 0) continue;
      const SmgOp& from = ops_[static_cast<size_t>(read.producer)];
      if (read.value == kOwnWrite) read.index = from.write;
      read.value = from.output;
      read.producer = renumber[static_cast<size_t>(read.producer)];
    }
    StreamOp what = what_[i];
    if (what.target >= 0) what.target = renumber[static_cast<size_t>(what.target)];
    out->smg.ops.push_back(std::move(op));
    out->ops.push_back(what);
  }
  int& maximum = out->underflow.maximum;
  if (maximum >= 0) maximum = renumber[static_cast<size_t>(maximum)];
  if (maximum < 0) out->underflow = {};
}

std::string StreamBuilder::Text(const Expr& e) const {
  std::string out;
  AppendText(e, &out);
  return out;
}

// A shared subexpression is written at each occurrence, so the text of a hostile expression could
// exhaust memory. Long texts are cut off with "...".
void StreamBuilder::AppendText(const Expr& e, std::string* out) const {
  if (out->size() > kLongestText) {
    if (!out->ends_with("...")) *out += "...";
    return;
  }
  if (e.op() == ScalarOp::kInput) {
    const Leaf& l = leaves_.leaf(e.index());
    auto read = read_of_leaf_.find(e.index());
    if (read != read_of_leaf_.end()) {
      *out += StrCat("%", read->second.value);
    } else if (l.kind == Leaf::kState) {
      *out += StrCat("{", l.monoid, " so far of op ",
                     what_[static_cast<size_t>(op_of_leaf_.at(e.index()))].source, "}");
    } else if (l.kind == Leaf::kRunning || l.kind == Leaf::kCentre) {
      AppendText(l.element, out);
    } else {
      *out += "correction";
    }
    return;
  }
  if (e.args().empty()) {
    *out += e.ToString();
    return;
  }
  *out += NamesItsType(e.op()) ? StrCat(GetScalarInfo(e.op()).name, ".", DTypeName(e.type()), "(")
                               : StrCat(GetScalarInfo(e.op()).name, "(");
  for (size_t i = 0; i < e.args().size(); ++i) {
    if (i > 0) *out += ", ";
    AppendText(e.args()[i], out);
  }
  if (out->size() <= kLongestText) *out += ")";
}

}  // namespace fusion
