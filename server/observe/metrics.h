#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/cache/metered_store.h"
#include "server/access/rpc_record.h"
#include "server/observe/snapshot.h"

namespace fusion {

/// Calls that ended, by code name ("OK", "INVALID_ARGUMENT", ...); zeros left out.
using CodeCounts = std::map<std::string, int64_t>;

/// Counts what happens and shows it in Prometheus' text format 0.0.4. Of a caller, no label
/// ever carries more than the name of its tenant. Thread-safe; an observation costs well under a
/// microsecond a counter.
class Metrics final : public StoreObserver, public RpcObserver {
 public:
  /// `compiler`: its version line.
  Metrics(const std::string& version, const std::string& compiler);
  ~Metrics() override;

  void OnGet(EntryKind kind, Tier tier, Nanoseconds took) override;
  void OnPut(const absl::Status& status, Nanoseconds took) override;
  void OnStarted(RpcMethod method) override;
  void OnFinished(const RpcRecord& record) override;
  /// Once for each kernel, however many calls waited for it.
  void OnKernelMade(const KernelArtifact& kernel);

  /// Counters, and gauges made of `now` and of /proc/self.
  std::string Text(const ServerSnapshot& now) const;

  int64_t started(RpcMethod method) const;
  CodeCounts finished(RpcMethod method) const;

 private:
  struct Counters;
  const std::unique_ptr<Counters> counters_;
};

}  // namespace fusion
