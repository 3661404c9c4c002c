#pragma once

#include <string>
#include <vector>

#include "core/bundle/plan.h"

namespace fusion {

/// The caller's names for error messages. Entries that are missing are named by position.
struct RunNames {
  std::vector<std::string> inputs;
  std::vector<std::string> symbols;
};

/// Solves for the symbols of `plan`, given the dims of all its inputs (by Plan::inputs). Returns
/// one number per symbol, in units: value / multiple. Every function with `units` expects such a
/// list. InvalidArgument, naming input, dim and symbol, if dims do not fit the plan, no input
/// determines a symbol, or a value is out of range. Ignores inputs that the plan does not read.
/// Pure.
absl::StatusOr<std::vector<int64_t>> SymbolUnits(const Plan& plan, const std::vector<Dims>& inputs,
                                                 const RunNames& names = {});

/// The dims of a plan tensor for these values of the symbols.
Dims DimsAt(const PlanTensor& tensor, const std::vector<int64_t>& units);
/// Its strides, in elements.
Dims StridesAt(const PlanTensor& tensor, const std::vector<int64_t>& units);
/// The number of elements that its memory spans, gaps between rows included. For arena tensors the
/// maximum over all values.
int64_t ElementsAt(const PlanTensor& tensor, const std::vector<int64_t>& units);
/// Its offset, in bytes.
int64_t OffsetAt(const PlanTensor& tensor, const std::vector<int64_t>& units);

/// The maximum number of passes of a loop for these values.
int64_t MostPassesAt(const PlanLoop& loop, const std::vector<int64_t>& units);
/// Bytes by which `element` advances in each pass: one element of the first dim of its tensor.
int64_t ElementBytesAt(const Plan& plan, const PlanLoop::Element& element,
                       const std::vector<int64_t>& units);

}  // namespace fusion
