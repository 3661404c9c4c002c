#include "core/schedule/side_by_side.h"

#include <algorithm>

#include "core/schedule/aliases.h"

namespace fusion {
namespace {

// A part's statements in the numbers of the whole.
class Renumberer {
 public:
  Renumberer(DimId first_dim, const std::vector<BufferId>& buffers)
      : first_dim_(first_dim), buffers_(buffers) {}

  Block Of(const Block& block) const {
    Block out = block;
    for (Stmt& stmt : out) {
      std::visit([this](auto& node) { Change(&node); }, stmt.node);
    }
    return out;
  }

  DimId Dim(DimId d) const { return d < 0 ? d : d + first_dim_; }

 private:
  void Change(DimId* d) const { *d = Dim(*d); }
  void Change(std::vector<int>* dims) const {
    for (DimId& d : *dims) d = Dim(d);
  }
  void ChangeBuffer(BufferId* b) const { *b = buffers_[static_cast<size_t>(*b)]; }
  void ChangeBuffers(std::vector<BufferId>* list) const {
    for (BufferId& b : *list) ChangeBuffer(&b);
  }
  void Change(Access* a) const {
    ChangeBuffer(&a->buffer);
    for (IndexExpr& e : a->index) {
      e = e.Substitute([this](int d) { return IndexExpr::Axis(Dim(d)); });
    }
    for (Guard& g : a->guards) g.axis = Dim(g.axis);
  }
  void Change(std::vector<Access>* list) const {
    for (Access& a : *list) Change(&a);
  }

  void Change(LoopStmt* s) const {
    Change(&s->dim);
    s->body = Of(s->body);
  }
  void Change(IfStmt* s) const {
    for (IndexExpr& e : s->somewhere) {
      e = e.Substitute([this](int d) { return IndexExpr::Axis(Dim(d)); });
    }
    s->body = Of(s->body);
  }
  void Change(AllocStmt* s) const { ChangeBuffer(&s->buffer); }
  void Change(InitStmt* s) const { ChangeBuffers(&s->buffers); }
  void Change(EachStmt* s) const {
    Change(&s->dims);
    for (ElementOp& op : s->ops) {
      Change(&op.axis);
      Change(&op.access);
    }
  }
  void Change(MmaStmt* s) const {
    for (Access* a : {&s->c, &s->a, &s->b}) Change(a);
    Change(&s->m);
    Change(&s->n);
    Change(&s->over);
  }
  void Change(CopyStmt* s) const {
    Change(&s->target);
    Change(&s->source);
    Change(&s->dims);
  }
  void Change(MergeStmt* s) const {
    Change(&s->target);
    Change(&s->source);
    Change(&s->dims);
  }
  void Change(CallStmt* s) const {
    ChangeBuffers(&s->inputs);
    ChangeBuffers(&s->outputs);
  }

  const DimId first_dim_;
  const std::vector<BufferId>& buffers_;
};

class Joiner {
 public:
  Joiner(const std::vector<const Schedule*>& parts, const std::vector<std::vector<int>>& values)
      : parts_(parts), values_(values), renamed_(parts.size()) {}

  absl::StatusOr<SideBySide> Run() {
    for (const Schedule* part : parts_) {
      if (part->phases.size() != 1) return FailedPrecondition("phases: a part has several");
      for (const ScheduleDim& d : part->dims) {
        // The rest of the compiler takes a dim of no elements as a sign of a kernel without work.
        if (d.extent == 0) return FailedPrecondition("empty: a part computes nothing");
      }
      if (!s_.label.empty()) s_.label += " | ";
      s_.label += part->label;
    }
    s_.bitwise = parts_[0]->bitwise;
    AddParams();
    AddLocals();
    s_.phases.emplace_back();
    for (size_t i = 0; i < parts_.size(); ++i) AddSegments(i);
    s_.may_alias = FindAliases(s_);
    return std::move(out_);
  }

 private:
  // Inputs of the parts in their order, then outputs likewise, as in other schedules.
  void AddParams() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      renamed_[i].assign(parts_[i]->buffers.size(), -1);
    }
    for (bool outputs : {false, true}) {
      for (size_t i = 0; i < parts_.size(); ++i) {
        for (BufferId p = 0; p < parts_[i]->params; ++p) {
          if ((parts_[i]->buffer(p).kind == ParamKind::kOutput) == outputs) AddParam(i, p);
        }
      }
    }
  }

  void AddParam(size_t part, BufferId p) {
    Buffer buffer = parts_[part]->buffer(p);
    int value = values_[part][static_cast<size_t>(p)];
    for (BufferId known = 0; known < s_.params && buffer.kind != ParamKind::kOutput; ++known) {
      const auto& [other, q] = out_.source[static_cast<size_t>(known)];
      buffer.name = s_.buffer(known).name;
      if (values_[static_cast<size_t>(other)][static_cast<size_t>(q)] == value &&
          s_.buffer(known) == buffer) {
        renamed_[part][static_cast<size_t>(p)] = known;
        return;
      }
    }
    buffer.name = StrCat("p", s_.params);
    renamed_[part][static_cast<size_t>(p)] = s_.params++;
    s_.buffers.push_back(std::move(buffer));
    out_.source.emplace_back(static_cast<int>(part), p);
  }

  // Dims and local buffers, told apart by the number of their part.
  void AddLocals() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Schedule& part = *parts_[i];
      first_dim_.push_back(static_cast<DimId>(s_.dims.size()));
      for (ScheduleDim d : part.dims) {
        d.name = StrCat("s", i, "_", d.name);
        s_.dims.push_back(std::move(d));
      }
      for (auto b = static_cast<size_t>(part.params); b < part.buffers.size(); ++b) {
        Buffer buffer = part.buffers[b];
        buffer.name = StrCat("t", s_.buffers.size() - static_cast<size_t>(s_.params));
        for (DimId& d : buffer.dims) d += first_dim_.back();
        renamed_[i][b] = static_cast<BufferId>(s_.buffers.size());
        s_.buffers.push_back(std::move(buffer));
      }
    }
  }

  void AddSegments(size_t i) {
    Renumberer renumber(first_dim_[i], renamed_[i]);
    for (const Segment& segment : parts_[i]->phases[0].segments) {
      Segment moved{.grid = segment.grid, .body = renumber.Of(segment.body)};
      for (GridDim& g : moved.grid) g.dim = renumber.Dim(g.dim);
      s_.phases[0].segments.push_back(std::move(moved));
    }
  }

  const std::vector<const Schedule*>& parts_;
  const std::vector<std::vector<int>>& values_;
  SideBySide out_;
  Schedule& s_ = out_.schedule;
  std::vector<std::vector<BufferId>> renamed_;  // by part and buffer
  std::vector<DimId> first_dim_;                // by part
};

}  // namespace

absl::StatusOr<SideBySide> PutSideBySide(const std::vector<const Schedule*>& parts,
                                         const std::vector<std::vector<int>>& values) {
  return Joiner(parts, values).Run();
}

}  // namespace fusion
