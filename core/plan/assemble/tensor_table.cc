#include "core/plan/assemble/tensor_table.h"

#include <algorithm>

#include "core/schedule/memory/memory.h"

namespace fusion {

TensorTable::TensorTable(const Program& program, const GroupEvaluator& evaluator, Plan* plan)
    : program_(program),
      evaluator_(evaluator),
      plan_(*plan),
      tensor_of_(program.values.size(), -1) {
  std::vector<bool> read(program_.values.size(), false);
  for (const LoopOp& op : program_.ops) {
    for (ValueId in : op.inputs) read[static_cast<size_t>(in)] = true;
  }
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    ValueId v = program_.inputs[i];
    // The contents of a shared buffer are an input even if no launch reads them.
    bool used = read[static_cast<size_t>(v)] || program_.value(v).room.has_value();
    plan_.inputs.push_back(used ? AddValue(v, Space::kInput, static_cast<int>(i)) : -1);
  }
  for (size_t i = 0; i < program_.weights.size(); ++i) {
    plan_.weights.push_back(AddValue(program_.weights[i], Space::kWeight, static_cast<int>(i)));
  }
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    plan_.outputs.push_back(AddValue(program_.outputs[i], Space::kOutput, static_cast<int>(i)));
  }
}

int TensorTable::Add(DType dtype, Dims dims, Dims strides, Space space, int index) {
  PlanTensor t{.dtype = dtype,
               .dims = std::move(dims),
               .strides = std::move(strides),
               .space = space,
               .index = index};
  t.bytes = SpanOf(t.dims, t.strides) * DTypeBytes(dtype);
  plan_.tensors.push_back(std::move(t));
  auto id = static_cast<int>(plan_.tensors.size()) - 1;
  owned_.emplace_back();
  root_.push_back(id);
  within_.push_back(0);
  class_of_.push_back(Value::kUnknownClass);
  return id;
}

int TensorTable::AddValue(ValueId v, Space space, int index) {
  const Value& value = program_.value(v);
  int id = Add(value.type.dtype, value.type.shape.ToDims(), StorageStrides(value), space, index);
  tensor_of_[static_cast<size_t>(v)] = id;
  class_of_.back() = value.shape_class;
  return id;
}

int TensorTable::Of(ValueId v) {
  int& id = tensor_of_[static_cast<size_t>(v)];
  if (id >= 0) return id;
  const Value& value = program_.value(v);
  if (value.kind == TensorKind::kConstant) {
    plan_.constants.push_back(value.value);
    return AddValue(v, Space::kConstant, static_cast<int>(plan_.constants.size()) - 1);
  }
  const LoopOp& producer = program_.op(value.producer);
  if (value.lies_in != kNoValue) {
    // Rows of an output, in the caller's memory.
    const PlanTensor whole = plan_.tensors[static_cast<size_t>(Of(value.lies_in))];
    const int made = AddValue(v, Space::kOutput, whole.index);
    const auto dim = static_cast<size_t>(value.room->dim);
    plan_.tensors[static_cast<size_t>(made)].offset =
        value.begin * whole.strides[dim] * DTypeBytes(whole.dtype);
    return made;
  }
  if (producer.kind == LoopOp::kReinterpret) {
    // The same memory under another shape.
    int base = Of(producer.inputs[0]);
    const PlanTensor& from = plan_.tensors[static_cast<size_t>(base)];
    Space space = from.space;
    int index = from.index;
    int made = AddValue(v, space, index);
    root_[static_cast<size_t>(made)] = Root(base);
    within_[static_cast<size_t>(made)] = within_[static_cast<size_t>(base)];
    return made;
  }
  bool prepared = evaluator_.IsConstant(v);
  int made = AddValue(v, prepared ? Space::kPrepared : Space::kArena, 0);
  OwnedBy(made) = {
      .owned = true, .prepared = prepared, .first = Step(prepared), .last = Step(prepared)};
  return made;
}

int TensorTable::AddPacked(DType dtype, Dims dims) {
  Dims strides = RowMajorStrides(dims);
  int made = Add(dtype, std::move(dims), std::move(strides), Space::kPrepared, 0);
  OwnedBy(made) = {.owned = true, .prepared = true, .first = Step(true), .last = Step(true)};
  return made;
}

int TensorTable::AddScratch(DType dtype, Dims dims) {
  Dims strides = RowMajorStrides(dims);
  const int made = Add(dtype, std::move(dims), std::move(strides), Space::kArena, 0);
  OwnedBy(made) = {.owned = true, .first = Step(false), .last = Step(false)};
  return made;
}

int TensorTable::AddBlock(int64_t bytes, bool prepared) {
  const int made = Add(DType::kU8, {bytes}, {1}, prepared ? Space::kPrepared : Space::kArena, 0);
  OwnedBy(made) = {
      .owned = true, .prepared = prepared, .first = Step(prepared), .last = Step(prepared)};
  return made;
}

int TensorTable::AddWithin(int block, const PlanTensor& tensor, int64_t offset) {
  const Space space = plan_.tensors[static_cast<size_t>(block)].space;
  const int made = Add(tensor.dtype, tensor.dims, tensor.strides, space, 0);
  plan_.tensors[static_cast<size_t>(made)].bytes = tensor.bytes;
  root_[static_cast<size_t>(made)] = block;
  within_[static_cast<size_t>(made)] = offset;
  return made;
}

int TensorTable::AddAtPlace(const PlanTensor& tensor, int place) {
  return Add(tensor.dtype, tensor.dims, tensor.strides, Space::kPass, place);
}

int TensorTable::AddConstant(std::shared_ptr<const HostTensor> value) {
  Dims dims = value->dims();
  Dims strides = RowMajorStrides(dims);
  const DType dtype = value->dtype();
  plan_.constants.push_back(std::move(value));
  return Add(dtype, std::move(dims), std::move(strides), Space::kConstant,
             static_cast<int>(plan_.constants.size()) - 1);
}

void TensorTable::Touch(int tensor, bool prepare) {
  if (tensor < 0) return;
  Owned& memory = OwnedBy(Root(tensor));
  if (!memory.owned) return;
  // A prepared tensor that runs read is never freed; its `last` only orders prepare launches.
  if (memory.prepared == prepare) memory.last = Step(prepare);
  if (memory.prepared && !prepare) memory.kept = true;
}

// Whether two tensors of equal dims also have equal dims for other values of the symbols; true if
// nothing contradicts.
bool TensorTable::StayAlike(int a, int b) const {
  if (a < 0 || b < 0) return true;
  const int of_a = class_of_[static_cast<size_t>(a)];
  const int of_b = class_of_[static_cast<size_t>(b)];
  return of_a < 0 || of_b < 0 || of_a == of_b;
}

void TensorTable::NoteInPlace(const Schedule& schedule, const std::vector<int>& tensors) {
  for (const auto& [to, from] : schedule.may_alias) {
    int target = tensors[static_cast<size_t>(to)];
    int source = Root(tensors[static_cast<size_t>(from)]);
    if (!StayAlike(target, tensors[static_cast<size_t>(from)])) continue;
    if (target < 0 || source < 0 || !OwnedBy(target).owned || !OwnedBy(source).owned) continue;
    // The source must not be passed to this launch twice.
    bool once = std::count_if(tensors.begin(), tensors.end(),
                              [&](int t) { return Root(t) == source; }) == 1;
    if (once) OwnedBy(target).in_place_of = source;
  }
}

void TensorTable::AddLaunch(bool prepare, const std::vector<int>& tensors) {
  for (int t : tensors) Touch(t, prepare);
  ++steps_[prepare ? 1 : 0];
}

void TensorTable::Place() {
  for (bool prepared : {false, true}) {
    std::vector<size_t> ids;
    std::vector<MemoryBlock> blocks;
    std::vector<int> block_of(owned_.size(), -1);
    for (size_t id = 0; id < owned_.size(); ++id) {
      const Owned& memory = owned_[id];
      if (!memory.owned || memory.prepared != prepared) continue;
      block_of[id] = static_cast<int>(blocks.size());
      int from = memory.in_place_of;
      blocks.push_back({.bytes = plan_.tensors[id].bytes,
                        .first = memory.kept ? 0 : memory.first,
                        .last = memory.kept ? Step(true) : memory.last,
                        .in_place_of = from < 0 ? -1 : block_of[static_cast<size_t>(from)]});
      ids.push_back(id);
    }
    MemoryPlan memory = PlanMemory(blocks);
    for (size_t i = 0; i < ids.size(); ++i) plan_.tensors[ids[i]].offset = memory.offsets[i];
    (prepared ? plan_.prepared_bytes : plan_.arena_bytes) = memory.bytes;
  }
  for (size_t id = 0; id < root_.size(); ++id) {
    if (root_[id] == static_cast<int>(id)) continue;
    plan_.tensors[id].offset = plan_.tensors[static_cast<size_t>(root_[id])].offset + within_[id];
  }
}

}  // namespace fusion
