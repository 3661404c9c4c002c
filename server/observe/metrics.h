#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/cache/metered_store.h"
#include "server/access/rpc_record.h"
#include "server/observe/snapshot.h"
#include "server/rpc/server_status.h"

namespace fusion {

/// Counts events and formats them in Prometheus' text format 0.0.4. The only label that comes from
/// a caller is its tenant: the first 64, then "other". Thread-safe; an observation takes well under
/// a microsecond per counter.
class Metrics final : public StoreObserver, public RpcObserver {
 public:
  /// Labels of the build info; `compiler`: its version line.
  Metrics(const std::string& version, const std::string& compiler);
  ~Metrics() override;

  void OnGet(EntryKind kind, Tier tier, Nanoseconds took) override;
  void OnPut(const absl::Status& status, Nanoseconds took) override;
  void OnStarted(RpcMethod method) override;
  void OnFinished(const RpcRecord& record) override;
  /// Call it once for each compiled kernel, however many calls waited for it.
  void OnKernelMade(const KernelArtifact& kernel);

  /// The text of /metrics: the counters, and gauges from `now` and /proc/self.
  std::string Text(const ServerSnapshot& now) const;

  /// Calls of `method` that have started and finished.
  int64_t started(RpcMethod method) const;
  CodeCounts finished(RpcMethod method) const;

  /// Sets `methods`, `plans` and the warm counts of `status`.
  void AddTo(ServerStatus* status) const;

 private:
  struct Counters;
  const std::unique_ptr<Counters> counters_;
};

}  // namespace fusion
