#pragma once

#include "core/base/heap_bytes.h"
#include "core/graph/graph.h"

namespace fusion {

/// About the bytes of heap that a graph holds; the values of its constants are part of it, also
/// where other graphs share them. Proportional to nodes, tensors and steps of loops. Pure.
int64_t HeapBytes(const Graph& graph);

}  // namespace fusion
