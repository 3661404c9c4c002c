#pragma once

#include <string_view>

namespace fusion {

// What a PlanFlip is about, with its unit. Stable: programs compare them, and
// proto/fusion/v1/plan.proto says what each means.

inline constexpr char kFlipLaunchUs[] = "launch-us";
inline constexpr char kFlipMemoryGbPerS[] = "memory-gb-per-s";
inline constexpr char kFlipOnChipBytes[] = "on-chip-bytes";
inline constexpr char kFlipTogetherUs[] = "together-us";
inline constexpr char kFlipGainUs[] = "gain-us";
inline constexpr char kFlipRunUs[] = "run-us";
inline constexpr char kFlipTileElements[] = "tile-elements";
inline constexpr char kFlipStreamedDims[] = "streamed-dims";
inline constexpr char kFlipLoopOps[] = "loop-ops";
inline constexpr char kFlipInputs[] = "inputs";
inline constexpr char kFlipPhases[] = "phases";
inline constexpr char kFlipGroupsBetween[] = "groups-between";
inline constexpr char kFlipOutsideReaders[] = "outside-readers";
inline constexpr char kFlipRules[] = "rules";
inline constexpr char kFlipRuleFactor[] = "rule-factor";
inline constexpr char kFlipComputePressure[] = "compute-pressure";
inline constexpr char kFlipMemoryPressure[] = "memory-pressure";
inline constexpr char kFlipFusionMode[] = "fusion-mode";
inline constexpr char kFlipLockGroups[] = "lock-groups";
inline constexpr char kFlipLockTurns[] = "lock-turns";
inline constexpr char kFlipFailedKernels[] = "failed-kernels";

/// All of them.
inline constexpr std::string_view kFlipWords[] = {
    kFlipLaunchUs,       kFlipMemoryGbPerS, kFlipOnChipBytes,  kFlipTogetherUs,
    kFlipGainUs,         kFlipRunUs,        kFlipTileElements, kFlipStreamedDims,
    kFlipLoopOps,        kFlipInputs,       kFlipPhases,       kFlipGroupsBetween,
    kFlipOutsideReaders, kFlipRules,        kFlipRuleFactor,   kFlipComputePressure,
    kFlipMemoryPressure, kFlipFusionMode,   kFlipLockGroups,   kFlipLockTurns,
    kFlipFailedKernels};

}  // namespace fusion
