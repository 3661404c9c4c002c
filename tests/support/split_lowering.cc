#include "tests/support/split_lowering.h"

#include <algorithm>

#include "core/schedule/ir/join.h"
#include "core/schedule/ir/split_group.h"
#include "core/schedule/lower/streamed_group.h"
#include "core/schedule/tiles/candidates.h"

namespace fusion {

absl::StatusOr<Lowered> LowerSplit(const WholeProgram& whole, DimId dim, int64_t parts,
                                   const DeviceSpec& device, size_t n, int64_t tile) {
  FusionGroup group = whole.group;
  for (auto& [value, view] : group.views) view.constant = false;
  ASSIGN_OR_RETURN(SplitGroups split, SplitGroup(group, dim, parts));
  std::vector<Lowered> phases;
  std::vector<std::vector<int>> names;
  for (const FusionGroup* phase : {&split.partial, &split.merge}) {
    std::string refusal;
    std::vector<Choice> choices = EnumerateChoices(*phase, device, {.limit = 100}, &refusal);
    if (choices.empty()) return FailedPrecondition(refusal, " of\n", ToString(phase->smg));
    Choice choice = choices[std::min(n, choices.size() - 1)];
    if (tile > 0 && phase == &split.partial) {
      const std::string& name = group.smg.dim(dim).name;
      const std::vector<SmgDim>& dims = phase->smg.dims;
      const auto part =
          std::find_if(dims.begin(), dims.end(), [&](const SmgDim& d) { return d.name == name; });
      if (part == dims.end()) return Internal("no dim ", name, " of\n", ToString(phase->smg));
      const auto along = static_cast<DimId>(part - dims.begin());
      Refusal why;
      std::shared_ptr<const StreamedGroup> streamed = StreamGroup(*phase, along, &why);
      if (streamed == nullptr) return FailedPrecondition(why.words);
      std::erase_if(choice.grid, [&](const GridDim& g) { return g.dim == along; });
      choice = choice.Streaming(streamed, tile);
    }
    ASSIGN_OR_RETURN(phases.emplace_back(), Lower(*phase, choice, device, false));
    names.emplace_back();
    for (const LoweredParam& p : phases.back().params) names.back().push_back(p.value);
  }
  std::vector<int> kept(group.outputs.begin(), group.outputs.end());
  ASSIGN_OR_RETURN(JoinedSchedules joined,
                   PutInPhases({&phases[0].schedule, &phases[1].schedule}, names, kept));
  Lowered out{.schedule = std::move(joined.schedule), .params = {}};
  for (const auto& [part, p] : joined.source) {
    out.params.push_back(phases[static_cast<size_t>(part)].params[static_cast<size_t>(p)]);
  }
  return out;
}

}  // namespace fusion
