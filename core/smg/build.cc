#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/contains.h"
#include "core/base/threads/job.h"
#include "core/op/body/simplify.h"
#include "core/smg/smg.h"

namespace fusion {
namespace {

// Union-find over digits. A digit is a factor of an axis; splitting it splits the whole class.
class Digits {
 public:
  int Add(int64_t extent) {
    nodes_.push_back({extent, static_cast<int>(nodes_.size()), -1, -1});
    return static_cast<int>(nodes_.size()) - 1;
  }

  // The unsplit digits below `node`, major first.
  void Leaves(int node, std::vector<int>* out) const {
    int root = Find(node);
    const NodeData& n = nodes_[static_cast<size_t>(root)];
    if (n.major < 0) {
      out->push_back(root);
      return;
    }
    Leaves(n.major, out);
    Leaves(n.minor, out);
  }

  // Cuts a digit list (major first) into a major part and a minor part of total extent `minor`,
  // splitting a digit if the cut falls inside it. False if that digit does not divide.
  bool Cut(std::vector<int> list, int64_t minor, std::vector<int>* major_part,
           std::vector<int>* minor_part) {
    minor_part->clear();
    int64_t have = 1;
    while (have < minor) {
      if (list.empty()) return false;
      int last = list.back();
      list.pop_back();
      int64_t wanted = minor / have;
      if (extent(last) > wanted) {
        if (minor % have != 0 || extent(last) % wanted != 0) return false;
        ++changes_;
        int low = Add(wanted);
        int high = Add(extent(last) / wanted);
        nodes_[static_cast<size_t>(last)].major = high;
        nodes_[static_cast<size_t>(last)].minor = low;
        list.push_back(high);
        last = low;
      }
      have *= extent(last);
      minor_part->insert(minor_part->begin(), last);
    }
    *major_part = std::move(list);
    return have == minor;
  }

  // How often classes were united or digits split.
  int changes() const { return changes_; }

  int64_t extent(int root) const { return nodes_[static_cast<size_t>(root)].extent; }

  // Unites two digit lists (major first) of equal total extent, splitting where factors differ.
  // False if they have no common refinement; the state is then undefined and the caller restores
  // it.
  bool Unite(std::vector<int> a, std::vector<int> b) {
    while (!a.empty() && !b.empty()) {
      int x = a.back();
      int y = b.back();
      a.pop_back();
      b.pop_back();
      if (x == y) continue;
      int64_t ex = extent(x);
      int64_t ey = extent(y);
      if (ex == ey) {
        ++changes_;
        nodes_[static_cast<size_t>(std::max(x, y))].parent = std::min(x, y);
        continue;
      }
      int& larger = ex > ey ? x : y;
      int64_t small = std::min(ex, ey);
      if (small == 0 || std::max(ex, ey) % small != 0) return false;
      std::vector<int>& rest = ex > ey ? a : b;
      ++changes_;
      int minor = Add(small);
      int major = Add(std::max(ex, ey) / small);
      nodes_[static_cast<size_t>(larger)].major = major;
      nodes_[static_cast<size_t>(larger)].minor = minor;
      rest.push_back(major);
      (ex > ey ? a : b).push_back(minor);
      (ex > ey ? b : a).push_back(ex > ey ? y : x);
    }
    return a.empty() && b.empty();
  }

 private:
  struct NodeData {
    int64_t extent;
    int parent;
    int major;
    int minor;
  };
  int Find(int node) const {
    while (nodes_[static_cast<size_t>(node)].parent != node) {
      node = nodes_[static_cast<size_t>(node)].parent;
    }
    return node;
  }
  std::vector<NodeData> nodes_;
  int changes_ = 0;
};

class Builder {
 public:
  Builder(const Program& program, const std::vector<LoopId>& loops)
      : program_(program), loops_(loops) {}

  absl::StatusOr<Smg> Build() {
    for (size_t i = 0; i < loops_.size(); ++i) {
      Job::Step();
      const LoopOp& op = program_.op(loops_[i]);
      if (op.kind != LoopOp::kLoop) {
        return InvalidArgument(op.label, " is no loop over elements and cannot be fused");
      }
      writer_[op.output] = static_cast<int>(i);
      std::vector<int> axes;
      for (const LoopAxis& axis : op.body.axes) {
        axes.push_back(axis.extent == Dim(1) ? -1 : digits_.Add(axis.extent.value()));
      }
      axes_.push_back(std::move(axes));
    }
    for (size_t i = 0; i < loops_.size(); ++i) UniteReads(i);
    return Emit();
  }

 private:
  // The mixed-radix digits of an index of op `i`, major first, or false if it is not a plain
  // full-range number.
  bool IndexDigits(size_t i, const IndexExpr& e, std::vector<int>* out) const {
    const LoopBody& body = program_.op(loops_[i]).body;
    if (e.constant() != 0 || e.indirect() >= 0) return false;
    auto terms = e.terms();
    terms.erase(std::remove_if(terms.begin(), terms.end(),
                               [&](const IndexExpr::Term& t) {
                                 return body.axes[static_cast<size_t>(t.axis)].extent == Dim(1);
                               }),
                terms.end());
    std::sort(terms.begin(), terms.end(), IndexExpr::MajorFirst);
    int64_t expected = 1;
    for (size_t t = terms.size(); t-- > 0;) {
      if (terms[t].coefficient != expected) return false;
      expected *= body.axes[static_cast<size_t>(terms[t].axis)].extent.value();
    }
    for (const IndexExpr::Term& t : terms) {
      digits_.Leaves(axes_[i][static_cast<size_t>(t.axis)], out);
    }
    return true;
  }

  // True if uniting two lists takes no digit apart.
  bool AreAlike(const std::vector<int>& a, const std::vector<int>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [this](int x, int y) { return digits_.extent(x) == digits_.extent(y); });
  }

  int64_t Extent(const std::vector<int>& leaves) const {
    int64_t product = 1;
    for (int leaf : leaves) product *= digits_.extent(leaf);
    return product;
  }

  enum class Soundness : uint8_t { kSound, kGuardSplit, kClassTwice };

  // One iteration space must not have a class twice, and a guarded axis must stay whole.
  Soundness Check() const {
    std::vector<int> leaves;
    for (size_t i = 0; i < loops_.size(); ++i) {
      const LoopBody& body = program_.op(loops_[i]).body;
      leaves.clear();
      for (size_t a = 0; a < axes_[i].size(); ++a) {
        if (axes_[i][a] < 0) continue;
        size_t before = leaves.size();
        digits_.Leaves(axes_[i][a], &leaves);
        if (leaves.size() - before > 1 && IsGuarded(body, static_cast<int>(a))) {
          return Soundness::kGuardSplit;
        }
      }
      std::sort(leaves.begin(), leaves.end());
      if (std::adjacent_find(leaves.begin(), leaves.end()) != leaves.end()) {
        return Soundness::kClassTwice;
      }
    }
    return Soundness::kSound;
  }

  static bool IsGuarded(const LoopBody& body, int axis) {
    for (const Read& read : body.reads) {
      for (const Guard& g : read.guards) {
        if (g.axis == axis) return true;
      }
    }
    return false;
  }

  void UniteReads(size_t i) {
    const LoopOp& op = program_.op(loops_[i]);
    relations_.emplace_back();
    for (size_t r = 0; r < op.inputs.size(); ++r) {
      auto writer = writer_.find(op.inputs[r]);
      if (writer == writer_.end()) {
        relations_.back().push_back(SmgRead::kInput);
        continue;
      }
      relations_.back().push_back(
          UniteRead(i, op.body.reads[r], static_cast<size_t>(writer->second)));
    }
  }

  // Unites what tensor dim `d` of the read and of the write have in common. Full-range factors are
  // peeled off from the major end; what is left must be the whole minor part (`whole`), or it stays
  // a shifted read of it. Without `peel` no dim is taken apart.
  bool UniteDim(size_t i, size_t producer, const Read& read, size_t d, bool peel, bool* whole) {
    std::vector<int> written;
    if (!IndexDigits(producer, program_.op(loops_[producer]).body.write[d], &written)) {
      *whole = false;
      return true;
    }
    std::vector<int> reader;
    if (IndexDigits(i, read.index[d], &reader) && Extent(reader) == Extent(written) &&
        (peel || AreAlike(reader, written))) {
      return digits_.Unite(std::move(reader), std::move(written));
    }
    *whole = false;
    if (!peel) return true;
    const LoopBody& body = program_.op(loops_[i]).body;
    IndexExpr rest = read.index[d];
    if (rest.indirect() >= 0) return true;
    int64_t extent = Extent(written);
    for (;;) {
      const IndexExpr::Term* top = nullptr;
      for (const IndexExpr::Term& t : rest.terms()) {
        int64_t steps = body.axes[static_cast<size_t>(t.axis)].extent.value();
        if (t.coefficient > 0 && steps > 1 && t.coefficient * steps == extent) top = &t;
      }
      if (top == nullptr || top->coefficient == 1) return true;
      IndexExpr::Term term = *top;
      IndexExpr minor = rest + IndexExpr::Axis(term.axis, -term.coefficient);
      IndexRange below = RangeOf(
          minor,
          [&](int a) {
            return IndexRange{0, body.axes[static_cast<size_t>(a)].extent.value()};
          },
          read.guards);
      if (below.empty() || below.begin < 0 || below.end > term.coefficient) return true;
      std::vector<int> major_part;
      std::vector<int> minor_part;
      if (!digits_.Cut(written, term.coefficient, &major_part, &minor_part)) return true;
      std::vector<int> mine;
      digits_.Leaves(axes_[i][static_cast<size_t>(term.axis)], &mine);
      if (!digits_.Unite(std::move(mine), std::move(major_part))) return false;
      // Leaves may have been split by uniting: read the minor part again.
      written.clear();
      for (int leaf : minor_part) digits_.Leaves(leaf, &written);
      rest = minor;
      extent = term.coefficient;
    }
  }

  SmgRead::Relation UniteRead(size_t i, const Read& read, size_t producer) {
    // A guarded dim (padding) must stay whole: if taking dims apart spoils that, they stay as they
    // are.
    for (bool peel : {true, false}) {
      Digits saved = digits_;
      bool united = true;
      bool aligned = true;
      for (size_t d = 0; d < read.index.size() && united; ++d) {
        bool whole = true;
        united = UniteDim(i, producer, read, d, peel, &whole);
        aligned &= whole;
      }
      // Sound before: only a change can spoil it.
      Soundness sound = Soundness::kSound;
      if (united && digits_.changes() != saved.changes()) sound = Check();
      if (united && sound == Soundness::kSound) {
        return aligned && read.guards.empty() ? SmgRead::kAligned : SmgRead::kShifted;
      }
      digits_ = std::move(saved);
      if (sound != Soundness::kGuardSplit) break;
    }
    return SmgRead::kAliased;
  }

  // ---- from digits to dims ----

  DimId DimOf(int leaf) {
    auto it = dim_of_.find(leaf);
    if (it != dim_of_.end()) return it->second;
    auto id = static_cast<DimId>(smg_.dims.size());
    smg_.dims.push_back({"", digits_.extent(leaf)});
    dim_of_[leaf] = id;
    return id;
  }

  // d0, d1, ... of element-wise ops say less than m, n, k.
  static bool IsNumbered(std::string_view name) {
    return name.size() > 1 && name[0] == 'd' && name[1] >= '0' && name[1] <= '9';
  }

  // The hint, or the hint and the smallest number that makes it unique.
  void Name(DimId id, std::string_view hint) {
    std::string name(hint);
    int& suffix = suffixes_[name];
    while (!names_.insert(name).second) name = StrCat(hint, ++suffix);
    smg_.dims[static_cast<size_t>(id)].name = std::move(name);
  }

  // Axis `a` of op i as a sum over dims.
  IndexExpr AxisExpr(size_t i, int axis) {
    int node = axes_[i][static_cast<size_t>(axis)];
    IndexExpr sum(0);
    if (node < 0) return sum;
    std::vector<int> leaves;
    digits_.Leaves(node, &leaves);
    int64_t stride = 1;
    for (size_t l = leaves.size(); l-- > 0;) {
      sum = sum + IndexExpr::Axis(dim_of_.at(leaves[l]), stride);
      stride *= digits_.extent(leaves[l]);
    }
    return sum;
  }

  static Expr IndexAsExpr(const IndexExpr& e) {
    Expr sum = Expr::ConstInt(DType::kI64, e.constant());
    bool first = e.constant() == 0 && !e.terms().empty();
    for (const IndexExpr::Term& t : e.terms()) {
      Expr term = Expr::Axis(t.axis);
      if (t.coefficient != 1) term = term * Expr::ConstInt(DType::kI64, t.coefficient);
      sum = first ? term : sum + term;
      first = false;
    }
    return sum;
  }

  absl::StatusOr<Smg> Emit() {
    for (size_t i = 0; i < loops_.size(); ++i) NameDims(i, false);
    for (size_t i = 0; i < loops_.size(); ++i) NameDims(i, true);
    for (size_t i = 0; i < loops_.size(); ++i) smg_.ops.push_back(EmitOp(i));
    return std::move(smg_);
  }

  // Gives every digit of op i's axes its dim, and a name to dims without one: telling names first.
  void NameDims(size_t i, bool numbered_too) {
    const LoopBody& body = program_.op(loops_[i]).body;
    for (size_t a = 0; a < axes_[i].size(); ++a) {
      if (axes_[i][a] < 0) continue;
      std::vector<int> leaves;
      digits_.Leaves(axes_[i][a], &leaves);
      for (int leaf : leaves) {
        DimId id = DimOf(leaf);
        bool open = smg_.dims[static_cast<size_t>(id)].name.empty();
        if (open && (numbered_too || !IsNumbered(body.axes[a].name))) Name(id, body.axes[a].name);
      }
    }
  }

  SmgOp EmitOp(size_t i) {
    const LoopOp& op = program_.op(loops_[i]);
    const LoopBody& body = op.body;
    SmgOp out{.loop = loops_[i],
              .label = op.label,
              .origin = op.origin,
              .output = op.output,
              .dims = {},
              .reduced = {},
              .reads = {},
              .write = {},
              .value = {},
              .reduce = body.reduce};
    auto axis = [&](int a) { return AxisExpr(i, a); };
    std::vector<int> reduced = body.ReducedAxes();
    for (size_t a = 0; a < axes_[i].size(); ++a) {
      bool is_reduced = Contains(reduced, static_cast<int>(a));
      IndexExpr sum = axis(static_cast<int>(a));
      // Major first: descending stride.
      auto terms = sum.terms();
      std::sort(terms.begin(), terms.end(), IndexExpr::MajorFirst);
      for (const IndexExpr::Term& t : terms) {
        out.dims.push_back(t.axis);
        if (is_reduced) out.reduced.push_back(t.axis);
      }
    }
    for (const IndexExpr& e : body.write) out.write.push_back(e.Substitute(axis));
    for (size_t r = 0; r < body.reads.size(); ++r) {
      SmgRead read;
      read.value = op.inputs[r];
      auto writer = writer_.find(read.value);
      read.producer = writer == writer_.end() ? -1 : writer->second;
      read.relation = relations_[i][r];
      for (const IndexExpr& e : body.reads[r].index) read.index.push_back(e.Substitute(axis));
      for (const Guard& g : body.reads[r].guards) {
        IndexExpr at = axis(g.axis);
        // A guard on an axis of extent 1 is decided by the folded `within` of the value.
        if (at.IsPlainAxis()) read.guards.push_back({at.terms()[0].axis, g.begin, g.end});
      }
      out.reads.push_back(std::move(read));
    }
    out.value = Simplify(body.value.MapLeaves([&](const Expr& leaf) -> Expr {
      if (leaf.op() == ScalarOp::kInput) return leaf;
      IndexExpr at = axis(leaf.index());
      if (leaf.op() == ScalarOp::kAxis) return IndexAsExpr(at);
      if (at.IsPlainAxis()) return Expr::Within(at.terms()[0].axis, leaf.integer(), leaf.end());
      return Expr::ConstInt(DType::kBool, leaf.integer() <= 0 && 0 < leaf.end() ? 1 : 0);
    }));
    DropUnusedReads(&out);
    return out;
  }

  // Simplifying may leave inputs without use (a concat piece that an extent-1 axis never reaches):
  // they are not read.
  static void DropUnusedReads(SmgOp* op) {
    std::vector<bool> used(op->reads.size(), false);
    op->value.VisitOnce([&](const Expr& e) {
      if (e.op() == ScalarOp::kInput) used[static_cast<size_t>(e.index())] = true;
    });
    for (const SmgRead& read : op->reads) {
      for (const IndexExpr& e : read.index) {
        if (e.indirect() >= 0) return;  // input numbers inside indices stay
      }
    }
    if (std::find(used.begin(), used.end(), false) == used.end()) return;
    std::vector<int> renumber(op->reads.size(), -1);
    std::vector<SmgRead> kept;
    for (size_t r = 0; r < op->reads.size(); ++r) {
      if (!used[r]) continue;
      renumber[r] = static_cast<int>(kept.size());
      kept.push_back(std::move(op->reads[r]));
    }
    op->reads = std::move(kept);
    op->value = op->value.MapLeaves([&](const Expr& leaf) {
      if (leaf.op() != ScalarOp::kInput) return leaf;
      return Expr::Input(renumber[static_cast<size_t>(leaf.index())], leaf.type());
    });
  }

  const Program& program_;
  const std::vector<LoopId>& loops_;
  std::unordered_map<ValueId, int> writer_;
  std::vector<std::vector<int>> axes_;  // digit node of each op's axes; -1 for extent 1
  std::vector<std::vector<SmgRead::Relation>> relations_;
  Digits digits_;
  std::unordered_map<int, DimId> dim_of_;
  std::unordered_set<std::string> names_;          // of dims
  std::unordered_map<std::string, int> suffixes_;  // last one tried, by hint
  Smg smg_;
};

}  // namespace

absl::StatusOr<Smg> BuildSmg(const Program& program, const std::vector<LoopId>& loops) {
  return Builder(program, loops).Build();
}

}  // namespace fusion
