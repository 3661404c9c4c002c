#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/bundle/options.h"
#include "core/compile/toolchain.h"
#include "core/device/device_spec.h"
#include "core/graph/graph.h"
#include "core/pipeline/families/family_points.h"
#include "core/pipeline/kernels/kernels.h"
#include "core/plan/planner.h"

namespace fusion {

/// The graph of a request where its symbols have some values.
struct FamilyMember {
  std::vector<int64_t> units;  // values of the symbols divided by their multiples
  Graph graph;                 // canonical
};

/// The graphs of a request that leaves dims open.
struct ShapeFamily {
  std::vector<std::string> names;  // of the symbols
  std::vector<DimRange> symbols;
  std::vector<std::string> node_names;  // of the largest graph, by canonical node
  /// What one plan for all is worked out from, where nothing is equal or divisible by accident.
  std::vector<FamilyMember> members;
  /// Where the plan is compared with exact ones: smallest, likely and middle values, and some
  /// between the smallest and those.
  std::vector<FamilyMember> samples;
  /// Ranges of a variant for few elements, and the graph where they end; not set: there is none.
  std::vector<DimRange> few_symbols;
  std::optional<FamilyMember> few;
};

/// The plan of `graph`, where all symbols have their largest values, whose groups and cuts lose
/// least anywhere: of those that are best for it and for each sample the one that at its worst
/// sample is estimated to be closest to the exact plan. With it comes the one that is best for few
/// elements (FewPoint), and what that is for is left to it, unless it is the same one, memory
/// pressure is high (it packs weights of its own) or `unfused_nodes` has a reason for kNoVariant,
/// which becomes a fallback. As MakePlan.
absl::StatusOr<PlannedModel> PlanFamily(const ShapeFamily& family, const Graph& graph,
                                        const DeviceSpec& device, const PlanOptions& options,
                                        const CancelToken* cancel,
                                        const std::map<NodeId, std::string>& unfused_nodes);

/// Makes `model`, the plan of `largest`, a plan for all values, and names its kernels as
/// EmitKernels does. The members are planned with the same groups and cuts. What differs between
/// their plans and sources must be numbers, each a polynomial of the symbols (FitSize), within what
/// the largest member says about memory, in an order that holds everywhere; so much is proven. That
/// other members than those differ in nothing else is not: every kernel is checked at the ends of
/// the ranges and between them before it is published. FailedPrecondition, with nodes, dims and
/// what the caller can do, if they do differ. What comes for few elements becomes a variant, as far
/// as it is estimated to be no slower, if it gains a twentieth anywhere. One that cannot be made is
/// left out, with NamedKernels::no_variant; where a lock has it that is the error. Pure.
absl::StatusOr<NamedKernels> MakeFamily(const ShapeFamily& family, const DeviceSpec& device,
                                        const PlanOptions& options, const Toolchain& toolchain,
                                        PlannedModel* model, const CancelToken* cancel = nullptr);

}  // namespace fusion
