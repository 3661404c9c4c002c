#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace fusion {

/// A small graph of float ops chosen by `seed`: element-wise with broadcast, reductions, softmax,
/// layer norm, products, transposes, reshapes, slices, concat, gather, expand, where; extents up to
/// 40, among them 1 and (seldom) 0. Values stay small, so that results of different summation order
/// agree. Every node has an unique name. Same seed, same graph.
Graph RandomGraph(uint64_t seed);

/// As RandomGraph, and in it what kernels are made of besides single ops: softmax and normalisation
/// spelled out, attention with and without scale and with masks of every kind (causal, sliding
/// window, from an input, finite and infinite), products of one input side by side, gated products,
/// and parts in f16, bf16, f64 and integers.
Graph RandomChainGraph(uint64_t seed);

/// As RandomGraph, with one or two repeats that go along what is there.
Graph RandomLoopGraph(uint64_t seed);

/// As RandomGraph, with running sums, running maxima and minima, and rows put in order, between
/// what it has.
Graph RandomOpaqueGraph(uint64_t seed);

/// `graph` with inputs and outputs that do not lie dense, some of them: padded, dims in any order.
Graph WithRandomStrides(const Graph& graph, uint64_t seed);

}  // namespace fusion
