#pragma once

#include <string>
#include <vector>

#include "core/bundle/report.h"
#include "core/cache/measurement_store.h"
#include "core/cache/store.h"
#include "core/compile/worker_pool.h"
#include "core/pipeline/tile_search.h"

namespace fusion {

/// The server's parts at one moment: what /metrics and /statusz show beside the counters.
struct ServerSnapshot {
  Nanoseconds uptime{0};
  bool ready = false;
  std::vector<StoreStats> tiers;
  DiskFacts disk;
  MeasurementStats measurements;
  WorkerPoolStats workers;
  SearchStats searches;
  int64_t worker_limit = 0;
  int64_t compile_queue_limit = 0;
  int64_t flights_waiting = 0;  // requests that wait for equal work
  int64_t flights_shared = 0;   // requests that ever did
  int64_t calls = 0;            // under way, waiting ones included
  int64_t call_limit = 0;
  int64_t calls_queued = 0;
  int64_t inflight_bytes = 0;
  int64_t inflight_limit_bytes = 0;
  int64_t rejected_calls = 0;  // because of call_limit
  int64_t rejected_bytes = 0;  // calls refused because of inflight_limit_bytes
  std::vector<RegisteredCapability> registered;
};

}  // namespace fusion
