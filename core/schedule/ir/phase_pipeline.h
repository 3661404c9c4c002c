#pragma once

#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// One dim of each phase's grid, sliced together. The dims have equal extents, or multiples of the
/// shortest one's extent if a phase sees several dims of a tensor as one.
struct PipelineSlice {
  std::vector<DimId> dims;  // by phase
  int64_t tile = 1;         // length of a slice, in coordinates of the shortest dim
  bool operator==(const PipelineSlice&) const = default;

  /// The dim with the smallest extent, the first one of several.
  DimId Shortest(const Schedule& schedule) const;
};

/// Consecutive phases that run as one phase ("pipeline"): a block takes its slice through all of
/// them in order. There is no barrier between them. Blocks may be at different phases at the same
/// time. A phase reads the values of the previous one from the memory they were written to.
struct PhasePipeline {
  int first = 0;   // position of the first phase
  int phases = 0;  // at least two
  std::vector<PipelineSlice> slices;
  bool operator==(const PhasePipeline&) const = default;
};

/// Finds the slices with which `phases` phases, from position `first`, can run as a pipeline: any
/// memory that one phase writes and another one accesses is accessed by both in the same slice. The
/// slices can be used together. `tile` of each is the shortest length that consists of whole tiles
/// of every grid. FailedPrecondition, with the reason, if there are none, or if a phase has several
/// segments, halos or a CallStmt.
absl::StatusOr<std::vector<PipelineSlice>> FindSlices(const Schedule& schedule, int first,
                                                      int phases);

/// The schedule with these phases merged to one. `pipeline.slices`: one or more of the slices that
/// FindSlices returns for these phases; `tile` may be a multiple of the returned one. Pure.
Schedule RunAsPipeline(const Schedule& schedule, const PhasePipeline& pipeline);

/// One phase's part of the work of a block.
struct Stage {
  std::vector<GridDim> loops;  // loops around `body`, outermost first
  const Block* body = nullptr;
};

/// The stages of a segment made by RunAsPipeline. Any other segment is one stage without loops. The
/// pointers are valid as long as `segment`.
std::vector<Stage> StagesOf(const Segment& segment);
/// Number of phases, each phase of a pipeline counted.
int CountPhases(const Schedule& schedule);

/// True if no two blocks of the phase access the same element of `memory`.
bool KeepsToItsBlock(const Schedule& schedule, const Phase& phase, BufferId memory);

}  // namespace fusion
