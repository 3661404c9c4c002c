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

/// The graph of a request for some values of its symbols.
struct FamilyMember {
  std::vector<int64_t> units;  // values of the symbols divided by their multiples
  Graph graph;                 // canonical
};

/// The graphs of a request with open dims.
struct ShapeFamily {
  std::vector<std::string> names;  // of the symbols
  std::vector<DimRange> symbols;
  std::vector<std::string> node_names;  // of the largest graph, by canonical node
  /// Points from which the one plan is derived. They avoid accidental equality and divisibility of
  /// sizes.
  std::vector<FamilyMember> members;
  /// Points at which the plan is compared with exact plans: smallest, likely and middle values, and
  /// some between the smallest and the middle ones.
  std::vector<FamilyMember> samples;
  /// Ranges of a variant for few elements, and the graph at their largest values; not set: there is
  /// no variant.
  std::vector<DimRange> few_symbols;
  std::optional<FamilyMember> few;
};

/// The plan of `graph`, in which all symbols have their largest values.
///
/// The candidates are the groups and tilings that are best for the largest values and for each
/// sample. The one with the least estimated loss against exact plans at its worst sample is chosen.
/// A plan for few elements (FewPoint) comes with it, in PlannedModel::variants, unless it is the
/// same one, memory pressure is high (a variant packs its own weights), or `unfused_nodes` has a
/// reason under kNoVariant, which becomes a fallback. With a variant, the loss at points that it
/// covers is the variant's. Errors and `cancel`: as MakePlan.
absl::StatusOr<PlannedModel> PlanFamily(const ShapeFamily& family, const Graph& graph,
                                        const DeviceSpec& device, const PlanOptions& options,
                                        const CancelToken* cancel,
                                        const std::map<NodeId, std::string>& unfused_nodes);

/// Extends `model`, the plan of the largest values (PlanFamily), to all values of the symbols, and
/// names its kernels as EmitKernels does.
///
/// The members are planned with the same groups and tilings. Their plans and sources may differ in
/// numbers only. Each such number must be a polynomial of the symbols (FitSize), must not exceed
/// the memory of the largest values, and must keep its order relative to others; this is proven.
/// That values between the members differ in nothing else is not proven here: every kernel is
/// checked at the ends of the ranges and between them before it is published.
///
/// FailedPrecondition, with nodes, dims and what the caller can do, if members differ otherwise. A
/// plan for few elements becomes a variant for the values at which it is estimated to be no slower,
/// if it gains 5 % somewhere. A variant that cannot be made is left out (NamedKernels::no_variant);
/// if a lock pins it, that is an error. Pure.
absl::StatusOr<NamedKernels> MakeFamily(const ShapeFamily& family, const DeviceSpec& device,
                                        const PlanOptions& options, const Toolchain& toolchain,
                                        PlannedModel* model, const CancelToken* cancel = nullptr);

}  // namespace fusion
