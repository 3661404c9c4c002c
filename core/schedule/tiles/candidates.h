#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

struct CandidateOptions {
  /// Length of the ranked list. A few choices more are returned: streamed forms that follow a mask,
  /// and alternatives that only the cost estimate can compare with the ranked ones.
  int limit = 6;
  /// Tile a dim only if no block computes anything that another block computes too.
  bool forbid_recompute = false;
  /// Sums run in index order: no slices of a dim inside an outer summed one, no fused multiply-add.
  bool bitwise = false;
  /// Devices with explicit memory only: return all choices, also those that do not fit on chip. For
  /// diagnostics.
  bool keep_misfits = false;
};

/// Choices of tiles for a group on a device, most promising first: which dims become parallel
/// blocks and of which length, what is streamed inside a block, and the register blocks and operand
/// roles of the products. They obey the rules of legal_choice.h. With explicit memory they are
/// lowered and fit on chip (unless `keep_misfits`); with caches a choice may have no schedule
/// (Lower says why). Empty if there is none; `*refusal` (may be null) then has the reason. Pure;
/// deterministic.
std::vector<Choice> EnumerateChoices(const FusionGroup& group, const DeviceSpec& device,
                                     const CandidateOptions& options, std::string* refusal);

}  // namespace fusion
