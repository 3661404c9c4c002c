#pragma once

#include "core/graph/program/program.h"

namespace fusion {

// Parts of Verify(const Program&) that the parser of the text form also uses. Errors are Internal
// and say what was expected.

/// Checks that `op` may compute its output from its inputs. All of its values must exist. Bodies of
/// repeats are not checked.
absl::Status CheckOp(const Program& program, const LoopOp& op);

/// Checks that involve several ops: values within other values (Value::lies_in), results of
/// repeats.
absl::Status CheckWhole(const Program& program);

}  // namespace fusion
