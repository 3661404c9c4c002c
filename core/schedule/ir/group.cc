#include "core/schedule/ir/group.h"

#include <algorithm>
#include <set>

namespace fusion {
namespace {

// One place where an op touches a tensor: its index map and the tensor's view (null for values
// inside the kernel).
struct Touch {
  IndexMap* index;
  ValueId value;
};

std::vector<Touch> TouchesOf(FusionGroup* group) {
  std::vector<Touch> touches;
  for (SmgOp& op : group->smg.ops) {
    for (SmgRead& read : op.reads) touches.push_back({&read.index, read.value});
    touches.push_back({&op.write, op.output});
  }
  return touches;
}

int DimOfTensor(const IndexMap& index, DimId d) {
  int found = -1;
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i].CoefficientOf(d) != 0) {
      if (found >= 0) return -2;  // twice: a diagonal
      found = static_cast<int>(i);
    }
  }
  return found;
}

class Coalescer {
 public:
  explicit Coalescer(FusionGroup* group) : group_(group) {}

  void Run() {
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<DimId> next = Neighbours();
      for (DimId a = 0; a < static_cast<DimId>(next.size()) && !changed; ++a) {
        DimId b = next[static_cast<size_t>(a)];
        if (b >= 0 && CanMerge(a, b)) {
          Merge(a, b);
          changed = true;
        }
      }
    }
  }

 private:
  int64_t extent(DimId d) const { return group_->smg.dim(d).extent; }

  // The dim that follows each dim in the first op that has it: the only one it may be merged with.
  // -1: none.
  std::vector<DimId> Neighbours() const {
    std::vector<DimId> next(group_->smg.dims.size(), -1);
    std::vector<bool> seen(group_->smg.dims.size(), false);
    for (const SmgOp& op : group_->smg.ops) {
      for (size_t i = 0; i < op.dims.size(); ++i) {
        auto d = static_cast<size_t>(op.dims[i]);
        if (seen[d]) continue;
        seen[d] = true;
        if (i + 1 < op.dims.size()) next[d] = op.dims[i + 1];
      }
    }
    return next;
  }

  // Every op has both or neither, in the same role, next to each other, and does not look at the
  // coordinates.
  bool OpsAgree(DimId a, DimId b) const {
    bool used = false;
    for (const SmgOp& op : group_->smg.ops) {
      bool has = op.Has(a);
      if (has != op.Has(b) || op.Reduces(a) != op.Reduces(b)) return false;
      used |= has;
      if (!has) continue;
      auto at = std::find(op.dims.begin(), op.dims.end(), a);
      if (at + 1 == op.dims.end() || *(at + 1) != b) return false;
      bool named = false;
      op.value.VisitOnce([&](const Expr& e) {
        bool leaf = e.op() == ScalarOp::kAxis || e.op() == ScalarOp::kWithin;
        named |= leaf && (e.index() == a || e.index() == b);
      });
      for (const SmgRead& read : op.reads) {
        for (const Guard& g : read.guards) named |= g.axis == a || g.axis == b;
      }
      if (named) return false;
    }
    return used;
  }

  bool CanMerge(DimId a, DimId b) {
    if (!OpsAgree(a, b)) return false;
    merged_tensor_dims_.clear();
    std::vector<Touch> touches = TouchesOf(group_);
    for (const Touch& t : touches) {
      int at_a = DimOfTensor(*t.index, a);
      int at_b = DimOfTensor(*t.index, b);
      if (at_a == -2 || at_b == -2) return false;
      if (at_a == -1 && at_b == -1) continue;
      if (at_a == -1 || at_b == -1) return false;
      if (at_a == at_b) {
        const IndexExpr& e = (*t.index)[static_cast<size_t>(at_a)];
        if (e.CoefficientOf(a) != e.CoefficientOf(b) * extent(b)) return false;
      } else {
        if (at_b != at_a + 1 || !PlainPair(t, at_a, a, b)) return false;
        merged_tensor_dims_.insert({t.value, at_a});
      }
    }
    // A tensor whose dims are merged must be touched through that pair only.
    for (const auto& [value, at] : merged_tensor_dims_) {
      for (const Touch& t : touches) {
        if (t.value == value && !PlainPair(t, at, a, b)) return false;
      }
    }
    return true;
  }

  // Tensor dims at, at+1 are indexed by exactly a and b, whole, and lie row-major in memory.
  bool PlainPair(const Touch& t, int at, DimId a, DimId b) const {
    auto i = static_cast<size_t>(at);
    if (!((*t.index)[i] == IndexExpr::Axis(a)) || !((*t.index)[i + 1] == IndexExpr::Axis(b))) {
      return false;
    }
    auto view = group_->views.find(t.value);
    if (view == group_->views.end()) return true;
    const TensorView& v = view->second;
    return v.roomy != at + 1 && !v.fixed && v.shape[i + 1] == extent(b) &&
           v.strides[i] == extent(b) * v.strides[i + 1];
  }

  void Merge(DimId a, DimId b) {
    // Dim a takes the merged extent; b disappears. Where both are in one index, b's term carries
    // the stride.
    int64_t minor = extent(b);
    for (const Touch& t : TouchesOf(group_)) {
      for (IndexExpr& e : *t.index) {
        if (e.CoefficientOf(a) == 0 || e.CoefficientOf(b) == 0) continue;
        int64_t stride = e.CoefficientOf(b);
        e = e + IndexExpr::Axis(a, -e.CoefficientOf(a)) + IndexExpr::Axis(b, -stride) +
            IndexExpr::Axis(a, stride);
      }
    }
    std::set<ValueId> reshaped;
    for (const auto& [value, at] : merged_tensor_dims_) {
      auto i = static_cast<size_t>(at);
      for (const Touch& t : TouchesOf(group_)) {
        if (t.value == value) t.index->erase(t.index->begin() + at + 1);
      }
      auto view = group_->views.find(value);
      if (view == group_->views.end()) continue;
      TensorView& v = view->second;
      v.shape[i] *= v.shape[i + 1];
      v.strides[i] = v.strides[i + 1];
      if (v.roomy > at) --v.roomy;
      v.shape.erase(v.shape.begin() + at + 1);
      v.strides.erase(v.strides.begin() + at + 1);
    }
    group_->smg.dims[static_cast<size_t>(a)].extent *= minor;
    RemoveDim(b, &group_->smg);
  }

  FusionGroup* group_;
  std::set<std::pair<ValueId, int>> merged_tensor_dims_;
};

}  // namespace

bool FusionGroup::IsOutput(ValueId v) const {
  return std::binary_search(outputs.begin(), outputs.end(), v);
}

int FusionGroup::Writer(ValueId v) const {
  for (size_t i = 0; i < smg.ops.size(); ++i) {
    if (smg.ops[i].output == v) return static_cast<int>(i);
  }
  return -1;
}

std::string FusionGroup::Label() const {
  std::string label;
  for (const SmgOp& op : smg.ops) {
    if (op.label == "Copy" && smg.ops.size() > 1) continue;
    if (!label.empty()) label += "+";
    label += op.label;
  }
  return label;
}

void CoalesceDims(FusionGroup* group) { Coalescer(group).Run(); }

absl::StatusOr<FusionGroup> MakeGroup(const Program& program, const std::vector<LoopId>& loops,
                                      const std::vector<bool>& needed_outside,
                                      const std::vector<bool>& constant) {
  FusionGroup group;
  ASSIGN_OR_RETURN(group.smg, BuildSmg(program, loops));
  auto view = [&](ValueId id) {
    const Value& v = program.value(id);
    group.views[id] = {.dtype = v.type.dtype,
                       .shape = v.type.shape.ToDims(),
                       .strides = StorageStrides(v),
                       .constant = constant[static_cast<size_t>(id)],
                       .roomy = v.room ? v.room->dim : -1,
                       .fixed = program.open_dims && !v.strides.empty(),
                       .open = program.open_dims && !constant[static_cast<size_t>(id)]};
  };
  for (const SmgOp& op : group.smg.ops) {
    for (const SmgRead& read : op.reads) {
      if (read.producer < 0) view(read.value);
    }
    if (needed_outside[static_cast<size_t>(op.output)]) {
      group.outputs.push_back(op.output);
      view(op.output);
    }
  }
  std::sort(group.outputs.begin(), group.outputs.end());
  CoalesceDims(&group);
  return group;
}

}  // namespace fusion
