#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <string>

#include "core/base/mutex.h"

namespace fusion {

/// Counts the calls that gRPC keeps, by peer: until the caller has read the answer, which may be
/// long after ours was given. Above `most` of them the peer with the most is reported. Thread-safe.
class CallCensus final : public grpc::ContextAllocator {
 public:
  /// `report` is told gRPC's name of a peer, and how many calls it has; on any thread.
  CallCensus(int64_t most, std::function<void(const std::string& peer, int64_t calls)> report)
      : most_(most), report_(std::move(report)) {}

  /// A call begins.
  void Add(const grpc::CallbackServerContext& context);

  /// Calls that came and are kept, begun or not.
  int64_t live() const {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(made_.size());
  }

  grpc::CallbackServerContext* NewCallbackServerContext() override;
  /// A call has ended, and nothing of it is kept any more. gRPC gives contexts here too that it
  /// made itself, of methods that nobody has, and frees them again afterwards (1.51).
  void Release(grpc::CallbackServerContext* context) override;

 private:
  using Peers = std::map<std::string, int64_t>;

  const int64_t most_;
  const std::function<void(const std::string& peer, int64_t calls)> report_;
  mutable Mutex mutex_;
  Peers calls_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  // Those that were made here; the end of calls_ until the call begins.
  std::map<const grpc::CallbackServerContext*, Peers::iterator> made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
