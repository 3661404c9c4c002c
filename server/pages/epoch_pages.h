#pragma once

#include "core/bundle/measured/epoch.h"
#include "server/pages/markup.h"

namespace fusion {

/// What was learned from reports: the newest epochs with their evidence, constants, history and
/// plans, then the newest decisions about plans.
Markup EpochsContent(const EpochList& list);
/// Epochs and decisions that are shown.
inline constexpr size_t kShownEpochs = 16;
inline constexpr size_t kShownDecisions = 100;

}  // namespace fusion
