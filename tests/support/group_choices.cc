#include "tests/support/group_choices.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/contains.h"
#include "core/plan/cost/pin.h"
#include "core/schedule/tiles/candidates.h"
#include "core/schedule/tiles/legal_choice.h"
#include "core/smg/slicers.h"

namespace fusion {
namespace {

// Enumerated cuts; the first ones differ most.
constexpr int kMostCuts = 4;
// Neither is a multiple of the other, nor of most extents.
constexpr int64_t kTiles[] = {3, 16};
// The same for the tiles of small images.
constexpr int64_t kWindowTiles[] = {1, 3};

absl::StatusOr<FusionGroup> GroupOf(const std::vector<LoopId>& loops,
                                    const GroupEvaluator& evaluator) {
  std::vector<ValueId> values;
  Program program = ExtractProgram(evaluator.program(), loops, &values);
  std::vector<LoopId> all(loops.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<bool> outside;
  std::vector<bool> constant;
  for (ValueId v : values) {
    outside.push_back(evaluator.NeededOutside(v, loops));
    constant.push_back(evaluator.IsConstant(v));
  }
  return MakeGroup(program, all, outside, constant);
}

bool IsReduced(const Smg& smg, DimId d) {
  return std::any_of(smg.ops.begin(), smg.ops.end(),
                     [d](const SmgOp& op) { return op.Reduces(d); });
}

// `base` with each dim streamed that may be.
std::vector<Choice> Streamed(const FusionGroup& group, const Choice& base) {
  std::vector<Choice> out;
  for (DimId d = 0; d < static_cast<DimId>(group.smg.dims.size()); ++d) {
    if (!IsReduced(group.smg, d)) continue;
    std::shared_ptr<const StreamedGroup> form = StreamGroup(group, d);
    if (form == nullptr) continue;
    int64_t extent = group.smg.dim(d).extent;
    for (int64_t tile : kTiles) {
      if (tile < extent) out.push_back(base.Streaming(form, tile));
    }
  }
  return out;
}

// `base` with all dims that windows slide along cut into short tiles.
std::vector<Choice> Windowed(const FusionGroup& group, const Choice& base) {
  std::vector<DimId> windowed;
  for (DimId d : ParallelDims(group, /*forbid_recompute=*/false)) {
    if (SliceSpatially(group.smg, d).Slides()) windowed.push_back(d);
  }
  std::vector<Choice> out;
  for (int64_t tile : kWindowTiles) {
    if (windowed.empty()) break;
    out.push_back(base);
    for (DimId d : windowed) {
      std::erase_if(out.back().grid, [d](const GridDim& g) { return g.dim == d; });
      out.back().grid.push_back({d, std::min(tile, group.smg.dim(d).extent)});
    }
  }
  return out;
}

std::vector<LockedTiling> TilingsOf(const std::vector<LoopId>& loops, const PlanOptions& options,
                                    const GroupEvaluator& evaluator) {
  std::vector<LockedTiling> tilings;
  absl::StatusOr<FusionGroup> group = GroupOf(loops, evaluator);
  if (!group.ok()) return tilings;
  const bool bitwise = options.numerics == Numerics::kBitwise;
  std::vector<Choice> choices = EnumerateChoices(*group, evaluator.device(),
                                                 {.limit = kMostCuts, .bitwise = bitwise}, nullptr);
  if (!choices.empty() && choices[0].temporal < 0 && !bitwise) {
    for (Choice& choice : Streamed(*group, choices[0])) choices.push_back(std::move(choice));
  }
  if (!choices.empty() && choices[0].temporal < 0) {
    for (Choice& choice : Windowed(*group, choices[0])) choices.push_back(std::move(choice));
  }
  for (const Choice& choice : choices) {
    if (!Lower(*group, choice, evaluator.device(), bitwise).ok()) continue;
    tilings.push_back(TilingOf(*group, choice));
  }
  return tilings;
}

// The ops in sets that no value connects, by their first ops.
std::vector<std::vector<LoopId>> Connected(const std::vector<LoopId>& loops,
                                           const Program& program) {
  std::map<LoopId, LoopId> first;  // of the set of an op
  for (LoopId l : loops) {
    first[l] = l;
    for (ValueId v : program.op(l).inputs) {
      auto from = first.find(program.value(v).producer);
      if (from == first.end()) continue;
      LoopId a = std::min(from->second, first[l]);
      LoopId b = std::max(from->second, first[l]);
      for (auto& [op, of] : first) of = of == b ? a : of;
    }
  }
  std::map<LoopId, std::vector<LoopId>> sets;
  for (const auto& [op, of] : first) sets[of].push_back(op);
  std::vector<std::vector<LoopId>> out;
  for (auto& [of, set] : sets) out.push_back(std::move(set));
  return out;
}

}  // namespace

std::vector<LockedChoice> ChoicesOf(const std::vector<LoopId>& loops, const PlanOptions& options,
                                    const GroupEvaluator& evaluator) {
  std::vector<LockedChoice> out;
  for (LockedTiling& tiling : TilingsOf(loops, options, evaluator))
    out.push_back({{std::move(tiling)}});
  std::vector<std::vector<LoopId>> parts = Connected(loops, evaluator.program());
  if (parts.size() < 2) return out;
  std::vector<std::vector<LockedTiling>> tilings;
  size_t most = 0;
  for (const std::vector<LoopId>& part : parts) {
    tilings.push_back(TilingsOf(part, options, evaluator));
    if (tilings.back().empty()) return out;
    most = std::max(most, tilings.back().size());
  }
  for (size_t i = 0; i < most; ++i) {
    LockedChoice choice;
    for (const std::vector<LockedTiling>& of : tilings) choice.parts.push_back(of[i % of.size()]);
    out.push_back(std::move(choice));
  }
  return out;
}

}  // namespace fusion
