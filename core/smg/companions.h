#pragma once

#include <optional>

#include "core/smg/smg.h"

namespace fusion {

/// Unites with `dim` every dim that reads some kernel input at the same indices in another op, so
/// that the input is read once. Such a dim has the same extent, and no op has both. Dims keep their
/// numbers; united dims stay in Smg::dims unused. nullopt if no dim qualifies. Pure; any thread.
std::optional<Smg> WithCompanions(const Smg& smg, DimId dim);

}  // namespace fusion
