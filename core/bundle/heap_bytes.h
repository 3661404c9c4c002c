#pragma once

#include "core/base/heap_bytes.h"
#include "core/bundle/options.h"

namespace fusion {

/// Approximate heap bytes of `options`, without the lock, which is shared. Pure.
int64_t HeapBytes(const PlanOptions& options);

}  // namespace fusion
