#pragma once

#include "tests/support/whole_program.h"

namespace fusion {

/// The whole program in two phases, its dim split into `parts`: of each phase the n-th choice, or
/// the last there is. Nothing is packed.
absl::StatusOr<Lowered> LowerSplit(const WholeProgram& whole, DimId dim, int64_t parts,
                                   const DeviceSpec& device, size_t n);

}  // namespace fusion
