#pragma once

#include <optional>

#include "core/smg/smg.h"

namespace fusion {

/// The SMG in which dims that walk some input just as `dim` does, in other ops, are one with it, so
/// that the input is walked once; nullopt if there is none. Dims keep their numbers. Pure.
std::optional<Smg> WithCompanions(const Smg& smg, DimId dim);

}  // namespace fusion
