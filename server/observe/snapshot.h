#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/bundle/report.h"
#include "core/cache/record_store.h"
#include "core/cache/store.h"
#include "core/compile/quarantine.h"
#include "core/compile/worker_pool.h"
#include "core/learn/epoch_book.h"
#include "core/tune/tile_search.h"
#include "server/transport/http_server.h"

namespace fusion {

/// The state of the server's parts at one moment: the contents of /metrics and /statusz besides the
/// counters of Metrics. Totals count from the start.
struct ServerSnapshot {
  Nanoseconds uptime{0};
  bool ready = false;
  std::vector<StoreStats> tiers;
  DiskFacts disk;
  RecordStats measurements;  // of plans
  RecordStats timings;       // of kernels
  LearningStats learning;
  WorkerPoolStats workers;
  SearchStats searches;
  int64_t worker_limit = 0;
  int64_t compile_queue_limit = 0;
  int64_t flights_waiting = 0;   // requests that wait for the work of an equal request
  int64_t flights_shared = 0;    // total of such requests
  int64_t builds_abandoned = 0;  // total cancelled because no caller waited any more
  int64_t calls = 0;             // running and waiting
  int64_t call_limit = 0;
  int64_t calls_queued = 0;
  int64_t inflight_bytes = 0;
  int64_t inflight_limit_bytes = 0;
  int64_t planning_bytes = 0;  // held by running imports and plannings
  int64_t planning_limit_bytes = 0;
  int64_t plannings_ended =
      0;                // total evicted because they held the most when the limit was reached
  int64_t streams = 0;  // the calls that stream their answers; included in `calls`
  int64_t stream_limit = 0;
  int64_t connections = 0;  // open ones
  int64_t connection_limit = 0;
  int64_t connections_refused = 0;  // total, as in ConnectionCounts
  int64_t connections_closed = 0;   // total, as in ConnectionCounts
  HttpServer::Counts admin_connections;
  std::map<std::string, int64_t> refused;       // total of calls by RefusedName
  std::map<std::string, int64_t> tenant_bytes;  // held by running calls
  int64_t warm_answers = 0;                     // entries of ResponseCache
  std::map<std::string, int64_t> recent_bytes;  // of recent requests: "answers", "graphs", "plans"
  int64_t recent_limit_bytes = 0;               // limit of each of these
  std::vector<RegisteredCapability> registered;
  std::string authentication;  // "token mtls"
  int64_t tokens = 0;          // entries of --tokens that are in force
  int64_t identities = 0;
  std::optional<std::chrono::system_clock::time_point> certificate_expires;  // nullopt: no TLS
  std::string certificate_subject;
  std::vector<std::string> signing_keys;  // ids; the first one signs
  std::string sandbox;  // level that the workers report, or that was probed at the start
  std::vector<Quarantine::Entry> quarantine;
  int64_t failures = 0;                           // kernels whose failure is remembered
  std::map<std::string, int64_t> skipped_passes;  // total of plans made without this faulty pass
};

}  // namespace fusion
