#include <algorithm>
#include <utility>

#include "core/base/contains.h"
#include "core/graph/program/half_precision.h"
#include "core/graph/program/program_builder.h"
#include "core/graph/program/renumber.h"

namespace fusion {

void ProgramBuilder::AddOutput(Handle* handle) {
  if (IsNothing(*handle)) {
    handle->base = AddNothing(TypeOf(*handle));
    handle->view.reset();
    program_.outputs.push_back(handle->base);
    return;
  }
  const Value& base = program_.value(handle->base);
  const bool taken = Contains(program_.outputs, handle->base);
  const bool written = base.kind == TensorKind::kIntermediate && !taken &&
                       program_.op(base.producer).kind != LoopOp::kReinterpret;
  if (!handle->view && !written) {
    handle->view = CastBody(base.type.shape, base.type.dtype, base.type.dtype);
  }
  *handle = {.base = Materialise(*handle),
             .view = {},
             .origin = handle->origin,
             .shape_class = handle->shape_class};
  program_.outputs.push_back(handle->base);
}

// By value: whether it is a repeat without a use. Its results have no elements, and nothing reads
// them.
std::vector<bool> ProgramBuilder::RepeatsOfNothing(const std::vector<bool>& named) const {
  std::vector<bool> used = named;
  for (const LoopOp& op : program_.ops) {
    for (ValueId v : op.inputs) used[static_cast<size_t>(v)] = true;
  }
  std::vector<bool> idle(program_.values.size(), false);
  for (const LoopOp& op : program_.ops) {
    const auto output = static_cast<size_t>(op.output);
    if (op.kind == LoopOp::kRepeat) idle[output] = !op.loop->must_end;
    if (op.kind != LoopOp::kResult) continue;
    const bool nothing = !used[output] && IsNothing({.base = op.output, .view = {}});
    if (!nothing) idle[static_cast<size_t>(op.inputs[0])] = false;
  }
  return idle;
}

// What nothing reads is no value: results of an op that its node does not have, functions of the
// coordinates that went into all of their readers, constants that did.
void ProgramBuilder::DropUnread(const std::vector<ValueId*>& followed) {
  std::vector<bool> read(program_.values.size(), false);
  for (ValueId id : program_.outputs) read[static_cast<size_t>(id)] = true;
  for (const ValueId* id : followed) read[static_cast<size_t>(*id)] = true;
  const std::vector<bool> idle = RepeatsOfNothing(read);
  for (size_t i = program_.ops.size(); i-- > 0;) {
    const LoopOp& op = program_.ops[i];
    const auto output = static_cast<size_t>(op.output);
    const ValueId repeat = op.kind == LoopOp::kResult ? op.inputs[0] : op.output;
    if (idle[static_cast<size_t>(repeat)]) continue;
    // Passes write more than their result.
    if (op.kind != LoopOp::kLoop && op.kind != LoopOp::kOpaque && op.kind != LoopOp::kReinterpret) {
      read[output] = true;
    }
    if (!read[output]) continue;
    for (ValueId v : op.inputs) read[static_cast<size_t>(v)] = true;
  }
  std::vector<ValueId> kept;
  for (size_t i = 0; i < program_.values.size(); ++i) {
    const TensorKind kind = program_.values[i].kind;
    const bool leaf = kind == TensorKind::kInput || kind == TensorKind::kWeight;
    if (leaf || read[i]) kept.push_back(static_cast<ValueId>(i));
  }
  std::vector<DirectUse> uses;
  for (ValueId v : kept) uses.push_back(std::move(direct_uses_[static_cast<size_t>(v)]));
  direct_uses_ = std::move(uses);
  const std::vector<ValueId> number = Renumber(kept, &program_);
  for (ValueId* id : followed) *id = number[static_cast<size_t>(*id)];
}

Program ProgramBuilder::Finish(const std::vector<ValueId*>& followed) && {
  DropUnread(followed);
  std::vector<bool> is_output(program_.values.size(), false);
  for (ValueId id : program_.outputs) is_output[static_cast<size_t>(id)] = true;
  for (size_t i = 0; i < program_.values.size(); ++i) {
    Value& value = program_.values[i];
    const DirectUse& use = direct_uses_[i];
    // A reinterpretation lies where and as its input does, a result of a repeat as that wrote it.
    bool stored_freely = value.kind == TensorKind::kIntermediate && !is_output[i] &&
                         program_.op(value.producer).kind == LoopOp::kLoop;
    if (stored_freely && use.any && !use.mixed) value.order = use.permutation;
  }
  program_.open_dims = options_.open_dims;
  return std::move(program_);
}

}  // namespace fusion
