#pragma once

#include <vector>

#include "core/bundle/plan_outline.h"
#include "core/graph/program/program.h"

namespace fusion {

/// What one node computes of transformer layers.
struct NodeSections {
  SectionSet products = 0;  // of its products
  SectionSet others = 0;    // of its other loop ops
};

/// Limit of LayerSectionsOf for the steps from loop op to loop op. Chosen: 0.1 s. BERT-base takes
/// some thousand.
inline constexpr int64_t kMaxSectionSteps = int64_t{1} << 22;

/// By node of the graph that `program` was built from. Empty: the program has no attention, or is
/// beyond kMaxSectionSteps. The bodies of loops have no sections. Pure.
std::vector<NodeSections> LayerSectionsOf(const Program& program, size_t nodes);

}  // namespace fusion
