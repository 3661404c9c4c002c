#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/schedule/tiles/candidates.h"

namespace fusion {

/// What is missing for a group to fit on a device with explicit memory.
struct FitProbe {
  struct Level {
    std::string name;
    int64_t needed_bytes = 0;  // by the tiles of a block
    int64_t usable_bytes = 0;  // less than needed
  };
  /// The levels that overflow, for the choice that overflows least.
  std::vector<Level> lacking;
  /// The dim of that choice whose tile must shrink least for it to fit, and the longest tile that
  /// fits. The enumeration does not offer it because the device's register blocks are longer. `dim`
  /// empty, `tile` 0: even tiles of one element do not fit.
  std::string dim;
  int64_t tile = 0;
  int64_t tried_tile = 0;  // the tile of the choice
  /// Why a reduced dim cannot be streamed, which would make tiles smaller: "op 4 ReduceSum uses op
  /// 2 ReduceMax, both along l". Empty: each reduced dim can be.
  std::string streaming;
};

/// Probes by lowering, not by a formula: the choices of the group, then ever shorter tiles of the
/// one that overflows least. nullopt if some choice fits, if no choice has a schedule, or if the
/// device has caches. Pure; deterministic. Takes about as long as lowering twenty choices.
std::optional<FitProbe> ProbeFit(const FusionGroup& group, const DeviceSpec& device,
                                 const CandidateOptions& options);

}  // namespace fusion
