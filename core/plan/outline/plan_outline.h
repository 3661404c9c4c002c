#pragma once

#include "core/bundle/plan.h"
#include "core/bundle/plan_outline.h"
#include "core/graph/graph.h"

namespace fusion {

/// The outline of a plan of `graph`, a canonical graph of static shapes. A graph beyond the limits
/// of LayerSectionsOf has no sections. Pure; about as fast as BuildProgram.
PlanOutline OutlineOf(const Graph& graph, const Plan& plan);

}  // namespace fusion
