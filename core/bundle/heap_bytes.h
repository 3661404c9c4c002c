#pragma once

#include "core/base/heap_bytes.h"
#include "core/bundle/options.h"

namespace fusion {

/// About the bytes of heap that options hold, without those of a lock, which is shared. Pure.
int64_t HeapBytes(const PlanOptions& options);

}  // namespace fusion
