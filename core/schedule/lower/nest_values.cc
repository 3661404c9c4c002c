#include "core/schedule/lower/nest_values.h"

#include <algorithm>

#include "core/base/contains.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

RegionBuilder::BufferOf BufferOfOps(const Nest& nest, const std::vector<BufferId>& accumulators,
                                    const LocalBuffers& locals) {
  return [&](int i) -> std::optional<BufferId> {
    for (size_t p = 0; p < accumulators.size(); ++p) {
      if (nest.products[p] == i) return accumulators[p];
    }
    BufferId b = locals.Of(i);
    if (b < 0) return std::nullopt;
    return b;
  };
}

std::vector<DimId> InOrder(const std::vector<DimId>& order, const std::vector<DimId>& wanted) {
  std::vector<DimId> out;
  for (DimId d : order) {
    if (Contains(wanted, d)) out.push_back(d);
  }
  return out;
}

DType TypeOf(const SmgOp& op) { return op.reduce ? op.reduce->result_type() : op.value.type(); }

}  // namespace

NestValues::NestValues(const Nest& nest, const std::vector<BufferId>& accumulators, NestContext* at,
                       const IndexedReduction* placed)
    : at_(*at),
      region_(at->group, at->lowered.schedule, BufferOfOps(nest, accumulators, at->locals),
              [at](ValueId v) { return at->params.inputs.at(v); }) {
  for (int i : nest.keep) {
    bool pointwise = at->kind(i) == OpClass::kPointwise;
    kept_.push_back({i, pointwise ? region_.Compute(i) : region_.Value(i)});
    region_.Remember(i, kept_.back().value);
  }
  for (int i : nest.update) updated_.push_back({i, region_.Compute(i)});
  if (placed != nullptr) {
    place_ = region_.Compute(nest.reduce[0], placed->place);
    folded_.push_back({nest.reduce[0], region_.Compute(nest.reduce[0], placed->value)});
    return;
  }
  for (int i : nest.reduce) folded_.push_back({i, region_.Compute(i)});
  for (int i : nest.store) stored_.push_back({i, region_.Value(i)});
}

absl::StatusOr<std::vector<ElementOp>> NestValues::Finish(const std::vector<DimId>& order) {
  for (const OpValue& updated : updated_) Update(updated);
  for (const OpValue& folded : folded_) Fold(folded, order);
  for (const OpValue& stored : stored_) {
    const SmgOp& op = at_.op(stored.op);
    region_.Store(stored.value, at_.params.outputs.at(op.output), op.write);
  }
  RETURN_IF_ERROR(region_.status());
  std::vector<ElementOp> steps = std::move(region_).Take();
  for (const OpValue& kept : kept_) Keep(kept, order, &steps);
  for (const ElementOp& e : steps) {
    for (const Access& a : e.access) at_.locals.Use(a.buffer);
  }
  return steps;
}

void NestValues::Fold(const OpValue& folded, const std::vector<DimId>& order) {
  const SmgOp& op = at_.op(folded.op);
  BufferId b = at_.locals.Of(folded.op);
  if (b < 0) {
    b = at_.locals.Add(InOrder(order, op.OutputDims()), TypeOf(op), Level::kStaged);
    at_.locals.Hold(folded.op, b);
  }
  region_.Reduce(folded.value, op.reduce->name(), b, PlainIndex(at_.buffer(b).dims));
  at_.locals.UseAsFold(b, op.reduce->name());
}

void NestValues::Update(const OpValue& updated) {
  int target = at_.choice.streamed->ops[static_cast<size_t>(updated.op)].target;
  BufferId b = at_.locals.Of(target);
  region_.Store(updated.value, b, PlainIndex(at_.buffer(b).dims));
}

void NestValues::Keep(const OpValue& kept, const std::vector<DimId>& order,
                      std::vector<ElementOp>* steps) {
  const SmgOp& op = at_.op(kept.op);
  BufferId b = at_.locals.Wanted(kept.op);
  if (b < 0) b = InPlace(kept.op, *steps);
  if (b < 0) b = at_.locals.Add(InOrder(order, op.OutputDims()), TypeOf(op), Level::kStaged);
  at_.locals.Hold(kept.op, b);
  ElementOp store;
  store.kind = ElementOp::kStore;
  store.args = {kept.value};
  store.type = at_.buffer(b).dtype;
  store.access = {{.buffer = b, .index = PlainIndex(at_.buffer(b).dims)}};
  steps->push_back(std::move(store));
}

// The result may reuse the buffer of an operand that is last used in this nest and read at plain
// coordinates only.
BufferId NestValues::InPlace(int op, const std::vector<ElementOp>& steps) const {
  std::vector<DimId> dims = at_.op(op).OutputDims();
  DType type = TypeOf(at_.op(op));
  for (size_t holder = 0; holder < at_.locals.ops(); ++holder) {
    BufferId b = at_.locals.Of(static_cast<int>(holder));
    if (b >= 0 && MayTakeOver(holder, dims, type) && ReadsInPlace(b, steps)) return b;
  }
  return -1;
}

// True if the buffer of op `holder`'s value has this form, and the value is not used after this
// nest.
bool NestValues::MayTakeOver(size_t holder, const std::vector<DimId>& dims, DType type) const {
  const LocalBuffers& locals = at_.locals;
  int nest = locals.nest();
  if (at_.plan.classes[holder] == OpClass::kReduction || at_.last_reads[holder] != nest) {
    return false;
  }
  BufferId b = locals.Of(static_cast<int>(holder));
  auto span = locals.spans().find(b);
  if (span == locals.spans().end() || span->second.section != locals.section() ||
      span->second.other_sections) {
    return false;
  }
  const Buffer& buffer = at_.buffer(b);
  bool same_form =
      buffer.dtype == type && buffer.dims.size() == dims.size() && buffer.layout.blocked < 0 &&
      std::all_of(dims.begin(), dims.end(), [&](DimId d) { return Contains(buffer.dims, d); });
  if (!same_form) return false;
  // Another op must not keep its value in the same buffer from here on.
  for (size_t other = 0; other < locals.ops(); ++other) {
    bool shares = other != holder && locals.Of(static_cast<int>(other)) == b;
    if (shares && at_.last_reads[other] >= nest) return false;
  }
  return true;
}

// True if the steps read buffer `b` and each touches it at the element of the moment only.
bool NestValues::ReadsInPlace(BufferId b, const std::vector<ElementOp>& steps) const {
  IndexMap plain = PlainIndex(at_.buffer(b).dims);
  bool read = false;
  for (const ElementOp& e : steps) {
    for (const Access& a : e.access) {
      if (a.buffer != b) continue;
      if (e.kind != ElementOp::kLoad || !(a.index == plain)) return false;
      read = true;
    }
  }
  return read;
}

}  // namespace fusion
