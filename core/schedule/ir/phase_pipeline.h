#pragma once

#include <vector>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// Dims along which phases run together, a grid dim of each: of one length, or of lengths that are
/// multiples of the shortest one where a phase sees several dims of a tensor as one.
struct PipelineSlice {
  std::vector<DimId> dims;  // by phase
  int64_t tile = 1;         // coordinates of a slice, of the shortest dim
  bool operator==(const PipelineSlice&) const = default;

  /// The shortest dim; of several the first.
  DimId Shortest(const Schedule& schedule) const;
};

/// Neighbouring phases that run as one ("pipeline"): a block takes a slice through all of them, one
/// after the other, while other blocks are elsewhere. No unit waits for another one between them,
/// and what one phase leaves for the next is read where it was written.
struct PhasePipeline {
  int first = 0;   // position of the first phase
  int phases = 0;  // at least two
  std::vector<PipelineSlice> slices;
  bool operator==(const PhasePipeline&) const = default;
};

/// The dims along which `phases` phases from `first` can be one, each with the shortest slices of
/// whole tiles of all their grids: whatever one of the phases writes and another one touches, both
/// touch in the same slice. FailedPrecondition, with the reason, if there are
/// none.
absl::StatusOr<std::vector<PipelineSlice>> FindSlices(const Schedule& schedule, int first,
                                                      int phases);

/// The schedule with these phases as one. The slices are of those that FindSlices finds, their
/// tiles multiples of what it says. Pure.
Schedule RunAsPipeline(const Schedule& schedule, const PhasePipeline& pipeline);

/// What each block of a segment does for one of the phases that it goes through.
struct Stage {
  std::vector<GridDim> loops;  // in which it does it, the first one outermost
  const Block* body = nullptr;
};

/// The stages of a segment that RunAsPipeline made; of any other one its body. They live as long as
/// the segment.
std::vector<Stage> StagesOf(const Segment& segment);
/// Phases that a run goes through, each of a pipeline counted.
int CountPhases(const Schedule& schedule);

/// True if no element of `memory` is touched by two blocks of the phase.
bool KeepsToItsBlock(const Schedule& schedule, const Phase& phase, BufferId memory);

}  // namespace fusion
