#include "core/pipeline/kernels/share_packed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/bundle/plan_variants.h"

namespace fusion {
namespace {

constexpr int64_t kAlignment = 64;  // of what begins at a place of its own

// Bytes that lie together, as a panel of several packed weights and its parts do.
struct PackedBlock {
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<int> tensors;
};

bool Overlap(const PlanTensor& a, const PlanTensor& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

class Sharer {
 public:
  Sharer(const Plan& plan, Plan* variant) : plan_(plan), variant_(*variant) {}

  void Run() {
    int64_t end = PreparedBytes(plan_);  // behind other variants too
    for (const PackedBlock& block : Blocks()) {
      int64_t move = 0;
      if (std::optional<int64_t> shared = WhereShared(block)) {
        move = *shared;
      } else {
        const int64_t begin = (end + kAlignment - 1) / kAlignment * kAlignment;
        move = begin - block.begin;
        end = begin + (block.end - block.begin);
      }
      for (int t : block.tensors) moved_[t] = At(variant_, t).offset + move;
    }
    for (const auto& [t, offset] : moved_) {
      variant_.tensors[static_cast<size_t>(t)].offset = offset;
    }
    variant_.prepared_bytes = end;
  }

 private:
  static const PlanTensor& At(const Plan& plan, int t) {
    return plan.tensors[static_cast<size_t>(t)];
  }

  static bool IsPrepared(const Plan& plan, int t) {
    return t >= 0 && At(plan, t).space == Space::kPrepared;
  }

  std::vector<PackedBlock> Blocks() const {
    std::vector<int> order;
    for (size_t t = 0; t < variant_.tensors.size(); ++t) {
      if (IsPrepared(variant_, static_cast<int>(t))) order.push_back(static_cast<int>(t));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return At(variant_, a).offset < At(variant_, b).offset; });
    std::vector<PackedBlock> blocks;
    for (int t : order) {
      const PlanTensor& tensor = At(variant_, t);
      const int64_t begin = tensor.offset / kAlignment * kAlignment;
      if (blocks.empty() || begin >= blocks.back().end) blocks.push_back({begin, begin, {}});
      blocks.back().end = std::max(blocks.back().end, tensor.offset + tensor.bytes);
      blocks.back().tensors.push_back(t);
    }
    return blocks;
  }

  // Offset by which a block must move to share the plan's equally packed memory; nullopt: not all
  // of it is packed alike.
  std::optional<int64_t> WhereShared(const PackedBlock& block) const {
    const std::set<int> inside(block.tensors.begin(), block.tensors.end());
    std::optional<int64_t> move;
    for (const PlanLaunch& launch : variant_.prepare) {
      const bool meets = std::any_of(launch.tensors.begin(), launch.tensors.end(),
                                     [&](int t) { return inside.contains(t); });
      if (!meets) continue;
      const std::optional<int64_t> there = InPlan(launch);
      if (!there.has_value() || (move.has_value() && *move != *there)) return std::nullopt;
      move = there;
    }
    if (!move.has_value() || block.begin + *move < 0 || block.end + *move > plan_.prepared_bytes) {
      return std::nullopt;
    }
    return move;
  }

  // Offset from the result of a prepare launch to the equal result in the plan.
  std::optional<int64_t> InPlan(const PlanLaunch& launch) const {
    for (const PlanLaunch& other : plan_.prepare) {
      if (!PackAlike(variant_, launch, plan_, other)) continue;
      const PlanTensor& packed = At(plan_, PackedBy(plan_, other));
      const bool stays =
          std::all_of(plan_.prepare.begin(), plan_.prepare.end(), [&](const PlanLaunch& by) {
            return &by == &other || std::none_of(by.tensors.begin(), by.tensors.end(), [&](int t) {
              return IsPrepared(plan_, t) && Overlap(At(plan_, t), packed);
            });
          });
      if (!stays) continue;
      return packed.offset - At(variant_, PackedBy(variant_, launch)).offset;
    }
    return std::nullopt;
  }

  const Plan& plan_;
  Plan& variant_;
  std::map<int, int64_t> moved_;  // prepared tensors, and where they come to lie
};

}  // namespace

void SharePacked(const Plan& plan, Plan* variant) { Sharer(plan, variant).Run(); }

}  // namespace fusion
