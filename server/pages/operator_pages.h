#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/threads/cancel.h"
#include "core/bundle/measured/epoch.h"
#include "core/cache/store.h"
#include "core/compile/command.h"
#include "core/learn/latency_book.h"
#include "server/observe/snapshot.h"
#include "server/rpc/server_status.h"
#include "server/transport/http_server.h"

namespace fusion {

/// What the pages for people show, not owned. Everything must outlive the pages, and be
/// thread-safe.
struct OperatorParts {
  Store& store;
  LatencyBook& book;
  CommandRunner& runner;           // runs graphviz
  std::function<bool()> complete;  // all parts of the server are there
  std::function<ServerStatus(const CancelToken& cancel)> status;
  std::function<ServerSnapshot()> snapshot;
  std::function<EpochList()> epochs;
  std::string version;   // of the server
  std::string compiler;  // its version line
  std::string isas;      // that it compiles for
  /// OK, or Unauthenticated or PermissionDenied, for the header Authorization of a request.
  std::function<absl::Status(std::string_view authorization)> allow;
  const Clock& clock = Clock::Real();
};

/// The pages for people: / (overview), /plans, /plans/KEY, /plans/KEY.svg, /kernels, /kernels/KEY,
/// /accuracy, /epochs, /queue, /workers. HTML without scripts that loads nothing from elsewhere,
/// read-only. They show what belongs to all tenants.
///
/// A page shows a bounded number of rows and takes a bounded time. Pictures and fits, which take
/// seconds, are made one at a time; another one meanwhile gets 503. The last pictures are kept. A
/// request that `allow` refuses gets 401 or 403.
std::vector<HttpPage> OperatorPages(OperatorParts parts);

}  // namespace fusion
