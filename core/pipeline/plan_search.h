#pragma once

#include <memory>

#include "core/compile/toolchain.h"
#include "core/pipeline/planning.h"
#include "core/plan/cost/tile_candidates.h"
#include "core/tune/tile_search.h"

namespace fusion {

/// The initial search of a plan with opt level `level`: kPending, or kNone with the reason.
TileSearch StartOfSearch(int level, const DeviceSpec& device, bool family, bool guard);

/// The tiling candidates of a plan whose search is pending. Candidates of a kernel are generated
/// when the search reaches that kernel. Not thread-safe; refers to all constructor arguments.
class PlanSearch {
 public:
  /// `planned.model` is not null. Candidate generation stops when `until` ends.
  PlanSearch(const Work& work, const Planned& planned, const Toolchain& toolchain,
             const CancelToken& until);

  const SearchTask& task() const { return task_; }

 private:
  absl::StatusOr<std::vector<SearchedTiling>> Others(const TunableKernel& kernel, size_t most);

  const Work& work_;
  const DeviceSpec device_;  // that the estimates are made with
  const Planned& planned_;
  const CodegenIdentity codegen_;
  TileChoices choices_;
  SearchTask task_;
};

}  // namespace fusion
