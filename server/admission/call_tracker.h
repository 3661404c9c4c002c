#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/base/threads/mutex.h"
#include "server/admission/answer_memory.h"

namespace fusion {

/// Counts, by peer, the calls that gRPC keeps and the bytes of their answers. A call counts until
/// its caller has read the answer, which may be long after the service has returned it. Reports the
/// peer with the most calls or bytes when a limit of `Most` is exceeded, and every call that its
/// caller cancelled. A call that ended because its deadline passed does not count as cancelled,
/// unless the deadline was under 1 ms. Register it with SetContextAllocator. Thread-safe.
class CallTracker final : public grpc::ContextAllocator {
 public:
  /// Callbacks, on any thread. `peer`: gRPC's name of a peer.
  struct Reports {
    /// `Most` is exceeded, and `peer` has the most calls, or bytes of answers. Each at most a
    /// hundred times a second.
    std::function<void(const std::string& peer, int64_t calls)> too_many;
    std::function<void(const std::string& peer, int64_t bytes)> too_much;
    /// `peer` has cancelled a call.
    std::function<void(const std::string& peer)> taken_back;
  };
  /// gRPC's name of the peer of a call: "ipv4:127.0.0.1:4711", "unix:uid=0,pid=4711,connection=17".
  using PeerOf = std::function<std::string(const grpc::CallbackServerContext&)>;
  /// Limits of all peers together.
  struct Most {
    int64_t calls = 0;
    int64_t answer_bytes = 0;
  };
  /// `clock` must outlive it.
  CallTracker(
      const Most& most, Reports reports, const Clock& clock = Clock::Real(),
      PeerOf peer_of = [](const grpc::CallbackServerContext& call) { return call.peer(); })
      : most_(most), reports_(std::move(reports)), clock_(clock), peer_of_(std::move(peer_of)) {}

  /// A call begins.
  void Add(const grpc::CallbackServerContext& context);
  /// `bytes` of a complete request, or of a complete message of a streamed one, have arrived.
  void AddRequest(const grpc::CallbackServerContext& context, int64_t bytes);
  /// Sums of AddRequest by gRPC's name of the peer, since the last call with `begins_anew`. With
  /// `begins_anew`, the sums restart at zero.
  std::unordered_map<std::string, int64_t> RequestBytes(bool begins_anew);

  /// Sets the memory that the answer of a call, or the part being sent, keeps; replaces the
  /// previous value. Shared objects count once in the total and once for each peer.
  /// ResourceExhausted with kRetryAfter if the total would exceed Most::answer_bytes and the peer
  /// would have more than an eighth of that, or if the total would exceed 1.5 times that. Then the
  /// answer keeps nothing and must not be sent. Never refuses an answer while no other one is kept,
  /// nor an answer from a cache whose `own` is at most kSmallAnswerBytes.
  absl::Status SetAnswer(const grpc::CallbackServerContext& context, const AnswerMemory& kept);
  /// Exempts the call from EndOlderThan.
  void SetLasting(const grpc::CallbackServerContext& context);

  /// Ends, with DEADLINE_EXCEEDED, the calls that began more than `limit` ago: their callers do not
  /// read, or do not write. Returns how many.
  int64_t EndOlderThan(Nanoseconds limit);

  /// Calls that gRPC keeps, whether Add was called or not.
  int64_t live() const {
    MutexLock lock(&mutex_);
    return static_cast<int64_t>(made_.size());
  }
  /// Those of them for which Add was called.
  int64_t begun() const {
    MutexLock lock(&mutex_);
    return begun_;
  }
  /// Bytes that all their answers keep; shared objects count once.
  int64_t answer_bytes() const {
    MutexLock lock(&mutex_);
    return answer_bytes_;
  }

  grpc::CallbackServerContext* NewCallbackServerContext() override;
  /// Called by gRPC when it keeps nothing more of a call. For calls of unknown methods gRPC also
  /// passes contexts that it made and frees itself (1.51); those are ignored.
  void Release(grpc::CallbackServerContext* context) override;

 private:
  struct Kept {
    int64_t calls = 0;
    int64_t answer_bytes = 0;
  };
  using Peers = std::map<std::string, Kept>;
  struct Call {
    grpc::CallbackServerContext* context;
    Peers::iterator peer;  // end() before Add
    Nanoseconds begun{0};
    AnswerMemory answer;
    bool lasting = false;
    bool ended = false;  // by us
  };
  struct Shared {
    int64_t bytes = 0;
    int64_t answers = 0;
  };
  struct Heaviest {
    std::string peer;
    int64_t amount = 0;
  };
  /// An empty result if it was called less than 10 ms ago.
  Heaviest FindHeaviest(int64_t Kept::*amount, Nanoseconds* reported)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WasTakenBack(const Call& call) const;
  /// The bytes by which Keep(kept) would increase answer_bytes_.
  int64_t AddedBy(const AnswerMemory& kept) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(const AnswerMemory& kept, Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Most most_;
  const Reports reports_;
  const Clock& clock_;
  const PeerOf peer_of_;
  mutable Mutex mutex_;
  Peers peers_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<const void*, Shared> shared_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, int64_t> request_bytes_ ABSL_GUARDED_BY(mutex_);
  Nanoseconds reported_many_ ABSL_GUARDED_BY(mutex_) = Nanoseconds(0);
  Nanoseconds reported_much_ ABSL_GUARDED_BY(mutex_) = Nanoseconds(0);
  // Calls whose contexts were made here.
  std::map<const grpc::CallbackServerContext*, Call> made_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fusion
