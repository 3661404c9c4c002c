#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/schedule/tiles/candidates.h"

namespace fusion {

/// What would give a group a place on a device of explicit memory that has none for it.
struct FitProbe {
  struct Level {
    std::string name;
    int64_t needed_bytes = 0;  // by the tiles of a block
    int64_t usable_bytes = 0;  // fewer
  };
  /// The levels that the choice overflows which lacks least.
  std::vector<Level> lacking;
  /// The longest tile of one of its dims with which it would fit, though the device's register
  /// blocks offer none so short; 0: not even one element does.
  std::string dim;
  int64_t tile = 0;
  int64_t tried_tile = 0;  // the length it has
  /// Why a dim that is summed over cannot be streamed, which would make tiles smaller: "op 4
  /// ReduceSum uses op 2 ReduceMax, both along l". Empty: none is in the way.
  std::string streaming;
};

/// Found by lowering, not by a formula: the choices of the group, then ever shorter tiles of the
/// one that lacks least. Nothing if some choice fits, or none has a schedule at all. Pure;
/// deterministic; takes as long as some twenty schedules.
std::optional<FitProbe> ProbeFit(const FusionGroup& group, const DeviceSpec& device,
                                 const CandidateOptions& options);

}  // namespace fusion
