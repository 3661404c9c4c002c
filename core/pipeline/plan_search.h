#pragma once

#include <memory>

#include "core/compile/toolchain.h"
#include "core/pipeline/kernels/tile_search.h"
#include "core/pipeline/planning.h"
#include "core/plan/cost/tile_candidates.h"

namespace fusion {

/// What a search has to try of a plan whose search is pending. Candidates are made one kernel after
/// the other, when the search comes to it. Not thread-safe. Refers to all that it is made from.
class PlanSearch {
 public:
  /// `planned.model` is not null. Making candidates ends with `until`.
  PlanSearch(const Work& work, const Planned& planned, const Toolchain& toolchain,
             const CancelToken& until);

  const SearchTask& task() const { return task_; }

 private:
  absl::StatusOr<std::vector<SearchedCut>> Others(const TunableKernel& kernel, size_t most);

  const Work& work_;
  const Planned& planned_;
  const CodegenIdentity codegen_;
  TileChoices choices_;
  SearchTask task_;
};

}  // namespace fusion
