#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <string>

#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace fusion {

/// Counts the calls that gRPC keeps, by peer: until the caller has read the answer, which may be
/// long after ours was given. Above `most` of them the peer with the most is reported, if it is one
/// of TCP; and so is each call that its caller took back. Thread-safe.
class CallCensus final : public grpc::ContextAllocator {
 public:
  /// What the census says, by gRPC's name of a peer; on any thread.
  struct Reports {
    /// The peer has the most calls of all; at most a hundred times a second.
    std::function<void(const std::string& peer, int64_t calls)> too_many;
    std::function<void(const std::string& peer)> taken_back;
  };
  /// `clock` outlives it.
  CallCensus(int64_t most, Reports reports, const Clock& clock = Clock::Real())
      : most_(most), reports_(std::move(reports)), clock_(clock) {}

  /// A call begins.
  void Add(const grpc::CallbackServerContext& context);

  /// Ends the calls that began longer than `limit` ago, whatever they are at: their callers do not
  /// read, or do not write. How many.
  int64_t EndOlderThan(Nanoseconds limit);

  /// Calls that came and are kept, begun or not.
  int64_t live() const {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(made_.size());
  }
  /// Of them, those that have begun.
  int64_t begun() const {
    MutexLock lock(&mutex_);
    return begun_;
  }

  grpc::CallbackServerContext* NewCallbackServerContext() override;
  /// A call has ended, and nothing of it is kept any more. gRPC gives contexts here too that it
  /// made itself, of methods that nobody has, and frees them again afterwards (1.51).
  void Release(grpc::CallbackServerContext* context) override;

 private:
  using Peers = std::map<std::string, int64_t>;
  struct Call {
    grpc::CallbackServerContext* context;
    Peers::iterator peer;  // the end until it begins
    Nanoseconds begun{0};
    bool ended = false;  // by us
  };

  const int64_t most_;
  const Reports reports_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Peers calls_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  Nanoseconds reported_ ABSL_GUARDED_BY(mutex_) = Nanoseconds(0);
  std::map<const grpc::CallbackServerContext*, Call> made_ ABSL_GUARDED_BY(mutex_);  // here
};

}  // namespace fusion
