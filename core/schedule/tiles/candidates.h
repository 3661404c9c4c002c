#pragma once

#include <vector>

#include "core/device/device_spec.h"
#include "core/schedule/lower/lower.h"

namespace fusion {

struct CandidateOptions {
  /// Most choices to return.
  int limit = 6;
  /// Cut a dim only if nothing is computed twice for it.
  bool forbid_recompute = false;
  /// Sums run in index order: no slices of a dim within an outer one, no fused multiply-add.
  bool bitwise = false;
  /// Also choices that have no place on the device, all of them: for who asks what they lack.
  bool keep_misfits = false;
};

/// Ways to cut and stream a group on a device, most promising first: which dims become parallel
/// blocks and how long, what is streamed inside a block, register blocks and operand roles of the
/// products. Pure; deterministic. Empty only if the group has no schedule at all; the reason is
/// then in `refusal` if that is given.
std::vector<Choice> EnumerateChoices(const FusionGroup& group, const DeviceSpec& device,
                                     const CandidateOptions& options, std::string* refusal);

}  // namespace fusion
