#pragma once

namespace fusion {

/// Cores that the calling thread may run on, at least 1; threads started by it inherit the limit.
int UsableCores();

}  // namespace fusion
