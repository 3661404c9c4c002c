#pragma once

#include "core/graph/graph.h"

namespace fusion {

/// A random image of one to three dims under a few convolutions and pools with element-wise ops
/// before, between and behind them: strides 1 to 3, dilations, uneven padding, groups, residuals.
/// Equal for equal seeds.
Graph RandomWindowGraph(uint64_t seed);

}  // namespace fusion
