#pragma once

#include <string>
#include <vector>

#include "core/bundle/plan.h"

namespace fusion {

/// The caller's words for what a run is given; what has no name is called by its position.
struct RunNames {
  std::vector<std::string> inputs;
  std::vector<std::string> symbols;
};

/// The values that the symbols of `plan` have where its inputs have these dims, by plan input, in
/// units of their multiples. InvalidArgument, naming input, dim and symbol, if there are none, or
/// none that the plan is for. Inputs that the plan does not read are not looked at. Pure.
absl::StatusOr<std::vector<int64_t>> SymbolUnits(const Plan& plan, const std::vector<Dims>& inputs,
                                                 const RunNames& names = {});

/// The dims of a plan tensor where the symbols have these values.
Dims DimsAt(const PlanTensor& tensor, const std::vector<int64_t>& units);
/// And its strides.
Dims StridesAt(const PlanTensor& tensor, const std::vector<int64_t>& units);
/// Elements of its memory, those between its rows included; of the arena as many as it ever needs.
int64_t ElementsAt(const PlanTensor& tensor, const std::vector<int64_t>& units);
/// And its offset, in bytes.
int64_t OffsetAt(const PlanTensor& tensor, const std::vector<int64_t>& units);

/// Passes at most of a loop where the symbols have these values.
int64_t MostPassesAt(const PlanLoop& loop, const std::vector<int64_t>& units);
/// Bytes of one element of what `element` moves along.
int64_t ElementBytesAt(const Plan& plan, const PlanLoop::Element& element,
                       const std::vector<int64_t>& units);

}  // namespace fusion
