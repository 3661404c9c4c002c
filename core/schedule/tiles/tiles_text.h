#pragma once

#include <string>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// The tiling of a schedule, for people: dims tiled into blocks, dims streamed through a block,
/// halos, and the largest block of accumulators. "whole" if nothing is tiled. Pure.
///
///   d0:1 d1:64, streams d4:128, accumulates 64x128
///   oh:8, halo d2:10, accumulates 6x16
std::string TilesText(const Schedule& schedule);

}  // namespace fusion
