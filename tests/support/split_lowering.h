#pragma once

#include "tests/support/whole_program.h"

namespace fusion {

/// The whole program in two phases, its dim split into `parts`: of each phase the n-th choice, or
/// the last there is. Nothing is packed. `tile`: above 0, each part is streamed in tiles of as
/// many. FailedPrecondition: it has no such form.
absl::StatusOr<Lowered> LowerSplit(const WholeProgram& whole, DimId dim, int64_t parts,
                                   const DeviceSpec& device, size_t n, int64_t tile = 0);

}  // namespace fusion
