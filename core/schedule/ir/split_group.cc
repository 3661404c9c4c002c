#include "core/schedule/ir/split_group.h"

#include <algorithm>

namespace fusion {
namespace {

// What is written and read of the given values.
FusionGroup GroupOf(Smg smg, const std::vector<ValueId>& outputs,
                    const std::unordered_map<ValueId, TensorView>& views) {
  FusionGroup group{.smg = std::move(smg), .outputs = {}, .views = {}};
  for (const SmgOp& op : group.smg.ops) {
    for (const SmgRead& read : op.reads) {
      if (read.producer < 0) group.views[read.value] = views.at(read.value);
    }
    if (std::find(outputs.begin(), outputs.end(), op.output) == outputs.end()) continue;
    group.outputs.push_back(op.output);
    group.views[op.output] = views.at(op.output);
  }
  std::sort(group.outputs.begin(), group.outputs.end());
  CoalesceDims(&group);
  return group;
}

}  // namespace

absl::StatusOr<SplitGroups> SplitGroup(const FusionGroup& group, DimId dim, int64_t parts) {
  Split split = SplitAlong(group.smg, group.outputs, dim, parts);
  if (!split.refusal.empty()) return FailedPrecondition(split.refusal.ToString());
  std::unordered_map<ValueId, TensorView> views = group.views;
  std::vector<ValueId> states;
  for (const SplitState& state : split.states) {
    states.push_back(state.value);
    views[state.value] = {.dtype = state.type,
                          .shape = state.shape,
                          .strides = RowMajorStrides(state.shape),
                          .constant = false};
  }
  std::vector<ValueId> merged;
  for (ValueId v : group.outputs) {
    bool whole = std::any_of(split.merge.ops.begin(), split.merge.ops.end(),
                             [&](const SmgOp& op) { return op.output == v; });
    (whole ? merged : states).push_back(v);
  }
  SplitGroups out{.partial = GroupOf(std::move(split.partial), states, views),
                  .merge = GroupOf(std::move(split.merge), merged, views)};
  out.partial.loose = split.loose;
  out.merge.loose = split.loose;
  out.partial.flushes = out.merge.flushes = group.flushes;
  out.partial.certificate = std::move(split.certificate);
  return out;
}

}  // namespace fusion
