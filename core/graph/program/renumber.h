#pragma once

#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// Gives the values of a program new numbers: new value i is the old value order[i]. Values that
/// `order` lacks are gone, and so are the ops that make them. Everything in the program that names
/// a value follows: what ops read and write, inputs, weights, outputs, Value::lies_in; producers
/// are set from the ops that are left. The only function that changes numbers, so that a new place
/// that names values is followed by adding it here. Numbers of a body (ProgramLoop::Operand::leaf)
/// are its own: whoever renumbers a body leads them through the result.
///
/// Returns the new number of each old value; kNoValue: it is gone. Nothing that stays may name what
/// is gone.
std::vector<ValueId> Renumber(const std::vector<ValueId>& order, Program* program);

}  // namespace fusion
