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

  grpc::CallbackServerContext* NewCallbackServerContext() override;
  /// A call has ended, and nothing of it is kept any more.
  void Release(grpc::CallbackServerContext* context) override;

 private:
  using Peers = std::map<std::string, int64_t>;

  const int64_t most_;
  const std::function<void(const std::string& peer, int64_t calls)> report_;
  Mutex mutex_;
  Peers calls_ ABSL_GUARDED_BY(mutex_);
  std::map<const grpc::CallbackServerContext*, Peers::iterator> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
