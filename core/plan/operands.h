#pragma once

#include <optional>

#include "core/graph/program.h"

namespace fusion {

// What the operands of products are made from, for passes over programs.

/// The op that makes a value element by element, at the index that it reads something at; null:
/// none does.
const LoopOp* ElementwiseOf(const Program& program, ValueId value);

/// `index` over the dims of what read `read` of `body` reads, as one over the dims that `body`
/// writes. nullopt: it differs along what is summed up, or along windows.
std::optional<IndexMap> OverOutput(const LoopBody& body, size_t read, const IndexMap& index);

}  // namespace fusion
