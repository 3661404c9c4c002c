#include "core/schedule/ir/join.h"

#include <algorithm>
#include <map>

#include "core/base/refusal.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/ir/aliases.h"

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

  Halo Of(Halo halo) const {
    Change(&halo.dim);
    for (IndexExpr& e : halo.reached) Change(&e);
    return halo;
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
    for (IndexExpr& e : a->index) Change(&e);
    for (Guard& g : a->guards) g.axis = Dim(g.axis);
  }
  void Change(std::vector<Access>* list) const {
    for (Access& a : *list) Change(&a);
  }

  void Change(IndexExpr* e) const {
    *e = e->Substitute([this](int d) { return IndexExpr::Axis(Dim(d)); });
  }

  void Change(LoopStmt* s) const {
    Change(&s->dim);
    s->body = Of(s->body);
  }
  void Change(IfStmt* s) const {
    for (IndexExpr& e : s->somewhere) Change(&e);
    if (s->first >= 0) Change(&s->first);
    if (s->watched >= 0) ChangeBuffer(&s->watched);
    s->body = Of(s->body);
  }
  void Change(AllocStmt* s) const { ChangeBuffer(&s->buffer); }
  void Change(InitStmt* s) const { ChangeBuffers(&s->buffers); }
  void Change(EachStmt* s) const {
    Change(&s->dims);
    Change(&s->at);
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
    ChangeBuffers(&s->scratch);
    Change(&s->over);
  }

  const DimId first_dim_;
  const std::vector<BufferId>& buffers_;
};

class Joiner {
 public:
  Joiner(const std::vector<const Schedule*>& parts, const std::vector<std::vector<int>>& values)
      : parts_(parts), values_(values), renamed_(parts.size()) {
    for (size_t i = 0; i < parts.size(); ++i) renamed_[i].assign(parts[i]->buffers.size(), -1);
  }

  absl::StatusOr<JoinedSchedules> SideBySide() {
    RETURN_IF_ERROR(Start(" | "));
    for (const Schedule* part : parts_) {
      if (part->phases.size() == 1) continue;
      return RefusalStatus(RefusalCode::kSideBySide, part->label, " has ", part->phases.size(),
                           " phases");
    }
    AddParams();
    AddLocals();
    s_.phases.emplace_back();
    for (size_t i = 0; i < parts_.size(); ++i) AddSegments(i, parts_[i]->phases[0]);
    return Finish();
  }

  absl::StatusOr<JoinedSchedules> InPhases(const std::vector<int>& kept) {
    RETURN_IF_ERROR(Start(", then "));
    FindWriters(kept);
    AddParams();
    RETURN_IF_ERROR(AddBetween());
    AddLocals();
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (const Phase& phase : parts_[i]->phases) {
        s_.phases.emplace_back();
        AddSegments(i, phase);
      }
    }
    return Finish();
  }

 private:
  // Who writes a value that later parts may read.
  struct Writer {
    size_t part = 0;
    BufferId param = 0;
    bool kept = false;
  };

  absl::Status Start(std::string_view between) {
    for (const Schedule* part : parts_) {
      for (const ScheduleDim& d : part->dims) {
        // The rest of the compiler takes a dim of no elements as a sign of a kernel without work.
        if (d.extent > 0) continue;
        return RefusalStatus(RefusalCode::kEmpty, part->label, " has no work: its dim ", d.name,
                             " is empty");
      }
      if (!s_.label.empty()) s_.label += between;
      s_.label += part->label;
      s_.loose |= part->loose;
    }
    s_.bitwise = parts_[0]->bitwise;
    return absl::OkStatus();
  }

  absl::StatusOr<JoinedSchedules> Finish() {
    s_.may_alias = FindAliases(s_);
    return std::move(out_);
  }

  int ValueOf(size_t part, BufferId p) const { return values_[part][static_cast<size_t>(p)]; }
  BufferId& Renamed(size_t part, BufferId b) { return renamed_[part][static_cast<size_t>(b)]; }

  void FindWriters(const std::vector<int>& kept) {
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (BufferId p = 0; p < parts_[i]->params; ++p) {
        if (parts_[i]->buffer(p).kind != ParamKind::kOutput) continue;
        int value = ValueOf(i, p);
        bool stays = std::binary_search(kept.begin(), kept.end(), value);
        writers_[value] = {.part = i, .param = p, .kept = stays};
      }
    }
  }

  // What a param of a part is read from; null: it comes from outside.
  const Writer* WriterOf(size_t part, BufferId p) const {
    if (parts_[part]->buffer(p).kind == ParamKind::kOutput) return nullptr;
    auto it = writers_.find(ValueOf(part, p));
    return it == writers_.end() || it->second.part >= part ? nullptr : &it->second;
  }

  bool StaysInside(size_t part, BufferId p) const {
    if (parts_[part]->buffer(p).kind != ParamKind::kOutput) return WriterOf(part, p) != nullptr;
    auto it = writers_.find(ValueOf(part, p));
    return it != writers_.end() && !it->second.kept;
  }

  // Inputs of the parts in their order, then outputs likewise, as in other schedules.
  void AddParams() {
    for (bool outputs : {false, true}) {
      for (size_t i = 0; i < parts_.size(); ++i) {
        for (BufferId p = 0; p < parts_[i]->params; ++p) {
          bool here = (parts_[i]->buffer(p).kind == ParamKind::kOutput) == outputs;
          if (here && !StaysInside(i, p)) AddParam(i, p);
        }
      }
    }
  }

  void AddParam(size_t part, BufferId p) {
    Buffer buffer = parts_[part]->buffer(p);
    int value = ValueOf(part, p);
    for (BufferId known = 0; known < s_.params && buffer.kind != ParamKind::kOutput; ++known) {
      const auto& [other, q] = out_.source[static_cast<size_t>(known)];
      buffer.name = s_.buffer(known).name;
      if (ValueOf(static_cast<size_t>(other), q) == value && s_.buffer(known) == buffer) {
        Renamed(part, p) = known;
        return;
      }
    }
    buffer.name = StrCat("p", s_.params);
    Renamed(part, p) = s_.params++;
    s_.buffers.push_back(std::move(buffer));
    out_.source.emplace_back(static_cast<int>(part), p);
  }

  BufferId AddWorkspace(Buffer buffer, BufferId same_as) {
    buffer.name = StrCat("w", s_.buffers.size() - static_cast<size_t>(s_.params));
    buffer.level = Level::kWorkspace;
    buffer.kind = ParamKind::kInput;
    buffer.same_as = same_as;
    s_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(s_.buffers.size()) - 1;
  }

  // What one part writes and a later one reads.
  absl::Status AddBetween() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      for (BufferId p = 0; p < parts_[i]->params; ++p) {
        if (!StaysInside(i, p)) continue;
        const Buffer& buffer = parts_[i]->buffer(p);
        const Writer* writer = WriterOf(i, p);
        if (writer == nullptr) {
          Renamed(i, p) = AddWorkspace(buffer, -1);
          continue;
        }
        BufferId memory = Renamed(writer->part, writer->param);
        const Buffer& written = s_.buffer(memory);
        bool same = written.dtype == buffer.dtype && written.shape == buffer.shape &&
                    written.layout == buffer.layout;
        if (!same && (!IsDense(written) || !IsDense(buffer) ||
                      NumElements(written.shape) != NumElements(buffer.shape))) {
          return RefusalStatus(RefusalCode::kLayout, parts_[i]->label, " reads ",
                               DimsToString(buffer.shape), " in another order than ",
                               parts_[writer->part]->label, " writes ",
                               DimsToString(written.shape));
        }
        Renamed(i, p) = same ? memory : AddWorkspace(buffer, memory);
      }
    }
    return absl::OkStatus();
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
        if (!buffer.IsLocal()) {
          BufferId memory = buffer.same_as < 0 ? -1 : Renamed(i, buffer.same_as);
          renamed_[i][b] = AddWorkspace(std::move(buffer), memory);
          continue;
        }
        buffer.name = StrCat("t", s_.buffers.size() - static_cast<size_t>(s_.params));
        for (DimId& d : buffer.dims) d += first_dim_.back();
        renamed_[i][b] = static_cast<BufferId>(s_.buffers.size());
        s_.buffers.push_back(std::move(buffer));
      }
    }
  }

  // Segments of part i, beside those that the last phase has.
  void AddSegments(size_t i, const Phase& phase) {
    Renumberer renumber(first_dim_[i], renamed_[i]);
    for (const Segment& segment : phase.segments) {
      Segment moved{.grid = segment.grid, .body = renumber.Of(segment.body)};
      for (GridDim& g : moved.grid) g.dim = renumber.Dim(g.dim);
      for (const Halo& h : segment.halos) moved.halos.push_back(renumber.Of(h));
      s_.phases.back().segments.push_back(std::move(moved));
    }
  }

  const std::vector<const Schedule*>& parts_;
  const std::vector<std::vector<int>>& values_;
  JoinedSchedules out_;
  Schedule& s_ = out_.schedule;
  std::map<int, Writer> writers_;               // by value; of phases only
  std::vector<std::vector<BufferId>> renamed_;  // by part and buffer
  std::vector<DimId> first_dim_;                // by part
};

}  // namespace

absl::StatusOr<JoinedSchedules> PutSideBySide(const std::vector<const Schedule*>& parts,
                                              const std::vector<std::vector<int>>& values) {
  return Joiner(parts, values).SideBySide();
}

absl::StatusOr<JoinedSchedules> PutInPhases(const std::vector<const Schedule*>& parts,
                                            const std::vector<std::vector<int>>& values,
                                            const std::vector<int>& kept) {
  return Joiner(parts, values).InPhases(kept);
}

}  // namespace fusion
