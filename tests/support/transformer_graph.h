#pragma once

#include "core/graph/graph.h"

namespace fusion {

/// A decoder-style transformer as exporters write it, normalisation and GELU taken apart: about 50
/// nodes a layer, all layers equal, one sequence. For measuring how planning grows; weights have no
/// bytes.
Graph TransformerGraph(int layers, int64_t sequence = 128, int64_t width = 768, int64_t heads = 12);

}  // namespace fusion
