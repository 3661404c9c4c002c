#pragma once

#include "core/base/heap_bytes.h"
#include "core/graph/graph.h"

namespace fusion {

/// Approximate heap bytes of a graph. Includes the values of its constants, even if other graphs
/// share them. O(nodes + tensors + steps of loops). Pure.
int64_t HeapBytes(const Graph& graph);

}  // namespace fusion
