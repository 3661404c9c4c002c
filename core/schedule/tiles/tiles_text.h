#pragma once

#include <string>

#include "core/schedule/ir/schedule.h"

namespace fusion {

/// How a schedule is cut, for people: dims cut into blocks with their tiles, dims that are streamed
/// through a block, what
/// blocks reach of dims that are read through windows, the largest block of accumulators.
///
///   d0:1 d1:64, streams d4:128, accumulates 64x128
///   oh:8, halo d2:10, accumulates 6x16
///
/// "whole" if it is not cut at all. Pure.
std::string TilesText(const Schedule& schedule);

}  // namespace fusion
