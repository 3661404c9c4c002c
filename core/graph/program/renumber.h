#pragma once

#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Gives the values of a program new numbers: new value i is the old value order[i]. Values that
/// `order` lacks are removed, and so are the ops that produce them. All references follow: inputs
/// and outputs of ops, Program::inputs, weights and outputs, Value::lies_in. Value::producer is set
/// from the remaining ops.
///
/// Only this function changes numbers, so a new kind of reference needs a change only here. A body
/// has numbers of its own: a caller that renumbers a body updates ProgramLoop::Operand::leaf and
/// ProgramLoop::pass from the result.
///
/// Returns the new number of each old value; kNoValue: it was removed. What remains must not refer
/// to removed values.
std::vector<ValueId> Renumber(const std::vector<ValueId>& order, Program* program);

}  // namespace fusion
