#pragma once

#include "core/graph/program/program.h"

namespace fusion {

// Parts of Verify(const Program&) that the parser of the text form uses as it goes. Messages say
// what was expected.

/// Whether `op`, all of whose values are there, may make its output of its inputs. Bodies of
/// repeats are taken for sound.
absl::Status CheckOp(const Program& program, const LoopOp& op);

/// What no op shows by itself: rows that lie in other values, results of repeats.
absl::Status CheckWhole(const Program& program);

}  // namespace fusion
