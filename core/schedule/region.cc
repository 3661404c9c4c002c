#include "core/schedule/region.h"

#include <algorithm>
#include <cmath>

#include "core/base/refusal.h"

namespace fusion {
namespace {

// Equal for equal steps, whatever their result.
size_t HashOf(const ElementOp& op) {
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
  mix(std::hash<double>()(op.real));
  for (int a : op.args) mix(a);
  for (const Access& a : op.access) {
    mix(a.buffer);
    for (const IndexExpr& e : a.index) mix(e.constant());
  }
  return hash;
}

}  // namespace

int RegionBuilder::Emit(ElementOp op) {
  // Steps without effect are emitted once: equal ones share their result.
  auto [first, last] = emitted_.equal_range(HashOf(op));
  for (auto it = first; it != last; ++it) {
    const ElementOp& existing = ops_[it->second];
    op.result = existing.result;
    // Zeros of both signs are equal, but not the same.
    if (existing == op && std::signbit(existing.real) == std::signbit(op.real)) return op.result;
  }
  op.result = results_++;
  emitted_.emplace(HashOf(op), ops_.size());
  ops_.push_back(std::move(op));
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

void RegionBuilder::Remember(int op, int value) { remembered_[op] = value; }

int RegionBuilder::Value(int op) { return ValueAt(op, {}, {}); }
int RegionBuilder::Compute(int op) { return ComputeAt(op, {}, {}); }

IndexExpr RegionBuilder::At(const IndexExpr& e, const Shift& shift) const {
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
  auto remembered = remembered_.find(op);
  if (shift.empty() && remembered != remembered_.end()) return remembered->second;
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
  std::string key;
  for (const auto& [d, e] : shift) {
    key += StrCat(d, "=", e.ToString([](int i) { return StrCat(i); }), ";");
  }
  for (const Guard& g : guards) key += StrCat(g.axis, ":", g.begin, ":", g.end, ";");
  auto known = computed_.find({op, key});
  if (known != computed_.end()) return known->second;
  const SmgOp& o = group_.smg.op(op);
  std::map<int, int> inputs;
  std::function<int(int)> input = [&](int i) {
    auto it = inputs.find(i);
    if (it == inputs.end()) {
      int value = ReadAt(op, o.reads[static_cast<size_t>(i)], shift, guards, input);
      it = inputs.emplace(i, value).first;
    }
    return it->second;
  };
  std::unordered_map<const void*, int> done;
  int value = Translate(op, o.value, shift, input, &done);
  computed_[{op, key}] = value;
  return value;
}

int RegionBuilder::ReadAt(int op, const SmgRead& read, const Shift& shift,
                          const std::vector<Guard>& guards, const std::function<int(int)>& input) {
  std::vector<Guard> all = guards;
  for (const Guard& g : Shifted(op, read.guards, shift)) {
    if (std::find(all.begin(), all.end(), g) == all.end()) all.push_back(g);
  }
  if (read.producer < 0) {
    Access access{.buffer = param_(read.value), .index = {}, .guards = all};
    for (const IndexExpr& e : read.index) {
      IndexExpr at = At(e, shift);
      if (e.indirect() >= 0) {
        // The index value is computed first; the access then names it.
        IndexExpr plain = at + IndexExpr(0);
        IndexExpr moved(plain.constant());
        for (const IndexExpr::Term& t : plain.terms()) {
          moved = moved + IndexExpr::Axis(t.axis, t.coefficient);
        }
        at = moved + IndexExpr::Indirect(input(e.indirect()));
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
    IndexExpr at = At(e, shift);
    if (!(at == IndexExpr::Axis(d))) inner[d] = at;
  }
  return ValueAt(read.producer, inner, all);
}

int RegionBuilder::Coordinate(const IndexExpr& at) {
  auto constant = [&](int64_t v) {
    return Emit(
        {.kind = ElementOp::kCompute, .op = ScalarOp::kConst, .type = DType::kI64, .integer = v});
  };
  int sum = -1;
  for (const IndexExpr::Term& t : at.terms()) {
    int term = Emit(
        {.kind = ElementOp::kCompute, .op = ScalarOp::kAxis, .type = DType::kI64, .axis = t.axis});
    if (t.coefficient != 1) {
      int factor = constant(t.coefficient);
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
  if (sum < 0) return constant(at.constant());
  if (at.constant() == 0) return sum;
  int offset = constant(at.constant());
  return Emit({.kind = ElementOp::kCompute,
               .args = {sum, offset},
               .op = ScalarOp::kAdd,
               .type = DType::kI64});
}

int RegionBuilder::Translate(int of, const Expr& e, const Shift& shift,
                             const std::function<int(int)>& input,
                             std::unordered_map<const void*, int>* done) {
  auto known = done->find(e.id());
  if (known != done->end()) return known->second;
  int result = -1;
  switch (e.op()) {
    case ScalarOp::kInput:
      result = input(e.index());
      break;
    case ScalarOp::kAxis:
      result = Coordinate(At(IndexExpr::Axis(e.index()), shift));
      break;
    case ScalarOp::kConst:
      result = Emit({.kind = ElementOp::kCompute,
                     .op = ScalarOp::kConst,
                     .type = e.type(),
                     .real = IsFloat(e.type()) ? e.value() : 0,
                     .integer = IsFloat(e.type()) ? 0 : e.integer()});
      break;
    case ScalarOp::kWithin: {
      Guard g = Shifted(of, {{e.index(), e.integer(), e.end()}}, shift)[0];
      result = Emit({.kind = ElementOp::kCompute,
                     .op = ScalarOp::kWithin,
                     .type = DType::kBool,
                     .integer = g.begin,
                     .end = g.end,
                     .axis = g.axis});
      break;
    }
    default: {
      ElementOp op;
      op.op = e.op();
      op.type = e.type();
      for (const Expr& a : e.args()) op.args.push_back(Translate(of, a, shift, input, done));
      result = Emit(std::move(op));
    }
  }
  done->emplace(e.id(), result);
  return result;
}

}  // namespace fusion
