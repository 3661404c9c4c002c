#pragma once

namespace fusion {

/// Number of cores in the affinity mask of the calling thread, at least 1. Threads that it starts
/// inherit the mask.
int UsableCores();

}  // namespace fusion
