#include "core/schedule/lower/region.h"

#include <algorithm>
#include <bit>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/base/threads/job.h"

namespace fusion {
size_t RegionBuilder::StepHash::operator()(const ElementOp& op) const {
  size_t hash = 0;
  auto mix = [&hash](auto part) {
    hash = (hash ^ static_cast<size_t>(part)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  mix(op.kind);
  mix(op.op);
  mix(op.type);
  mix(op.integer);
  mix(op.axis);
  mix(std::bit_cast<uint64_t>(op.real));
  for (int a : op.args) mix(a);
  for (const Access& a : op.access) {
    mix(a.buffer);
    for (const IndexExpr& e : a.index) mix(e.constant());
  }
  return hash;
}

int RegionBuilder::Emit(ElementOp op) {
  Job::Step();
  // Steps without effect are emitted once: equal ones share their result.
  auto known = emitted_.find(op);
  if (known != emitted_.end()) return ops_[*known].result;
  op.result = results_++;
  ops_.push_back(std::move(op));
  emitted_.insert(ops_.size() - 1);
  return ops_.back().result;
}

int RegionBuilder::Load(Access access) {
  ElementOp op;
  op.kind = ElementOp::kLoad;
  op.type = schedule_.buffer(access.buffer).dtype;
  op.access.push_back(std::move(access));
  return Emit(std::move(op));
}

void RegionBuilder::Store(int value, BufferId buffer, const IndexMap& index) {
  ElementOp op;
  op.kind = ElementOp::kStore;
  op.args = {value};
  op.type = schedule_.buffer(buffer).dtype;
  op.access.push_back({.buffer = buffer, .index = index, .guards = {}});
  ops_.push_back(std::move(op));
}

void RegionBuilder::Reduce(int value, const std::string& monoid, BufferId buffer,
                           const IndexMap& index) {
  ElementOp op;
  op.kind = ElementOp::kReduce;
  op.args = {value};
  op.type = schedule_.buffer(buffer).dtype;
  op.monoid = monoid;
  op.access.push_back({.buffer = buffer, .index = index, .guards = {}});
  ops_.push_back(std::move(op));
}

void RegionBuilder::Remember(int op, int value) { remembered_[static_cast<size_t>(op)] = value; }

int RegionBuilder::Value(int op) { return ValueAt(op, {}, {}); }
int RegionBuilder::Compute(int op) { return ComputeAt(op, {}, {}); }

int RegionBuilder::Compute(int op, const Expr& part) {
  const Shift here;
  const std::vector<Guard> none;
  const size_t reads = group_.smg.op(op).reads.size();
  Site site{
      .op = op, .shift = here, .guards = none, .inputs = std::vector<int>(reads, -1), .steps = {}};
  return Translate(part, &site);
}

IndexExpr RegionBuilder::At(const IndexExpr& e, const Shift& shift) const {
  if (shift.empty()) return e;
  return e.Substitute([&](int d) {
    auto it = shift.find(d);
    return it == shift.end() ? IndexExpr::Axis(d) : it->second;
  });
}

std::vector<Guard> RegionBuilder::Shifted(int op, const std::vector<Guard>& guards,
                                          const Shift& shift) {
  std::vector<Guard> out;
  for (const Guard& g : guards) {
    IndexExpr at = At(IndexExpr::Axis(g.axis), shift);
    if (at.terms().size() != 1 || at.terms()[0].coefficient != 1) {
      const Smg& smg = group_.smg;
      status_ = RefusalStatus(RefusalCode::kShift, "op ", op, " ", smg.op(op).label,
                              " looks at a part of ", smg.dim(g.axis).name,
                              " only, and is read along it in another order or step");
      out.push_back(g);
      continue;
    }
    out.push_back({at.terms()[0].axis, g.begin - at.constant(), g.end - at.constant()});
  }
  return out;
}

int RegionBuilder::ValueAt(int op, const Shift& shift, const std::vector<Guard>& guards) {
  const int remembered = remembered_[static_cast<size_t>(op)];
  if (shift.empty() && remembered >= 0) return remembered;
  if (auto buffer = buffer_(op)) {
    Access access{.buffer = *buffer, .index = {}, .guards = guards};
    for (DimId d : schedule_.buffer(*buffer).dims) {
      access.index.push_back(At(IndexExpr::Axis(d), shift));
    }
    return Load(std::move(access));
  }
  return ComputeAt(op, shift, guards);
}

int RegionBuilder::ComputeAt(int op, const Shift& shift, const std::vector<Guard>& guards) {
  Job::Step();
  const bool plain = shift.empty() && guards.empty();
  int* known = &computed_[static_cast<size_t>(op)];
  if (!plain) {
    std::string where;
    for (const auto& [d, e] : shift) {
      where += StrCat(d, "=", e.ToString([](int i) { return StrCat(i); }), ";");
    }
    for (const Guard& g : guards) where += StrCat(g.axis, ":", g.begin, ":", g.end, ";");
    known = &computed_at_.try_emplace({op, std::move(where)}, -1).first->second;
  }
  if (*known >= 0) return *known;
  const SmgOp& o = group_.smg.op(op);
  Site site{.op = op,
            .shift = shift,
            .guards = guards,
            .inputs = std::vector<int>(o.reads.size(), -1),
            .steps = {}};
  *known = Translate(o.value, &site);
  return *known;
}

int RegionBuilder::Input(size_t i, Site* site) {
  if (site->inputs[i] < 0) site->inputs[i] = Read(group_.smg.op(site->op).reads[i], site);
  return site->inputs[i];
}

int RegionBuilder::Read(const SmgRead& read, Site* site) {
  std::vector<Guard> all = site->guards;
  for (const Guard& g : Shifted(site->op, read.guards, site->shift)) {
    if (!Contains(all, g)) all.push_back(g);
  }
  if (read.producer < 0) {
    Access access{.buffer = param_(read.value), .index = {}, .guards = all};
    for (const IndexExpr& e : read.index) {
      IndexExpr at = At(e, site->shift);
      if (e.indirect() >= 0) {
        // The index value is computed first; the access then names it.
        IndexExpr moved(at.constant());
        for (const IndexExpr::Term& t : at.terms()) {
          moved += IndexExpr::Axis(t.axis, t.coefficient);
        }
        at = moved + IndexExpr::Indirect(Input(static_cast<size_t>(e.indirect()), site));
      }
      access.index.push_back(std::move(at));
    }
    return Load(std::move(access));
  }
  // The producer's own coordinates: its dims where it wrote what is read here.
  Shift inner;
  auto coordinates = ProducerCoordinates(group_.smg, read);
  FUSION_CHECK(coordinates.has_value(), "PlanNests refuses reads without coordinates");
  for (const auto& [d, e] : *coordinates) {
    IndexExpr at = At(e, site->shift);
    if (at != IndexExpr::Axis(d)) inner[d] = std::move(at);
  }
  return ValueAt(read.producer, inner, all);
}

int RegionBuilder::Constant(int64_t value) {
  return Emit(
      {.kind = ElementOp::kCompute, .op = ScalarOp::kConst, .type = DType::kI64, .integer = value});
}

int RegionBuilder::Coordinate(const IndexExpr& at) {
  int sum = -1;
  for (const IndexExpr::Term& t : at.terms()) {
    int term = Emit(
        {.kind = ElementOp::kCompute, .op = ScalarOp::kAxis, .type = DType::kI64, .axis = t.axis});
    if (t.coefficient != 1) {
      int factor = Constant(t.coefficient);
      term = Emit({.kind = ElementOp::kCompute,
                   .args = {term, factor},
                   .op = ScalarOp::kMul,
                   .type = DType::kI64});
    }
    sum = sum < 0 ? term
                  : Emit({.kind = ElementOp::kCompute,
                          .args = {sum, term},
                          .op = ScalarOp::kAdd,
                          .type = DType::kI64});
  }
  if (sum < 0) return Constant(at.constant());
  if (at.constant() == 0) return sum;
  int offset = Constant(at.constant());
  return Emit({.kind = ElementOp::kCompute,
               .args = {sum, offset},
               .op = ScalarOp::kAdd,
               .type = DType::kI64});
}

int RegionBuilder::Translate(const Expr& e, Site* site) {
  switch (e.op()) {
    case ScalarOp::kInput:
      return Input(static_cast<size_t>(e.index()), site);
    case ScalarOp::kAxis:
      return Coordinate(At(IndexExpr::Axis(e.index()), site->shift));
    case ScalarOp::kConst:
      return Emit({.kind = ElementOp::kCompute,
                   .op = ScalarOp::kConst,
                   .type = e.type(),
                   .real = IsFloat(e.type()) ? e.value() : 0,
                   .integer = IsFloat(e.type()) ? 0 : e.integer()});
    case ScalarOp::kWithin: {
      Guard g = Shifted(site->op, {{e.index(), e.integer(), e.end()}}, site->shift)[0];
      return Emit({.kind = ElementOp::kCompute,
                   .op = ScalarOp::kWithin,
                   .type = DType::kBool,
                   .integer = g.begin,
                   .end = g.end,
                   .axis = g.axis});
    }
    default:
      break;
  }
  auto known = site->steps.find(e.id());
  if (known != site->steps.end()) return known->second;
  ElementOp op;
  op.op = e.op();
  op.type = e.type();
  for (const Expr& a : e.args()) op.args.push_back(Translate(a, site));
  const int result = Emit(std::move(op));
  site->steps.emplace(e.id(), result);
  return result;
}

}  // namespace fusion
