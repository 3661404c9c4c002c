#pragma once

#include <string_view>

namespace fusion {

// Values of WhatIf::what: the quantity to change, with its unit. Stable, because programs compare
// them. PlanFlip in proto/fusion/v1/plan.proto defines each.

inline constexpr char kWhatIfLaunchUs[] = "launch-us";
inline constexpr char kWhatIfMemoryGbPerS[] = "memory-gb-per-s";
inline constexpr char kWhatIfOnChipBytes[] = "on-chip-bytes";
inline constexpr char kWhatIfTogetherUs[] = "together-us";
inline constexpr char kWhatIfGainUs[] = "gain-us";
inline constexpr char kWhatIfRunUs[] = "run-us";
inline constexpr char kWhatIfTileElements[] = "tile-elements";
inline constexpr char kWhatIfStreamedDims[] = "streamed-dims";
inline constexpr char kWhatIfLoopOps[] = "loop-ops";
inline constexpr char kWhatIfInputs[] = "inputs";
inline constexpr char kWhatIfPhases[] = "phases";
inline constexpr char kWhatIfGroupsBetween[] = "groups-between";
inline constexpr char kWhatIfOutsideReaders[] = "outside-readers";
inline constexpr char kWhatIfRules[] = "rules";
inline constexpr char kWhatIfRuleFactor[] = "rule-factor";
inline constexpr char kWhatIfComputePressure[] = "compute-pressure";
inline constexpr char kWhatIfMemoryPressure[] = "memory-pressure";
inline constexpr char kWhatIfFusionMode[] = "fusion-mode";
inline constexpr char kWhatIfLockGroups[] = "lock-groups";
inline constexpr char kWhatIfLockTurns[] = "lock-turns";
inline constexpr char kWhatIfFailedKernels[] = "failed-kernels";

/// All of them.
inline constexpr std::string_view kWhatIfWords[] = {
    kWhatIfLaunchUs,       kWhatIfMemoryGbPerS, kWhatIfOnChipBytes,  kWhatIfTogetherUs,
    kWhatIfGainUs,         kWhatIfRunUs,        kWhatIfTileElements, kWhatIfStreamedDims,
    kWhatIfLoopOps,        kWhatIfInputs,       kWhatIfPhases,       kWhatIfGroupsBetween,
    kWhatIfOutsideReaders, kWhatIfRules,        kWhatIfRuleFactor,   kWhatIfComputePressure,
    kWhatIfMemoryPressure, kWhatIfFusionMode,   kWhatIfLockGroups,   kWhatIfLockTurns,
    kWhatIfFailedKernels};

}  // namespace fusion
