#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/bundle/report.h"
#include "core/cache/measurement_store.h"
#include "core/cache/store.h"
#include "core/compile/quarantine.h"
#include "core/compile/worker_pool.h"
#include "core/pipeline/kernels/tile_search.h"
#include "server/transport/http_server.h"

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
  int64_t flights_waiting = 0;   // requests that wait for equal work
  int64_t flights_shared = 0;    // requests that ever did
  int64_t builds_abandoned = 0;  // that ended because nobody waited for them
  int64_t calls = 0;             // under way, waiting ones included
  int64_t call_limit = 0;
  int64_t calls_queued = 0;
  int64_t inflight_bytes = 0;
  int64_t inflight_limit_bytes = 0;
  int64_t planning_bytes = 0;  // that imports and plannings under way hold
  int64_t planning_limit_bytes = 0;
  int64_t plannings_ended = 0;  // because they held most of it when it was used up
  int64_t streams = 0;          // of the calls, those whose answers are read in parts
  int64_t stream_limit = 0;
  int64_t connections = 0;  // open ones
  int64_t connection_limit = 0;
  int64_t connections_refused = 0;
  int64_t connections_closed = 0;
  HttpServer::Counts admin_connections;
  std::map<std::string, int64_t> refused;       // calls, by reason
  std::map<std::string, int64_t> tenant_bytes;  // of requests under way
  int64_t warm_answers = 0;
  std::map<std::string, int64_t> recent_bytes;  // of recent requests: "answers", "graphs", "plans"
  int64_t recent_limit_bytes = 0;               // of each
  std::vector<RegisteredCapability> registered;
  std::string authentication;  // "token mtls"
  int64_t tokens = 0;          // entries of --tokens that are in force
  int64_t identities = 0;
  std::optional<std::chrono::system_clock::time_point> certificate_expires;  // nothing: no TLS
  std::string certificate_subject;
  std::vector<std::string> signing_keys;  // ids, the current one first
  std::string sandbox;  // level of the workers, as they say, or as was found out at start
  std::vector<Quarantine::Entry> quarantine;
  int64_t failures = 0;                           // of kernels, remembered for a while
  std::map<std::string, int64_t> skipped_passes;  // plans made without a pass that broke them
};

}  // namespace fusion
