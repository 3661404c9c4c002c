#include "core/plan/cost/phase_pipelines.h"

#include <algorithm>

#include "core/plan/cost/gain.h"
#include "core/plan/sets/grouping.h"

namespace fusion {
namespace {

// Number of slice lengths that are tried: the shortest and its doubles.
constexpr int kMostLengths = 6;
// The least gain, as a fraction of the time with barriers. The estimate includes barriers, but not
// that slices balance a slow unit less well. Measured on 2026-11-22 on two cores of an EPYC (Zen 4)
// by tests/bench/pipelines.py: results/pipelines-2026-11-22-*.txt. Used for other devices without a
// measurement.
constexpr int kLeastGainPercent = 5;

// A schedule with only some phases of another one.
Schedule PhasesOf(const Schedule& s, int first, int phases) {
  Schedule out = s;
  out.phases.assign(s.phases.begin() + first, s.phases.begin() + first + phases);
  return out;
}

// The estimate of a schedule whose phases all run as one pipeline.
Estimate EstimateAs(PhasePipeline pipeline, const Schedule& apart, const DeviceSpec& device) {
  pipeline.first = 0;
  return EstimateKernel(RunAsPipeline(apart, pipeline), device);
}

class PipelineFormer {
 public:
  PipelineFormer(const Schedule& joined, const DeviceSpec& device)
      : joined_(joined), device_(device) {}

  void Form() {
    const int phases = static_cast<int>(joined_.phases.size());
    for (int first = 0; first + 1 < phases;) {
      PhasePipeline best;
      Refusal ends;  // why it is not longer
      for (int count = 2; first + count <= phases; ++count) {
        absl::StatusOr<std::vector<PipelineSlice>> slices = FindSlices(joined_, first, count);
        if (!slices.ok()) {
          if (ends.empty()) ends = RefusalFrom(Message(slices.status()));
          break;
        }
        Refusal slow = Extend(first, count, *slices, &best);
        // One more phase may be too slow although two more would gain.
        if (slow.empty() || ends.empty()) ends = std::move(slow);
      }
      if (best.phases > 0) {
        waits_.resize(waits_.size() + static_cast<size_t>(best.phases) - 1);
        first += best.phases;
        pipelines_.push_back(std::move(best));
        if (first < phases) waits_.push_back(std::move(ends));
      } else {
        waits_.push_back(std::move(ends));
        ++first;
      }
    }
  }

  std::vector<PhasePipeline> TakePipelines() { return std::move(pipelines_); }
  std::vector<Refusal> TakeWaits() { return std::move(waits_); }

 private:
  // Replaces `best`, which has fewer phases, by the fastest pipeline of `count` phases if that is
  // faster; otherwise returns the reason.
  Refusal Extend(int first, int count, const std::vector<PipelineSlice>& slices,
                 PhasePipeline* best) const {
    const Schedule apart = PhasesOf(joined_, first, count);
    const double barriers_us = EstimateKernel(apart, device_).time_us;
    const double before_us =
        best->phases > 0 ? EstimateAs(*best, apart, device_).time_us : barriers_us;
    PhasePipeline fastest;
    double fastest_us = 0;
    for (PhasePipeline& tried : Choices(first, count, slices)) {
      const double us = EstimateAs(tried, apart, device_).time_us;
      if (fastest.phases > 0 && us >= fastest_us) continue;
      fastest = std::move(tried);
      fastest_us = us;
    }
    const bool gains = 100 * fastest_us <= (100 - kLeastGainPercent) * barriers_us;
    if (!gains || fastest_us > before_us - kMinGainUs) {
      const PipelineSlice& slice = fastest.slices[0];
      return Refuse(RefusalCode::kPipeline, "in slices of ", slice.tile, " of ",
                    joined_.dim(slice.Shortest(joined_)).name, " they take ",
                    MicrosecondsText(fastest_us), ", with a barrier ",
                    MicrosecondsText(gains ? before_us : barriers_us),
                    !gains && fastest_us < barriers_us
                        ? StrCat("; a gain below ", kLeastGainPercent, " % is not worth it")
                        : "");
    }
    *best = std::move(fastest);
    return {};
  }

  // Slices of several lengths along each dim, and the shortest slices along all dims.
  std::vector<PhasePipeline> Choices(int first, int count,
                                     const std::vector<PipelineSlice>& slices) const {
    std::vector<PhasePipeline> choices;
    for (const PipelineSlice& slice : slices) {
      PhasePipeline choice{.first = first, .phases = count, .slices = {slice}};
      const int64_t extent = joined_.dim(slice.Shortest(joined_)).extent;
      for (int i = 0; i < kMostLengths && choice.slices[0].tile < extent; ++i) {
        choices.push_back(choice);
        choice.slices[0].tile *= 2;
      }
    }
    if (slices.size() > 1) choices.push_back({.first = first, .phases = count, .slices = slices});
    return choices;
  }

  const Schedule& joined_;
  const DeviceSpec& device_;
  std::vector<PhasePipeline> pipelines_;
  std::vector<Refusal> waits_;
};

// Forms the last pipeline first, so that earlier positions stay valid.
Pipelined With(Schedule joined, const Estimate& estimate, std::vector<PhasePipeline> pipelines,
               std::vector<Refusal> waits, const DeviceSpec& device) {
  Pipelined out{.pipelines = std::move(pipelines), .waits = std::move(waits), .estimate = estimate};
  if (out.pipelines.empty()) {
    out.schedule = std::move(joined);
    return out;
  }
  // Some phases may be of another class than the whole: their estimates can be added up without
  // factors of classes only.
  DeviceSpec plain = device;
  plain.class_factors.clear();
  if (!device.class_factors.empty()) out.estimate = EstimateKernel(joined, plain);
  for (auto p = out.pipelines.rbegin(); p != out.pipelines.rend(); ++p) {
    const Schedule apart = PhasesOf(joined, p->first, p->phases);
    out.estimate =
        Replaced(out.estimate, EstimateKernel(apart, plain), EstimateAs(*p, apart, plain));
    joined = RunAsPipeline(joined, *p);
  }
  out.estimate = OfItsClass(out.estimate, joined, device);
  out.schedule = std::move(joined);
  return out;
}

absl::StatusOr<PipelineSlice> SliceFrom(const LockedTile& locked, const Schedule& joined,
                                        const std::vector<PipelineSlice>& possible) {
  auto name = [&](const PipelineSlice& s) { return joined.dim(s.Shortest(joined)).name; };
  auto found = std::find_if(possible.begin(), possible.end(),
                            [&](const PipelineSlice& s) { return name(s) == locked.dim; });
  if (found == possible.end()) {
    return InvalidArgument("dim: ", QuoteShort(locked.dim), "; slices may be of ",
                           StrJoin(possible, ", ", name));
  }
  if (locked.tile % found->tile != 0) {
    return InvalidArgument("tile: ", locked.tile, "; expected a multiple of ", found->tile);
  }
  PipelineSlice slice = *found;
  slice.tile = locked.tile;
  return slice;
}

absl::StatusOr<PhasePipeline> PipelineFrom(const LockedPipeline& locked, const Schedule& joined,
                                           int64_t least) {
  const auto phases = static_cast<int64_t>(joined.phases.size());
  if (locked.first < least || locked.phases < 2 || locked.first + int64_t{locked.phases} > phases) {
    return InvalidArgument("phases ", locked.first, " to ",
                           locked.first + int64_t{locked.phases} - 1,
                           "; expected at least two, from ", least, " to ", phases - 1);
  }
  ASSIGN_OR_RETURN(std::vector<PipelineSlice> possible,
                   FindSlices(joined, locked.first, locked.phases));
  PhasePipeline pipeline{.first = locked.first, .phases = locked.phases, .slices = {}};
  for (size_t i = 0; i < locked.slices.size(); ++i) {
    auto slice = SliceFrom(locked.slices[i], joined, possible);
    if (!slice.ok()) return InvalidArgument("slices[", i, "].", Message(slice.status()));
    for (const PipelineSlice& other : pipeline.slices) {
      if (other.dims == slice->dims) return InvalidArgument("slices[", i, "].dim: a second time");
    }
    pipeline.slices.push_back(*std::move(slice));
  }
  if (pipeline.slices.empty()) return InvalidArgument("slices: none");
  return pipeline;
}

}  // namespace

Pipelined FormPipelines(Schedule joined, const Estimate& estimate, const DeviceSpec& device) {
  PipelineFormer former(joined, device);
  former.Form();
  std::vector<PhasePipeline> pipelines = former.TakePipelines();
  return With(std::move(joined), estimate, std::move(pipelines), former.TakeWaits(), device);
}

absl::StatusOr<Pipelined> PinPipelines(Schedule joined, const Estimate& estimate,
                                       const std::vector<LockedPipeline>& pinned,
                                       const DeviceSpec& device) {
  std::vector<PhasePipeline> pipelines;
  std::vector<Refusal> waits(joined.phases.size() - 1,
                             Refuse(RefusalCode::kLocked, "the lock has a barrier there"));
  int64_t least = 0;
  for (size_t i = 0; i < pinned.size(); ++i) {
    auto pipeline = PipelineFrom(pinned[i], joined, least);
    if (!pipeline.ok()) return InvalidArgument("pipelines[", i, "].", Message(pipeline.status()));
    least = pipeline->first + pipeline->phases;
    auto inside = waits.begin() + pipeline->first;
    std::fill(inside, inside + pipeline->phases - 1, Refusal());
    pipelines.push_back(*std::move(pipeline));
  }
  return With(std::move(joined), estimate, std::move(pipelines), std::move(waits), device);
}

std::vector<LockedPipeline> LockedOf(const Schedule& schedule,
                                     const std::vector<PhasePipeline>& pipelines) {
  std::vector<LockedPipeline> locked;
  for (const PhasePipeline& p : pipelines) {
    LockedPipeline& out = locked.emplace_back();
    out.first = p.first;
    out.phases = p.phases;
    for (const PipelineSlice& s : p.slices) {
      out.slices.push_back({schedule.dim(s.Shortest(schedule)).name, s.tile});
    }
  }
  return locked;
}

}  // namespace fusion
