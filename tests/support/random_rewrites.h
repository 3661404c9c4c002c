#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace fusion {

/// A graph of what the planner's rewrites (core/rewrite/program_passes.h) look for, in and around
/// loops: products of integers, of quantised and of narrow weights, quantised as a run goes, and
/// convolutions whose images want another layout; LSTM, GRU, RNN and DynamicQuantizeLSTM of few and
/// of many steps, and repeats, counted and conditional ones and repeats within repeats among them.
/// Results that nothing reads are common. Values stay within -1..1. Same seed, same graph.
Graph RandomRewriteGraph(uint64_t seed);

}  // namespace fusion
