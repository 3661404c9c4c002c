#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/bundle/report.h"
#include "core/cache/store.h"
#include "core/compile/worker_pool.h"

namespace fusion {

/// Finished calls by code name ("OK", "INVALID_ARGUMENT", ...), without zeros.
using CodeCounts = std::map<std::string, int64_t>;

/// Calls of one method since the start.
struct MethodCounts {
  std::string method;  // "PlanFusion"
  int64_t started = 0;
  CodeCounts finished;
  double seconds = 0;  // sum over finished calls
};

/// A plan with reported latencies, and how much time its runs took.
struct PlanUse {
  Digest plan_key;
  std::string model_name;  // empty: unknown
  std::string target;
  int threads = 1;
  int64_t calls = 0;
  double median_us = 0;  // of a run; 0: unknown
  double estimated_us = 0;
  int64_t launches = 0;

  double TotalUs() const { return median_us * static_cast<double>(calls); }
};

/// What a server does now. Counts are totals since its start.
struct ServerStatus {
  std::string version;
  Nanoseconds uptime{0};
  bool ready = false;
  int64_t unix_ms = 0;
  std::vector<MethodCounts> methods;     // those that were called
  std::map<std::string, int64_t> plans;  // answered, by CacheOutcomeName
  int64_t warm_hits = 0;
  int64_t warm_misses = 0;
  int64_t calls = 0;  // running and waiting
  int64_t call_limit = 0;
  int64_t calls_queued = 0;
  int64_t bytes = 0;
  int64_t limit_bytes = 0;
  std::map<std::string, int64_t> refused;  // by RefusedName
  int64_t connections = 0;
  int64_t connection_limit = 0;
  WorkerPoolStats workers;
  int64_t worker_limit = 0;
  int64_t compile_queue_limit = 0;
  int64_t quarantined = 0;
  int64_t failures = 0;
  std::vector<StoreStats> tiers;
  int64_t measured_plans = 0;
  std::vector<PlanUse> top_plans;
};

}  // namespace fusion
